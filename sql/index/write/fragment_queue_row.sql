-- Row triggers. Reads key_column, the present name of the key.
            IF TG_OP <> 'DELETE' THEN
                EXECUTE format('INSERT INTO %s (key, op, version, center) VALUES (($1).%I, ''u'', 0, 0)', {stream_text}, key_column) USING NEW;
            END IF;
            IF TG_OP <> 'INSERT' THEN
                EXECUTE format('INSERT INTO %s (key, op, version, center) VALUES (($1).%I, ''u'', 0, 0)', {stream_text}, key_column) USING OLD;
            END IF;
