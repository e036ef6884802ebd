-- Called first by every function that reads the table of an index: raises an error unless the function runs as the owner of the
-- table and was not altered. The owner of the table owns that function and could ALTER it to run with the rights of its caller,
-- perhaps a superuser, who would then run what the owner attached to the table.
CREATE OR REPLACE FUNCTION foh._guard(index text, identity text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF current_user IS DISTINCT FROM foh._acting_role(index) OR identity <> foh._identity() THEN
        RAISE EXCEPTION 'foh: a function of index % was altered: it runs as %, not as its owner %', quote_literal(index),
            quote_ident(current_user), quote_ident(foh._acting_role(index))
            USING ERRCODE = 'insufficient_privilege', HINT = format('SELECT foh.refresh(%L) puts its functions right.', index);
    END IF;
END
$function$;
