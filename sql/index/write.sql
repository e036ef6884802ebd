-- What happens in the transaction of a write: a trigger of the table appends to the stream.

-- foh: function place
-- The bits and the home of a row, or 0 if there is no center yet.
-- A plain SQL function, so that it is inlined: bits, home and version then share the snapshot of one statement.
CREATE OR REPLACE FUNCTION {self}(x {vector}.vector, labels text[]) RETURNS TABLE (geometry bit, marks bit, center int)
LANGUAGE sql STABLE
AS $body$
    SELECT r.geometry, r.marks, coalesce((SELECT n.center FROM {home}(r.geometry) n), 0)
    FROM (
        SELECT {row_geometry} AS geometry, {row_marks} AS marks
        FROM (
            SELECT a.signature,
                   (SELECT coalesce(bit_or(p.mask) FILTER (
                               WHERE -(p.weights OPERATOR({vector}.<#>) $1) - p.bias + coalesce(a.lean * a.anchor[p.bit + 1], 0) >= 0),
                           0::bit({bits}))
                    FROM {projection} p) AS code
            FROM (
                SELECT l.anchor, l.signature,
                       CASE WHEN l.anchor IS NOT NULL THEN {label_weight} * {vector}.l2_distance($1, m.mean) END AS lean
                FROM (SELECT {vector}.sum(d.projection)::real[] AS anchor, bit_or(set_bit({signature_zeros}, d.label % greatest({signature_bits}, 1), 1)) AS signature
                      -- One lookup for each name, whatever the statistics. index + 0 leaves only the key on names: with the statistics of a
                      -- dictionary that was empty a moment ago, PostgreSQL would read all labels of the index for each row.
                      FROM (SELECT DISTINCT u.name FROM unnest($2) AS u (name)) u
                      CROSS JOIN LATERAL (SELECT d.label, d.projection FROM foh.label d WHERE d.name = u.name AND d.index + 0 = {id} OFFSET 0) d) l,
                     (SELECT o.mean FROM foh.model o
                      WHERE o.index = {id} AND o.version = (SELECT i.version FROM foh.index i WHERE i.id = {id})) m
                OFFSET 0) a
            OFFSET 0) b
        CROSS JOIN {quantizer} g
        OFFSET 0) r
$body$;

-- foh: function known_place
-- Bits and home that a key has already, for a row whose embedding and labels are what they were: from its newest entry in the stream, or
-- else from its list. No row where the key has neither, where the table was emptied or must be read again, and for a null key.
-- The caller has just written the row, and so has waited for all other transactions that wrote it; an older snapshot shows version, home and bits
-- as they belong together. Under SERIALIZABLE these lookups could abort the writer, so there the row is placed again.
CREATE OR REPLACE FUNCTION {self}(key {key_type}) RETURNS TABLE (version bigint, center int, geometry bit, marks bit)
LANGUAGE sql STABLE
AS $body$
    SELECT coalesce(t.version, (SELECT i.version FROM foh.index i WHERE i.id = {id})), coalesce(t.center, l.home),
           CASE WHEN t.op IS NULL THEN l.geometry ELSE t.geometry END, CASE WHEN t.op IS NULL THEN l.marks ELSE t.marks END
    FROM (SELECT) one
    LEFT JOIN LATERAL (SELECT t.op, t.version, t.center, t.geometry, t.marks FROM {stream} t WHERE {newest_of_key} LIMIT 1) t ON true
    LEFT JOIN LATERAL (SELECT i.home, l.geometry[l.at] AS geometry, l.marks[l.at] AS marks
                       FROM {item} i
                       CROSS JOIN LATERAL (SELECT l.geometry, l.marks, array_position(l.ids, $1{our_collate}) AS at FROM {list} l WHERE l.center = i.home OFFSET 0) l
                       WHERE i.key = $1{our_collate} AND t.op IS NULL AND l.at IS NOT NULL OFFSET 0) l ON true
    WHERE CASE WHEN t.op IS NULL THEN l.home IS NOT NULL ELSE t.op = 'u' END
      AND current_setting('transaction_isolation') <> 'serializable'
      AND NOT EXISTS (SELECT FROM {stream} m WHERE m.op IN ('t', 'r') AND NOT m.fresh)
$body$;

-- foh: function record
-- The stream entry of one key and its row; x is null where the row is gone or cannot be indexed. first: the key may be new to
-- the index. A far row has an entry without bits or home, so that searches read the row itself. A plain SQL function, so that it is
-- inlined, as place in it is.
CREATE OR REPLACE FUNCTION {self}(key {key_type}, x {vector}.vector, labels text[], first boolean)
RETURNS TABLE (op "char", version bigint, center int, geometry bit, marks bit, fresh boolean)
LANGUAGE sql STABLE
AS $body$
    SELECT CASE WHEN $2 IS NULL THEN 'd' ELSE 'u' END::"char", (SELECT i.version FROM foh.index i WHERE i.id = {id}),
           CASE WHEN $2 IS NOT NULL THEN coalesce(p.center, 0) END, p.geometry, p.marks,
           -- Looked up in the snapshot that the version is read in. A transaction that keeps an older snapshot does not see what became
           -- of the key, and under SERIALIZABLE this lookup could abort the writer, so there the entry is not marked fresh.
           -- OFFSET 0: a lookup for each key, never all keys at once.
           CASE WHEN $4 AND p.center IS NOT NULL AND current_setting('transaction_isolation') LIKE 'read %'
                THEN NOT EXISTS (SELECT FROM {item} i WHERE i.key = $1{our_collate} OFFSET 0)
                     AND NOT EXISTS (SELECT FROM {stream} e WHERE e.key = $1{our_collate} OFFSET 0)
                ELSE false END
    FROM (SELECT CASE WHEN {vector}.vector_norm($2) <= {longest} THEN $2 END AS x OFFSET 0) near LEFT JOIN LATERAL {place}(near.x, $3) p ON near.x IS NOT NULL
$body$;

-- foh: function intact
-- Whether the tables of the index still look as recorded; null where the index is gone. Called first by every trigger:
-- no ALTER of the application's table may make its writes fail. A table that is not the index's own is refused.
-- Written out for each index, since every statement that writes to the source pays for it.
CREATE OR REPLACE FUNCTION {self}(relation oid) RETURNS boolean
LANGUAGE plpgsql STABLE{shows_shards}
AS $body$
DECLARE
    ours boolean;
    intact boolean;
BEGIN
    SELECT relation = i.source OR relation = i.labels_from OR pg_partition_root(relation) IN (i.source, i.labels_from),
           {columns_intact}
    INTO ours, intact
    FROM foh.index i WHERE i.id = {id};
    IF FOUND AND ours IS NOT TRUE THEN
        RAISE EXCEPTION 'foh: % is not a table of index %', relation::regclass, quote_literal({name})
            USING ERRCODE = 'insufficient_privilege',
                  HINT = 'The triggers of an index belong on the table it was created for.';
    END IF;
    RETURN intact;
END
$body$;

-- foh: fragment new_rows, if row_triggers
(SELECT NEW.*)

-- foh: fragment new_rows
new_rows

-- foh: fragment old_rows, if row_triggers
(SELECT OLD.*)

-- foh: fragment old_rows
old_rows

-- foh: fragment any_changed, if row_triggers
-- Most updates change nothing that the index knows, and to look for it costs less than to start the statement that records.
{each NEW.@ <> OLD.@ OR} OR {row_changed}

-- foh: fragment any_changed
EXISTS (SELECT FROM new_rows s FULL JOIN old_rows o ON {each o.@ = s.@ AND} WHERE {each s.@ IS NULL AND} OR {each o.@ IS NULL AND} OR {changed})

-- foh: fragment updated, if row_triggers
(SELECT NEW.*) s CROSS JOIN (SELECT OLD.*) o CROSS JOIN LATERAL (SELECT {row s.@} AS key, {each s.@ <> o.@ OR} OR {moved} AS moved OFFSET 0) u

-- foh: fragment updated
-- A full join, which PostgreSQL never does as a loop in a loop, even where the plan was made for one row.
             new_rows s FULL JOIN old_rows o ON {each o.@ = s.@ AND}
             CROSS JOIN LATERAL (SELECT {row coalesce(s.@, o.@)} AS key, {each s.@ IS NULL AND} OR {each o.@ IS NULL AND} OR {moved} AS moved
                                 WHERE {each s.@ IS NULL AND} OR {each o.@ IS NULL AND} OR {changed} OFFSET 0) u

-- foh: fragment record_left, if row_triggers
IF {each NEW.@ <> OLD.@ OR} THEN
            INSERT INTO {stream} (key, op, version)
            SELECT {row OLD.@}, 'd', (SELECT i.version FROM foh.index i WHERE i.id = {id});
        END IF;

-- foh: fragment record_left
-- The full join has found the keys that rows have left.

-- foh: fragment unknown_index
-- The first thing in every trigger. Either the index is gone, or it was created after this transaction took its snapshot: then an entry in the stream
    -- makes the next update read the whole source.
    IF intact IS NULL THEN
        IF current_setting('transaction_isolation') NOT LIKE 'read %' THEN
            INSERT INTO {stream} (op, version, center) VALUES ('r', 0, 0);
        END IF;
        RETURN NULL;
    END IF;

-- foh: function capture
-- The trigger of the source: finds the keys whose key, embedding or labels changed, and records them.
-- Bits, home and version of all rows come from one INSERT ... SELECT, so from one snapshot. The SET clauses pin its
-- plan, which may have been cached for one row and a table of one page: each row is looked up by key, and JIT is off.
-- Rows are taken as they were written. Where a trigger of the application has written to the table within another write
-- (setting foh.nested), a later write of the transaction may have the older image: then rows are read from the source.
CREATE OR REPLACE FUNCTION {self}() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET quote_all_identifiers = off
SET row_security = on
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $body$
#variable_conflict use_variable
DECLARE
    intact boolean := {intact}(TG_RELID);
    deferred boolean := coalesce(lower(current_setting('foh.defer', true)), '') IN ('on', 'true', 'yes', '1');
    nested boolean := coalesce(current_setting('foh.nested', true), '') = 'on';
    -- Of a row r of a table that no longer looks as recorded.
    present_key text;
    queue constant text := $sql$INSERT INTO {stream} (key, op, version, center) SELECT %1$s, 'u', 0, 0 FROM %2$s r WHERE %1$s IS NOT NULL$sql$;
    -- The keys of rows that are not taken as they were written.
    touched {key_type}[];
BEGIN
    {unknown_index}
    IF TG_OP = 'TRUNCATE' THEN
        INSERT INTO {stream} (op, version, center) VALUES ('t', 0, 0);
        RETURN NULL;
    ELSIF NOT intact THEN
        -- The source no longer looks as recorded: queue the keys and warn. The write never fails for this.
        RAISE WARNING 'foh: % has changed since index % was created or refreshed; rows are queued', TG_RELID::regclass, {name}
            USING HINT = format('What helps: %s.', foh._cure({name}));
        present_key := foh._present_key({id});
        IF present_key IS NULL THEN
            INSERT INTO {stream} (op, version, center) VALUES ('r', 0, 0);
        ELSE
            IF TG_OP <> 'DELETE' THEN
                EXECUTE format(queue, present_key, CASE TG_LEVEL WHEN 'ROW' THEN '(SELECT ($1).*)' ELSE 'new_rows' END) USING NEW;
            END IF;
            IF TG_OP <> 'INSERT' THEN
                EXECUTE format(queue, present_key, CASE TG_LEVEL WHEN 'ROW' THEN '(SELECT ($1).*)' ELSE 'old_rows' END) USING OLD;
            END IF;
        END IF;
        RETURN NULL;
    END IF;
    IF pg_trigger_depth() > 1 AND NOT nested THEN
        PERFORM set_config('foh.nested', 'on', true);
    END IF;
    IF deferred OR nested THEN
        IF TG_OP = 'INSERT' THEN
            touched := ARRAY(SELECT {row n.@} FROM {new_rows} n WHERE n.{embedding} IS NOT NULL);
        ELSIF TG_OP = 'DELETE' THEN
            touched := ARRAY(SELECT {row o.@} FROM {old_rows} o WHERE o.{embedding} IS NOT NULL);
        ELSE
            touched := ARRAY(SELECT {row coalesce(s.@, o.@)} FROM {new_rows} s FULL JOIN {old_rows} o ON {each o.@ = s.@ AND}
                             WHERE {each s.@ IS NULL AND} OR {each o.@ IS NULL AND} OR {changed});
        END IF;
        IF deferred THEN
            -- Keys alone: a search or an update that reads such an entry looks at the row as it is then.
            INSERT INTO {stream} (key, op, version, center) SELECT unnest(touched), 'u', 0, 0;
        ELSE
            INSERT INTO {stream} (key, op, version, center, geometry, marks{included , included_#})
            SELECT v.key, r.op, r.version, r.center, r.geometry, r.marks{included , v.included_#}
            FROM (SELECT e.key, w.x, w.labels{included , w.included_#} FROM (SELECT unnest(touched) AS key) e LEFT JOIN LATERAL (
                      SELECT {vector_once} AS x, {labels_of} AS labels{included , s.@::~ AS included_#} FROM {source} s WHERE {s_is_e} OFFSET 0) w ON true OFFSET 0) v,
                 LATERAL {record}(v.key, v.x, v.labels, false) r;
        END IF;
    ELSIF TG_OP = 'INSERT' THEN
        INSERT INTO {stream} (key, op, version, center, geometry, marks, fresh{included , included_#})
        SELECT v.key, r.op, r.version, r.center, r.geometry, r.marks, r.fresh{included , v.included_#}
        FROM (SELECT {row s.@} AS key, {vector_once} AS x, {labels_of} AS labels{included , s.@::~ AS included_#} FROM {new_rows} s WHERE s.{embedding} IS NOT NULL OFFSET 0) v,
             LATERAL {record}(v.key, v.x, v.labels, true) r;
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO {stream} (key, op, version)
        SELECT {row o.@}, 'd', (SELECT i.version FROM foh.index i WHERE i.id = {id}) FROM {old_rows} o WHERE o.{embedding} IS NOT NULL;
    ELSIF {any_changed} THEN
        -- moved says whether more than included columns may have changed. If not, bits and home of the row are those that it has, and the embedding is not
        -- even read.
        INSERT INTO {stream} (key, op, version, center, geometry, marks{included , included_#})
        SELECT u.key, r.op, r.version, r.center, r.geometry, r.marks{included , s.@::~ AS included_#}
        FROM {updated}
        LEFT JOIN LATERAL {known_place}(CASE WHEN {included_text} <> '{}' AND NOT u.moved THEN u.key END) k ON true
        CROSS JOIN LATERAL (SELECT r.op, r.version, r.center, r.geometry, r.marks
                            FROM (SELECT {vector_once} AS x, {labels_of} AS labels OFFSET 0) v, LATERAL {record}(u.key, v.x, v.labels, false) r WHERE k.version IS NULL
                            UNION ALL SELECT 'u', k.version, k.center, k.geometry, k.marks WHERE k.version IS NOT NULL) r;
        {record_left}
    END IF;
    RETURN NULL;
END
$body$;

-- foh: function capture_labels, if labels_from
-- The trigger of the table that holds the labels: notes the keys of the source whose labels changed. It reads no row of the
-- source: an embedding that another transaction is writing cannot be seen here, and an entry made of the old one would hide
-- the new one. Searches pass over these entries; the next update encodes the rows with their labels.
CREATE OR REPLACE FUNCTION {self}() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET quote_all_identifiers = off
SET row_security = on
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET jit = off
AS $body$
#variable_conflict use_variable
DECLARE
    intact boolean := {intact}(TG_RELID);
BEGIN
    {unknown_index}
    IF TG_OP = 'TRUNCATE' OR NOT intact THEN
        IF NOT intact THEN
            RAISE WARNING 'foh: % or the source has changed since index % was created or refreshed', TG_RELID::regclass, {name}
                USING HINT = format('What helps: %s.', foh._cure({name}));
        END IF;
        INSERT INTO {stream} (op, version, center) VALUES ('r', 0, 0);
    ELSIF TG_LEVEL = 'ROW' THEN
        IF TG_OP <> 'UPDATE' OR {row NEW.&} IS DISTINCT FROM {row OLD.&} OR NEW.{label_column} IS DISTINCT FROM OLD.{label_column} THEN
            INSERT INTO {stream} (key, op, fresh)
            SELECT t.key, 'l', true
            FROM (SELECT {row NEW.&} AS key WHERE TG_OP <> 'DELETE' UNION SELECT {row OLD.&} WHERE TG_OP <> 'INSERT') t
            WHERE t.key IS NOT NULL;
        END IF;
    ELSIF TG_OP = 'INSERT' THEN
        INSERT INTO {stream} (key, op, fresh)
        SELECT DISTINCT {row n.&}, 'l'::"char", true FROM new_rows n WHERE {row n.&} IS NOT NULL;
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO {stream} (key, op, fresh)
        SELECT DISTINCT {row o.&}, 'l'::"char", true FROM old_rows o WHERE {row o.&} IS NOT NULL;
    ELSE
        INSERT INTO {stream} (key, op, fresh)
        SELECT t.key, 'l', true
        FROM (SELECT a.key FROM (SELECT {row n.&} AS key, n.{label_column} FROM new_rows n EXCEPT ALL
                                 SELECT {row o.&}, o.{label_column} FROM old_rows o) a WHERE a.key IS NOT NULL
              UNION
              SELECT b.key FROM (SELECT {row o.&} AS key, o.{label_column} FROM old_rows o EXCEPT ALL
                                 SELECT {row n.&}, n.{label_column} FROM new_rows n) b WHERE b.key IS NOT NULL) t;
    END IF;
    RETURN NULL;
END
$body$;
