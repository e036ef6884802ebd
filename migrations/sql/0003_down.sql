-- There is no index left, and so nothing to bring back into its old form.
DROP POLICY granted ON foh.index;
DROP POLICY granted ON foh.label;
DROP POLICY granted ON foh.model;
DROP POLICY granted ON foh.model_state;
DROP POLICY granted ON foh.run;
ALTER TABLE foh.index DISABLE ROW LEVEL SECURITY;
ALTER TABLE foh.label DISABLE ROW LEVEL SECURITY;
ALTER TABLE foh.model DISABLE ROW LEVEL SECURITY;
ALTER TABLE foh.model_state DISABLE ROW LEVEL SECURITY;
ALTER TABLE foh.run DISABLE ROW LEVEL SECURITY;
DROP TABLE foh.code;
DROP TABLE foh.updating;
DROP TABLE foh.claim;
ALTER TABLE foh.model DROP COLUMN placed, DROP COLUMN first_center, DROP COLUMN small, DROP COLUMN weight_code,
    DROP COLUMN weight_votes, DROP COLUMN probes, DROP COLUMN shortlist, DROP COLUMN nearest_probes, DROP COLUMN nearest_shortlist, DROP COLUMN reach_recall, DROP COLUMN reach_probes,
    DROP COLUMN reach_shortlist;
ALTER TABLE foh.index DROP COLUMN geometry, DROP COLUMN stream;
