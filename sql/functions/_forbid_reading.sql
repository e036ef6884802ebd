-- Takes back what _allow_reading gave, once no other index needs it.
CREATE OR REPLACE FUNCTION foh._forbid_reading(i foh.index, relation regclass) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    owner name := foh._owner();
    owner_oid oid := (SELECT oid FROM pg_roles WHERE rolname = owner);
    c pg_class;
    n pg_namespace;
BEGIN
    SELECT * INTO c FROM pg_class WHERE oid = relation;
    SELECT * INTO n FROM pg_namespace WHERE oid = c.relnamespace;
    IF NOT EXISTS (SELECT FROM foh.index x WHERE x.id <> i.id AND relation IN (x.source, x.labels_from)) THEN
        IF EXISTS (SELECT FROM pg_policy WHERE polrelid = relation AND polname = 'foh' AND polroles = ARRAY[owner_oid]) THEN
            EXECUTE format('DROP POLICY foh ON %s', relation);
        END IF;
        IF c.relowner <> owner_oid THEN
            EXECUTE format('REVOKE SELECT (%s) ON %s FROM %I',
                           (SELECT string_agg(quote_ident(attname), ', ') FROM pg_attribute
                            WHERE attrelid = relation AND attnum > 0 AND NOT attisdropped), relation, owner);
        END IF;
    END IF;
    -- Where somebody else granted it, it is not ours to revoke.
    IF n.nspowner <> owner_oid AND pg_has_role(n.nspowner, 'USAGE')
       AND EXISTS (SELECT FROM aclexplode(n.nspacl) a WHERE a.grantee = owner_oid AND a.privilege_type = 'USAGE')
       AND NOT EXISTS (SELECT FROM foh.index x JOIN pg_class t ON t.oid IN (x.source, x.labels_from)
                       WHERE x.id <> i.id AND t.relnamespace = n.oid) THEN
        EXECUTE format('REVOKE USAGE ON SCHEMA %I FROM %I', n.nspname, owner);
    END IF;
END
$function$;
