-- Whether the present role can act both for foh's owner and for the given role. A superuser can. A role that installed foh can do so
-- for its own tables; it is a member of foh's owner, so foh's owner cannot be made a member of it.
CREATE OR REPLACE FUNCTION foh._has_both_rights(role name) RETURNS boolean
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT bool_and(pg_has_role(current_user, r, 'USAGE')
                    AND pg_has_role(current_user, r, CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END))
    FROM unnest(ARRAY[foh._owner(), role]) r
$function$;
