"""Holds the budgets and the shape that keep every file small enough to read."""

import ast
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

import pytest

from tests.architecture.tree import ROOT, functions, modules, nodes, syntax, text, tracked_files

MODULE_LINES = 350
FUNCTION_LINES = 40
JUNK_DRAWERS = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "stuff"}
UNFINISHED = re.compile(r"\b(?:TODO|FIXME|XXX|HACK|for now|placeholder(?!=))\b")
ONE_MACHINES_PATHS = re.compile(r"(?<![\w.~}-])/(?:work|mnt|Users)/")
TEXT_SUFFIXES = {".py", ".md", ".toml", ".yml", ".yaml", ".sql", ".txt", "", ".cu", ".cuh"}

NO_README_NEEDED = {
    ".ci": "one script, described in its own head",
    ".github": "GitHub's own layout",
    "docs": "tables that say in their heads what they are, and decisions/",
    "runners/contract": "runners/README.md describes it",
}
CODE = modules("bot", "runners")


@pytest.fixture(scope="module", autouse=True)
def _trees_are_forgotten() -> Iterator[None]:
    """A million nodes would be looked through by every later collection of garbage."""
    yield
    nodes.cache_clear()
    syntax.cache_clear()


def test_a_module_stays_within_350_lines() -> None:
    lines = {module: len(text(module).splitlines()) for module in CODE}
    long = {module: count for module, count in lines.items() if count > MODULE_LINES}
    assert not long, "split them by noun"


def test_a_function_stays_within_40_lines() -> None:
    long = {
        f"{module}:{function.lineno} {function.name}"
        for module in CODE
        for function in functions(module)
        if (function.end_lineno or function.lineno) - function.lineno + 1 > FUNCTION_LINES
    }
    assert not long


def test_a_module_says_its_purpose_in_its_first_line() -> None:
    docstrings = {module: ast.get_docstring(syntax(module)) or "" for module in CODE}
    first = {
        module: docstring.split("\n", maxsplit=1)[0] for module, docstring in docstrings.items()
    }
    assert not {
        module: line for module, line in first.items() if not line.endswith((".", ":", "?"))
    }
    assert not [each for each in CODE if not text(each).startswith(('"""', 'r"""', "#!"))]


def test_no_module_or_function_is_a_junk_drawer() -> None:
    names = {
        module: {
            *PurePosixPath(module).with_suffix("").parts,
            *(function.name.strip("_") for function in functions(module)),
        }
        for module in CODE
    }
    assert not {module for module, known in names.items() if known & JUNK_DRAWERS}


def test_nothing_is_left_unfinished() -> None:
    assert not [module for module in CODE if UNFINISHED.search(text(module))]


def test_no_module_sleeps_instead_of_waiting() -> None:
    sleeps = {
        f"{module}:{node.lineno}"
        for module in CODE
        for node in nodes(module)
        if isinstance(node, ast.Attribute)
        and node.attr == "sleep"
        and isinstance(node.value, ast.Name)
        and node.value.id == "time"
    }
    assert not sleeps


def _folders_of_code() -> list[str]:
    folders = {
        str(PurePosixPath(*parts[:depth]))
        for name in tracked_files()
        if (parts := PurePosixPath(name).parent.parts)
        for depth in (1, 2)
        if depth <= len(parts) and not name.startswith(("tests/", "tasks/", ".github/"))
    }
    return sorted(folders | {"tests", "tasks", "migrations", "docker"})


@pytest.mark.parametrize("folder", _folders_of_code())
def test_a_folder_has_a_readme_or_a_reason_for_having_none(folder: str) -> None:
    assert (ROOT / folder / "README.md").is_file() or folder in NO_README_NEEDED


def _named_files(readme: str) -> set[str]:
    """Files in the first column of a table, and those with a path from the README's folder."""
    cells = [line.split(" | ")[0] for line in readme.splitlines() if line.startswith("| `")]
    found = re.findall(r"`([\w/]+\.py)`", "\n".join(cells))
    return {*found, *re.findall(r"`(\.\./[\w./]+\.py)`", readme)}


def test_a_readme_names_only_files_that_exist() -> None:
    readmes = [
        ROOT / name
        for name in tracked_files()
        if name.startswith(("bot/", "runners/")) and name.endswith("README.md")
    ]
    missing = {
        (str(readme), path)
        for readme in readmes
        for path in _named_files(readme.read_text(encoding="utf-8"))
        if not (readme.parent / path).exists() and not (ROOT / path).exists()
    }
    assert readmes
    assert not missing


@pytest.mark.parametrize("folder", sorted(NO_README_NEEDED))
def test_no_reason_outlives_its_folder(folder: str) -> None:
    assert (ROOT / folder).is_dir()
    assert not (ROOT / folder / "README.md").exists()


def test_no_file_names_a_path_of_one_machine() -> None:
    offenders = {
        name
        for name in tracked_files()
        if PurePosixPath(name).suffix in TEXT_SUFFIXES
        and name != "tests/architecture/test_shape.py"
        and ONE_MACHINES_PATHS.search((ROOT / name).read_text(encoding="utf-8", errors="replace"))
    }
    assert not offenders
