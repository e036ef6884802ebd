-- Makes the tables and functions of an index from the templates in sql/index/, and drops them.

-- Fills the {placeholders} of a template in one pass: a column named "{source}" stays what it is. {source_text} is {source} as a literal, and an
-- option without a value is NULL. {self} is the object that a template makes. {each ...}, {row ...}, {home ...} and {included ...} are patterns: see foh._pattern. Names of columns and
-- tables may have anything in them. So nothing is filled in a comment, which a line break in a name would end; and the quotes $body$ and
-- $sql$ of the template get a tag that is in no name.
CREATE OR REPLACE FUNCTION foh._render(template text, names jsonb) RETURNS text
LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp
SET standard_conforming_strings = on
AS $function$
DECLARE
    -- The template, cut before each brace and at the end of each line, and the name that follows the brace.
    pieces text[];
    named text[];
    filled jsonb;
    missing text;
    tag text := '';
BEGIN
    SELECT array_agg(CASE WHEN p.at > 1 THEN '{' WHEN l.at > 1 THEN E'\n' ELSE '' END || coalesce(p.text, '') ORDER BY l.at, p.at),
           array_agg(CASE WHEN p.at > 1 THEN substring(p.text FROM '^([a-z_0-9]+|(?:each|row|home|included) [^{}]+)\}') END ORDER BY l.at, p.at)
    INTO pieces, named
    FROM string_to_table(template, E'\n') WITH ORDINALITY AS l (text, at)
    LEFT JOIN LATERAL string_to_table(l.text, CASE WHEN starts_with(ltrim(l.text), '--') THEN '' ELSE '{' END) WITH ORDINALITY AS p (text, at) ON true;
    SELECT jsonb_object_agg(m.name, CASE WHEN m.name LIKE '% %' THEN foh._pattern(split_part(m.name, ' ', 1), substr(m.name, strpos(m.name, ' ') + 1), names)
                                         WHEN names ? m.name THEN coalesce(names ->> m.name, 'NULL') ELSE quote_literal(names ->> m.named) END),
           string_agg(m.name, ', ') FILTER (WHERE m.name NOT LIKE '% %' AND NOT names ? m.name AND NOT names ? m.named)
    INTO filled, missing
    FROM (SELECT DISTINCT n AS name, regexp_replace(n, '_text$', '') AS named FROM unnest(named) n WHERE n IS NOT NULL) m;
    IF missing IS NOT NULL THEN
        RAISE EXCEPTION 'foh: a template asks for unknown names: %', missing;
    END IF;
    WHILE EXISTS (SELECT FROM jsonb_each_text(filled) n WHERE strpos(n.value, '$body' || tag || '$') > 0 OR strpos(n.value, '$sql' || tag || '$') > 0) LOOP
        tag := tag || 'x';
    END LOOP;
    RETURN (SELECT string_agg(coalesce(filled ->> p.name, '')
                              || replace(replace(substr(p.text, coalesce(length(p.name) + 3, 1)), '$body$', '$body' || tag || '$'), '$sql$', '$sql' || tag || '$'), '' ORDER BY p.at)
            FROM unnest(pieces, named) WITH ORDINALITY AS p (text, name, at));
END
$function$;

-- A pattern of a template, written for every column: {each s.@} of the key, {included s.@} of what the index includes, which may be nothing;
-- {row s.@} is the key of a row, made of these columns, as the tables of the index hold it; {home s.@} is the one column of the key by which Citus
-- distributes the table. In a pattern # is the number of a column (of an included
-- one: of our column that holds it), ~ its type in our tables, @ its name, & its name in the table of labels and ^ its collation as a clause. <k> is
-- that column of the key k. Conditions end with AND or OR, declarations with a semicolon or a comma; what begins with a comma stands after other columns.
CREATE OR REPLACE FUNCTION foh._pattern(kind text, pattern text, names jsonb) RETURNS text
LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    as_row constant boolean := (names ->> 'has_record_key')::boolean;
    between constant text := CASE WHEN pattern LIKE '% AND' THEN ' AND ' WHEN pattern LIKE '% OR' THEN ' OR ' WHEN pattern LIKE ',%' THEN ''
                                  WHEN pattern LIKE '%;' OR pattern LIKE '%,' THEN ' ' ELSE ', ' END;
    -- Names may have any of these signs in them, so all are filled in one pass.
    pieces constant text[] := ARRAY(SELECT m[1] FROM regexp_matches(
        regexp_replace(regexp_replace(pattern, ' (AND|OR)$', ''), '<([^<> ]+)>', CASE WHEN as_row THEN '(\1).k#' ELSE '\1' END, 'g'), '[#~@&^]|[^#~@&^]+', 'g') m);
    piece text;
    c jsonb;
    written text := '';
BEGIN
    FOR c IN SELECT * FROM jsonb_array_elements(CASE kind WHEN 'included' THEN names -> 'included_columns' ELSE names -> 'key_columns' END) e
             WHERE kind <> 'home' OR e ->> 'number' = names ->> 'home_number' LOOP
        IF written <> '' THEN
            written := written || between;
        END IF;
        FOREACH piece IN ARRAY pieces LOOP
            written := written || CASE piece WHEN '#' THEN c ->> 'number' WHEN '~' THEN c ->> 'type' WHEN '@' THEN c ->> 'name'
                                             WHEN '&' THEN c ->> 'labels_key' WHEN '^' THEN c ->> 'collation' ELSE piece END;
        END LOOP;
    END LOOP;
    RETURN CASE WHEN kind = 'row' AND as_row THEN format('ROW(%s)::%s', written, names ->> 'key_type') ELSE written END;
END
$function$;

-- Makes the tables of an index, and the first model in them.
CREATE OR REPLACE FUNCTION foh._make_tables(i foh.index) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET client_min_messages = warning
AS $function$
DECLARE
    names constant jsonb := foh._names(i);
    t record;
BEGIN
    FOR t IN SELECT m.name, m.body FROM foh._templates(i) m WHERE m.kind IN ('table', 'type') OR m.name = 'first_model' ORDER BY m.at LOOP
        EXECUTE foh._render(t.body, names || jsonb_build_object('self', names -> t.name));
    END LOOP;
    -- Rows that fit a page stay in it: reading them out of TOAST costs three times as much.
    IF i.dimensions <= 2000 THEN
        EXECUTE foh._render('ALTER TABLE {projection} ALTER COLUMN weights SET STORAGE PLAIN', names);
    END IF;
END
$function$;

-- Names with the fragments of an index filled in. A fragment becomes a placeholder of the functions, and of the fragments that stand after it.
CREATE OR REPLACE FUNCTION foh._with_fragments(i foh.index, names jsonb) RETURNS jsonb
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    t record;
BEGIN
    FOR t IN SELECT m.name, m.body FROM foh._templates(i) m WHERE m.kind = 'fragment' AND NOT names ? m.name ORDER BY m.at LOOP
        names := names || jsonb_build_object(t.name, foh._render(t.body, names));
    END LOOP;
    RETURN names;
END
$function$;

-- Makes or replaces the functions of an index from the templates. All belong to foh's owner; PUBLIC may call none.
CREATE OR REPLACE FUNCTION foh._make_functions(i foh.index) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET check_function_bodies = off
AS $function$
DECLARE
    -- CREATE OR REPLACE writes a new row version in pg_proc: a function that is still at its old ctid was not made again.
    before tid[] := ARRAY(SELECT p.ctid FROM pg_proc p WHERE p.oid IN (SELECT f.oid FROM foh._functions(i.name) f));
    names constant jsonb := foh._names(i);
    plain constant jsonb := foh._with_fragments(i, names || foh._matching_names(i, false));
    matching constant jsonb := foh._with_fragments(i, names || foh._matching_names(i, true));
    t record;
BEGIN
    FOR t IN SELECT m.name, m.body FROM foh._templates(i) m WHERE m.kind = 'function' ORDER BY m.at LOOP
        PERFORM foh._make_function(names ->> t.name, foh._render(t.body, CASE WHEN t.name IN ('near_matching', 'rank_matching') THEN matching ELSE plain END
                                                                         || jsonb_build_object('self', names -> t.name)));
    END LOOP;
    -- A function that has no successor stays: the index may have labels again.
    PERFORM foh._drop_outdated(ARRAY(SELECT o.oid FROM foh._functions(i.name) o JOIN pg_proc n ON n.pronamespace = o.pronamespace AND n.proname = o.proname AND n.oid <> o.oid), before);
    FOR t IN SELECT f.oid::regprocedure AS signature FROM foh._functions(i.name) f LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', t.signature);
    END LOOP;
    PERFORM foh._grant_updating(r, false) FROM foh._updaters() r;
END
$function$;

-- Makes a function, or replaces the one of that name. PostgreSQL replaces no function by one that returns something else: that one is
-- dropped first, and roles that may execute it may execute its successor.
CREATE OR REPLACE FUNCTION foh._make_function(function text, statement text) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET check_function_bodies = off
AS $function$
DECLARE
    -- As GRANT reads them.
    roles text[];
    granted text;
BEGIN
    BEGIN
        EXECUTE statement;
        RETURN;
    EXCEPTION WHEN invalid_function_definition THEN
        NULL;
    END;
    SELECT array_agg(DISTINCT a.grantee::regrole::text) INTO roles FROM pg_proc p, aclexplode(p.proacl) a
    WHERE p.oid = to_regproc(function) AND a.grantee NOT IN (0, p.proowner);
    EXECUTE format('DROP FUNCTION %s', function);
    EXECUTE statement;
    FOREACH granted IN ARRAY coalesce(roles, '{}') LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s', function, granted);
    END LOOP;
END
$function$;

-- Drops those of some functions that were not made again: CREATE OR REPLACE leaves a function with other arguments beside the new one, and a
-- call that fits both is refused. before: where each function stood in pg_proc (ctid) before that; one that is made again gets another place.
-- Roles that may execute a dropped function may execute its successor of the same name. An object that depends on such a function is never
-- dropped: its author must decide.
CREATE OR REPLACE FUNCTION foh._drop_outdated(functions oid[], before tid[]) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    f record;
    statement text;
    users text;
BEGIN
    FOR f IN SELECT o.oid::regprocedure AS signature,
                    (SELECT min(n.oid::regprocedure::text) FROM pg_proc n WHERE n.pronamespace = o.pronamespace AND n.proname = o.proname AND n.ctid <> ALL (before)) AS successor,
                    ARRAY(SELECT format('GRANT EXECUTE ON FUNCTION %s TO %s', n.oid::regprocedure, a.grantee::regrole)
                          FROM pg_proc n, aclexplode(o.proacl) a
                          WHERE n.pronamespace = o.pronamespace AND n.proname = o.proname AND n.ctid <> ALL (before) AND a.grantee NOT IN (0, o.proowner)) AS grants
             FROM pg_proc o WHERE o.oid = ANY (functions) AND o.ctid = ANY (before)
    LOOP
        FOREACH statement IN ARRAY f.grants LOOP
            EXECUTE statement;
        END LOOP;
        BEGIN
            EXECUTE format('DROP FUNCTION %s', f.signature);
        EXCEPTION WHEN dependent_objects_still_exist THEN
            GET STACKED DIAGNOSTICS users = PG_EXCEPTION_DETAIL;
            RAISE EXCEPTION 'foh: % is replaced by %, and other objects use it', f.signature, coalesce(f.successor, 'nothing')
                USING ERRCODE = 'dependent_objects_still_exist', DETAIL = users,
                      HINT = 'Drop these, try again, and create them again with the new arguments.';
        END;
    END LOOP;
END
$function$;

-- Drops what an index has in schema foh, and the triggers, which depend on its functions.
CREATE OR REPLACE FUNCTION foh._drop_objects(i foh.index) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    readers constant name[] := ARRAY(SELECT foh._readers(i));
    o record;
BEGIN
    PERFORM foh._remove_triggers(i);
    FOR o IN SELECT f.oid::regprocedure AS signature FROM foh._functions(i.name) f LOOP
        EXECUTE format('DROP FUNCTION %s', o.signature);
    END LOOP;
    FOR o IN SELECT t.name FROM unnest(foh._tables(i.name)) AS t (name) LOOP
        EXECUTE format('DROP TABLE %s', o.name);
    END LOOP;
    EXECUTE format('DROP TYPE IF EXISTS foh.%I, foh.%I', i.name || '_result', i.name || '_key');
    DELETE FROM foh.label x WHERE x.index = i.id;
    DELETE FROM foh.model x WHERE x.index = i.id;
    DELETE FROM foh.model_state x WHERE x.index = i.id;
    DELETE FROM foh.updating x WHERE x.index = i.id;
    DELETE FROM foh.run x WHERE x.index = i.id;
    DELETE FROM foh.index x WHERE x.id = i.id;
    PERFORM foh._revoke_unused(r) FROM unnest(readers) r;
END
$function$;
