-- The bits and the home of a row: the center that a search by its vector finds first, or 0 where there is none yet.
-- A plain SQL function, so that it is inlined: bits, home and version then share the snapshot of one statement.
CREATE OR REPLACE FUNCTION {place}(x {vector}.vector, labels text[]) RETURNS TABLE (geometry bit, marks bit, center int)
LANGUAGE sql STABLE
AS $body$
    SELECT r.geometry, r.marks, coalesce((SELECT n.center FROM {nearest_centers}(r.geometry, 1) n), 0)
    FROM (
        SELECT {row_geometry} AS geometry, {row_marks} AS marks
        FROM (
            SELECT a.signature,
                   (SELECT coalesce(bit_or(p.mask) FILTER (
                               WHERE -(p.weights OPERATOR({vector}.<#>) $1) - p.bias + coalesce(a.lean * a.anchor[p.bit + 1], 0) >= 0),
                           {zeros})
                    FROM {projection} p) AS code
            FROM (
                SELECT l.anchor, l.signature,
                       CASE WHEN l.anchor IS NOT NULL THEN {label_weight} * {vector}.l2_distance($1, m.mean) END AS lean
                FROM (SELECT {vector}.sum(d.projection)::real[] AS anchor, bit_or(set_bit({signature_zeros}, d.label % {signature_modulus}, 1)) AS signature
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
