-- Whether the present role can act for foh's owner and for that role: a superuser can; and so can a role that installed foh and
-- has tables of its own. foh's owner cannot act for such a role, which is a member of foh's owner.
CREATE OR REPLACE FUNCTION foh._has_both_rights(role name) RETURNS boolean
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT bool_and(pg_has_role(current_user, r, 'USAGE')
                    AND pg_has_role(current_user, r, CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END))
    FROM unnest(ARRAY[foh._owner(), role]) r
$function$;
