"""The named queries of this folder's .sql files: `query("jobs.claim")` is `claim` in jobs.sql."""

import re
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent
HEADING = re.compile(r"^-- name: ([a-z_]+)$", re.MULTILINE)


@cache
def query(name: str) -> str:
    """Return the text of a query; KeyError for an unknown name."""
    file, _, wanted = name.partition(".")
    return _read(file)[wanted]


@cache
def _read(file: str) -> dict[str, str]:
    """Return a file's queries by name; text before the first heading is a comment."""
    words = HEADING.split((FOLDER / f"{file}.sql").read_text("utf-8"))[1:]
    return {name: text.strip() for name, text in zip(words[::2], words[1::2], strict=True)}
