-- The templates of what an index has on every node, for the owner of a table, who makes it and may not read foh.template.
CREATE OR REPLACE FUNCTION foh._node_templates() RETURNS TABLE (name text, body text)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT t.name, t.body FROM foh.template t WHERE starts_with(t.name, 'node_')
$function$;
