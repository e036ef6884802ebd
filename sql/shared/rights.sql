-- Who may search and who may update, and as whom functions read the tables of the application.

-- Raises an error unless the present role is the one that schema foh belongs to. A superuser, too, must become that role first: what
-- the role has attached to its tables would otherwise run with the rights of the superuser.
CREATE OR REPLACE FUNCTION foh._require_owner() RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF current_user <> foh._owner() THEN
        RAISE EXCEPTION 'foh: schema foh belongs to role %, and this session acts as %', quote_ident(foh._owner()), quote_ident(current_user)
            USING ERRCODE = 'insufficient_privilege', HINT = format('Connect as %I, or SET ROLE %1$I first.', foh._owner());
    END IF;
END
$function$;

-- Raises an error where a table belongs to a role that does not have the rights of foh's owner: the functions of an index read the table
-- as foh's owner, and what the table's owner attached to it would run with rights that this role does not have.
CREATE OR REPLACE FUNCTION foh._refuse_owner(relation oid) RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    ours constant name := foh._owner();
    theirs constant name := (SELECT pg_get_userbyid(c.relowner) FROM pg_class c WHERE c.oid = relation);
BEGIN
    IF NOT pg_has_role(theirs, ours, 'USAGE') THEN
        RAISE EXCEPTION 'foh: % belongs to role %, and schema foh to %, whose rights % does not have', foh._qualified(relation), quote_ident(theirs),
            quote_ident(ours), quote_ident(theirs)
            USING ERRCODE = 'insufficient_privilege',
                  HINT = format('An installation of foh serves the tables of one role: ALTER TABLE %s OWNER TO %I; or install schema foh for %I, with foh-pg migrate --owner.',
                                foh._qualified(relation), ours, theirs);
    END IF;
END
$function$;

-- Whether row-level security of a table applies to foh's owner, from whom nothing may be hidden.
CREATE OR REPLACE FUNCTION foh._hides_rows(c pg_catalog.pg_class) RETURNS boolean
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT c.relrowsecurity AND NOT (r.rolsuper OR r.rolbypassrls) AND (c.relforcerowsecurity OR NOT pg_has_role(r.oid, c.relowner, 'USAGE'))
    FROM pg_roles r WHERE r.rolname = foh._owner()
$function$;

-- Called first by every function that reads tables of the application as foh's owner. Locks each, so that no session alters it before the
-- transaction ends, and refuses one whose owner does not have our rights: what that role has attached to the table would run with them.
-- Policies never run here: such functions set row_security off, which makes reading fail instead.
CREATE OR REPLACE FUNCTION foh._open(VARIADIC tables text[]) RETURNS void
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
SET row_security = off
AS $function$
DECLARE
    name text;
    relation regclass;
BEGIN
    FOREACH name IN ARRAY tables LOOP
        LOOP
            relation := name::regclass;
            -- A distributed table of Citus is locked by Citus, shard by shard.
            EXIT WHEN foh._citus_kind(relation) IS NOT NULL;
            EXECUTE format('SELECT FROM %s LIMIT 0', relation);
            -- A table that was renamed before it was locked may have left its name to another.
            EXIT WHEN to_regclass(name) = relation;
        END LOOP;
        PERFORM foh._refuse_owner(relation);
    END LOOP;
END
$function$;

-- The functions that a role with a right calls, directly or inside others: a reader those of one index, an updater those of all. The line
-- that begins with "foh:" above each function says who calls it. Updaters also call the shared functions that are not for users.
CREATE OR REPLACE FUNCTION foh._callable(kind text, index text DEFAULT NULL) RETURNS regprocedure[]
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT coalesce(array_agg(p.oid::regprocedure ORDER BY p.proname), '{}') FROM pg_proc p
    WHERE p.pronamespace = 'foh'::regnamespace
      AND (p.proname IN (SELECT t.name FROM foh.template t WHERE t.kind = 'shared' AND $1 = ANY (t.callers))
           OR p.proname IN (SELECT o.object FROM foh.index i, foh._object_names(i.name) o JOIN foh.template t ON t.name = o.suffix
                            WHERE t.kind = 'function' AND ($1 = 'updater' OR i.name = $2) AND $1 = ANY (t.callers))
           OR $1 = 'updater' AND starts_with(p.proname, '_') AND p.proname <> '_as_owner')
$function$;

-- The roles that may search an index.
CREATE OR REPLACE FUNCTION foh._readers(i foh.index) RETURNS SETOF name
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT pg_get_userbyid(a.grantee) FROM pg_proc p, aclexplode(p.proacl) a
    WHERE p.pronamespace = 'foh'::regnamespace AND p.proname = (i.name || '_search')::name AND a.grantee NOT IN (0, p.proowner)
$function$;

-- The roles that may keep indexes up to date.
CREATE OR REPLACE FUNCTION foh._updaters() RETURNS SETOF name
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT pg_get_userbyid(a.grantee) FROM pg_class c, aclexplode(c.relacl) a
    WHERE c.oid = 'foh.run'::regclass AND a.privilege_type = 'INSERT' AND a.grantee NOT IN (0, c.relowner)
$function$;

-- Lets a role search an index, or takes it back: EXECUTE on what a search calls, nothing on our tables.
CREATE OR REPLACE FUNCTION foh._grant_reading(i foh.index, role name, revoke boolean) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    shared constant regprocedure[] := foh._callable('reader');
    f regprocedure;
BEGIN
    IF NOT revoke THEN
        EXECUTE format('GRANT USAGE ON SCHEMA foh TO %I', role);
    END IF;
    FOREACH f IN ARRAY foh._callable('reader', i.name) LOOP
        IF NOT revoke THEN
            EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', f, role);
        ELSIF f <> ALL (shared) THEN
            EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM %I', f, role);
        END IF;
    END LOOP;
    PERFORM foh._grant_on_nodes(i, role, revoke);
    IF revoke THEN
        PERFORM foh._revoke_unused(role);
    END IF;
END
$function$;

-- Lets a role keep all indexes up to date, or takes it back. Of foh.index it may change what a run changes and nothing else: names, options
-- and the types of included columns become part of functions, which run as foh's owner.
CREATE OR REPLACE FUNCTION foh._grant_updating(role name, revoke boolean) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    -- An updater vacuums what it has written. Before PostgreSQL 17 only the owner of a table may, and autovacuum does it.
    rights constant text := 'SELECT, INSERT, UPDATE, DELETE' || CASE WHEN current_setting('server_version_num')::int >= 170000 THEN ', MAINTAIN' ELSE '' END;
    o text;
    statements text[];
BEGIN
    statements := ARRAY['USAGE ON SCHEMA foh', 'SELECT ON foh.alembic_version, foh.code, foh.template, foh.index, foh.index_stat, foh.updating',
                        'UPDATE (version, status, next_center) ON foh.index', 'UPDATE (pid, key, role, partitions) ON foh.updating',
                        rights || ' ON foh.label, foh.model, foh.model_state, foh.run']
                  || ARRAY(SELECT format('%s ON %s', rights, t) FROM foh.index i, unnest(foh._tables(i.name)) t)
                  || ARRAY(SELECT format('EXECUTE ON FUNCTION %s', f) FROM unnest(foh._callable('updater')) f);
    FOREACH o IN ARRAY statements LOOP
        EXECUTE CASE WHEN revoke THEN format('REVOKE %s FROM %I', o, role) ELSE format('GRANT %s TO %I', o, role) END;
    END LOOP;
END
$function$;

-- Takes back from a role what all indexes share, once it can neither search nor update any of them.
CREATE OR REPLACE FUNCTION foh._revoke_unused(role name) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    f regprocedure;
BEGIN
    IF role = foh._owner() OR role IN (SELECT foh._updaters()) OR EXISTS (SELECT FROM foh.index i, foh._readers(i) r WHERE r = role) THEN
        RETURN;
    END IF;
    FOREACH f IN ARRAY foh._callable('reader') LOOP
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM %I', f, role);
    END LOOP;
    EXECUTE format('REVOKE USAGE ON SCHEMA foh FROM %I', role);
END
$function$;

-- What a reader still lacks, outside of foh, to read the source of an index, as statements; null where nothing is missing.
CREATE OR REPLACE FUNCTION foh._missing_rights(i foh.index, role name) RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT string_agg(format('GRANT %s TO %I;', r.missing, role), ' ')
    FROM pg_class c CROSS JOIN LATERAL (VALUES
        (NOT has_schema_privilege(role, (parse_ident(foh._vector_schema()))[1], 'USAGE'), 'USAGE ON SCHEMA ' || foh._vector_schema()),
        (NOT has_schema_privilege(role, c.relnamespace, 'USAGE'), 'USAGE ON SCHEMA ' || c.relnamespace::regnamespace),
        ((SELECT NOT bool_and(has_column_privilege(role, c.oid, n, 'SELECT')) FROM unnest(i.key_attnum || i.embedding_attnum) n),
         -- By the names that the columns have now. A column that is gone is no reason to give a right.
         (SELECT format('SELECT (%s) ON %s', string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum = i.embedding_attnum, a.attnum), foh._qualified(c.oid))
          FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum = ANY (i.key_attnum || i.embedding_attnum) AND NOT a.attisdropped HAVING count(*) = 1 + cardinality(i.key)))
    ) AS r (lacks, missing) WHERE c.oid = i.source AND r.lacks AND r.missing IS NOT NULL
$function$;

-- Lets a role search indexes (reader: the index of that name, or all that there are) or keep all of them up to date (updater), or takes
-- the right back. Called by the owner of schema foh. Returns a row per role and index: what the role may do now, what that exposes, and
-- what the role lacks outside of foh, as statements. The rights are plain ones: \dp and \df+ show them.
CREATE OR REPLACE FUNCTION foh.grant(name text DEFAULT NULL, reader name DEFAULT NULL, updater name DEFAULT NULL, revoke boolean DEFAULT false)
RETURNS TABLE (role name, kind text, index text, may text, exposes text, missing text)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
#variable_conflict use_column
DECLARE
    g record;
    citus constant text[] := foh._begin_local();
    i foh.index;
BEGIN
    PERFORM foh._require_owner();
    IF $1 IS NOT NULL THEN
        i := foh._index($1);
        IF NOT revoke THEN
            PERFORM foh._refuse_dropped(i);
        END IF;
        IF $3 IS NOT NULL THEN
            RAISE EXCEPTION 'foh: an updater keeps all indexes up to date: leave out the name %', quote_literal($1) USING ERRCODE = 'invalid_parameter_value';
        END IF;
    END IF;
    FOR g IN
        SELECT v.kind, v.role, CASE WHEN revoke THEN 'nothing of this any more: ' ELSE '' END || v.may AS may, CASE WHEN NOT revoke THEN v.exposes END AS exposes
        FROM (VALUES
            ('reader', $2, 'search, with its own rights on the table',
             'what a search returns; and, if the role calls the inner step (_near) itself, keys of rows that row-level security hides, and how near they are; no table of foh'),
            ('updater', $3, 'build, update, roll back, evaluate, check and repair all indexes',
             'all indexes: keys, codes, labels, centers; and, through their functions, key, embedding and labels of all rows of their tables, row-level security or not; it can lock tables of foh and so stop searches')
        ) AS v (kind, role, may, exposes) WHERE v.role IS NOT NULL
    LOOP
        IF NOT EXISTS (SELECT FROM pg_roles r WHERE r.rolname = g.role) THEN
            RAISE EXCEPTION 'foh: there is no role %', quote_ident(g.role) USING ERRCODE = 'undefined_object';
        ELSIF g.role = foh._owner() THEN
            RAISE EXCEPTION 'foh: role % owns schema foh and may do everything in it', quote_ident(g.role) USING ERRCODE = 'invalid_grant_operation';
        ELSIF g.kind = 'updater' THEN
            PERFORM foh._grant_updating(g.role, revoke);
            -- A reader keeps what searches need.
            PERFORM foh._grant_reading(x, g.role, false) FROM foh.index x WHERE g.role IN (SELECT foh._readers(x));
            RETURN QUERY SELECT g.role, g.kind, NULL::text, g.may, g.exposes, NULL::text;
            CONTINUE;
        END IF;
        FOR i IN SELECT x.* FROM foh.index x WHERE $1 IS NULL OR x.name = $1 ORDER BY x.name LOOP
            PERFORM foh._grant_reading(i, g.role, revoke);
            RETURN QUERY SELECT g.role, g.kind, i.name, g.may, g.exposes, CASE WHEN NOT revoke THEN foh._missing_rights(i, g.role) END;
        END LOOP;
    END LOOP;
    PERFORM foh._end_local(citus);
END
$function$;
