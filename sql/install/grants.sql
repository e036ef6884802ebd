-- PostgreSQL lets PUBLIC execute every new function. This runs last, in the transaction that made the functions.
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA foh FROM PUBLIC;
REVOKE ALL ON SCHEMA foh FROM PUBLIC;
