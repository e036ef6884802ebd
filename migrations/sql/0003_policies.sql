-- A role sees the rows of those indexes whose tables it was granted, and may write no others.
ALTER TABLE foh.index ENABLE ROW LEVEL SECURITY;
CREATE POLICY granted ON foh.index USING (
    has_table_privilege(stream, 'SELECT')
    -- A table that changed hands: its new owner follows with foh.refresh.
    OR pg_has_role((SELECT c.relowner FROM pg_class c WHERE c.oid = source), 'USAGE'));
-- A subquery for one value is never planned as a scan of all indexes. The policy of foh.index holds inside it.
ALTER TABLE foh.label ENABLE ROW LEVEL SECURITY;
CREATE POLICY granted ON foh.label USING ((SELECT i.id FROM foh.index i WHERE i.id = label.index) IS NOT NULL);
ALTER TABLE foh.model ENABLE ROW LEVEL SECURITY;
CREATE POLICY granted ON foh.model USING ((SELECT i.id FROM foh.index i WHERE i.id = model.index) IS NOT NULL);
ALTER TABLE foh.model_state ENABLE ROW LEVEL SECURITY;
CREATE POLICY granted ON foh.model_state USING ((SELECT i.id FROM foh.index i WHERE i.id = model_state.index) IS NOT NULL);
ALTER TABLE foh.run ENABLE ROW LEVEL SECURITY;
CREATE POLICY granted ON foh.run USING ((SELECT i.id FROM foh.index i WHERE i.id = run.index) IS NOT NULL);
ALTER TABLE foh.updating ENABLE ROW LEVEL SECURITY;
CREATE POLICY granted ON foh.updating USING ((SELECT i.id FROM foh.index i WHERE i.id = updating.index) IS NOT NULL);
