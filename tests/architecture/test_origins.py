"""Holds the tables in docs/ to the repository: every file and every test they name is there."""

import ast
import re

import pytest

from tests.architecture.tree import ROOT, exists

ORIGINS = (ROOT / "docs" / "origins.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
    for line in ORIGINS.splitlines()
    if line.startswith("| ") and not line.startswith(("| feature |", "|---"))
]
_PATH = re.compile(r"\]\(\.\./([^)]+)\)")
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")

NAMED: dict[str, set[str]] = {}
for _row in ROWS:
    for _file, _name in _TEST.findall(_row[2]):
        NAMED.setdefault(_file, set()).add(_name)


def test_the_table_has_every_document() -> None:
    assert len(re.findall(r"^## ", ORIGINS, re.MULTILINE)) == 5
    assert len(ROWS) >= 150
    assert all(len(row) == 4 for row in ROWS)


@pytest.mark.parametrize("path", sorted({path for row in ROWS for path in _PATH.findall(row[1])}))
def test_every_place_exists(path: str) -> None:
    assert exists(path) or (ROOT / path).is_dir()


def test_every_row_has_a_place_and_a_test_or_an_answer() -> None:
    assert all(_PATH.search(row[1]) for row in ROWS)
    assert not [row[0] for row in ROWS if not (_TEST.fullmatch(row[2]) or row[3])]


@pytest.mark.parametrize("file", sorted(NAMED))
def test_every_test_exists(file: str) -> None:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    known = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = {node.name for node in ast.walk(tree) if isinstance(node, known)}
    assert NAMED[file] <= found


def test_every_old_name_leads_to_something_that_exists() -> None:
    table = (ROOT / "docs" / "old_names.md").read_text(encoding="utf-8")
    present = re.findall(r"^\| `[\w/.]+` \|.*`([\w/]+(?:\.py|/))` \|$", table, re.MULTILINE)
    assert len(present) > 150
    assert not [path for path in present if not (ROOT / path).exists()]
