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
