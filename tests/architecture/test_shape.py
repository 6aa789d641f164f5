"""Holds the budgets and the shape that keep every file small enough to read."""

import ast
import re
from pathlib import PurePosixPath

import pytest

from tests.architecture.tree import ROOT, functions, modules, syntax, tracked_files

MODULE_LINES = 300
FUNCTION_LINES = 40
JUNK_DRAWERS = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "stuff"}
UNFINISHED = re.compile(r"\b(?:TODO|FIXME|XXX|HACK|for now|placeholder(?!=))\b")
ONE_MACHINES_PATHS = re.compile(r"(?<![\w.~}-])/(?:work|mnt|Users)/")
TEXT_SUFFIXES = {".py", ".md", ".toml", ".yml", ".yaml", ".sql", ".txt", "", ".cu", ".cuh"}

NO_README_NEEDED = {
    ".ci": "one script, described in its own head",
    ".github": "GitHub's own layout",
    "runners/contract": "runners/README.md describes it",
}
CODE = modules("bot", "runners")


@pytest.mark.parametrize("module", CODE)
def test_a_module_stays_within_300_lines(module: str) -> None:
    lines = len((ROOT / module).read_text(encoding="utf-8").splitlines())
    assert lines <= MODULE_LINES, f"{module} has {lines} lines: split it by noun"


@pytest.mark.parametrize("module", CODE)
def test_a_function_stays_within_40_lines(module: str) -> None:
    long = {
        f"{module}:{function.lineno} {function.name}"
        for function in functions(module)
        if (function.end_lineno or function.lineno) - function.lineno + 1 > FUNCTION_LINES
    }
    assert not long


@pytest.mark.parametrize("module", CODE)
def test_a_module_says_its_purpose_in_its_first_line(module: str) -> None:
    docstring = ast.get_docstring(syntax(module)) or ""
    first = docstring.split("\n", maxsplit=1)[0]
    assert first.endswith((".", ":", "?")), f"{module}: {first!r}"
    assert (ROOT / module).read_text(encoding="utf-8").startswith(('"""', 'r"""', "#!"))


@pytest.mark.parametrize("module", CODE)
def test_no_module_or_function_is_a_junk_drawer(module: str) -> None:
    names = {*PurePosixPath(module).with_suffix("").parts}
    names |= {function.name.strip("_") for function in functions(module)}
    assert not names & JUNK_DRAWERS


@pytest.mark.parametrize("module", CODE)
def test_nothing_is_left_unfinished(module: str) -> None:
    text = (ROOT / module).read_text(encoding="utf-8")
    assert not UNFINISHED.search(text)


@pytest.mark.parametrize("module", CODE)
def test_no_module_sleeps_instead_of_waiting(module: str) -> None:
    sleeps = [
        node.lineno
        for node in ast.walk(syntax(module))
        if isinstance(node, ast.Attribute)
        and node.attr == "sleep"
        and isinstance(node.value, ast.Name)
        and node.value.id == "time"
    ]
    assert not sleeps, f"{module}: time.sleep in lines {sleeps}"


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
