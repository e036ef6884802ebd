-- Refuses tables on which triggers would not see every write, each with its reason.
CREATE OR REPLACE FUNCTION foh._inspect_table(relation oid) RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    c pg_class;
    refusal text;
BEGIN
    SELECT * INTO c FROM pg_class WHERE oid = relation;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'foh: there is no table with oid %', relation USING ERRCODE = 'undefined_table';
    END IF;
    refusal := foh._refusal(c.oid);
    IF refusal IS NOT NULL THEN
        RAISE EXCEPTION 'foh: % %', foh._qualified(c.oid), refusal USING ERRCODE = 'wrong_object_type';
    END IF;
END
$function$;
