-- The name of an index begins the names of its tables and functions, and is written into them.
CREATE OR REPLACE FUNCTION foh._check_name(name text) RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    taken text;
BEGIN
    IF name IS NULL OR name !~ '^[a-z][a-z0-9_]{0,39}$' THEN
        RAISE EXCEPTION 'foh: % cannot be the name of an index', quote_nullable(name)
            USING ERRCODE = 'invalid_name',
                  HINT = 'A name has lower-case letters, digits and underscores, 40 at the most, and begins with a letter: products, or shop_items_2.';
    ELSIF EXISTS (SELECT FROM foh.index x WHERE x.name = _check_name.name) THEN
        RAISE EXCEPTION 'foh: index % exists already', quote_literal(name) USING ERRCODE = 'duplicate_object',
            HINT = format('SELECT foh.drop_index(%L) removes it.', name);
    END IF;
    SELECT min(o.object) INTO taken FROM foh._object_names(name) o
    WHERE EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = 'foh'::regnamespace AND c.relname = o.object)
       OR EXISTS (SELECT FROM pg_proc p WHERE p.pronamespace = 'foh'::regnamespace AND p.proname = o.object);
    IF taken IS NOT NULL THEN
        RAISE EXCEPTION 'foh: index name % is not free: schema foh has % already', quote_literal(name), quote_ident(taken) USING ERRCODE = 'duplicate_object';
    END IF;
END
$function$;
