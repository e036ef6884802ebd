"""Make foh_pg/index/sync_index.py from async_index.py: the same methods, without async and await.

Run as ``python tools/async_to_sync.py``. With ``--check`` nothing is written, and the exit code is 1 where
the file is not what would be written.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tokenize
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "foh_pg" / "index"
SOURCE, MADE = FOLDER / "async_index.py", FOLDER / "sync_index.py"

HEADER = (
    "# Made from async_index.py by tools/async_to_sync.py: change that file, and run the program again.\n"
)

NAMES = {
    "AsyncIndex": "Index",
    "AsyncConnection": "Connection",
    "AsyncConnectionPool": "ConnectionPool",
    "AsyncIterator": "Iterator",
    "asynccontextmanager": "contextmanager",
}

# The only words that differ: what the class says of itself.
DOCUMENTATION = (
    '''"""An index, through a psycopg.AsyncConnection or a psycopg_pool.AsyncConnectionPool.

    The methods are those of Index, awaited.

    Examples
    --------
    >>> products = await AsyncIndex.open(pool, "products")                          # doctest: +SKIP
    >>> matches = await products.search(vector, k=5)                                # doctest: +SKIP
    """''',
    '''"""An index, through a psycopg connection or a psycopg_pool.ConnectionPool.

    Every method is one call of a SQL function in the connection's transaction, with the rights of its role:
    it commits nothing that the connection would not commit. With a pool it may be shared by threads.

    Examples
    --------
    >>> import psycopg
    >>> from foh_pg import Index
    >>> with psycopg.connect(autocommit=True) as connection:                        # doctest: +SKIP
    ...     products = Index.open(connection, "products")
    ...     for match in products.search(vector, k=5, filter="price < 100"):
    ...         print(match.key, match.score)
    """''',
)


def convert(source: str) -> str:
    """The text of the synchronous module."""
    before, after = DOCUMENTATION
    if before not in source:
        raise SystemExit(f"{SOURCE}: the docstring of AsyncIndex has changed, change DOCUMENTATION here too")
    lines = source.replace(before, after).splitlines(keepends=True)
    # From the end to the beginning, so that the places of earlier tokens stay what they are.
    for token in reversed(list(tokenize.generate_tokens(io.StringIO("".join(lines)).readline))):
        if token.type != tokenize.NAME:
            # An f-string is one token before Python 3.12 and several since.
            if "<AsyncIndex" in token.string and token.start[0] == token.end[0]:
                _replace(lines, token, token.string.replace("<AsyncIndex", "<Index"))
        elif token.string in NAMES:
            _replace(lines, token, NAMES[token.string])
        elif token.string in ("async", "await"):
            _replace(lines, token, "", and_space=True)
    return formatted(HEADER + "".join(lines))


def _replace(lines: list[str], token: tokenize.TokenInfo, text: str, *, and_space: bool = False) -> None:
    (row, start), (_, end) = token.start, token.end
    line = lines[row - 1]
    lines[row - 1] = line[:start] + text + line[end + and_space :]


def formatted(text: str) -> str:
    for command in (
        ["check", "--quiet", "--fix", "--select", "I", "-"],
        ["format", "--quiet", "-"],
    ):
        ruff = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(MADE)]
        text = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True).stdout
    return text


def main() -> None:
    made = convert(SOURCE.read_text(encoding="utf-8"))
    if "--check" not in sys.argv[1:]:
        MADE.write_text(made, encoding="utf-8")
    elif made != MADE.read_text(encoding="utf-8"):
        raise SystemExit(f"{MADE} is not what {SOURCE.name} makes: run python tools/async_to_sync.py")


if __name__ == "__main__":
    main()
