-- Functions are open to PUBLIC unless told otherwise. Run last, in the transaction that made them.
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA foh FROM PUBLIC;
