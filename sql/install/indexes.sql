-- The functions of indexes that exist, from the present templates.
DO $foh$
DECLARE
    i foh.index;
BEGIN
    FOR i IN SELECT x.* FROM foh.index x JOIN pg_class c ON c.oid = x.source ORDER BY x.id LOOP
        PERFORM foh._make_functions(i);
        IF foh._citus_kind(i.source) = 'distributed' THEN
            PERFORM foh._attach_distributed(i);
        END IF;
    END LOOP;
END
$foh$;
