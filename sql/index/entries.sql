-- The members of some lists nearest to a code, as many as are wanted. The fraction of a distance tells equals apart: those
-- in the list of the nearer center come first, so the centers are given in that order.
-- Codes tie a lot: each run of equal codes is compared once, and of the nearest runs as many are unfolded as hold enough
-- keys. A plain SQL function that returns a table, so that it is inlined.
CREATE OR REPLACE FUNCTION {entries}(code bit, centers int[], wanted bigint) RETURNS TABLE (key {key_type}, distance float8)
LANGUAGE sql STABLE PARALLEL SAFE
AS $body$
    {distinct_open}SELECT unnest(g.ids[g.first:g.last]) AS key, g.distance
    FROM (SELECT u.ids, u.first, u.last, (u.code OPERATOR({vector}.<~>) $1) + u.rank AS distance
          FROM (SELECT l.ids, l.rank, unnest(l.runs) AS code, unnest(l.starts) AS first, unnest(l.ends) AS last
                FROM (SELECT l.ids, l.runs, l.starts, l.ends, array_position($2, l.center) / (cardinality($2) + 1.0::float8) AS rank
                      FROM {list} l WHERE l.center = ANY ($2) OFFSET 0) l) u
          ORDER BY 4 LIMIT {unfolded}) g
    LIMIT {unfolded}{distinct_close}
$body$;
