-- The publications FOR ALL TABLES, which take our tables along; null where there are none.
CREATE OR REPLACE FUNCTION foh._publications() RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT string_agg(quote_ident(p.pubname), ', ' ORDER BY p.pubname) FROM pg_publication p WHERE p.puballtables
$function$;
