-- The centers nearest to the bits of a query or of a row, the nearest first, found through the nearest areas; of equally near ones the first
-- comes first. The home of a row is what this returns first: see foh_pg/clustering/homes.py, which finds the same.
-- A plain SQL function that returns a table, so that it is inlined. The bits must be a variable or a column: an expression would be computed
-- again for every center.
CREATE OR REPLACE FUNCTION {nearest_centers}(geometry bit, wanted int) RETURNS TABLE (center int)
LANGUAGE sql STABLE PARALLEL SAFE
AS $body$
    SELECT c.center
    FROM (SELECT unnest(p.ids) AS center, unnest(p.geometry) AS geometry FROM {area} p
          WHERE p.area = ANY (ARRAY(SELECT a.area FROM (SELECT unnest(p.ids) AS area, unnest(p.geometry) AS geometry FROM {area} p WHERE p.area = 0) a
                                    ORDER BY a.geometry OPERATOR({vector}.<~>) $1, a.area LIMIT 8 + $2::bigint / 4))) c
    ORDER BY c.geometry OPERATOR({vector}.<~>) $1, c.center LIMIT $2
$body$;
