"""Measures the structure of `bot/` and `runners/`: modules, imports, names used twice.

python -m tests.architecture.structure                 print the table
python -m tests.architecture.structure graph FILE.svg  draw which package imports which
"""

import ast
import io
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from xml.sax.saxutils import escape

from tests.architecture.tree import modules, nodes, syntax, text

PACKAGES = ("bot", "runners")
SMALL_MODULE_LINES = 60
LOADED_BY_NAME = (
    "bot/__main__.py",
    "commands/",
    "/routes/",
    "/compat/",
    "runners/backends/",
    "runners/languages/",
    "runners/harness/graders/",
    "runners/evaluator/",
)
"""Parts of the paths of modules which a program starts or loads by name, not by an import."""


@dataclass(frozen=True)
class Structure:
    """The measures that the ratchet holds; lines count docstrings, code lines do not."""

    modules: int
    lines: int
    code_lines: int
    """Lines with a token on them, without docstrings and comments."""
    import_edges: int
    """Distinct pairs of a module and a module of ours that defines a name it imports."""
    import_lines: int
    small_single_importer_modules: int
    """Modules under 60 lines that exactly one other imports."""
    repeated_class_names: int
    """Public class names that more than one module defines."""
    mirroring_protocols: int
    """Protocols of attributes alone which a dataclass of ours repeats in full."""
    unused_lines: int
    """Lines of modules that no program of the product loads."""

    @property
    def edges_per_1000_lines(self) -> float:
        return round(1000 * self.import_edges / self.lines, 1)

    @property
    def import_share(self) -> float:
        """Import lines as percent of the code lines."""
        return round(100 * self.import_lines / self.code_lines, 1)


def dotted(module: str) -> str:
    """The importable name of a module's path."""
    path = PurePosixPath(module).with_suffix("")
    return ".".join(path.parent.parts if path.name == "__init__" else path.parts)


@cache
def paths() -> dict[str, str]:
    """The path of each module by its dotted name."""
    return {dotted(module): module for module in modules(*PACKAGES)}


@cache
def _imported_names(name: str) -> dict[str, tuple[str, str]]:
    """Where each name that a module imports comes from: a dotted module and the name there."""
    return {
        alias.asname or alias.name: (source, alias.name)
        for node in nodes(paths()[name])
        if isinstance(node, ast.ImportFrom) and (source := _source(name, node))
        for alias in node.names
    }


def _source(name: str, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    is_package = paths()[name].endswith("__init__.py")
    parts = name.split(".")
    kept = parts[: len(parts) - node.level + is_package]
    return ".".join([*kept, *filter(None, [node.module])])


def _defining(source: str, name: str) -> str | None:
    """The module of ours that defines `name`, followed through packages that only pass it on."""
    if f"{source}.{name}" in paths():
        return f"{source}.{name}"
    if source not in paths():
        return None
    onward = _imported_names(source).get(name)
    return (_defining(*onward) if onward else None) or source


@cache
def imports_of(name: str) -> frozenset[str]:
    """The modules of ours whose names a module imports."""
    found = {_defining(source, original) for source, original in _imported_names(name).values()}
    for node in nodes(paths()[name]):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name in paths()}
    return frozenset(each for each in found if each and each != name)


def _code_lines(module: str) -> set[int]:
    skipped = (
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENCODING,
        tokenize.ENDMARKER,
    )
    lines = {
        line
        for token in tokenize.generate_tokens(io.StringIO(text(module)).readline)
        if token.type not in skipped
        for line in range(token.start[0], token.end[0] + 1)
    }
    return lines - _docstring_lines(module)


def _docstring_lines(module: str) -> set[int]:
    """Lines of strings that stand alone: docstrings, those of attributes too."""
    return {
        line
        for node in nodes(module)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }


def _import_lines(module: str) -> int:
    return sum(
        (node.end_lineno or node.lineno) - node.lineno + 1
        for node in nodes(module)
        if isinstance(node, ast.Import | ast.ImportFrom)
    )


def _classes(module: str) -> Iterator[ast.ClassDef]:
    return (node for node in syntax(module).body if isinstance(node, ast.ClassDef))


def _attributes(node: ast.ClassDef) -> set[str] | None:
    """The names of a class's fields and properties; None if it has any other method."""
    names: set[str] = set()
    for part in node.body:
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            names.add(part.target.id)
        elif isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
            if "property" not in {ast.unparse(each) for each in part.decorator_list}:
                return None
            names.add(part.name)
    return names


def _members(node: ast.ClassDef) -> Iterator[str]:
    """The names of a class's fields and methods."""
    for part in node.body:
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            yield part.target.id
        elif isinstance(part, ast.FunctionDef):
            yield part.name


def _mirroring_protocols() -> list[str]:
    protocols, dataclasses = [], []
    for module in modules(*PACKAGES):
        for node in _classes(module):
            if any(ast.unparse(base).startswith("Protocol") for base in node.bases):
                if names := _attributes(node):
                    protocols.append((f"{module}:{node.name}", names))
            elif any("dataclass" in ast.unparse(each) for each in node.decorator_list):
                dataclasses.append(set(_members(node)))
    return [name for name, names in protocols if any(names <= fields for fields in dataclasses)]


def repeated_class_names() -> dict[str, list[str]]:
    """The public class names that more than one module defines, with those modules."""
    places = defaultdict(list)
    for module in modules(*PACKAGES):
        for node in _classes(module):
            if not node.name.startswith("_"):
                places[node.name].append(module)
    return {name: found for name, found in sorted(places.items()) if len(found) > 1}


def unused_modules() -> list[str]:
    """Modules that nothing of the product loads, whatever the tests do."""
    loaded: set[str] = set()
    waiting = [name for name, module in paths().items() if _is_entry(module)]
    while waiting:
        name = waiting.pop()
        if name not in loaded:
            loaded.add(name)
            parent = name.rpartition(".")[0]
            waiting += [*imports_of(name), *([parent] if parent in paths() else [])]
    return sorted(module for name, module in paths().items() if name not in loaded)


def _is_entry(module: str) -> bool:
    starts = 'if __name__ == "__main__"' in text(module) or module.endswith("__main__.py")
    by_name = any(part in module for part in LOADED_BY_NAME) or _named_in_a_string(dotted(module))
    return starts or by_name


@cache
def _strings() -> str:
    return "\n".join(
        node.value
        for module in modules(*PACKAGES)
        for node in nodes(module)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _named_in_a_string(name: str) -> bool:
    return name.count(".") > 1 and name in _strings()


def small_single_importers() -> list[str]:
    """Modules under 60 lines that exactly one other imports."""
    importers = Counter(each for name in paths() for each in imports_of(name))
    return sorted(
        module
        for name, module in paths().items()
        if importers[name] == 1 and len(text(module).splitlines()) < SMALL_MODULE_LINES
    )


@cache
def measured() -> Structure:
    """The structure of the tree as it is now."""
    ours = modules(*PACKAGES)
    unused = unused_modules()
    return Structure(
        modules=len(ours),
        lines=_lines(ours),
        code_lines=sum(len(_code_lines(module)) for module in ours),
        import_edges=sum(len(imports_of(name)) for name in paths()),
        import_lines=sum(map(_import_lines, ours)),
        small_single_importer_modules=len(small_single_importers()),
        repeated_class_names=len(repeated_class_names()),
        mirroring_protocols=len(_mirroring_protocols()),
        unused_lines=_lines(unused),
    )


def _lines(found: Iterable[str]) -> int:
    return sum(len(text(module).splitlines()) for module in found)


def _package(name: str, depth: int = 2) -> str:
    return ".".join(name.split(".")[:depth])


def drawing() -> str:
    """An SVG: the packages in rows, importers above what they import; wider lines, more imports."""
    edges = Counter(
        (_package(name), _package(other))
        for name in paths()
        for other in imports_of(name)
        if _package(name) != _package(other)
    )
    rows = _rows(edges)
    places = {
        package: (90 + 180 * column + 40 * (row % 2), 40 + 90 * row)
        for row, packages in enumerate(rows)
        for column, package in enumerate(packages)
    }
    width = 200 + 180 * max(map(len, rows))
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{60 + 90 * len(rows)}" '
        'font-family="sans-serif" font-size="12">'
    )
    lines = [
        head,
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for (start, end), count in sorted(edges.items(), key=lambda edge: edge[1]):
        (x1, y1), (x2, y2) = places[start], places[end]
        lines.append(
            f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="#4a7" stroke-opacity="0.5" '
            f'stroke-width="{0.5 + count**0.5 / 2:.1f}"/>'
        )
    for package, (x, y) in places.items():
        count = sum(_package(name) == package for name in paths())
        lines.append(
            f'<rect x="{x - 75}" y="{y - 16}" width="150" height="32" rx="5" fill="#eef" '
            f'stroke="#557"/><text x="{x}" y="{y + 4}" text-anchor="middle">'
            f"{escape(package)} ({count})</text>"
        )
    return "\n".join([*lines, "</svg>", ""])


def _rows(edges: Counter[tuple[str, str]]) -> list[list[str]]:
    """Packages by how many steps lie beneath them, the highest first."""
    beneath: dict[str, set[str]] = defaultdict(set)
    for start, end in edges:
        beneath[start].add(end)

    @cache
    def height(package: str) -> int:
        return 1 + max(map(height, beneath[package]), default=-1)

    packages = sorted({_package(name) for name in paths()})
    highest = max(map(height, packages))
    return [[p for p in packages if height(p) == level] for level in range(highest, -1, -1)]


def table() -> str:
    """Every measure on a line."""
    now = measured()
    shown = {name: getattr(now, name) for name in Structure.__dataclass_fields__}
    shown |= {
        "edges_per_1000_lines": now.edges_per_1000_lines,
        "import_share_percent": now.import_share,
    }
    return "\n".join(f"{name.replace('_', ' '):32}{value:>10,}" for name, value in shown.items())


if __name__ == "__main__":
    if sys.argv[1:2] == ["graph"]:
        Path(sys.argv[2]).write_text(drawing(), encoding="utf-8")
    sys.stdout.write(f"{table()}\n")
