"""One file of `sql/` as one statement that finds pgvector's schema in the server when it runs."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from foh_pg.schema import files, requirements
from foh_pg.schema.files import Piece
from foh_pg.version import __version__

if TYPE_CHECKING:
    from alembic.operations import Operations
    from sqlalchemy import TextClause

# The lookup happens in the server, so that the SQL printed offline is the SQL that runs online.
WRAPPER = """\
-- {name}
DO {outer}
BEGIN
    EXECUTE pg_catalog.replace({inner}
{body}
{inner}, '@vector@', (
        SELECT pg_catalog.quote_ident(n.nspname)
        FROM pg_catalog.pg_extension e JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace
        WHERE e.extname = 'vector'));
END
{outer}"""

TEMPLATE = """\
INSERT INTO foh.template (name, condition, kind, callers, at, body)
VALUES ('{name}', '{condition}', '{kind}', '{{{callers}}}', {at}, {quote}
{body}
{quote})"""

RECORD = "INSERT INTO foh.code (digest, version) VALUES ('{digest}', '{version}')"


def statement(name: str, body: str) -> str:
    """Wrap `body` into a DO block that puts the schema of pgvector, quoted, where it says ``@vector@``."""
    body = body.strip()
    outer, inner = unused_tags(body)
    return WRAPPER.format(name=name, body=body, outer=outer, inner=inner)


def template(at: int, piece: Piece) -> str:
    """Keep a piece of `sql/`, the SQL of an object of one index, in foh.template."""
    _, quote = unused_tags(piece.body)
    fields = piece._asdict() | {"callers": ",".join(piece.callers)}
    return TEMPLATE.format(at=at, quote=quote, **fields)


def for_owner(statement: str, owner: str | None) -> str:
    """A step that asks for the role a migration works for: as a literal, or NULL for none."""
    return statement.replace("{owner}", "NULL" if owner is None else _ascii_literal(owner))


def with_requirements(statement: str) -> str:
    """The step that refuses a server or a pgvector that is too old."""
    named = {
        "{oldest_server}": str(requirements.OLDEST_SERVER),
        "{oldest_pgvector}": ", ".join(map(str, requirements.OLDEST_PGVECTOR)),
        "{requirements}": requirements.REQUIREMENTS,
    }
    for name, value in named.items():
        statement = statement.replace(name, value)
    return statement


def trust(owner: str | None) -> str:
    """The step that refuses a schema foh which is not ours, and fixes settings of the session."""
    return for_owner(files.step("session", "trust"), owner)


def _ascii_literal(text: str) -> str:
    """A string constant that ends no quote, fills no placeholder and is the same in every encoding."""
    return "E'" + "".join(c if c.isascii() and c.isalnum() else f"\\U{ord(c):08X}" for c in text) + "'"


def as_owner(statement: str, owner: str) -> str:
    """`statement`, to be run as the owner of schema foh by another role."""
    outer, inner = unused_tags(statement)
    filled = for_owner(files.step("as_owner", "as_owner"), owner)
    filled = filled.replace("{outer}", outer).replace("{inner}", inner)
    return filled.replace("{body}", statement)


def unused_tags(body: str) -> tuple[str, str]:
    """Two dollar quotes that do not occur in `body`."""
    number = 0
    while f"$foh_do{number}$" in body or f"$foh_file{number}$" in body:
        number += 1
    return f"$foh_do{number}$", f"$foh_file{number}$"


def literal(sql: str) -> TextClause:
    """`sql` for SQLAlchemy, to be passed on letter by letter: no colon in it is a bind parameter."""
    # Commands that only compare digests do without SQLAlchemy, which takes long to import.
    from sqlalchemy import text

    return text(sql.replace(":", r"\:"))


def apply(op: Operations, *names: str) -> None:
    """Run files of `migrations/sql/`, which stay as they were released."""
    for name in names:
        op.execute(literal(statement(f"migrations/sql/{name}", files.migration(name))))


def code() -> list[str]:
    """The statements that bring functions, views and the objects of indexes to what `sql/` says now."""
    made = [*_code(), "DELETE FROM foh.code", RECORD.format(digest=code_digest(), version=__version__)]
    return [f"{text};" for text in made]


def code_digest() -> str:
    """A digest that tells these statements from those of another version; foh.code keeps it."""
    return hashlib.sha256("\0".join(_code()).encode()).hexdigest()


def _code() -> list[str]:
    shared = files.sql_files("shared")
    callers = [
        piece._replace(kind="shared", body="")
        for name in shared
        for piece in files.pieces(name)
        if piece.kind == "function"
    ]
    pieces = [piece for name in files.sql_files("index") for piece in files.pieces(name)]
    return [
        files.step("code", "remember_functions"),
        "DELETE FROM foh.template",
        *(template(at, piece) for at, piece in enumerate([*pieces, *callers])),
        *(statement(f"sql/{name}", files.sql(name)) for name in shared),
        # Rights come last: granting or revoking one makes a new version of the function's row too.
        *(files.step("code", step).removesuffix(";") for step in ("drop_outdated", "grants", "indexes")),
    ]
