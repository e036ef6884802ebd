-- Lets the owner of foh read these columns of the application's table, all rows of it: the triggers run with its rights.
CREATE OR REPLACE FUNCTION foh._allow_reading(relation regclass, columns name[]) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    owner name := foh._owner();
    namespace name := (SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = relation);
    list text := (SELECT string_agg(quote_ident(c), ', ') FROM unnest(columns) c WHERE c IS NOT NULL);
BEGIN
    IF NOT has_schema_privilege(owner, namespace, 'USAGE') THEN
        BEGIN
            EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', namespace, owner);
        EXCEPTION WHEN insufficient_privilege THEN
            NULL;  -- judged by its effect, next
        END;
        IF NOT has_schema_privilege(owner, namespace, 'USAGE') THEN
            RAISE EXCEPTION 'foh: role % may not use schema %, where % is', quote_ident(owner), quote_ident(namespace), relation
                USING ERRCODE = 'insufficient_privilege',
                      HINT = format('Its owner can allow it: GRANT USAGE ON SCHEMA %I TO %I.', namespace, owner);
        END IF;
    END IF;
    EXECUTE format('GRANT SELECT (%s) ON %s TO %I', list, relation, owner);
    -- In force only where row-level security is, now or later.
    IF NOT EXISTS (SELECT FROM pg_policy WHERE polrelid = relation AND polname = 'foh' AND polroles = ARRAY[(SELECT oid FROM pg_roles WHERE rolname = owner)]) THEN
        IF EXISTS (SELECT FROM pg_policy WHERE polrelid = relation AND polname = 'foh') THEN
            RAISE EXCEPTION 'foh: % has a policy named foh that is not ours', relation
                USING ERRCODE = 'duplicate_object', HINT = format('That name is needed: ALTER POLICY foh ON %s RENAME TO ...', relation);
        END IF;
        EXECUTE format('CREATE POLICY foh ON %s FOR SELECT TO %I USING (true)', relation, owner);
    END IF;
END
$function$;
