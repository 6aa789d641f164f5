"""Python's syntax trees, from any thread.

CPython 3.11 counts how deep it is in a tree in one place for all threads, and raises SystemError
where two of them build trees at once and the collector changes threads between them
(github.com/python/cpython/issues/106905). Whoever is told so tries again.
"""

import ast
from typing import Literal

_TRIES = 20


def module_tree(text: str) -> ast.Module:
    """The tree of a file; raises what `ast.parse` raises."""
    return _tree(text, "exec")  # type: ignore[return-value]


def expression_tree(text: str) -> ast.expr:
    """The tree of one expression; raises what `ast.parse` raises."""
    return _tree(text, "eval").body  # type: ignore[attr-defined,no-any-return]


def _tree(text: str, mode: Literal["exec", "eval"]) -> ast.AST:
    for _ in range(_TRIES - 1):
        try:
            return ast.parse(text, mode=mode)
        except SystemError:
            continue
    return ast.parse(text, mode=mode)
