DO $foh$
BEGIN
    ALTER TABLE foh.index DISABLE ROW LEVEL SECURITY;
    ALTER TABLE foh.label DISABLE ROW LEVEL SECURITY;
    ALTER TABLE foh.model DISABLE ROW LEVEL SECURITY;
    ALTER TABLE foh.model_state DISABLE ROW LEVEL SECURITY;
    ALTER TABLE foh.run DISABLE ROW LEVEL SECURITY;
    ALTER TABLE foh.updating DISABLE ROW LEVEL SECURITY;
    DROP POLICY granted ON foh.updating;
    DROP POLICY granted ON foh.index;
    DROP POLICY granted ON foh.label;
    DROP POLICY granted ON foh.model;
    DROP POLICY granted ON foh.model_state;
    DROP POLICY granted ON foh.run;
END
$foh$;
