"""The repository as the architecture tests read it: files, syntax trees and the README's map."""

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

Function = ast.FunctionDef | ast.AsyncFunctionDef

_MAP = re.compile(r"```text\n(?P<map>.*?)```", re.DOTALL)
_MAPPED_PATH = re.compile(r"\b(?:bot|runners|tasks|migrations|docker|tests)/[\w./-]*\w")


@cache
def tracked_files() -> tuple[str, ...]:
    """Every file that git tracks or would track, by path from the root."""
    answer = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return tuple(sorted(name for name in answer.stdout.splitlines() if (ROOT / name).is_file()))


def modules(*folders: str) -> tuple[str, ...]:
    """The Python modules below these folders."""
    return tuple(
        name
        for name in tracked_files()
        if name.endswith(".py") and name.split("/", maxsplit=1)[0] in folders
    )


@cache
def text(module: str) -> str:
    return (ROOT / module).read_text(encoding="utf-8")


@cache
def syntax(module: str) -> ast.Module:
    return ast.parse(text(module), module)


@cache
def nodes(module: str) -> tuple[ast.AST, ...]:
    """Every node of a module's syntax tree."""
    return tuple(ast.walk(syntax(module)))


def functions(module: str) -> Iterator[Function]:
    """Every function and method of a module, nested ones too."""
    for node in nodes(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def has_behaviour(module: str) -> bool:
    """Whether a module has a function whose body is more than a docstring or an ellipsis."""
    return any(
        not all(
            isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            for statement in function.body
        )
        for function in functions(module)
    )


def mapped_paths() -> tuple[str, ...]:
    """The paths that the drawings of the README name."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    drawings = "\n".join(match["map"] for match in _MAP.finditer(readme))
    return tuple(sorted(set(_MAPPED_PATH.findall(drawings))))


def exists(path: str) -> bool:
    """Whether a path of the map is a file, a folder, or a module written without its suffix."""
    return (ROOT / path).exists() or (ROOT / f"{path}.py").exists()
