"""Counts words that the glossary replaced, in the names and docstrings of the product.

`python -m tests.architecture.words` prints the counts, `... words WORD` where a word still stands.
"""

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache

from tests.architecture.tree import modules, syntax

REPLACED = {
    "anchor": "calibration candidate",
    "anew": "again",
    "beat": "heartbeat",
    "beside": "next to",
    "bury": "wait for exit",
    "deed": "action, decision",
    "enlist": "start",
    "fallen": "failed",
    "forgotten": "expired",
    "greet": "handshake",
    "hoard": "excess memory",
    "house": "system",
    "keeper": "supervisor",
    "keepsake": "board archive",
    "leafing": "pagination",
    "letter": "delivery",
    "lineage": "process tree",
    "lineup": "candidate pool",
    "nobody": "the one who is meant",
    "nursery": "fork server",
    "obituary": "exit message",
    "portrait": "profile",
    "proven": "checked",
    "restless": "ran while frozen",
    "seat": "candidate driver",
    "spell": "format",
    "stray": "child process",
    "strike": "kill",
    "thaw": "resume",
    "tidings": "progress",
    "vet": "validate",
    "vouch": "confirm",
    "walls": "sandbox",
    "whoever": "the one who is meant",
    "wish": "request, option",
}
"""A word that went, and what stands for it; docs/glossary.md has the words that stay."""

_FORMS = {
    form: word
    for word in REPLACED
    for form in (word, f"{word}s", f"{word}ed", f"{word}ing", word.replace("y", "ies"))
}
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def _names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """What a module defines: its classes, functions, parameters and variables."""
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                yield node.lineno, node.name
            case ast.arg():
                yield node.lineno, node.arg
            case ast.Name(ctx=ast.Store()):
                yield node.lineno, node.id
            case ast.Attribute(ctx=ast.Store()):
                yield node.lineno, node.attr
            case _:
                pass


def _texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Docstrings, those of attributes as well."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, text
            case _:
                pass


@cache
def places() -> dict[str, tuple[str, ...]]:
    """By word, as file and line, where it still stands."""
    found: dict[str, list[str]] = defaultdict(list)
    for module in modules("bot", "runners"):
        tree = syntax(module)
        for line, text in (*_names(tree), *_texts(tree)):
            for part in _PARTS.findall(text):
                word = _FORMS.get(part.lower())
                if word is not None:
                    found[word].append(f"{module}:{line}")
    return {word: tuple(found[word]) for word in REPLACED}


def counts() -> Counter[str]:
    """How often each replaced word still stands."""
    return Counter({word: len(where) for word, where in places().items()})


def main(asked: list[str]) -> None:
    """Print the counts, or the places of the words that are asked for."""
    lines = [place for word in asked for place in places()[word]]
    if not asked:
        found = counts()
        lines = [
            f"{word:12}{count:6}   now: {REPLACED[word]}" for word, count in found.most_common()
        ]
        lines.append(f"{'all':12}{found.total():6}")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
