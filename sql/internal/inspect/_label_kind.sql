-- How labels of a type are read: one (a label), many (an array of labels), json (an array of strings); null where the type cannot hold
-- labels. A domain is what it is a domain over.
CREATE OR REPLACE FUNCTION foh._label_kind(type oid) RETURNS text
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    t pg_type;
    many boolean := false;
BEGIN
    LOOP
        SELECT * INTO t FROM pg_type x WHERE x.oid = type;
        IF t.typtype = 'd' THEN
            type := t.typbasetype;
        ELSIF t.typcategory = 'A' AND t.typelem <> 0 AND NOT many THEN
            many := true;
            type := t.typelem;
        ELSE
            EXIT;
        END IF;
    END LOOP;
    RETURN CASE
        WHEN t.typtype = 'e' OR type IN ('text'::regtype, 'varchar'::regtype, 'char'::regtype, '"char"'::regtype, 'name'::regtype, 'boolean'::regtype,
                                         'uuid'::regtype, 'smallint'::regtype, 'int'::regtype, 'bigint'::regtype)
        THEN CASE WHEN many THEN 'many' ELSE 'one' END
        WHEN type = 'jsonb'::regtype AND NOT many THEN 'json'
    END;
END
$function$;
