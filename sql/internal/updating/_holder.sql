-- The server process of the updater that works on an index; null where there is none. The row of foh.updating holds for as long
-- as that process, in a session of that role, has the advisory lock with that random key. Nobody can pretend: another process
-- may take the same key, but has another number; a later process may get the same number, but not in a session of that role.
CREATE OR REPLACE FUNCTION foh._holder(index int) RETURNS int
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT u.pid FROM foh.updating u
    WHERE u.index = $1
      AND EXISTS (SELECT FROM pg_locks l
                  WHERE l.locktype = 'advisory' AND l.granted AND l.pid = u.pid AND l.objsubid = 1
                    AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
                    AND l.classid = ((u.key >> 32) & 4294967295)::oid AND l.objid = (u.key & 4294967295)::oid)
      AND EXISTS (SELECT FROM pg_stat_activity a WHERE a.pid = u.pid AND a.usename = u.role)
$function$;
