# foh-pg in a container: any command of it; without arguments, the watcher with its page and metrics on port 9187.
# libpq's environment variables (PGHOST, PGDATABASE, PGUSER, PGPASSWORD, ...) say which database.

FROM python:3.13-slim-bookworm AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY foh_pg foh_pg
COPY sql sql
COPY migrations migrations
# The environment gets no pip: nothing is installed once the image is made.
RUN python -m venv --without-pip /opt/foh \
    && python -m pip --python /opt/foh/bin/python install --no-cache-dir --disable-pip-version-check .

FROM python:3.13-slim-bookworm
COPY --from=build /opt/foh /opt/foh
# No home, no shell, no name: a number is what Kubernetes can check (runAsNonRoot).
USER 10001:10001
ENV PATH=/opt/foh/bin:$PATH PYTHONUNBUFFERED=1
EXPOSE 9187
# Asks the database whether the indexes are kept up to date. /healthz says whether the watcher itself is alive.
HEALTHCHECK --interval=60s --timeout=20s --start-period=60s --retries=3 CMD ["foh-pg", "status", "--check"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["foh-pg"]
CMD ["watch", "--all", "--metrics-port=9187", "--metrics-host=0.0.0.0"]
