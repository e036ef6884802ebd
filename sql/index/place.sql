-- The code and the home of rows as they stand in the source; code is null where the embedding is null or not usable.
-- A plain SQL function, so that it is inlined: encoding, home and version then share the snapshot of one statement.
CREATE OR REPLACE FUNCTION {place}(keys {key_type}[]) RETURNS TABLE (key {key_type}, code bit, center int)
LANGUAGE sql STABLE
AS $body$
    SELECT r.key, r.code,
           CASE WHEN r.code IS NOT NULL THEN coalesce((
               SELECT c.center FROM {center} c
               ORDER BY (c.code OPERATOR({vector}.<~>) r.code) / {bits} + {blend} * {center_distance}, c.center LIMIT 1), 0) END
    FROM (
        SELECT a.key, a.u, a.scale,
               CASE WHEN a.x IS NOT NULL THEN (
                   SELECT coalesce(bit_or(p.mask) FILTER (
                              WHERE -(p.weights OPERATOR({vector}.<#>) a.x) - p.bias + coalesce(a.lean * a.anchor[p.bit + 1], 0) >= 0),
                          {zeros})
                   FROM {projection} p) END AS code
        FROM (
            SELECT l.key, l.x, l.anchor, m.scale, {to_center} AS u,
                   CASE WHEN l.anchor IS NOT NULL THEN {label_weight} * {vector}.l2_distance(l.x, m.mean) END AS lean
            FROM (
                SELECT v.key, v.x,
                       (SELECT {vector}.sum(d.projection)::real[] FROM foh.label d
                        WHERE d.index = {id} AND d.name = ANY (v.labels) AND d.projection IS NOT NULL) AS anchor
                FROM (SELECT s.{key} AS key, {vector_once} AS x, {labels_of} AS labels
                      FROM {source} s WHERE s.{key} = ANY ($1{key_collate}) OFFSET 0) v
                OFFSET 0) l,
                (SELECT o.mean, o.scale FROM foh.model o
                 WHERE o.index = {id} AND o.version = (SELECT i.version FROM foh.index i WHERE i.id = {id})) m
            OFFSET 0) a
        OFFSET 0) r
$body$;
