"""What talks to a server: connections, COPY in binary, codes as parameters, an embedded server."""
