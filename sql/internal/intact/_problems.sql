-- What is wrong with an index, as foh._check_tables says it. Where even that cannot be found out, the reason is what is wrong: the
-- other indexes are looked at all the same.
CREATE OR REPLACE FUNCTION foh._problems(i foh.index) RETURNS TABLE (problem text, detail text)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    dropped text;
BEGIN
    SELECT string_agg(m.name, ', ' ORDER BY m.name) INTO dropped FROM foh._missing_objects(i) m WHERE m.is_table;
    IF dropped IS NOT NULL THEN
        problem := format('tables of the index in foh were dropped: run SELECT foh.drop_index(%L), and create it again', i.name);
        detail := dropped;
        RETURN NEXT;
        RETURN;
    END IF;
    SELECT string_agg(m.name, ', ' ORDER BY m.name) INTO dropped FROM foh._missing_objects(i) m WHERE NOT m.is_table;
    IF dropped IS NOT NULL THEN
        problem := format('functions of the index were dropped: run SELECT foh.refresh(%L), then SELECT foh.repair(%L)', i.name, i.name);
        detail := dropped;
        RETURN NEXT;
        RETURN;
    END IF;
    RETURN QUERY SELECT t.problem, t.detail FROM foh._check_tables(i) t;
EXCEPTION WHEN OTHERS THEN
    problem := format('the index cannot be looked at: run SELECT foh.refresh(%L)', i.name);
    detail := SQLERRM;
    RETURN NEXT;
END
$function$;
