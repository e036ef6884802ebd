-- The functions of indexes that exist, from the present templates.
DO $foh$
DECLARE
    i foh.index;
BEGIN
    FOR i IN SELECT x.* FROM foh.index x JOIN pg_class c ON c.oid = x.source ORDER BY x.id LOOP
        PERFORM foh._make_functions(i);
        -- The present version may have functions that readers call and an earlier one had not.
        PERFORM foh._grant_reading(i, r, false) FROM foh._readers(i) r;
        IF foh._citus_kind(i.source) = 'distributed' THEN
            PERFORM foh._attach_distributed(i);
        END IF;
    END LOOP;
END
$foh$;
