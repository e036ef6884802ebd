-- Takes back what _allow_reading gave, once no other index reads the table.
CREATE OR REPLACE FUNCTION foh._forbid_reading(i foh.index, relation regclass) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    owner name := foh._owner();
BEGIN
    IF EXISTS (SELECT FROM foh.index x WHERE x.id <> i.id AND relation IN (x.source, x.labels_from)) THEN
        RETURN;
    END IF;
    IF EXISTS (SELECT FROM pg_policy WHERE polrelid = relation AND polname = 'foh') THEN
        EXECUTE format('DROP POLICY foh ON %s', relation);
    END IF;
    IF NOT (SELECT c.relowner = o.oid FROM pg_class c, pg_roles o WHERE c.oid = relation AND o.rolname = owner) THEN
        EXECUTE format('REVOKE SELECT (%s) ON %s FROM %I',
                       (SELECT string_agg(quote_ident(attname), ', ') FROM pg_attribute
                        WHERE attrelid = relation AND attnum > 0 AND NOT attisdropped), relation, owner);
    END IF;
END
$function$;
