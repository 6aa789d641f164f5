"""What a task's own Python says about it, read from its syntax tree and never run."""

import ast
from collections.abc import Iterable, Iterator, Sequence

from bot.domain.tasks.yaml_document import refusal
from runners.contract.syntax import module_tree

LONGEST_FAULT = 300
"""Characters that are told of what is wrong."""


def parse_python(text: str, file: str) -> ast.Module:
    """The syntax tree; UserError with the line when it does not parse."""
    try:
        return module_tree(text)
    except SyntaxError as error:
        raise refusal(file, error.lineno or 1, f"Python cannot parse this: {error.msg}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise refusal(file, 1, "Python cannot parse this file") from error


def python_fault(source: str) -> str | None:
    """What is wrong with a source, and in which line; None where Python can parse it.

    As bytes, as Python reads a file: a line at its head may name a coding.
    """
    try:
        ast.parse(source.encode(errors="surrogatepass"))
    except SyntaxError as error:
        return f"{error.msg[:LONGEST_FAULT]} (line {error.lineno or 1})"
    except (ValueError, RecursionError):
        return None
    return None


def defined_names(tree: ast.Module) -> frozenset[str]:
    """The names which the module binds at its top level, also under `if`, `try` and `with`."""
    return frozenset(name for statement in _top(tree.body) for name in _bound(statement))


def _top(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """In no order, and with a list of our own: a chain of `elif` is as deep as it is long."""
    waiting = list(body)
    while waiting:
        statement = waiting.pop()
        yield statement
        for block in _blocks(statement):
            waiting += block


def _blocks(statement: ast.stmt) -> tuple[Sequence[ast.stmt], ...]:
    """The statements within one that still run at the module's top level."""
    match statement:
        case ast.If(body=body, orelse=orelse):
            return (body, orelse)
        case ast.With(body=body):
            return (body,)
        case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=last):
            return (body, *(handler.body for handler in handlers), orelse, last)
        case _:
            return ()


def _bound(statement: ast.stmt) -> Iterable[str]:
    match statement:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return (name,)
        case ast.Assign(targets=targets):
            return _assigned(targets)
        case ast.AnnAssign(target=target, value=ast.expr()):
            return _assigned([target])
        case ast.ImportFrom(names=names) | ast.Import(names=names):
            return [alias.asname or alias.name for alias in names]
        case _:
            return ()


def _assigned(targets: Iterable[ast.expr]) -> Iterator[str]:
    """The names among the targets, also of `a, b = ...`; not the `x` of `x.a = ...`."""
    for node in (node for target in targets for node in ast.walk(target)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


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


def _unguarded(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node but comparisons and what stands under a test of `is_available`."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for child in ast.iter_child_nodes(node):
            guarded = isinstance(child, ast.If | ast.IfExp) and _asks_for_cuda(child.test)
            if not guarded and not isinstance(child, ast.Compare):
                waiting.append(child)


def _asks_for_cuda(test: ast.expr) -> bool:
    return any(
        isinstance(node, ast.Attribute) and node.attr in ("is_available", "device_count")
        for node in ast.walk(test)
    )
