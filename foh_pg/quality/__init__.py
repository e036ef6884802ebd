"""How good an index is: measured, shown over its versions, and foretold before there is one."""
