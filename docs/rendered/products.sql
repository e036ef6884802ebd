-- The objects of the index "products" in the server, made by
--     CREATE TABLE product (id bigint PRIMARY KEY, name text, tags text[], embedding vector(3));
--     SELECT foh.create_index('products', 'product', 'embedding', labels => 'tags', bits => 16);
-- from the templates in sql/index/. PostgreSQL 17 or later; pgvector is in schema "extensions".
-- Written by FOH_RENDER=1 pytest tests/integration/test_rendered_index.py; do not change it by hand.

-- One row per bit of the learned code: the bit of x is 1 where weights . x - bias + (what the labels add) >= 0. Where the tables
-- of an index are made again this one stays, and with it what was learned.
CREATE TABLE IF NOT EXISTS foh.products_projection (
    bit     int PRIMARY KEY,
    weights extensions.vector(3) NOT NULL,
    bias    float8 NOT NULL,
    mask    bit(16) NOT NULL
);
-- How geometry bits are made of a row: one row, made anew only together with all lists.
CREATE TABLE foh.products_quantizer (
    -- Tables in a publication FOR ALL TABLES need a primary key.
    one       boolean PRIMARY KEY DEFAULT true CHECK (one),
    -- The sign that each number is taken with, before all are turned.
    signs     extensions.halfvec(3) NOT NULL,
    -- All first thresholds of the turned numbers, then all second ones, and so on.
    threshold extensions.vector(1280) NOT NULL,
    -- For inner products: the length that all rows are brought to by one more number.
    reach     float8 NOT NULL DEFAULT 1
    -- What fits a page stays in it, so that nothing has to be looked up in another table. Signs can be compressed, thresholds cannot.
) WITH (toast_tuple_target = 8160);
ALTER TABLE foh.products_quantizer ALTER COLUMN threshold SET STORAGE MAIN;
-- Two levels: a search compares the areas first, then the centers of the nearest areas. Each stands in parts that fit a page: the
-- areas with their bits in area 0, the centers of an area with their bits in the area of that number.
CREATE TABLE foh.products_area (
    area     int NOT NULL,
    part     int NOT NULL,
    ids      int[] NOT NULL,
    geometry bit(1280)[] NOT NULL,
    PRIMARY KEY (area, part),
    CHECK (cardinality(ids) = cardinality(geometry))
) WITH (toast_tuple_target = 8160);
-- What the updater knows of a center beside its bits.
CREATE TABLE foh.products_center (
    center    int PRIMARY KEY,
    length    int NOT NULL DEFAULT 0 CHECK (length >= 0),
    -- The version that last encoded the members, and the share of their bits estimated to have flipped since.
    version   bigint NOT NULL,
    stale     real NOT NULL DEFAULT 0 CHECK (stale BETWEEN 0 AND 1),
    -- The version that last looked whether the members are at home here; 0 where nearer centers were made since.
    checked   bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 90);
-- A short value would be packed, and unpacked again by every comparison.
ALTER TABLE foh.products_projection ALTER COLUMN mask SET STORAGE PLAIN;
-- Arrays, not rows: a quarter of the bytes, and a fifth of the WAL. A part fits a page (see foh_pg/tables/page_parts.py): nothing that a
-- search reads has to be fetched from TOAST.
CREATE TABLE foh.products_list (
    center   int NOT NULL,
    part     int NOT NULL,
    ids      bigint[] NOT NULL,
    geometry bit(1280)[] NOT NULL,
    -- The signature of the labels, where the index has labels, then the learned code.
    marks    bit(80)[] NOT NULL,
    PRIMARY KEY (center, part),
    CHECK (cardinality(ids) = cardinality(geometry) AND cardinality(ids) = cardinality(marks))
) WITH (autovacuum_vacuum_scale_factor = 0.05, toast.autovacuum_vacuum_scale_factor = 0.05,
        toast_tuple_target = 8160);
-- Bits do not compress; reading them must not try.
ALTER TABLE foh.products_area ALTER COLUMN ids SET STORAGE EXTERNAL, ALTER COLUMN geometry SET STORAGE EXTERNAL;
ALTER TABLE foh.products_list ALTER COLUMN ids SET STORAGE EXTERNAL, ALTER COLUMN geometry SET STORAGE EXTERNAL,
    ALTER COLUMN marks SET STORAGE EXTERNAL;
-- What only the updater needs to know of a center: the length at which splitting its list was tried in vain, and a few members
-- with their codes as stored, by which the updater sees how stale the list is without reading it.
CREATE TABLE foh.products_sample (
    center int PRIMARY KEY,
    tried  int NOT NULL DEFAULT 0,
    ids    bigint[] NOT NULL,
    codes  bit(16)[] NOT NULL
) WITH (fillfactor = 80);
-- The way from a deleted or updated key to the lists that hold it.
CREATE TABLE foh.products_item (
    key    bigint PRIMARY KEY,
    home   int NOT NULL,
    others int[]
    -- Room beside a row for its next home.
) WITH (fillfactor = 90);
-- Append-only: queue, memtable and tombstones in one. op: u(psert), d(elete), t(runcate), r(esync: the source must be
-- read again), l(abels: the row's labels in a table of their own changed).
-- An entry is found by its center. Centers below the model's first_center are gone: such entries, and those without bits
-- (version 0, center 0), are read by every search. Nobody looks up d and l by center: theirs is the greatest int.
CREATE TABLE foh.products_stream (
    seq        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key        bigint,
    op         "char" NOT NULL CHECK (op IN ('u', 'd', 't', 'r', 'l')),
    version    bigint NOT NULL,
    center     int NOT NULL,
    geometry   bit(1280),
    marks      bit(80),
    written_at timestamptz NOT NULL DEFAULT now() CHECK (isfinite(written_at)),
    -- True where the entry replaces nothing: no list and no earlier entry has its key, or its op is l.
    fresh      boolean NOT NULL DEFAULT false
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.1,
        autovacuum_analyze_scale_factor = 0.05, vacuum_truncate = off, toast.vacuum_truncate = off);
-- No further columns: PostgreSQL might scan an index that holds whole entries from end to end, instead of looking up a key.
CREATE INDEX products_stream_center_idx ON foh.products_stream (center);
-- Tells whether a key has a newer entry. Texts stand alone: with seq beside it, one as long as a key can be would not fit the index.
CREATE INDEX products_stream_key_idx ON foh.products_stream (key, seq);
-- Tells whether any entry replaces another, which TRUNCATE was the last, and whether a resync is due.
CREATE INDEX products_stream_known_idx ON foh.products_stream (op, seq) WHERE NOT fresh;

CREATE OR REPLACE FUNCTION foh.products_answer(query vector, k integer, step text DEFAULT 'answer'::text)
 RETURNS bigint[]
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET row_security TO 'off'
AS $function$
BEGIN
    PERFORM foh._open('public.product');
    IF step = 'lists' THEN
        RETURN (SELECT n.keys FROM foh.products_near(query, 10000000, NULL, 0, NULL, 0, 1, false) n);
    ELSIF step = 'bits' THEN
        RETURN (SELECT n.keys FROM foh.products_near(query, k, NULL, NULL, NULL, foh.products_dialfactor(NULL), 1, false) s,
                                   foh.products_near(query, greatest(100, 3 * greatest(k, s.ranked)), s.probes, 0, NULL, 0, 1, false) n);
    ELSIF step = 'shortlist' THEN
        RETURN (SELECT n.keys FROM foh.products_near(query, k, NULL, NULL, NULL, foh.products_dialfactor(NULL), 1, false) n);
    END IF;
    RETURN ARRAY(SELECT r.id FROM foh.products_search(query, k) r);
END
$function$;

CREATE OR REPLACE FUNCTION foh.products_bitscore(distance integer)
 RETURNS double precision
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
    SELECT $1::pg_catalog.float8 OPERATOR(pg_catalog.*) 0.0015625::pg_catalog.float8
$function$;

CREATE OR REPLACE FUNCTION foh.products_candidates(query vector, probes integer DEFAULT NULL::integer)
 RETURNS SETOF foh.products_result
 LANGUAGE plpgsql
 STABLE PARALLEL SAFE COST 10000
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$
#variable_conflict use_column
DECLARE
    near record;
BEGIN
    PERFORM foh._refuse_search('products', 3, extensions.vector_dims($1), 1, $2, NULL, NULL, NULL);
    near := foh.products_near($1, 10000000, $2, 0, NULL, 0, 1, false);
    IF near.fallback = 'changed' THEN
        PERFORM foh._refuse_changed('products');
    ELSIF near.fallback IS NOT NULL THEN
        RETURN QUERY SELECT s.id, NULL::float8, NULL::float8 FROM public.product s WHERE s.embedding IS NOT NULL;
    ELSE
        RETURN QUERY SELECT e.key, NULL::float8, foh.products_bitscore(e.bits)
                     FROM (SELECT unnest(near.keys) AS key, unnest(near.bits) AS bits) e
                     CROSS JOIN LATERAL (SELECT FROM public.product s WHERE s.id = e.key OFFSET 0) s;
    END IF;
END
$function$;

CREATE OR REPLACE FUNCTION foh.products_capture()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET quote_all_identifiers TO 'off'
 SET row_security TO 'on'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET jit TO 'off'
AS $function$
#variable_conflict use_variable
DECLARE
    intact boolean := foh.products_intact(TG_RELID);
    deferred boolean := coalesce(lower(current_setting('foh.defer', true)), '') IN ('on', 'true', 'yes', '1');
    nested boolean := coalesce(current_setting('foh.nested', true), '') = 'on';
    key_column name;
    touched bigint[];
BEGIN
    IF intact IS NULL THEN
        -- Either the index is gone, or it was created after this transaction took its snapshot: then an entry in the stream
        -- makes the next update read the whole source.
        IF current_setting('transaction_isolation') NOT LIKE 'read %' THEN
            INSERT INTO foh.products_stream (op, version, center) VALUES ('r', 0, 0);
        END IF;
        RETURN NULL;
    ELSIF TG_OP = 'TRUNCATE' THEN
        INSERT INTO foh.products_stream (op, version, center) VALUES ('t', 0, 0);
        RETURN NULL;
    ELSIF NOT intact THEN
        -- The source no longer looks as recorded: queue the keys and warn. The write never fails for this.
        RAISE WARNING 'foh: % has changed since index % was created or refreshed; rows are queued', TG_RELID::regclass, 'products'
            USING HINT = 'Run SELECT foh.refresh(' || quote_literal('products') || ').';
        key_column := foh._key_column(1);
        IF key_column IS NULL THEN
            INSERT INTO foh.products_stream (op, version, center) VALUES ('r', 0, 0);
        ELSE
            
-- Statement triggers. Reads key_column, the present name of the key, and the transition tables.
            IF TG_OP <> 'DELETE' THEN
                EXECUTE format('INSERT INTO %s (key, op, version, center) SELECT r.%I, ''u'', 0, 0 FROM new_rows r', 'foh.products_stream', key_column);
            END IF;
            IF TG_OP <> 'INSERT' THEN
                EXECUTE format('INSERT INTO %s (key, op, version, center) SELECT r.%I, ''u'', 0, 0 FROM old_rows r', 'foh.products_stream', key_column);
            END IF;

        END IF;
        RETURN NULL;
    END IF;
    IF pg_trigger_depth() > 1 AND NOT nested THEN
        PERFORM set_config('foh.nested', 'on', true);
    END IF;
    
-- Statement triggers. Reads deferred, nested and the transition tables; sets touched, the keys to record.
    IF deferred OR nested THEN
        IF TG_OP = 'INSERT' THEN
            touched := ARRAY(SELECT n.id FROM new_rows n WHERE n.embedding IS NOT NULL);
        ELSIF TG_OP = 'DELETE' THEN
            touched := ARRAY(SELECT o.id FROM old_rows o WHERE o.embedding IS NOT NULL);
        ELSE
            touched := ARRAY(SELECT coalesce(s.id, o.id) FROM new_rows s FULL JOIN old_rows o ON o.id = s.id
                             WHERE s.id IS NULL OR o.id IS NULL OR coalesce(pg_column_toast_chunk_id(s.embedding) <> pg_column_toast_chunk_id(o.embedding), true) AND ((s.embedding IS NULL) <> (o.embedding IS NULL) OR NOT s.embedding OPERATOR(extensions.=) o.embedding) OR s.tags IS DISTINCT FROM o.tags);
        END IF;
        IF deferred THEN
            -- Keys alone: whoever reads such an entry looks at the row as it is then.
            INSERT INTO foh.products_stream (key, op, version, center) SELECT unnest(touched), 'u', 0, 0;
        ELSE
            INSERT INTO foh.products_stream (key, op, version, center, geometry, marks)
            SELECT v.key, r.op, r.version, r.center, r.geometry, r.marks
            FROM (SELECT k.key, w.x, w.labels FROM (SELECT unnest(touched) AS key) k LEFT JOIN LATERAL (
                      SELECT extensions.subvector(s.embedding, 1, 3) AS x, array_replace(s.tags::text[], '', NULL) AS labels FROM public.product s WHERE s.id = k.key OFFSET 0) w ON true OFFSET 0) v,
                 LATERAL foh.products_record(v.key, v.x, v.labels, false) r;
        END IF;
    ELSIF TG_OP = 'INSERT' THEN
        INSERT INTO foh.products_stream (key, op, version, center, geometry, marks, fresh)
        SELECT v.key, r.op, r.version, r.center, r.geometry, r.marks, r.fresh
        FROM (SELECT s.id AS key, extensions.subvector(s.embedding, 1, 3) AS x, array_replace(s.tags::text[], '', NULL) AS labels FROM new_rows s WHERE s.embedding IS NOT NULL OFFSET 0) v,
             LATERAL foh.products_record(v.key, v.x, v.labels, true) r;
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO foh.products_stream (key, op, version, center)
        SELECT o.id, 'd', (SELECT i.version FROM foh.index i WHERE i.id = 1), 2147483647 FROM old_rows o WHERE o.embedding IS NOT NULL;
    ELSE
        -- A full join, which PostgreSQL never does as a loop in a loop, even where the plan was made for one row.
        INSERT INTO foh.products_stream (key, op, version, center, geometry, marks)
        SELECT v.key, r.op, r.version, r.center, r.geometry, r.marks
        FROM (SELECT coalesce(s.id, o.id) AS key, extensions.subvector(s.embedding, 1, 3) AS x, array_replace(s.tags::text[], '', NULL) AS labels
              FROM new_rows s FULL JOIN old_rows o ON o.id = s.id
              WHERE s.id IS NULL OR o.id IS NULL OR coalesce(pg_column_toast_chunk_id(s.embedding) <> pg_column_toast_chunk_id(o.embedding), true) AND ((s.embedding IS NULL) <> (o.embedding IS NULL) OR NOT s.embedding OPERATOR(extensions.=) o.embedding) OR s.tags IS DISTINCT FROM o.tags OFFSET 0) v,
             LATERAL foh.products_record(v.key, v.x, v.labels, false) r;
    END IF;

    RETURN NULL;
END
$function$;

CREATE OR REPLACE FUNCTION foh.products_check(part integer DEFAULT 0, parts integer DEFAULT 1)
 RETURNS TABLE(promise integer, problem text, key text, center integer, detail text)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET row_security TO 'off'
 SET plan_cache_mode TO 'force_custom_plan'
 SET jit TO 'off'
 SET enable_nestloop TO 'off'
AS $function$
#variable_conflict use_column
BEGIN
PERFORM foh._open('public.product');
RETURN QUERY
WITH marker AS (
    -- exact: searches do not read the lists, before the first build and while the source has to be read again.
    SELECT coalesce(max(t.seq) FILTER (WHERE t.op = 't'), 0) AS truncated,
           coalesce(bool_or(t.op = 'r'), false) OR (SELECT i.status = 'building' FROM foh.index i WHERE i.id = 1) AS exact
    FROM foh.products_stream t WHERE t.op IN ('t', 'r')
), model AS (
    SELECT m.version, m.placed, m.first_center, m.far, m.mean, coalesce(NULL, least(m.probes, m.nearest_probes), 32) AS probes, (SELECT coalesce(sum(c.length), 0) FROM foh.products_center c) AS rows
    FROM foh.model m WHERE m.index = 1 AND m.version = (SELECT i.version FROM foh.index i WHERE i.id = 1)
), newest AS MATERIALIZED (
    SELECT DISTINCT ON (t.key) t.key, t.op, t.version, t.center, t.geometry
    FROM foh.products_stream t, marker m WHERE t.key IS NOT NULL AND t.op <> 'l' AND t.seq > m.truncated
      AND ($2 = 1 OR abs(hashtextextended(t.key::text, 0) % $2) = $1) ORDER BY t.key, t.seq DESC
), listed AS MATERIALIZED (
    -- Lists without a center are those of a build that is not done: no search reads them.
    SELECT u.key, u.geometry, u.marks, u.center
    FROM (SELECT unnest(l.ids) AS key, unnest(l.geometry) AS geometry, unnest(l.marks) AS marks, l.center FROM foh.products_list l, marker m
          WHERE m.truncated = 0 AND EXISTS (SELECT FROM foh.products_center c WHERE c.center = l.center)) u
    WHERE $2 = 1 OR abs(hashtextextended(u.key::text, 0) % $2) = $1
), item AS MATERIALIZED (
    SELECT i.key, i.home, i.others FROM foh.products_item i, marker m
    WHERE m.truncated = 0 AND ($2 = 1 OR abs(hashtextextended(i.key::text, 0) % $2) = $1)
), present AS MATERIALIZED (
    -- The bits of a far row are not computed: sums over its numbers might overflow.
    SELECT v.key, (WITH RECURSIVE w (a, b, turn) AS (SELECT w.a OPERATOR(extensions.+) w.b, w.a OPERATOR(extensions.-) w.b, 4 FROM (SELECT extensions.subvector(w.x, 1, 8) AS a, extensions.subvector(w.x, 9, 8) AS b FROM (SELECT (extensions.l2_normalize(v.x)) OPERATOR(extensions.*) g.signs::extensions.vector OPERATOR(extensions.||) pg_catalog.array_fill(0::pg_catalog.float4, ARRAY[13])::extensions.vector AS x OFFSET 0) w OFFSET 0) w UNION ALL SELECT w.a OPERATOR(extensions.+) w.b, w.a OPERATOR(extensions.-) w.b, w.turn OPERATOR(pg_catalog./) 2 FROM (SELECT w.a, extensions.subvector(w.b, w.turn OPERATOR(pg_catalog.+) 1, 8 OPERATOR(pg_catalog.-) w.turn) OPERATOR(extensions.||) extensions.subvector(w.b, 1, w.turn) AS b, w.turn FROM w WHERE w.turn OPERATOR(pg_catalog.>) 0 OFFSET 0) w) SELECT extensions.binary_quantize((w.x OPERATOR(extensions.||) w.x OPERATOR(extensions.||) extensions.subvector(w.x, 1, 256)) OPERATOR(extensions.-) g.threshold) FROM (SELECT w.x OPERATOR(extensions.||) w.x AS x FROM (SELECT w.x OPERATOR(extensions.||) w.x AS x FROM (SELECT w.x OPERATOR(extensions.||) w.x AS x FROM (SELECT w.x OPERATOR(extensions.||) w.x AS x FROM (SELECT w.x OPERATOR(extensions.||) w.x AS x FROM (SELECT w.a OPERATOR(extensions.||) w.b AS x FROM w WHERE w.turn OPERATOR(pg_catalog.=) 0 OFFSET 0) w OFFSET 0) w OFFSET 0) w OFFSET 0) w OFFSET 0) w OFFSET 0) w) AS geometry, v.usable, v.far
    FROM (SELECT s.key, s.usable, s.far, CASE WHEN NOT s.far THEN s.x END AS x
          FROM (SELECT s.key, s.x, s.x IS NOT NULL AS usable, coalesce(extensions.vector_norm(s.x) > 1e18::pg_catalog.float8, false) AS far
                FROM (SELECT s.id AS key, extensions.subvector(s.embedding, 1, 3) AS x FROM public.product s
                      WHERE s.embedding IS NOT NULL AND ($2 = 1 OR abs(hashtextextended(s.id::text, 0) % $2) = $1) OFFSET 0) s OFFSET 0) s OFFSET 0) v
    CROSS JOIN foh.products_quantizer g
), current AS MATERIALIZED (
    SELECT l.key, l.geometry, l.marks, l.center FROM listed l WHERE NOT EXISTS (SELECT FROM newest n WHERE n.key = l.key)
), flips AS (
    -- Under a budget, or before the first update after max_stale was lowered, a list may be as stale as the updater recorded.
    SELECT c.center, (SELECT greatest(0.01, o.stale) FROM foh.products_center o WHERE o.center = c.center) AS bound, count(*) AS n, sum((c.marks & B'00000000000000000000000000000000000000000000000000000000000000001111111111111111') OPERATOR(extensions.<~>) (p.marks & B'00000000000000000000000000000000000000000000000000000000000000001111111111111111')) AS bits
    FROM current c CROSS JOIN model m
    CROSS JOIN LATERAL (SELECT p.marks FROM (SELECT CASE WHEN extensions.vector_norm(v.x) <= 1e18::pg_catalog.float8 THEN v.x END AS x, v.labels
                                             FROM (SELECT extensions.subvector(s.embedding, 1, 3) AS x, array_replace(s.tags::text[], '', NULL) AS labels FROM public.product s WHERE s.id = c.key OFFSET 0) v OFFSET 0) v
                        -- A row at the mean, such as an only row, has the bits that rounding gives it.
                        CROSS JOIN LATERAL foh.products_place(v.x, v.labels) p WHERE extensions.l2_distance(v.x, m.mean) > 1e-5 * extensions.vector_norm(v.x) OFFSET 0) p
    -- Some thousand rows say how stale the codes are.
    WHERE NOT (SELECT m.exact FROM marker m) AND abs(hashtextextended(c.key::text, 1) % greatest(1, m.rows / 4000)) = 0
      AND NOT EXISTS (SELECT FROM foh.products_stream t WHERE t.key = c.key)
    GROUP BY c.center
)
SELECT 1, 'a row of the source is in no list and not in the stream', p.key::text, NULL::int, NULL::text
FROM present p, marker m
WHERE NOT m.exact AND p.usable AND 1 > 0 AND NOT EXISTS (SELECT FROM current c WHERE c.key = p.key)
  AND NOT EXISTS (SELECT FROM newest n WHERE n.key = p.key AND n.op = 'u')
  AND NOT EXISTS (SELECT FROM model o CROSS JOIN unnest(o.far::bigint[]) AS f (key) WHERE f.key = p.key)
UNION ALL
SELECT 1, 'the embedding of a row is longer than 1e18: the row takes no part in models and lists, and every search reads it', p.key::text, NULL, NULL
FROM present p WHERE p.far
UNION ALL
SELECT 1, 'a list holds a row that is gone from the source', c.key::text, c.center, NULL
FROM current c, marker m WHERE NOT m.exact AND NOT EXISTS (SELECT FROM present p WHERE p.key = c.key AND p.usable)
UNION ALL
SELECT 1, 'the stream holds a row that is gone from the source', n.key::text, n.center, NULL
FROM newest n, marker m WHERE NOT m.exact AND n.op = 'u' AND n.geometry IS NOT NULL AND NOT EXISTS (SELECT FROM present p WHERE p.key = n.key AND p.usable)
UNION ALL
SELECT 1, 'the embedding of a row cannot be used (dimensions, NULL, NaN or infinity inside)', p.key::text, NULL, NULL
FROM present p WHERE NOT p.usable
UNION ALL
SELECT 1, 'a list or the stream has the bits of another vector than the row', e.key::text, e.center, format('%s of 1280 bits', e.geometry OPERATOR(extensions.<~>) p.geometry)
FROM (SELECT c.key, c.center, c.geometry, 5 AS bound FROM current c
      UNION ALL SELECT n.key, n.center, n.geometry, 1 FROM newest n, model m WHERE n.op = 'u' AND n.version >= m.placed) e
JOIN present p ON p.key = e.key CROSS JOIN marker m
WHERE NOT m.exact AND e.geometry OPERATOR(extensions.<~>) p.geometry > e.bound
UNION ALL
SELECT 1, 'a row is in a list more than once', l.key::text, l.center, format('%s times', count(*))
FROM listed l GROUP BY l.key, l.center HAVING count(*) > 1
UNION ALL
SELECT 1, 'a row is in more lists than it has homes', l.key::text, NULL, format('%s lists', count(*))
FROM listed l WHERE NOT (SELECT i.several FROM foh.index i WHERE i.id = 1) GROUP BY l.key HAVING count(*) > 1
UNION ALL
SELECT 1, 'a row is not in the list of its home', i.key::text, i.home, NULL
FROM item i WHERE NOT EXISTS (SELECT FROM listed l WHERE l.key = i.key AND l.center = i.home)
UNION ALL
SELECT 1, 'a list holds a row that has no home', l.key::text, l.center, NULL
FROM listed l WHERE NOT EXISTS (SELECT FROM item i WHERE i.key = l.key AND (i.home = l.center OR l.center = ANY (i.others)))
UNION ALL
SELECT 1, 'the length of a list is not what its center says', NULL, c.center, format('%s rows, recorded %s', coalesce(l.n, 0), c.length)
FROM marker m CROSS JOIN foh.products_center c LEFT JOIN (SELECT l.center, sum(cardinality(l.ids)) AS n FROM foh.products_list l GROUP BY l.center) l ON l.center = c.center
WHERE $1 = 0 AND m.truncated = 0 AND c.length <> coalesce(l.n, 0)
UNION ALL
SELECT 1, 'a center belongs to no area: no search finds it', NULL, c.center, NULL
FROM foh.products_center c
WHERE $1 = 0 AND NOT EXISTS (SELECT FROM (SELECT a.area, unnest(a.ids) AS center FROM foh.products_area a WHERE a.area > 0) a
                             JOIN (SELECT unnest(r.ids) AS area FROM foh.products_area r WHERE r.area = 0) r ON r.area = a.area WHERE a.center = c.center)
UNION ALL
SELECT 1, 'a search would not find an entry of the stream: its center is gone', n.key::text, n.center, NULL
FROM newest n, model m
WHERE n.op = 'u' AND n.center >= m.first_center AND NOT EXISTS (SELECT FROM foh.products_center c WHERE c.center = n.center)
UNION ALL
SELECT 1, 'an entry of the stream is marked as the first of its key, and is not', e.key::text, e.center, NULL
FROM (SELECT t.key, t.center, t.version, t.op, t.fresh, lag(true, 1, false) OVER (PARTITION BY t.key, t.version ORDER BY t.seq) AS again
      FROM foh.products_stream t WHERE t.key IS NOT NULL AND ($2 = 1 OR abs(hashtextextended(t.key::text, 0) % $2) = $1)) e
JOIN model m ON m.version = e.version LEFT JOIN item i ON i.key = e.key
WHERE e.fresh AND e.op = 'u' AND (e.again OR i.key IS NOT NULL)
UNION ALL
-- One row in ten thousand may be so: lists are looked through one after the other, some in every update.
SELECT 1, 'a search by the vector of a row would not read its list', min(h.key) FILTER (WHERE NOT h.read), NULL, format('%s of %s rows', count(*) FILTER (WHERE NOT h.read), count(*))
FROM (SELECT min(c.key::text) AS key, bool_or(c.read) AS read
      FROM (SELECT c.key, c.center = ANY (ARRAY(SELECT n.center FROM foh.products_nearestcenters(p.geometry, m.probes) n)) AS read
            FROM current c JOIN present p ON p.key = c.key CROSS JOIN model m
            WHERE NOT (SELECT m.exact FROM marker m) AND 1 > 0 AND abs(hashtextextended(c.key::text, 2) % greatest(1, m.rows / 20000)) = 0) c
      GROUP BY c.key) h
HAVING 10000 * count(*) FILTER (WHERE NOT h.read) > count(*)
UNION ALL
-- Only a sample decides which lists are encoded again, so a single list may be past the bound, but all lists together never
-- exceed three times the bound. Two bits in a thousand are allowed for rounding.
SELECT 2, 'codes are staler than max_stale', NULL, NULL, format('%s %% of the bits', round(100 * sum(f.bits)::numeric / sum(f.n * 16), 2))
FROM flips f HAVING sum(f.bits) > sum((3 * f.bound + 0.002) * f.n * 16) + 2 * 16
UNION ALL
SELECT 2, 'the codes of a list are far from those of the hash functions', NULL, f.center, format('%s %% of the bits', round(100 * f.bits::numeric / (f.n * 16), 2))
FROM flips f WHERE f.bits > 0.25 * f.n * 16 AND f.bits > 8 * f.bound * f.n * 16 + 16 / 4;
END
$function$;

CREATE OR REPLACE FUNCTION foh.products_describe()
 RETURNS TABLE(source text, key text, key_type text, embedding text, labels text, dimensions integer, bits integer, distance text, version bigint, vector_schema text, vector_type oid)
 LANGUAGE sql
 STABLE PARALLEL SAFE SECURITY DEFINER ROWS 1
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
    SELECT i.source_name, i.key::text, i.key_type::text, i.embedding::text, i.labels::text, i.dimensions, i.bits, i.distance,
           i.version, n.nspname::text, t.oid
    FROM foh.index i, pg_extension e
    JOIN pg_namespace n ON n.oid = e.extnamespace JOIN pg_type t ON t.typnamespace = n.oid AND t.typname = 'vector'
    WHERE i.id = 1 AND e.extname = 'vector'
$function$;

CREATE OR REPLACE FUNCTION foh.products_dialfactor(labels double precision)
 RETURNS double precision
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
    SELECT CASE WHEN $1 IS NULL THEN 1::pg_catalog.float8 WHEN $1 OPERATOR(pg_catalog.>=) 0.98::pg_catalog.float8 THEN 50::pg_catalog.float8 ELSE $1 OPERATOR(pg_catalog./) (1::pg_catalog.float8 OPERATOR(pg_catalog.-) $1) END
$function$;

CREATE OR REPLACE FUNCTION foh.products_exact(query vector, k integer, filter text, params jsonb, max_distance double precision)
 RETURNS SETOF foh.products_result
 LANGUAGE plpgsql
 STABLE PARALLEL SAFE ROWS 10
 SET enable_seqscan TO 'on'
 SET enable_bitmapscan TO 'on'
 SET enable_hashjoin TO 'on'
 SET enable_mergejoin TO 'on'
AS $function$
BEGIN
    RETURN QUERY EXECUTE $sql$
        SELECT d.key, d.distance, d.distance
        FROM (SELECT s.key, foh.products_exactdistance(s.x, $1) AS distance
              FROM (SELECT $2 AS params) v
              CROSS JOIN LATERAL (SELECT s.id AS key, s.embedding AS x FROM public.product s WHERE (
            $sql$ OPERATOR(pg_catalog.||) filter OPERATOR(pg_catalog.||) $sql$
        ) OFFSET 0) s WHERE s.x IS NOT NULL OFFSET 0) d
        WHERE $4 IS NULL OR d.distance OPERATOR(pg_catalog.<=) $4 ORDER BY 2, 1 LIMIT $3$sql$ USING query, params, k, max_distance;
END
$function$;

CREATE OR REPLACE FUNCTION foh.products_exactdistance(x vector, query vector)
 RETURNS double precision
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
    SELECT (least($1 OPERATOR(extensions.<=>) $2, 2::pg_catalog.float8))
$function$;

CREATE OR REPLACE FUNCTION foh.products_explain(query vector, k integer DEFAULT 10, probes integer DEFAULT NULL::integer, shortlist integer DEFAULT NULL::integer, labels double precision DEFAULT NULL::double precision, recall double precision DEFAULT NULL::double precision)
 RETURNS TABLE(step text, value text)
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET row_security TO 'off'
AS $function$
#variable_conflict use_variable
DECLARE
    dial float8 := foh.products_dialfactor(labels);
    -- The model, and what was chosen by it.
    chosen record;
    target float8 := coalesce(recall, NULL::float8);
    -- The query under the name that it has in a search.
    vector extensions.vector := query;
    geometry bit(1280);
    centers int[];
    s record;
BEGIN
    PERFORM foh._refuse_search('products', 3, extensions.vector_dims(query), k, probes, shortlist, labels, recall);
    SELECT (WITH RECURSIVE w (a, b, turn) AS (SELECT w.a OPERATOR(extensions.+) w.b, w.a OPERATOR(extensions.-) w.b, 4 FROM (SELECT extensions.subvector(w.x, 1, 8) AS a, extensions.subvector(w.x, 9, 8) AS b FROM (SELECT (extensions.l2_normalize(vector)) OPERATOR(extensions.*) g.signs::extensions.vector OPERATOR(extensions.||) pg_catalog.array_fill(0::pg_catalog.float4, ARRAY[13])::extensions.vector AS x OFFSET 0) w OFFSET 0) w UNION ALL SELECT w.a OPERATOR(extensions.+) w.b, w.a OPERATOR(extensions.-) w.b, w.turn OPERATOR(pg_catalog./) 2 FROM (SELECT w.a, extensions.subvector(w.b, w.turn OPERATOR(pg_catalog.+) 1, 8 OPERATOR(pg_catalog.-) w.turn) OPERATOR(extensions.||) extensions.subvector(w.b, 1, w.turn) AS b, w.turn FROM w WHERE w.turn OPERATOR(pg_catalog.>) 0 OFFSET 0) w) SELECT extensions.binary_quantize((w.x OPERATOR(extensions.||) w.x OPERATOR(extensions.||) extensions.subvector(w.x, 1, 256)) OPERATOR(extensions.-) g.threshold) FROM (SELECT w.x OPERATOR(extensions.||) w.x AS x FROM (SELECT w.x OPERATOR(extensions.||) w.x AS x FROM (SELECT w.x OPERATOR(extensions.||) w.x AS x FROM (SELECT w.x OPERATOR(extensions.||) w.x AS x FROM (SELECT w.x OPERATOR(extensions.||) w.x AS x FROM (SELECT w.a OPERATOR(extensions.||) w.b AS x FROM w WHERE w.turn OPERATOR(pg_catalog.=) 0 OFFSET 0) w OFFSET 0) w OFFSET 0) w OFFSET 0) w OFFSET 0) w OFFSET 0) w) INTO geometry FROM foh.products_quantizer g;
    SELECT * INTO s FROM foh.products_state();
    IF s.fallback IS DISTINCT FROM 'changed' THEN
        -- Take the lock on the source that a search takes, so that no ALTER of it commits before this transaction ends.
        -- PostgreSQL looks for changes by others when it takes a new lock, and a later search of the same transaction may
        -- find all other locks taken.
        PERFORM foh._open('public.product');
    END IF;
    SELECT m.*, coalesce(probes, m.reach_probes[m.reach], NULL, CASE WHEN m.lean > 0::float8 THEN m.probes ELSE m.nearest_probes END, m.probes, 32) AS probed, coalesce(shortlist, m.reach_shortlist[m.reach], NULL, CASE WHEN m.lean > 0::float8 THEN m.shortlist ELSE m.nearest_shortlist END, 30) AS ranked INTO chosen
    FROM (SELECT m.*, dial * coalesce(NULL, m.weight_votes) AS lean, CASE WHEN coalesce(recall, NULL::float8) IS NOT NULL THEN least(width_bucket(coalesce(recall, NULL::float8), m.reach_recall) + 1, cardinality(m.reach_recall)) END AS reach FROM foh.model m WHERE m.index = 1 AND m.version = s.version) m;
    centers := ARRAY(SELECT c.center FROM foh.products_nearestcenters(geometry, chosen.probed) c);
    IF target IS NULL AND chosen.lean = 0 AND probes IS NULL AND shortlist IS NULL AND chosen.probed = chosen.nearest_probes THEN
        target := 0.95;
    END IF;
    RETURN QUERY
        SELECT v.step, v.value FROM (VALUES
            ('version', s.version::text),
            ('fallback', coalesce(foh._fallback(coalesce(s.fallback, CASE WHEN recall >= 1 THEN 'asked' END)), 'none')),
            ('centers', (SELECT count(*)::text FROM foh.products_center)),
            ('centers probed', cardinality(centers)::text),
            ('list entries read', (SELECT coalesce(sum(cardinality(l.ids)), 0)::text FROM foh.products_list l WHERE l.center = ANY (centers) AND s.truncated = 0)),
            ('stream rows read', (SELECT count(*)::text FROM foh.products_stream t WHERE t.op = 'u' AND t.seq > s.truncated
                                  AND (t.center = ANY (centers) OR t.center < chosen.first_center))),
            ('stream rows', (SELECT count(*)::text FROM foh.products_stream)),
            ('labels', CASE WHEN chosen.lean = 0 THEN 'not asked: nearest vectors only'
                       ELSE format('rows of another kind count as %s times as far; the code counts %s in telling the kind',
                                   1 + chosen.lean, coalesce(NULL, chosen.weight_code)) END),
            ('recall', foh._recall_text(target, chosen.reach_recall, chosen.reach_probes, chosen.reach_shortlist, chosen.probed, chosen.ranked)),
            ('shortlist', CASE chosen.ranked WHEN 0 THEN 'none: by bits alone' ELSE greatest(k, chosen.ranked)::text END)
        ) AS v (step, value);
END
$function$;

CREATE OR REPLACE FUNCTION foh.products_follow(lost boolean, attached oid[])
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET row_security TO 'off'
 SET plan_cache_mode TO 'force_custom_plan'
 SET work_mem TO '64MB'
 SET jit TO 'off'
AS $function$
DECLARE
    queued bigint := 0;
    n bigint;
BEGIN
    PERFORM foh._open('public.product');
    IF lost THEN
        -- Searches leave out what is gone from the table, so they pass over these entries (op l); the next update looks for the
        -- rows. A tombstone would hide a row that another transaction is writing under one of these keys.
        INSERT INTO foh.products_stream (key, op, version, center, fresh)
        SELECT i.key, 'l', 0, 2147483647, true FROM foh.products_item i WHERE NOT EXISTS (SELECT FROM public.product s WHERE s.id = i.key);
        GET DIAGNOSTICS queued = ROW_COUNT;
    END IF;
    IF attached <> '{}' THEN
        -- Rows that came by INSERT or UPDATE have an entry.
        INSERT INTO foh.products_stream (key, op, version, center)
        SELECT s.id, 'u', 0, 0 FROM public.product s
        WHERE s.tableoid = ANY (attached) AND s.embedding IS NOT NULL
          AND NOT EXISTS (SELECT FROM foh.products_stream e WHERE e.key = s.id AND e.op <> 'l');
        GET DIAGNOSTICS n = ROW_COUNT;
        queued := queued + n;
    END IF;
    RETURN queued;
END
$function$;

CREATE OR REPLACE FUNCTION foh.products_intact(relation oid)
 RETURNS boolean
 LANGUAGE plpgsql
 STABLE
AS $function$
DECLARE
    ours boolean;
    intact boolean;
BEGIN
    SELECT relation = i.source OR relation = i.labels_from OR pg_partition_root(relation) IN (i.source, i.labels_from),
           
               CASE WHEN (pg_identify_object_as_address('pg_class'::regclass, i.source, 0)).object_names = '{public,product}'::text[]
                    THEN has_schema_privilege('public', 'USAGE') AND NOT row_security_active(i.source::oid)
                         AND (SELECT bool_and(pg_has_role(c.relowner, current_user, 'USAGE')) FROM pg_class c WHERE c.oid = i.source) ELSE false END
               AND 3 = (SELECT count(*) FROM pg_attribute a
                           WHERE a.attrelid = i.source AND a.attname = ANY ('{id,embedding,tags}'::name[]) AND (a.attname = 'id' AND a.atttypid = 'bigint'::regtype AND (a.attnum = i.key_attnum OR i.source <> i.source_oid) OR a.attname = 'embedding' AND CASE format_type(a.atttypid, NULL) WHEN 'extensions.vector' THEN has_schema_privilege('extensions', 'USAGE') ELSE false END AND a.atttypmod = 3 AND (a.attnum = i.embedding_attnum OR i.source <> i.source_oid) OR a.attname = 'tags' AND format_type(a.atttypid, NULL) = 'text[]' AND (a.attnum = i.labels_attnum OR i.source <> i.source_oid))
                             AND has_column_privilege(a.attrelid, a.attnum, 'SELECT')
                             AND (current_setting('transaction_isolation') = 'read committed'
                                  OR (pg_identify_object_as_address('pg_class'::regclass, i.source, a.attnum)).object_names[3] = a.attname::text
                                     AND (SELECT CASE count(*) WHEN 1 THEN min(c.relfilenode) END FROM pg_class c WHERE c.oid = i.source) = coalesce(pg_relation_filenode(i.source), 0)))
    INTO ours, intact
    FROM foh.index i WHERE i.id = 1;
    IF FOUND AND ours IS NOT TRUE THEN
        RAISE EXCEPTION 'foh: % is not a table of index %', relation::regclass, quote_literal('products')
            USING ERRCODE = 'insufficient_privilege',
                  HINT = 'The triggers of an index belong on the table it was created for.';
    END IF;
    RETURN intact;
END
$function$;

CREATE OR REPLACE FUNCTION foh.products_labelcounts(percent double precision, top integer)
 RETURNS TABLE(name text, rows bigint)
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET row_security TO 'off'
AS $function$
#variable_conflict use_column
BEGIN
    PERFORM foh._open('public.product');
    RETURN QUERY
        SELECT l.name, count(*)
        FROM (SELECT array_replace(s.tags::text[], '', NULL) AS labels FROM public.product s TABLESAMPLE SYSTEM (percent)) r
        CROSS JOIN LATERAL (SELECT DISTINCT u.name FROM unnest(r.labels) AS u (name) WHERE u.name IS NOT NULL) l
        GROUP BY l.name ORDER BY 2 DESC, 1 LIMIT top;
END
$function$;

CREATE OR REPLACE FUNCTION foh.products_near(vector vector, k integer, INOUT probes integer, shortlist integer, recall double precision, dial double precision, times bigint, again boolean, OUT keys bigint[], OUT bits integer[], OUT leans double precision[], OUT ranked integer, OUT exhausted boolean, OUT scale double precision, OUT fallback text)
 RETURNS record
 LANGUAGE plpgsql
 STABLE PARALLEL SAFE SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_memoize TO 'off'
 SET jit TO 'off'
AS $function$
#variable_conflict use_variable
DECLARE
    -- Whether the state of the index must be looked at more closely.
    odd boolean;
    -- Whether an entry of the stream may replace one of a list or of the stream.
    replaced boolean;
    truncated bigint := 0;
    unplaced bigint[];
    centers int[];
    query_geometry bit(1280);
    query_marks bit(80);
    -- How much the learned code counts beside the bits in the choice of voters, and by how many times its distance a row of another
    -- kind than the query is put back.
    weight_code float8;
    lean float8;
    wanted int;
    -- How many of the nearest rows by geometry bits are kept, for the second look where there is one.
    looked bigint;
BEGIN
    -- Planning is the largest cost of the first search of a connection. So a constant has the type of what it is compared with: otherwise
    -- PostgreSQL would try all operators of that name. LEAST and GREATEST compare as float8, whose operators the ORDER BY needs anyway.
    -- One statement for all that does not depend on the answer: the state of the index, the weights, the bits of the query and
    -- the nearest centers. What is needed twice stands in a subquery of its own.
    SELECT 1::float8, m.status <> 'ready' OR m.small OR NOT foh._intact_in_plan('16384', 'public.product', 'id', '1', '20', 'embedding', '4', 'extensions.vector', '3')
               OR m.has_far OR EXISTS (SELECT FROM foh.products_stream t WHERE t.center < m.first_center),
           EXISTS (SELECT FROM foh.products_stream t WHERE NOT t.fresh),
           m.ranked, m.probes, m.weight_code, m.lean, q.geometry, B'0000000000000000000000000000000000000000000000000000000000000000'::varbit || coalesce(m.code, B'0000000000000000')::varbit,
           ARRAY(SELECT n.center FROM foh.products_nearestcenters(q.geometry, m.probes) n)
    INTO scale, odd, replaced, ranked, probes, weight_code, lean, query_geometry, query_marks, centers
    FROM (SELECT m.status, m.scale, m.small, m.far IS NOT NULL AS has_far, m.first_center, m.lean, coalesce(NULL, m.weight_code) AS weight_code,
                 coalesce(probes, m.reach_probes[m.reach], NULL, CASE WHEN m.lean > 0::float8 THEN m.probes ELSE m.nearest_probes END, m.probes, 32) AS probes, coalesce(shortlist, m.reach_shortlist[m.reach], NULL, CASE WHEN m.lean > 0::float8 THEN m.shortlist ELSE m.nearest_shortlist END, 30) AS ranked,
                 -- The condition on ctid makes PostgreSQL read the whole table without its index; sequential scans are off because of other tables.
                 (SELECT bit_or(p.mask) FROM foh.products_projection p
                  WHERE m.lean > 0::float8 AND p.ctid >= '(0,0)' AND -(p.weights OPERATOR(extensions.<#>) vector) >= p.bias) AS code
          FROM (SELECT (SELECT i.status FROM foh.index i WHERE i.id = 1) AS status, m.*, dial * coalesce(NULL, m.weight_votes) AS lean, CASE WHEN coalesce(recall, NULL::float8) IS NOT NULL THEN least(width_bucket(coalesce(recall, NULL::float8), m.reach_recall) + 1, cardinality(m.reach_recall)) END AS reach
                FROM foh.model m WHERE m.index = 1 AND m.version = (SELECT i.version FROM foh.index i WHERE i.id = 1) OFFSET 0) m OFFSET 0) m
    CROSS JOIN (SELECT (WITH RECURSIVE w (a, b, turn) AS (SELECT w.a OPERATOR(extensions.+) w.b, w.a OPERATOR(extensions.-) w.b, 4 FROM (SELECT extensions.subvector(w.x, 1, 8) AS a, extensions.subvector(w.x, 9, 8) AS b FROM (SELECT (extensions.l2_normalize(vector)) OPERATOR(extensions.*) g.signs::extensions.vector OPERATOR(extensions.||) pg_catalog.array_fill(0::pg_catalog.float4, ARRAY[13])::extensions.vector AS x OFFSET 0) w OFFSET 0) w UNION ALL SELECT w.a OPERATOR(extensions.+) w.b, w.a OPERATOR(extensions.-) w.b, w.turn OPERATOR(pg_catalog./) 2 FROM (SELECT w.a, extensions.subvector(w.b, w.turn OPERATOR(pg_catalog.+) 1, 8 OPERATOR(pg_catalog.-) w.turn) OPERATOR(extensions.||) extensions.subvector(w.b, 1, w.turn) AS b, w.turn FROM w WHERE w.turn OPERATOR(pg_catalog.>) 0 OFFSET 0) w) SELECT extensions.binary_quantize((w.x OPERATOR(extensions.||) w.x OPERATOR(extensions.||) extensions.subvector(w.x, 1, 256)) OPERATOR(extensions.-) g.threshold) FROM (SELECT w.x OPERATOR(extensions.||) w.x AS x FROM (SELECT w.x OPERATOR(extensions.||) w.x AS x FROM (SELECT w.x OPERATOR(extensions.||) w.x AS x FROM (SELECT w.x OPERATOR(extensions.||) w.x AS x FROM (SELECT w.x OPERATOR(extensions.||) w.x AS x FROM (SELECT w.a OPERATOR(extensions.||) w.b AS x FROM w WHERE w.turn OPERATOR(pg_catalog.=) 0 OFFSET 0) w OFFSET 0) w OFFSET 0) w OFFSET 0) w OFFSET 0) w OFFSET 0) w) AS geometry FROM foh.products_quantizer g OFFSET 0) q;
    IF odd THEN
        SELECT s.truncated, s.unplaced, s.fallback INTO truncated, unplaced, fallback FROM foh.products_state() s;
        IF fallback IS NOT NULL THEN
            RETURN;
        END IF;
        -- Even an unplaced entry that was the first of its key may replace one of a list: a build may have read its row.
        replaced := replaced OR cardinality(unplaced) > 0;
    END IF;
    IF recall >= 1::float8 THEN
        fallback := 'asked';
        RETURN;
    END IF;
    wanted := least(CASE WHEN again THEN greatest(k::float8, ranked) * times::float8 ELSE greatest((k * times)::float8, ranked) END, 1e7);
    -- Two nested IFs: PL/pgSQL would run a condition that contains a query even where again is false.
    IF again THEN
        IF 3 * probes::bigint > (SELECT count(*) FROM foh.products_center) THEN
            -- To read the source is cheaper than a third of the lists, with a lookup for each entry.
            exhausted := true;
            RETURN;
        END IF;
    END IF;
    exhausted := cardinality(centers) < probes;
    IF lean > 0::float8 THEN
        looked := greatest(100, 3::float8 * wanted::float8);
        
-- Which kind of row is the query? The rows that are nearest by bits and by learned code, which leans on the labels of a stored row and
        -- guesses those of the query, vote with their labels. Labels with at least half as many votes as the first are likely. A row whose
        -- labels are all others is put back. A row without labels may be of any kind, and stays where it is.
        SELECT array_agg(r.key), array_agg(r.distance), array_agg(r.lean) INTO keys, bits, leans
        FROM (WITH found AS MATERIALIZED (
-- Reads query_geometry, centers, truncated, replaced and looked. Returns the nearest keys, as many as looked says. The template has it
          -- twice, each time inside a larger statement: so the keys are never stored in between.
          SELECT e.key, e.distance::int AS distance, e.marks
          FROM (SELECT u.key, u.marks, u.geometry OPERATOR(extensions.<~>) query_geometry AS distance, 0::bigint AS seq
                FROM (SELECT unnest(l.ids) AS key, unnest(l.geometry) AS geometry, unnest(l.marks) AS marks
                      FROM foh.products_list l WHERE l.center = ANY (centers) AND truncated = 0) u
                UNION ALL
                -- A lookup for each center. seq + 0: with some statistics the planner would go in by the primary key.
                SELECT t.key, t.marks, t.geometry OPERATOR(extensions.<~>) query_geometry, t.seq
                FROM (SELECT unnest(centers) AS center) c
                CROSS JOIN LATERAL (SELECT t.key, t.marks, t.geometry, t.seq FROM foh.products_stream t
                                    WHERE t.center = c.center AND t.op = 'u' AND t.seq + 0 > truncated OFFSET 0) t
                ORDER BY 3 LIMIT looked + CASE WHEN replaced THEN looked / 8 + 16 ELSE 0 END) e
          -- OFFSET 0: a lookup for each key, never a join planned when the stream was empty.
          WHERE NOT (replaced AND EXISTS (SELECT FROM foh.products_stream o WHERE o.key = e.key AND o.seq > e.seq AND o.op <> 'l' OFFSET 0))
          LIMIT looked
),
              likely AS MATERIALIZED (
                  SELECT translate(v.votes, '0123456789', CASE WHEN v.votes LIKE '%9%' THEN '0000011111' WHEN v.votes LIKE '%8%' OR v.votes LIKE '%7%' THEN '0000111111'
                                                               WHEN v.votes LIKE '%6%' OR v.votes LIKE '%5%' THEN '0001111111'
                                                               WHEN v.votes LIKE '%4%' OR v.votes LIKE '%3%' THEN '0011111111' ELSE '0111111111' END)::varbit
                         || B'0000000000000000' AS labels
                  -- Signatures are added as if they were decimal numbers: each digit of the sum counts the votes of a label. So there are nine voters.
                  FROM (SELECT lpad(sum(substring(e.marks FROM 1 FOR 64)::text::numeric)::text, 64, '0') AS votes
                        FROM (SELECT f.marks FROM found f WHERE bit_count(f.marks & B'11111111111111111111111111111111111111111111111111111111111111110000000000000000') > 0
                              ORDER BY f.distance::float8 * 0.0015625::pg_catalog.float8 + weight_code * ((f.marks & B'00000000000000000000000000000000000000000000000000000000000000001111111111111111') OPERATOR(extensions.<~>) query_marks) / 16::float8
                              LIMIT 9) e) v)
              SELECT e.key, e.distance, e.lean
              FROM (SELECT f.key, f.distance, CASE WHEN bit_count(f.marks & B'11111111111111111111111111111111111111111111111111111111111111110000000000000000') > 0 AND bit_count(f.marks & l.labels) = 0 THEN lean ELSE 0::float8 END AS lean
                    FROM found f CROSS JOIN likely l OFFSET 0) e
              ORDER BY e.distance::float8 * (1::float8 + e.lean) LIMIT wanted) r;

    ELSE
        looked := wanted;
        SELECT array_agg(f.key), array_agg(f.distance) INTO keys, bits
        FROM (
-- Reads query_geometry, centers, truncated, replaced and looked. Returns the nearest keys, as many as looked says. The template has it
          -- twice, each time inside a larger statement: so the keys are never stored in between.
          SELECT e.key, e.distance::int AS distance, e.marks
          FROM (SELECT u.key, u.marks, u.geometry OPERATOR(extensions.<~>) query_geometry AS distance, 0::bigint AS seq
                FROM (SELECT unnest(l.ids) AS key, unnest(l.geometry) AS geometry, unnest(l.marks) AS marks
                      FROM foh.products_list l WHERE l.center = ANY (centers) AND truncated = 0) u
                UNION ALL
                -- A lookup for each center. seq + 0: with some statistics the planner would go in by the primary key.
                SELECT t.key, t.marks, t.geometry OPERATOR(extensions.<~>) query_geometry, t.seq
                FROM (SELECT unnest(centers) AS center) c
                CROSS JOIN LATERAL (SELECT t.key, t.marks, t.geometry, t.seq FROM foh.products_stream t
                                    WHERE t.center = c.center AND t.op = 'u' AND t.seq + 0 > truncated OFFSET 0) t
                ORDER BY 3 LIMIT looked + CASE WHEN replaced THEN looked / 8 + 16 ELSE 0 END) e
          -- OFFSET 0: a lookup for each key, never a join planned when the stream was empty.
          WHERE NOT (replaced AND EXISTS (SELECT FROM foh.products_stream o WHERE o.key = e.key AND o.seq > e.seq AND o.op <> 'l' OFFSET 0))
          LIMIT looked
) f;
    END IF;
    IF unplaced IS NOT NULL THEN
        keys := unplaced || keys;
        bits := array_fill(NULL::int, ARRAY[cardinality(unplaced)]) || bits;
        -- Nobody knows yet of what kind these rows are.
        leans := array_fill(0::float8, ARRAY[cardinality(unplaced)]) || leans;
    END IF;
END
$function$;

CREATE OR REPLACE FUNCTION foh.products_nearestcenters(geometry bit, wanted integer)
 RETURNS TABLE(center integer)
 LANGUAGE sql
 STABLE PARALLEL SAFE
AS $function$
    SELECT c.center
    FROM (SELECT unnest(p.ids) AS center, unnest(p.geometry) AS geometry FROM foh.products_area p
          WHERE p.area = ANY (ARRAY(SELECT a.area FROM (SELECT unnest(p.ids) AS area, unnest(p.geometry) AS geometry FROM foh.products_area p WHERE p.area = 0) a
                                    ORDER BY a.geometry OPERATOR(extensions.<~>) $1, a.area LIMIT 8 + $2::bigint / 4))) c
    ORDER BY c.geometry OPERATOR(extensions.<~>) $1, c.center LIMIT $2
$function$;

CREATE OR REPLACE FUNCTION foh.products_place(x vector, labels text[])
 RETURNS TABLE(geometry bit, marks bit, center integer)
 LANGUAGE sql
 STABLE
AS $function$
    SELECT r.geometry, r.marks, coalesce((SELECT n.center FROM foh.products_nearestcenters(r.geometry, 1) n), 0)
    FROM (
        SELECT (WITH RECURSIVE w (a, b, turn) AS (SELECT w.a OPERATOR(extensions.+) w.b, w.a OPERATOR(extensions.-) w.b, 4 FROM (SELECT extensions.subvector(w.x, 1, 8) AS a, extensions.subvector(w.x, 9, 8) AS b FROM (SELECT (extensions.l2_normalize($1)) OPERATOR(extensions.*) g.signs::extensions.vector OPERATOR(extensions.||) pg_catalog.array_fill(0::pg_catalog.float4, ARRAY[13])::extensions.vector AS x OFFSET 0) w OFFSET 0) w UNION ALL SELECT w.a OPERATOR(extensions.+) w.b, w.a OPERATOR(extensions.-) w.b, w.turn OPERATOR(pg_catalog./) 2 FROM (SELECT w.a, extensions.subvector(w.b, w.turn OPERATOR(pg_catalog.+) 1, 8 OPERATOR(pg_catalog.-) w.turn) OPERATOR(extensions.||) extensions.subvector(w.b, 1, w.turn) AS b, w.turn FROM w WHERE w.turn OPERATOR(pg_catalog.>) 0 OFFSET 0) w) SELECT extensions.binary_quantize((w.x OPERATOR(extensions.||) w.x OPERATOR(extensions.||) extensions.subvector(w.x, 1, 256)) OPERATOR(extensions.-) g.threshold) FROM (SELECT w.x OPERATOR(extensions.||) w.x AS x FROM (SELECT w.x OPERATOR(extensions.||) w.x AS x FROM (SELECT w.x OPERATOR(extensions.||) w.x AS x FROM (SELECT w.x OPERATOR(extensions.||) w.x AS x FROM (SELECT w.x OPERATOR(extensions.||) w.x AS x FROM (SELECT w.a OPERATOR(extensions.||) w.b AS x FROM w WHERE w.turn OPERATOR(pg_catalog.=) 0 OFFSET 0) w OFFSET 0) w OFFSET 0) w OFFSET 0) w OFFSET 0) w OFFSET 0) w) AS geometry, coalesce(b.signature, B'0000000000000000000000000000000000000000000000000000000000000000') || b.code AS marks
        FROM (
            SELECT a.signature,
                   (SELECT coalesce(bit_or(p.mask) FILTER (
                               WHERE -(p.weights OPERATOR(extensions.<#>) $1) - p.bias + coalesce(a.lean * a.anchor[p.bit + 1], 0) >= 0),
                           B'0000000000000000')
                    FROM foh.products_projection p) AS code
            FROM (
                SELECT l.anchor, l.signature,
                       CASE WHEN l.anchor IS NOT NULL THEN 1.0 * extensions.l2_distance($1, m.mean) END AS lean
                FROM (SELECT extensions.sum(d.projection)::real[] AS anchor, bit_or(set_bit(B'0000000000000000000000000000000000000000000000000000000000000000', d.label % 64, 1)) AS signature
                      -- One lookup for each name, whatever the statistics. index + 0 leaves only the key on names: with the statistics of a
                      -- dictionary that was empty a moment ago, PostgreSQL would read all labels of the index for each row.
                      FROM (SELECT DISTINCT u.name FROM unnest($2) AS u (name)) u
                      CROSS JOIN LATERAL (SELECT d.label, d.projection FROM foh.label d WHERE d.name = u.name AND d.index + 0 = 1 OFFSET 0) d) l,
                     (SELECT o.mean FROM foh.model o
                      WHERE o.index = 1 AND o.version = (SELECT i.version FROM foh.index i WHERE i.id = 1)) m
                OFFSET 0) a
            OFFSET 0) b
        CROSS JOIN foh.products_quantizer g
        OFFSET 0) r
$function$;

CREATE OR REPLACE FUNCTION foh.products_record(key bigint, x vector, labels text[], first boolean)
 RETURNS TABLE(op "char", version bigint, center integer, geometry bit, marks bit, fresh boolean)
 LANGUAGE sql
 STABLE
AS $function$
    SELECT CASE WHEN $2 IS NULL THEN 'd' ELSE 'u' END::"char", (SELECT i.version FROM foh.index i WHERE i.id = 1),
           coalesce(p.center, CASE WHEN $2 IS NULL THEN 2147483647 ELSE 0 END), p.geometry, p.marks,
           -- Looked up in the snapshot that the version is read in. A transaction that keeps an older snapshot does not see what became
           -- of the key, and under SERIALIZABLE this lookup could abort the writer, so there the entry is not marked fresh.
           -- OFFSET 0: a lookup for each key, never all keys at once.
           CASE WHEN $4 AND p.center IS NOT NULL AND current_setting('transaction_isolation') LIKE 'read %'
                THEN NOT EXISTS (SELECT FROM foh.products_item i WHERE i.key = $1 OFFSET 0)
                     AND NOT EXISTS (SELECT FROM foh.products_stream e WHERE e.key = $1 OFFSET 0)
                ELSE false END
    FROM (SELECT CASE WHEN extensions.vector_norm($2) <= 1e18::pg_catalog.float8 THEN $2 END AS x OFFSET 0) near LEFT JOIN LATERAL foh.products_place(near.x, $3) p ON near.x IS NOT NULL
$function$;

CREATE OR REPLACE FUNCTION foh.products_repair()
 RETURNS TABLE(missing bigint, gone bigint, changed bigint)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET row_security TO 'off'
 SET plan_cache_mode TO 'force_custom_plan'
 SET jit TO 'off'
AS $function$
#variable_conflict use_column
BEGIN
PERFORM foh._open('public.product');
RETURN QUERY
WITH marker AS (
    SELECT coalesce(max(t.seq), 0) AS truncated FROM foh.products_stream t WHERE t.op = 't'
), newest AS MATERIALIZED (
    SELECT DISTINCT ON (t.key) t.key, t.op, t.version, t.geometry
    FROM foh.products_stream t, marker m WHERE t.key IS NOT NULL AND t.op <> 'l' AND t.seq > m.truncated ORDER BY t.key, t.seq DESC
), listed AS (
    -- Lists without a center are those of a build that is not done.
    SELECT unnest(l.ids) AS key, unnest(l.geometry) AS geometry, unnest(l.marks) AS marks FROM foh.products_list l, marker m
    WHERE m.truncated = 0 AND EXISTS (SELECT FROM foh.products_center c WHERE c.center = l.center)
), present AS MATERIALIZED (
    SELECT v.key, p.geometry, p.marks
    FROM (SELECT v.key, v.labels, CASE WHEN extensions.vector_norm(v.x) <= 1e18::pg_catalog.float8 THEN v.x END AS x
          FROM (SELECT s.id AS key, extensions.subvector(s.embedding, 1, 3) AS x, array_replace(s.tags::text[], '', NULL) AS labels FROM public.product s WHERE s.embedding IS NOT NULL OFFSET 0) v
          WHERE v.x IS NOT NULL OFFSET 0) v
    -- A far row has no bits.
    LEFT JOIN LATERAL foh.products_place(v.x, v.labels) p ON v.x IS NOT NULL
), indexed AS MATERIALIZED (
    -- The bits of an entry older than the centers are those of an earlier quantizer: an update reads its row in any case.
    SELECT n.key, CASE WHEN n.version >= m.placed THEN n.geometry END AS geometry, NULL::bit(80) AS marks, n.geometry IS NOT NULL AS told
    FROM newest n, foh.model m
    WHERE n.op = 'u' AND m.index = 1 AND m.version = (SELECT i.version FROM foh.index i WHERE i.id = 1)
    UNION ALL
    SELECT l.key, l.geometry, l.marks, true FROM listed l WHERE NOT EXISTS (SELECT FROM newest n WHERE n.key = l.key)
    UNION ALL
    SELECT f.key, NULL, NULL, true
    FROM foh.model m CROSS JOIN unnest(m.far::bigint[]) AS f (key) LEFT JOIN present p ON p.key = f.key
    WHERE m.index = 1 AND m.version = (SELECT i.version FROM foh.index i WHERE i.id = 1) AND (SELECT k.truncated = 0 FROM marker k)
      AND p.geometry IS NULL AND NOT EXISTS (SELECT FROM newest n WHERE n.key = f.key)
), difference AS MATERIALIZED (
    SELECT p.key, 'missing' AS kind FROM present p WHERE NOT EXISTS (SELECT FROM indexed i WHERE i.key = p.key)
    UNION
    SELECT i.key, 'gone' FROM indexed i WHERE i.told AND NOT EXISTS (SELECT FROM present p WHERE p.key = i.key)
    UNION
    -- The bits of the embedding and the labels tell that a row has changed. A learned code may differ without that: codes of lists
    -- grow stale within what max_stale allows, updates encode them again, and foh.check compares them on the whole.
    SELECT i.key, 'changed' FROM indexed i JOIN present p ON p.key = i.key
    WHERE i.geometry OPERATOR(extensions.<~>) p.geometry > 5
       OR (i.marks & B'11111111111111111111111111111111111111111111111111111111111111110000000000000000') <> (p.marks & B'11111111111111111111111111111111111111111111111111111111111111110000000000000000') OR (p.geometry IS NULL AND i.geometry IS NOT NULL)
), queued AS (
    INSERT INTO foh.products_stream (key, op, version, center) SELECT d.key, 'u', 0, 0 FROM difference d
)
SELECT count(*) FILTER (WHERE d.kind = 'missing'), count(*) FILTER (WHERE d.kind = 'gone'), count(*) FILTER (WHERE d.kind = 'changed')
FROM difference d;
END
$function$;

CREATE OR REPLACE FUNCTION foh.products_rows(keys bigint[] DEFAULT NULL::bigint[], after bigint DEFAULT NULL::bigint, wanted integer DEFAULT NULL::integer, sampled bigint DEFAULT '4294967296'::bigint, held_out bigint DEFAULT '4294967296'::bigint)
 RETURNS TABLE(key bigint, x vector, labels text[])
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET row_security TO 'off'
 SET plan_cache_mode TO 'force_custom_plan'
 SET work_mem TO '64MB'
AS $function$
#variable_conflict use_column
BEGIN
    PERFORM foh._open('public.product');
    IF keys IS NOT NULL THEN
        RETURN QUERY SELECT v.* FROM (SELECT s.id AS key, s.embedding AS x, array_replace(s.tags::text[], '', NULL) AS labels FROM public.product s
                                      WHERE s.id = ANY ($1) OFFSET 0) v WHERE v.x IS NOT NULL;
    ELSIF wanted IS NOT NULL AND after IS NULL THEN
        RETURN QUERY SELECT s.id, s.embedding, array_replace(s.tags::text[], '', NULL) FROM public.product s
                     WHERE s.embedding IS NOT NULL ORDER BY s.id LIMIT wanted;
    ELSIF wanted IS NOT NULL THEN
        RETURN QUERY SELECT s.id, s.embedding, array_replace(s.tags::text[], '', NULL) FROM public.product s
                     WHERE s.embedding IS NOT NULL AND s.id > $2 ORDER BY s.id LIMIT wanted;
    ELSE
        RETURN QUERY SELECT v.key, v.x, v.labels
                     FROM (SELECT s.id AS key, s.embedding AS x, array_replace(s.tags::text[], '', NULL) AS labels
                           FROM (SELECT s.*, encode(sha256(convert_to(s.id::text, 'UTF8')), 'hex') AS "foh digest" FROM public.product s OFFSET 0) s
                           WHERE ('x' || left(s."foh digest", 8))::bit(32)::bigint < held_out
                             AND ('x' || substr(s."foh digest", 9, 8))::bit(32)::bigint < sampled OFFSET 0) v
                     WHERE v.x IS NOT NULL ORDER BY v.key;
    END IF;
END
$function$;

CREATE OR REPLACE FUNCTION foh.products_score(distance double precision, lean double precision)
 RETURNS double precision
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
    SELECT $1 OPERATOR(pg_catalog.+) (coalesce($2, 0::pg_catalog.float8) OPERATOR(pg_catalog.*) pg_catalog.abs($1))
$function$;

CREATE OR REPLACE FUNCTION foh.products_search(query vector, k integer DEFAULT 10, probes integer DEFAULT NULL::integer, shortlist integer DEFAULT NULL::integer, filter text DEFAULT NULL::text, params jsonb DEFAULT NULL::jsonb, labels double precision DEFAULT NULL::double precision, recall double precision DEFAULT NULL::double precision, max_distance double precision DEFAULT NULL::double precision)
 RETURNS SETOF foh.products_result
 LANGUAGE plpgsql
 STABLE PARALLEL SAFE COST 10000 ROWS 10
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_memoize TO 'off'
 SET jit TO 'off'
AS $function$
#variable_conflict use_variable
DECLARE
    near pg_catalog.record;
    dial pg_catalog.float8 := foh.products_dialfactor(labels);
    -- How many times k rows are looked at: where a filter is given, some rows do not pass it.
    times bigint := CASE WHEN filter IS NULL THEN 1 ELSE 4 END;
    more bigint;
    keys bigint[];
    distances pg_catalog.float8[];
    scores pg_catalog.float8[];
    -- How many rows the last look returned.
    returned int;
    -- How many rows within max_distance the look before returned.
    settled int;
BEGIN
    
-- The first thing in every search. Reads its arguments query, k, probes, shortlist, labels and recall. It stands here in full since a call
    -- would cost every search.
    -- pgvector may have moved to another schema since this function was made; nothing below would be found then.
    IF pg_catalog.to_regtype('extensions.vector') IS NULL THEN
        PERFORM foh._refuse_changed('products');
    END IF;
    IF query IS NULL OR extensions.vector_dims(query) OPERATOR(pg_catalog.<>) 3 OR k IS NULL
       OR k OPERATOR(pg_catalog.<) 1 OR probes OPERATOR(pg_catalog.<) 1 OR shortlist OPERATOR(pg_catalog.<) 0
       OR labels OPERATOR(pg_catalog.<) 0::pg_catalog.float8 OR labels OPERATOR(pg_catalog.>) 1::pg_catalog.float8
       OR recall OPERATOR(pg_catalog.<=) 0::pg_catalog.float8 OR recall OPERATOR(pg_catalog.>) 1::pg_catalog.float8 THEN
        PERFORM foh._refuse_search('products', 3, extensions.vector_dims(query), k, probes, shortlist, labels, recall);
    END IF;

    near := foh.products_near(query, k, probes, shortlist, recall, dial, times, false);
    IF near.fallback OPERATOR(pg_catalog.=) 'changed' THEN
        PERFORM foh._refuse_changed('products');
    END IF;
    IF filter IS NOT NULL THEN
        -- The filter must fit between brackets here and between parentheses below. Text that closes one of them does not fit the
        -- other, so only a single expression passes.
        EXECUTE $sql$SELECT FROM (SELECT $1 AS params) v CROSS JOIN LATERAL (SELECT ARRAY[
                $sql$ OPERATOR(pg_catalog.||) filter OPERATOR(pg_catalog.||) $sql$
            ]::boolean[] FROM public.product s WHERE false) s$sql$ USING params;
    END IF;
    WHILE near.fallback IS NULL LOOP
        IF filter IS NOT NULL THEN
            EXECUTE $sql$
                SELECT pg_catalog.array_agg(t.key), pg_catalog.array_agg(t.distance), pg_catalog.array_agg(t.score)
                FROM (SELECT d.key, CASE WHEN d.bits IS NULL THEN d.distance END AS distance,
                             foh.products_score(CASE WHEN d.bits IS NULL THEN d.distance OPERATOR(pg_catalog./) $8 ELSE foh.products_bitscore(d.bits) END, d.lean) AS score
                      FROM (SELECT e.key, e.bits, e.lean, foh.products_exactdistance(s.x, $1) AS distance
                            FROM (SELECT $2 AS params, pg_catalog.unnest($3) AS key, pg_catalog.unnest($4) AS bits, pg_catalog.unnest($5) AS lean) e
                            CROSS JOIN LATERAL (SELECT s.embedding AS x FROM public.product s WHERE s.id OPERATOR(pg_catalog.=) e.key AND (
                                $sql$ OPERATOR(pg_catalog.||) filter OPERATOR(pg_catalog.||) $sql$
                            ) OFFSET 0) s
                            WHERE s.x IS NOT NULL OFFSET 0) d
                      WHERE $6 IS NULL OR d.distance OPERATOR(pg_catalog.<=) $6
                      ORDER BY 3 LIMIT $7) t$sql$
                INTO keys, distances, scores
                USING query, params, near.keys, CASE WHEN near.ranked OPERATOR(pg_catalog.=) 0 AND max_distance IS NULL THEN near.bits END, near.leans, max_distance, k,
                      CASE WHEN near.ranked OPERATOR(pg_catalog.=) 0 AND max_distance IS NULL THEN near.scale ELSE 1::pg_catalog.float8 END;
        ELSIF near.ranked OPERATOR(pg_catalog.=) 0 AND max_distance IS NULL THEN
            -- Usually the caller can see all rows that were found: one check covers them all.
            RETURN QUERY SELECT e.key, NULL::pg_catalog.float8, foh.products_score(foh.products_bitscore(e.bits), e.lean)
                         FROM (SELECT pg_catalog.unnest(near.keys) AS key, pg_catalog.unnest(near.bits) AS bits, pg_catalog.unnest(near.leans) AS lean) e
                         WHERE pg_catalog.cardinality(near.keys) OPERATOR(pg_catalog.=) k AND pg_catalog.array_position(near.bits, NULL) IS NULL
                           AND NOT EXISTS (SELECT FROM (SELECT pg_catalog.unnest(near.keys) AS key) q
                                           WHERE NOT EXISTS (SELECT FROM public.product s WHERE s.id OPERATOR(pg_catalog.=) q.key OFFSET 0));
            IF FOUND THEN
                RETURN;
            END IF;
            SELECT pg_catalog.array_agg(t.key), pg_catalog.array_agg(t.distance), pg_catalog.array_agg(t.score) INTO keys, distances, scores
            FROM (SELECT d.key, d.distance, foh.products_score(coalesce(d.distance OPERATOR(pg_catalog./) near.scale, foh.products_bitscore(d.bits)), d.lean) AS score
                  FROM (SELECT e.key, e.bits, e.lean, CASE WHEN e.bits IS NULL THEN foh.products_exactdistance(s.x, query) END AS distance
                        FROM (SELECT pg_catalog.unnest(near.keys) AS key, pg_catalog.unnest(near.bits) AS bits, pg_catalog.unnest(near.leans) AS lean) e
                        CROSS JOIN LATERAL (SELECT CASE WHEN e.bits IS NULL THEN s.embedding END AS x FROM public.product s WHERE s.id OPERATOR(pg_catalog.=) e.key OFFSET 0) s
                        WHERE e.bits IS NOT NULL OR s.x IS NOT NULL OFFSET 0) d
                  ORDER BY 3 LIMIT k) t;
        ELSE
            SELECT pg_catalog.array_agg(t.key), pg_catalog.array_agg(t.distance), pg_catalog.array_agg(t.score) INTO keys, distances, scores
            FROM (SELECT d.key, d.distance, foh.products_score(d.distance, d.lean) AS score
                  FROM (SELECT e.key, e.lean, foh.products_exactdistance(s.x, query) AS distance
                        FROM (SELECT pg_catalog.unnest(near.keys) AS key, pg_catalog.unnest(near.leans) AS lean) e
                        CROSS JOIN LATERAL (SELECT s.embedding AS x FROM public.product s WHERE s.id OPERATOR(pg_catalog.=) e.key OFFSET 0) s
                        WHERE s.x IS NOT NULL OFFSET 0) d
                  WHERE max_distance IS NULL OR d.distance OPERATOR(pg_catalog.<=) max_distance
                  ORDER BY 3 LIMIT k) t;
        END IF;
        returned := coalesce(pg_catalog.cardinality(keys), 0);
        IF returned OPERATOR(pg_catalog.=) k OR returned OPERATOR(pg_catalog.=) settled THEN
            RETURN QUERY SELECT pg_catalog.unnest(keys), pg_catalog.unnest(distances), pg_catalog.unnest(scores);
            RETURN;
        END IF;
        EXIT WHEN near.exhausted;
        IF max_distance IS NULL THEN
            -- Rows are missing: deleted, hidden by a policy or by the filter, or in other lists. The share of rows that passed
            -- says how many more to read.
            more := greatest(4, (3::bigint OPERATOR(pg_catalog.*) k) OPERATOR(pg_catalog./) greatest(2 OPERATOR(pg_catalog.*) returned, 1));
        ELSE
            -- Or there are no more within that distance: a look at four times as much that finds none says so. A filter that let
            -- nothing pass says nothing about the distance.
            more := 4;
            settled := CASE WHEN filter IS NULL OR returned OPERATOR(pg_catalog.>) 0 THEN returned END;
        END IF;
        times := least(times OPERATOR(pg_catalog.*) more, 10000000);
        near := foh.products_near(query, k, least(near.probes::bigint OPERATOR(pg_catalog.*) more, 10000000)::int, shortlist, recall, dial, times, true);
    END LOOP;
    RETURN QUERY SELECT (r.f).* FROM (SELECT foh.products_exact(query, k, coalesce(filter, 'true'), params, max_distance) AS f) r;
END
$function$;

CREATE OR REPLACE FUNCTION foh.products_state()
 RETURNS TABLE(version bigint, truncated bigint, unplaced bigint[], fallback text)
 LANGUAGE sql
 STABLE PARALLEL SAFE
AS $function$
    SELECT s.version, s.truncated, s.unplaced,
           CASE WHEN s.status = 'building' THEN 'building'
                WHEN NOT s.intact THEN 'changed'
                WHEN s.resync THEN 'resync'
                -- Rows are read one by one, up to about a hundredth of the table; more of them are cheaper to scan.
                WHEN cardinality(s.unplaced) > s.most THEN 'unplaced'
                WHEN s.small AND (SELECT count(*) FROM (SELECT FROM foh.products_item LIMIT 1000 + 1) x)
                     + (SELECT count(*) FROM (SELECT FROM foh.products_stream LIMIT 1000 + 1) y) <= 1000 THEN 'small'
           END
    FROM (SELECT i.version, i.status, m.small, b.most, foh._source_intact(i) AS intact, t.truncated,
                 EXISTS (SELECT FROM foh.products_stream r WHERE r.op = 'r' AND NOT r.fresh) AS resync,
                 ARRAY(SELECT u.key FROM foh.products_stream u
                       WHERE u.center < m.first_center AND u.op = 'u' AND u.seq + 0 > t.truncated
                         AND NOT EXISTS (SELECT FROM foh.products_stream o WHERE o.key = u.key AND o.seq > u.seq AND o.op <> 'l' OFFSET 0)
                       LIMIT b.most + 1)
                 || ARRAY(SELECT f.key FROM unnest(m.far::bigint[]) AS f (key)
                          WHERE t.truncated = 0 AND NOT EXISTS (SELECT FROM foh.products_stream o WHERE o.key = f.key AND o.op <> 'l' OFFSET 0)) AS unplaced
          FROM foh.index i JOIN foh.model m ON m.index = i.id AND m.version = i.version
          CROSS JOIN (SELECT coalesce(max(t.seq), 0) AS truncated FROM foh.products_stream t WHERE t.op = 't' AND NOT t.fresh) t
          -- A page holds about 150 items. The size of the table is always up to date, unlike statistics.
          CROSS JOIN (SELECT greatest(100, 2 * pg_relation_size('foh.products_item'::regclass) / 8192) AS most OFFSET 0) b
          WHERE i.id = 1 OFFSET 0) s
$function$;

CREATE OR REPLACE FUNCTION foh.products_unchanged(counted boolean DEFAULT false)
 RETURNS bigint
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET quote_all_identifiers TO 'off'
 SET row_security TO 'off'
AS $function$
BEGIN
    IF foh.products_intact((SELECT i.source FROM foh.index i WHERE i.id = 1)) IS NOT TRUE THEN
        RETURN NULL;
    ELSIF counted THEN
        PERFORM foh._open('public.product');
        RETURN (SELECT count(*) FROM public.product s WHERE s.embedding IS NOT NULL);
    END IF;
    RETURN 0;
END
$function$;

CREATE TRIGGER foh_products_delete AFTER DELETE ON public.product REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION foh.products_capture();

CREATE TRIGGER foh_products_insert AFTER INSERT ON public.product REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION foh.products_capture();

CREATE TRIGGER foh_products_truncate AFTER TRUNCATE ON public.product FOR EACH STATEMENT EXECUTE FUNCTION foh.products_capture();

CREATE TRIGGER foh_products_update AFTER UPDATE ON public.product REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION foh.products_capture();
