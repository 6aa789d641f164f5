"""What a task's own Python says about it, read from its syntax tree and never run."""

import ast
from collections.abc import Iterable, Iterator

from bot.domain.document import refusal


def parse_python(text: str, file: str) -> ast.Module:
    """The syntax tree; UserError with the line when it does not parse."""
    try:
        return ast.parse(text)
    except SyntaxError as error:
        raise refusal(file, error.lineno or 1, f"Python cannot parse this: {error.msg}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise refusal(file, 1, "Python cannot parse this file") from error


def defined_names(tree: ast.Module) -> frozenset[str]:
    """The names which the module binds at its top level, also under `if` and `try`."""
    return frozenset(name for statement in _top(tree.body) for name in _bound(statement))


def _top(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        yield statement
        for block in ("body", "orelse", "finalbody"):
            if isinstance(statement, ast.If | ast.Try | ast.With):
                yield from _top(getattr(statement, block, ()))


def _bound(statement: ast.stmt) -> Iterator[str]:
    match statement:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Assign(targets=targets):
            yield from (target.id for target in targets if isinstance(target, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()):
            yield name
        case ast.ImportFrom(names=names) | ast.Import(names=names):
            yield from (alias.asname or alias.name for alias in names)
        case _:
            return


def wants_cuda(tree: ast.Module) -> bool:
    """Whether the code names CUDA as a device with no question whether there is one."""
    return any(_is_cuda(node) for node in _unguarded(tree))


def _is_cuda(node: ast.AST) -> bool:
    match node:
        case ast.Constant(value=str() as text):
            return text == "cuda" or (text.startswith("cuda:") and text[5:].isdigit())
        case ast.Call(func=ast.Attribute(attr="cuda")):
            return True
        case _:
            return False


def _unguarded(node: ast.AST) -> Iterator[ast.AST]:
    """Every node but comparisons and what stands under a test of `is_available`."""
    yield node
    for child in ast.iter_child_nodes(node):
        guarded = isinstance(child, ast.If | ast.IfExp) and _asks_for_cuda(child.test)
        if not guarded and not isinstance(child, ast.Compare):
            yield from _unguarded(child)


def _asks_for_cuda(test: ast.expr) -> bool:
    return any(
        isinstance(node, ast.Attribute) and node.attr in ("is_available", "device_count")
        for node in ast.walk(test)
    )
