-- Statement triggers. Reads key_column, the present name of the key, and the transition tables.
            IF TG_OP <> 'DELETE' THEN
                EXECUTE format('INSERT INTO %s (key, op, version, center) SELECT r.%I, ''u'', 0, 0 FROM new_rows r', {stream_text}, key_column);
            END IF;
            IF TG_OP <> 'INSERT' THEN
                EXECUTE format('INSERT INTO %s (key, op, version, center) SELECT r.%I, ''u'', 0, 0 FROM old_rows r', {stream_text}, key_column);
            END IF;
