-- The first step of a search, as the owner of schema foh: the keys of the rows that may be nearest.

-- foh: function state
-- Whether the lists of the index can answer a search; fallback is a code that says why not (see foh._fallback). A plain
-- SQL function that returns a table, so that it is inlined.
-- unplaced: keys that neither a list nor a center leads to, those of far rows among them. A search must read their rows from the source.
CREATE OR REPLACE FUNCTION {self}() RETURNS TABLE (version bigint, truncated bigint, unplaced {key_type}[], fallback text)
LANGUAGE sql STABLE PARALLEL SAFE
AS $body$
    SELECT s.version, s.truncated, s.unplaced,
           CASE WHEN s.status = 'building' THEN 'building'
                WHEN NOT s.intact THEN 'changed'
                WHEN s.resync THEN 'resync'
                -- Rows are read one by one, up to about a hundredth of the table; more of them are cheaper to scan.
                WHEN cardinality(s.unplaced) > s.most THEN 'unplaced'
                WHEN s.small AND (SELECT count(*) FROM (SELECT FROM {item} LIMIT {exact_rows} + 1) x)
                     + (SELECT count(*) FROM (SELECT FROM {stream} LIMIT {exact_rows} + 1) y) <= {exact_rows} THEN 'small'
           END
    FROM (SELECT i.version, i.status, m.small, b.most, foh._source_intact(i) AS intact, t.truncated,
                 EXISTS (SELECT FROM {stream} r WHERE r.op = 'r' AND NOT r.fresh) AS resync,
                 ARRAY(SELECT u.key FROM {stream} u
                       WHERE u.center < m.first_center AND u.op = 'u' AND u.seq + 0 > t.truncated
                         AND NOT EXISTS (SELECT FROM {stream} o WHERE o.key = u.key AND {later} > u.seq AND o.op <> 'l' OFFSET 0)
                       LIMIT b.most + 1)
                 || ARRAY(SELECT f.key FROM (SELECT unnest(m.far::{key_type}[]) AS key) f
                          WHERE t.truncated = 0 AND NOT EXISTS (SELECT FROM {stream} o WHERE o.key = f.key AND o.op <> 'l' OFFSET 0)) AS unplaced
          FROM foh.index i JOIN foh.model m ON m.index = i.id AND m.version = i.version
          CROSS JOIN (SELECT coalesce(max(t.seq), 0) AS truncated FROM {stream} t WHERE t.op = 't' AND NOT t.fresh) t
          -- A page holds about 150 items. The size of the table is always up to date, unlike statistics.
          CROSS JOIN (SELECT greatest({most_unplaced}, 2 * pg_relation_size({item_text}::regclass) / 8192) AS most OFFSET 0) b
          WHERE i.id = {id} OFFSET 0) s
$body$;

-- foh: function quantize
-- The geometry bits of x, a row or a query, by the signs and thresholds of the quantizer. Of a query two more sets of bits: those that it would
-- have if its numbers were greater, and if they were smaller (see fragment found). The same arithmetic in the same order as in
-- foh_pg/geometry.py, so that the bits are the same.
-- The halves of the vector are added and subtracted again and again, the second one turned by half as much each time.
-- A loop of PL/pgSQL: a recursive query takes as long to run, and far longer to plan. SET would cost every row, so all names have
-- their schema.
CREATE OR REPLACE FUNCTION {self}(x {vector}.vector, signs {vector}.vector, threshold {vector}.vector, query boolean) RETURNS bit[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $body$
#variable_conflict use_variable
DECLARE
    a {vector}.vector := (x OPERATOR({vector}.*) signs){padding};
    b {vector}.vector := {vector}.subvector(a, {half} OPERATOR(pg_catalog.+) 1, {half});
    c {vector}.vector;
    turn int := {half} OPERATOR(pg_catalog./) 2;
    length int := {numbers};
BEGIN
    a := {vector}.subvector(a, 1, {half});
    LOOP
        c := a;
        a := c OPERATOR({vector}.+) b;
        b := c OPERATOR({vector}.-) b;
        EXIT WHEN turn OPERATOR(pg_catalog.=) 0;
        b := {vector}.subvector(b, turn OPERATOR(pg_catalog.+) 1, {half} OPERATOR(pg_catalog.-) turn) OPERATOR({vector}.||) {vector}.subvector(b, 1, turn);
        turn := turn OPERATOR(pg_catalog./) 2;
    END LOOP;
    -- As many numbers as have thresholds, each as often as it has thresholds.
    a := {vector}.subvector(a OPERATOR({vector}.||) b, 1, {numbers});
    WHILE length OPERATOR(pg_catalog.<) {geometry_bits} LOOP
        a := a OPERATOR({vector}.||) {vector}.subvector(a, 1, least(length, {geometry_bits} OPERATOR(pg_catalog.-) length));
        length := {vector}.vector_dims(a);
    END LOOP;
    a := a OPERATOR({vector}.-) threshold;
    IF NOT query THEN
        RETURN ARRAY[{vector}.binary_quantize(a)];
    END IF;
    -- The numbers are moved by as much as the middle threshold lies above the first.
    b := {vector}.subvector(threshold, {middle} OPERATOR(pg_catalog.+) 1, {numbers}) OPERATOR({vector}.-) {vector}.subvector(threshold, 1, {numbers});
    length := {numbers};
    WHILE length OPERATOR(pg_catalog.<) {geometry_bits} LOOP
        b := b OPERATOR({vector}.||) {vector}.subvector(b, 1, least(length, {geometry_bits} OPERATOR(pg_catalog.-) length));
        length := {vector}.vector_dims(b);
    END LOOP;
    RETURN ARRAY[{vector}.binary_quantize(a), {vector}.binary_quantize(a OPERATOR({vector}.+) b), {vector}.binary_quantize(a OPERATOR({vector}.-) b)];
END
$body$;

-- foh: fragment areas_times
-- By how many times more areas than usual are looked into, if there are many: see near_areas in foh_pg/clustering/homes.py.
                                          greatest(sqrt((SELECT sum(cardinality(p.ids)) FROM {area} p WHERE p.area = 0)::float8 / 40), 1::float8)

-- foh: function home
-- The home of a row: of the centers in the nearest areas those that are nearest to its bits, and of these the one that is nearest to all three sets of
-- bits that are known of the row, its own and those of its numbers moved up and down; of equally near ones the first.
-- foh_pg/clustering/homes.py finds the same. A plain SQL function, so that it is inlined. The bits must be a variable or a
-- column: an expression would be computed again for every center.
-- Distance and center make up one number, since PostgreSQL compares single numbers faster: the distance in front, and the center, below
-- 2 ^ 31, behind it. A double holds both exactly.
CREATE OR REPLACE FUNCTION {self}(geometry bit) RETURNS TABLE (center int)
LANGUAGE sql STABLE PARALLEL SAFE
AS $body$
    SELECT n.center
    FROM (SELECT c.center, c.geometry, (c.geometry OPERATOR({vector}.<~>) $1) * 2147483648::float8 + c.center::float8 AS both
          FROM (SELECT unnest(p.ids) AS center, unnest(p.geometry) AS geometry FROM {area} p
                WHERE p.area = ANY (ARRAY(SELECT a.area FROM (SELECT unnest(p.ids) AS area, unnest(p.geometry) AS geometry FROM {area} p WHERE p.area = 0) a
                                          ORDER BY a.geometry OPERATOR({vector}.<~>) $1, a.area LIMIT floor(8 * {areas_times})::bigint))) c
          ORDER BY 3 LIMIT 8) n
    ORDER BY ((n.geometry OPERATOR({vector}.<~>) $1) + (n.geometry OPERATOR({vector}.<~>) {bits_above}) + (n.geometry OPERATOR({vector}.<~>) {bits_below})) * 2147483648::float8 + n.center::float8
    LIMIT 1
$body$;

-- foh: function nearest_centers
-- The centers nearest to a query, the nearest first: by all three sets of its bits (see quantize), which tell apart better than the first alone. Areas are
-- found by the first, as for the home of a row: otherwise a search by the vector of a row might not look into the area of its home.
-- So the home of a row is not always the first of these for its own vector, and yet among the first: foh.check counts the rows of which it is not.
-- Inlined and sorted as in the function above.
CREATE OR REPLACE FUNCTION {self}(geometry bit, above bit, below bit, wanted int) RETURNS TABLE (center int)
LANGUAGE sql STABLE PARALLEL SAFE
AS $body$
    SELECT (n.both - floor(n.both / 2147483648::float8) * 2147483648::float8)::int
    FROM (SELECT ((c.geometry OPERATOR({vector}.<~>) $1) + (c.geometry OPERATOR({vector}.<~>) $2) + (c.geometry OPERATOR({vector}.<~>) $3)) * 2147483648::float8 + c.center::float8 AS both
          FROM (SELECT unnest(p.ids) AS center, unnest(p.geometry) AS geometry FROM {area} p
                WHERE p.area = ANY (ARRAY(SELECT a.area FROM (SELECT unnest(p.ids) AS area, unnest(p.geometry) AS geometry FROM {area} p WHERE p.area = 0) a
                                          ORDER BY a.geometry OPERATOR({vector}.<~>) $1, a.area
                                          LIMIT floor((8 + $4 / 8) * {areas_times})::bigint))) c
          ORDER BY 1 LIMIT $4) n
$body$;

-- foh: function read_by
-- The centers whose lists a search by the vector of a row reads, with so many probes.
CREATE OR REPLACE FUNCTION {self}(x {vector}.vector, probes int) RETURNS TABLE (center int)
LANGUAGE sql STABLE PARALLEL SAFE
AS $body$
    SELECT n.center
    FROM (SELECT l.looks[1] AS geometry, l.looks[2] AS above, l.looks[3] AS below FROM (SELECT {row_looks} AS looks FROM {quantizer} g OFFSET 0) l OFFSET 0) l
    CROSS JOIN LATERAL {nearest_centers}(l.geometry, l.above, l.below, $2) n
$body$;

-- foh: fragment found
-- Reads query_geometry, query_above, query_below, apart, lean, centers, first, truncated, streamed, replaced, looked and most. Returns the nearest keys,
          -- as many as looked says. The template has it twice, each time inside a larger statement: so the keys are never stored in between.
          -- bits: an estimate of the distance. In how many bits two rows differ is the sum of the differences of their numbers, rounded. The
          -- bits of the query with its numbers moved up and down make the estimate finer, and let large differences count more,
          -- as they do in the distance.
          SELECT e.key, e.marks, (e.distance + (e.geometry OPERATOR({vector}.<~>) query_above) + (e.geometry OPERATOR({vector}.<~>) query_below) - apart)::int AS bits
          -- The nearest lists first: in the others, what is farther than all that is wanted need not be sorted. Marks are read where labels count.
          FROM (WITH nearer AS MATERIALIZED (
                    SELECT u.key, u.marks, u.geometry, u.geometry OPERATOR({vector}.<~>) query_geometry AS distance, 0::bigint AS seq
                    FROM (SELECT unnest(l.ids) AS key, unnest(l.geometry) AS geometry, unnest(CASE WHEN {marks_read} THEN l.marks END) AS marks{included_asked}
                          FROM {list} l WHERE l.center = ANY (centers[:first]) AND truncated = 0) u{passing}
                    ORDER BY 4 LIMIT most)
                SELECT n.key, n.marks, n.geometry, n.distance, n.seq FROM nearer n
                UNION ALL
                SELECT u.key, u.marks, u.geometry, u.geometry OPERATOR({vector}.<~>) query_geometry, 0::bigint
                FROM (SELECT unnest(l.ids) AS key, unnest(l.geometry) AS geometry, unnest(CASE WHEN {marks_read} THEN l.marks END) AS marks{included_asked}
                      FROM {list} l WHERE l.center = ANY (centers[first + 1:]) AND truncated = 0) u
                WHERE {passing_and}u.geometry OPERATOR({vector}.<~>) query_geometry < coalesce((SELECT n.distance FROM nearer n OFFSET most - 1 LIMIT 1), 'infinity'::float8)
                UNION ALL
                -- seq + 0: with some statistics the planner would go in by the primary key.
                SELECT t.key, t.marks, t.geometry, t.geometry OPERATOR({vector}.<~>) query_geometry, t.seq
                FROM (SELECT t.key, t.marks, t.geometry, t.seq{included_streamed} FROM {stream} t
                      WHERE streamed AND t.center = ANY (centers) AND t.op = 'u' AND t.seq + 0 > truncated OFFSET 0) t{passing_stream}
                ORDER BY 4 LIMIT most) e
          -- OFFSET 0: a lookup for each key, never a join planned when the stream was empty.
          WHERE NOT (replaced AND EXISTS (SELECT FROM {stream} o WHERE o.key = e.key AND {later} > e.seq AND o.op <> 'l' OFFSET 0))
          LIMIT looked

-- foh: fragment second_look, if labels
-- Which kind of row is the query? The rows that are nearest by bits and by learned code, which leans on the labels of a stored row and
        -- guesses those of the query, vote with their labels. Labels with at least half as many votes as the first are likely. A row whose
        -- labels are all others is put back. A row without labels may be of any kind, and stays where it is.
        -- A row has labels where its marks are greater than the mask of the code: bits are compared from the first on, and the signature comes first.
        SELECT array_agg(r.key), array_agg(r.bits), array_agg(r.lean) INTO keys, bits, leans
        FROM (WITH found AS MATERIALIZED ({found}),
              likely AS MATERIALIZED (
                  SELECT translate(v.votes, '0123456789', CASE WHEN v.votes LIKE '%9%' THEN '0000011111' WHEN v.votes LIKE '%8%' OR v.votes LIKE '%7%' THEN '0000111111'
                                                               WHEN v.votes LIKE '%6%' OR v.votes LIKE '%5%' THEN '0001111111'
                                                               WHEN v.votes LIKE '%4%' OR v.votes LIKE '%3%' THEN '0011111111' ELSE '0111111111' END)::varbit
                         || 0::bit({bits}) AS labels
                  -- Signatures are added as if they were decimal numbers: each digit of the sum counts the votes of a label. So there are nine voters.
                  FROM (SELECT lpad(sum(substring(e.marks FROM 1 FOR {signature_bits})::text::numeric)::text, {signature_bits}, '0') AS votes
                        FROM (SELECT f.marks FROM found f WHERE f.marks > {code_mask}
                              ORDER BY f.bits::float8 * {bit_distance} + weight_code * ((f.marks & {code_mask}) OPERATOR({vector}.<~>) query_marks) / {bits}::float8
                              LIMIT {voters}) e) v)
              SELECT e.key, e.bits, e.lean
              FROM (SELECT f.key, f.bits, CASE WHEN f.marks > {code_mask} AND bit_count(f.marks & l.labels) = 0 THEN lean ELSE 0::float8 END AS lean
                    FROM found f CROSS JOIN likely l OFFSET 0) e
              ORDER BY e.bits::float8 * (1::float8 + e.lean) LIMIT wanted) r;

-- foh: fragment second_look
RAISE EXCEPTION 'foh: index % has no labels to rank by', {name};

-- foh: fragment match_lists
-- Where a column has to do with the vector, fewer rows around the query may pass than elsewhere, or more: the nearest lists tell. The share of all
    -- rows counts there as if so many entries had been seen.
    IF asked IS NULL THEN
        fewest := probes / greatest({lists_for_share}, 1::float8);
        everywhere := share;
        SELECT (count(*) FILTER (WHERE u.passes) + {share_counts} * share) / (count(*) + {share_counts}) INTO share
        FROM (SELECT {passing_only} AS passes
              FROM (SELECT unnest(CASE WHEN {marks_read} THEN l.marks END) AS marks{included_asked}
                    FROM {list} l WHERE l.center = ANY (centers[:{share_lists}]) AND truncated = 0) u) u;
        -- Where fewer pass here than elsewhere, the nearest of them lie farther off still than if the rows that pass were spread evenly.
        more := least(fewest::float8 * greatest({lists_for_share}, 1::float8) * power(greatest(everywhere / share, 1::float8), 0.25::float8), 1e7::float8)::int;
        -- To find more centers costs as much as a fifth of the lists.
        IF more > probes + probes / 5 THEN
            -- More lists than that cost more than all rows that pass.
            IF lean = 0::float8 AND more > worth THEN
                fallback := 'few';
                RETURN;
            END IF;
            centers := ARRAY(SELECT n.center FROM {nearest_centers}(query_geometry, query_above, query_below, more) n);
            exhausted := cardinality(centers) < more;
        ELSE
            more := least(more, probes);
            centers := centers[:more];
        END IF;
        probes := more;
    END IF;

-- foh: fragment match_again
-- Fewer rows than are wanted pass in these lists: more are read.
    IF coalesce(cardinality(keys), 0) < wanted AND NOT exhausted AND probes < 10000000 THEN
        -- A search never asks so, but a reader may call this function with anything.
        IF probes < 1 THEN
            PERFORM foh._refuse_search({name}, {dimensions}, {dimensions}, 1, probes, NULL, NULL, NULL);
        END IF;
        more := least(probes::bigint * least(8, greatest(2, looked / greatest(coalesce(cardinality(keys), 0), 1))), 10000000)::int;
        IF lean = 0::float8 AND more > worth THEN
            fallback := 'few';
            RETURN;
        END IF;
        SELECT n.* INTO probes, keys, bits, leans, ranked, exhausted, scale, fallback
        FROM {near_matching}(vector, k, more, shortlist, recall, dial, times, false, share, tests, worth) n;
        RETURN;
    END IF;
    keys := keys[:wanted];
    bits := bits[:wanted];

-- foh: fragment pinned_plans
-- The shape of the plans is pinned: they may have been made when the tables were empty.
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_memoize = off
SET jit = off

-- foh: fragment near_body
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
{pinned_plans}
AS $body$
#variable_conflict use_variable
DECLARE
    -- Whether function state must be asked: something about the index is not as usual.
    unusual boolean;
    -- Whether the stream has entries, and whether one of them may replace one of a list or of the stream.
    streamed boolean;
    replaced boolean;
    truncated bigint := 0;
    unplaced {key_type}[];
    centers int[];
    looks bit({geometry_bits})[];
    query_geometry bit({geometry_bits});
    query_above bit({geometry_bits});
    query_below bit({geometry_bits});
    -- In how many bits the last two differ.
    apart float8;
    query_marks bit({mark_bits});
    -- How much the learned code counts beside the bits in the choice of voters, and by how many times its distance a row of another
    -- kind than the query is put back.
    weight_code float8;
    lean float8;
    wanted int;
    -- How many of the nearest rows by geometry bits are looked at again. Where some may have been replaced, most are read.
    looked bigint;
    most bigint;
    -- How many lists are read before the others.
    first int;
    {match_declared}
BEGIN
    -- Planning is the largest cost of the first search of a connection. So a constant has the type of what it is compared with: otherwise
    -- PostgreSQL would try all operators of that name. LEAST and GREATEST compare as float8, whose operators the ORDER BY needs anyway.
    -- One statement for all that does not depend on the answer: the state of the index, the weights, the bits of the query and
    -- the nearest centers. What is needed twice stands in a subquery of its own.
    SELECT {scale_of_scores}, m.status <> 'ready' OR m.small OR NOT foh._intact_in_plan({recorded})
               OR m.has_far OR EXISTS (SELECT FROM {stream} t WHERE t.center < m.first_center),
           EXISTS (SELECT FROM {stream} t), EXISTS (SELECT FROM {stream} t WHERE NOT t.fresh),
           m.ranked, m.probes, m.weight_code, m.lean, q.looks, {signature_zeros}::varbit || coalesce(m.code, 0::bit({bits}))::varbit,
           ARRAY(SELECT n.center FROM {nearest_centers}(q.geometry, q.above, q.below, m.probes) n)
    INTO scale, unusual, streamed, replaced, ranked, probes, weight_code, lean, looks, query_marks, centers
    FROM (SELECT m.status, m.scale, m.small, m.far IS NOT NULL AS has_far, m.first_center, m.lean, m.weight_code,
                 {probes_for_share} AS probes,
                 {shortlist_chosen} AS ranked,
                 -- The condition on ctid makes PostgreSQL read the whole table without its index; sequential scans are off because of other tables.
                 (SELECT bit_or(p.mask) FROM {projection} p
                  WHERE m.lean > 0::float8 AND m.weight_code > 0::float8 AND p.ctid >= '(0,0)' AND -(p.weights OPERATOR({vector}.<#>) vector) >= p.bias) AS code
          FROM (SELECT i.status, m.*, dial * m.weight_votes AS lean, {reach_chosen} AS reach
                FROM foh.index i JOIN foh.model m ON m.index = i.id AND m.version = i.version WHERE i.id = {id} OFFSET 0) m OFFSET 0) m
    CROSS JOIN (SELECT q.looks, q.looks[1] AS geometry, q.looks[2] AS above, q.looks[3] AS below FROM (SELECT {query_looks} AS looks FROM {quantizer} g OFFSET 0) q OFFSET 0) q;
    IF unusual THEN
        SELECT s.truncated, s.unplaced, s.fallback INTO truncated, unplaced, fallback FROM {state}() s;
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
    wanted := least(CASE WHEN again THEN greatest(k::float8, ranked) * times::float8 WHEN share IS NOT NULL THEN greatest(ranked, greatest(k::float8, {fewer_rows} * ranked) * times::float8) ELSE greatest((k * times)::float8, ranked) END, 1e7);
    -- Two nested IFs: PL/pgSQL would run a condition that contains a query even where again is false.
    IF again THEN
        IF 3 * probes::bigint > (SELECT count(*) FROM {center}) THEN
            -- To read the source is cheaper than a third of the lists, with a lookup for each entry.
            exhausted := true;
            RETURN;
        END IF;
    END IF;
    exhausted := cardinality(centers) < probes;
    {match_read}
    query_geometry := looks[1];
    query_above := looks[2];
    query_below := looks[3];
    apart := query_above OPERATOR({vector}.<~>) query_below;
    {match_lists}
    looked := greatest({looked_at_least}, {looked_times}::float8 * wanted::float8);
    most := looked + CASE WHEN replaced THEN looked / 8 + 16 ELSE 0 END;
    -- These lists should hold somewhat more than that.
    first := {first_lists};
    IF lean > 0::float8 THEN
        {second_look}
    ELSE
        SELECT array_agg(f.key), array_agg(f.bits) INTO keys, bits
        FROM (SELECT f.key, f.bits FROM ({found}) f ORDER BY f.bits LIMIT {kept}) f;
    END IF;
    {match_again}
    IF unplaced IS NOT NULL THEN
        keys := unplaced || keys;
        bits := array_fill(NULL::int, ARRAY[cardinality(unplaced)]) || bits;
        -- Of what kind these rows are is not known yet.
        leans := array_fill(0::float8, ARRAY[cardinality(unplaced)]) || leans;
    END IF;
END
$body$;

-- foh: function near, called by readers
-- The step of a search that reads our tables: the keys of the rows that are nearest by distance and by labels, in the lists
-- and the stream entries of the nearest centers. One row of arrays: one call, one snapshot.
-- First the geometry bits choose well more than are wanted. Then the nearest of them vote what kind of row the query is, and rows
-- that are known to be of another kind are put back (see second_look).
-- recall: the share of the nearest rows that a search is to find; the model knows how much must be read for it. dial: a
-- factor of the learned weight; 0 leaves the labels out. times: how many times k keys to return, since some rows will not pass the
-- filter. again: an earlier call with fewer probes did not find enough. share: about so many of all rows pass the filter; the fewer they are,
-- the farther away are the nearest of them, and the more lists are read. bits: the distance as the bits estimate it; null for keys that
-- must be read from the source. leans: by how many times its distance a row is put back. scale: what a distance is divided by to compare
-- with an estimate from bits.
CREATE OR REPLACE FUNCTION {self}(vector {vector}.vector, k int, INOUT probes int, shortlist int, recall float8, dial float8, times bigint,
                                  again boolean, share float8 DEFAULT NULL, OUT keys {key_type}[], OUT bits int[], OUT leans float8[], OUT ranked int, OUT exhausted boolean,
                                  OUT scale float8, OUT fallback text)
{near_body}

-- foh: function near_matching, called by readers
-- The same for a search with a condition on included columns or labels. tests: see foh._matched. worth: more lists than that cost more than to
-- read all rows that pass from the source, where fallback 'few' sends a search. In the body of this function the
-- placeholders of foh._matching_names have a meaning, in that of near they are empty: so a search without a condition pays nothing for them.
CREATE OR REPLACE FUNCTION {self}(vector {vector}.vector, k int, INOUT probes int, shortlist int, recall float8, dial float8, times bigint,
                                  again boolean, share float8 DEFAULT NULL, tests jsonb DEFAULT NULL, worth int DEFAULT NULL, OUT keys {key_type}[], OUT bits int[], OUT leans float8[], OUT ranked int, OUT exhausted boolean,
                                  OUT scale float8, OUT fallback text)
{near_body}
