"""Holds what a block of `store.transaction()` or `audited(store, ...)` may do.

It awaits nothing but its own store, catches no error of it, and takes its locks in one order. A
function that is given this store keeps the same rules.
"""

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import pytest

from tests.architecture.tree import Function, modules, syntax, text

OPENERS = {"transaction", "audited", "_audited"}
LOCK_ORDER = ("boards", "submissions", "jobs")
CATCHING = (ast.Try, ast.TryStar)
CODE = tuple(
    each
    for each in modules("bot")
    if not each.startswith("bot/store/")
    if re.search(r"audited\(|\.transaction\(|\.audit\.record\(", text(each))
)


@dataclass(frozen=True, slots=True)
class Block:
    """Statements that are one transaction, by the name of its store."""

    module: str
    function: Function
    store: str
    body: tuple[ast.stmt, ...]
    outer: str = ""
    """How the store is written from which the transaction was opened."""

    @property
    def place(self) -> str:
        return f"{self.module}:{self.body[0].lineno} {self.function.name}"

    @property
    def nodes(self) -> list[ast.AST]:
        return [node for statement in self.body for node in ast.walk(statement)]

    @property
    def stores(self) -> set[str]:
        """Its store, and those of the transactions within it."""
        inner = (_opened(each) for each in self.nodes if isinstance(each, ast.AsyncWith))
        return {self.store} | {name for name, outer in filter(None, inner) if outer == self.store}


def blocks(module: str, tree: ast.Module) -> Iterator[Block]:
    """Every transaction that a module opens."""
    for function in _functions(tree).values():
        for node in ast.walk(function):
            if isinstance(node, ast.AsyncWith) and (opened := _opened(node)) is not None:
                store, outer = opened
                yield Block(module, function, store, tuple(node.body), outer)


def broken(block: Block, seen: frozenset[str] = frozenset()) -> Iterator[str]:
    """The rules that a block breaks, in words; functions that get its store are looked into."""
    for node in block.nodes:
        if isinstance(node, CATCHING):
            yield f"{block.place}: catches errors within the transaction"
        if isinstance(node, ast.expr) and ast.unparse(node) == block.outer:
            yield f"{block.place}: uses {block.outer} within the transaction"
        for awaited in _awaited(node):
            yield from _badly_awaited(block, awaited, seen)
    if _lock_order(block) != sorted(_lock_order(block)):
        yield f"{block.place}: locks not in the order {', '.join(LOCK_ORDER)}"
    if block.outer and _used_elsewhere(block):
        yield f"{block.place}: {block.store} is used outside the transaction"


def _badly_awaited(block: Block, awaited: ast.expr, seen: frozenset[str]) -> Iterator[str]:
    helper = _given(awaited, block.stores)
    if helper is None:
        if _root(awaited) not in block.stores:
            yield f"{block.place}: awaits {ast.unparse(awaited)}, which is not {block.store}'s"
        return
    name, argument = helper
    where, function = _defined(block.module, name)
    if f"{where} {name}" not in seen and name not in OPENERS:
        given = function.args.posonlyargs + function.args.args
        store = argument if isinstance(argument, str) else given[argument].arg
        inner = Block(where, function, store, tuple(function.body))
        yield from broken(inner, seen | {f"{where} {name}"})


def _opened(block: ast.AsyncWith) -> tuple[str, str] | None:
    """The name of a transaction's store, and how that is written from which it was opened."""
    for item in block.items:
        if isinstance(item.context_expr, ast.Call) and _opens(item.context_expr):
            assert isinstance(item.optional_vars, ast.Name), "a transaction has a name"
            return item.optional_vars.id, _outer(item.context_expr)
    return None


def _opens(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)
    return name in OPENERS


def _outer(call: ast.Call) -> str:
    """Of `store.transaction()` and `audited(store, ...)` the store."""
    if isinstance(call.func, ast.Attribute):
        return ast.unparse(call.func.value)
    return ast.unparse(call.args[0])


def _awaited(node: ast.AST) -> list[ast.expr]:
    """What a node waits for."""
    match node:
        case ast.Await(value=ast.IfExp(body=one, orelse=other)):
            return [one, other]
        case ast.Await(value=awaited):
            return [awaited]
        case ast.AsyncFor(iter=awaited) | ast.comprehension(iter=awaited, is_async=1):
            return [awaited]
        case ast.AsyncWith(items=items):
            return [item.context_expr for item in items]
        case _:
            return []


def _root(node: ast.expr) -> str:
    """Of `tx.jobs.get(1)` the `tx`."""
    while isinstance(node, ast.Attribute | ast.Call):
        node = node.value if isinstance(node, ast.Attribute) else node.func
    return node.id if isinstance(node, ast.Name) else ""


def _given(call: ast.expr, stores: set[str]) -> tuple[str, int | str] | None:
    """The function that is called with one of these stores, and as which of its arguments."""
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return None
    for at, argument in enumerate(call.args):
        if ast.unparse(argument) in stores:
            return call.func.id, at
    for keyword in call.keywords:
        if keyword.arg is not None and ast.unparse(keyword.value) in stores:
            return call.func.id, keyword.arg
    return None


def _lock_order(block: Block) -> list[int]:
    """The places in LOCK_ORDER of what a block calls, as it is written."""
    held = [
        (each.lineno, each.col_offset, LOCK_ORDER.index(each.attr))
        for each in block.nodes
        if isinstance(each, ast.Attribute)
        and each.attr in LOCK_ORDER
        and ast.unparse(each.value) in block.stores
    ]
    return [place for _, _, place in sorted(held)]


def _used_elsewhere(block: Block) -> bool:
    """Whether the name stands outside every transaction of this name."""
    everywhere = list(ast.walk(block.function))
    opened = [each for each in everywhere if isinstance(each, ast.AsyncWith)]
    own = [each for each in opened if (_opened(each) or ("", ""))[0] == block.store]
    within = {node for each in own for node in ast.walk(each)}
    named = (each for each in everywhere if isinstance(each, ast.Name) and each.id == block.store)
    return any(each not in within for each in named)


def _functions(tree: ast.Module) -> dict[str, Function]:
    found = (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
    return {each.name: each for each in found}


@cache
def _defined(module: str, name: str) -> tuple[str, Function]:
    """The function of this name as a module sees it, and where it is written."""
    tree = syntax(module)
    own = _functions(tree).get(name)
    if own is not None:
        return module, own
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and name in {each.name for each in node.names}:
            there = str(node.module).replace(".", "/") + ".py"
            return there, _functions(syntax(there))[name]
    raise AssertionError(f"{module}: {name} gets the store of a transaction and is not found")


def test_every_transaction_keeps_the_rules() -> None:
    found = [block for module in CODE for block in blocks(module, syntax(module))]
    assert len(found) > 20
    assert not [words for block in found for words in broken(block)]


def test_a_change_is_recorded_in_its_own_transaction() -> None:
    """An export changes nothing: its entry records that somebody read."""
    recorded = {
        (module, function.name): ast.unparse(node.func)
        for module in CODE
        for function in _functions(syntax(module)).values()
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".audit.record")
    }
    beside = {place for place, call in recorded.items() if call != "tx.audit.record"}
    assert beside == {("bot/services/boards.py", "export_board")}


def _found_in(body: str) -> list[str]:
    head = "async def change(store, runner, stack):\n"
    source = head + "\n".join(f"    {line}" for line in body.splitlines())
    return [words for block in blocks("here.py", ast.parse(source)) for words in broken(block)]


GOOD: Callable[[str], str] = "async with store.transaction() as tx:\n    {}".format


@pytest.mark.parametrize(
    "body",
    [
        GOOD("await tx.jobs.get(1)"),
        GOOD("return [await tx.boards.get(each) for each in (1, 2)]"),
        "async with audited(store, 1, 'a', 'b') as tx:\n    await tx.moderation.pause('x')",
        GOOD("await tx.boards.get(1)\n    await tx.submissions.get(1)\n    await tx.jobs.get(1)"),
        GOOD("await tx.jobs.get(1)") + "\n" + GOOD("await tx.boards.get(1)"),
        GOOD("async with tx.transaction() as inner:\n        await inner.jobs.get(1)"),
    ],
)
def test_a_block_that_awaits_its_own_store_is_good(body: str) -> None:
    assert _found_in(body) == []


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (GOOD("await store.jobs.get(1)"), "uses store"),
        (GOOD("print(store)"), "uses store"),
        (GOOD("await runner.capabilities()"), "awaits runner.capabilities()"),
        (GOOD("await asyncio.sleep(1)"), "awaits asyncio.sleep(1)"),
        (GOOD("await asyncio.gather(tx.jobs.get(1), tx.jobs.get(2))"), "awaits asyncio.gather"),
        (GOOD("async with asyncio.timeout(1):\n        pass"), "awaits asyncio.timeout"),
        (GOOD("async for _ in stack.all():\n        pass"), "awaits stack.all()"),
        (GOOD("try:\n        await tx.jobs.get(1)\n    except E:\n        pass"), "catches"),
        (GOOD("pass") + "\nawait tx.jobs.get(1)", "outside the transaction"),
        (GOOD("await tx.jobs.get(1)\n    await tx.boards.get(1)"), "not in the order"),
        (GOOD("await tx.submissions.get(1)\n    await tx.boards.get(1)"), "not in the order"),
    ],
)
def test_a_block_that_breaks_a_rule_is_found(body: str, words: str) -> None:
    assert any(words in each for each in _found_in(body))


def test_a_function_that_is_given_the_store_is_looked_into() -> None:
    module = "bot/services/publishing/publish.py"
    (block,) = blocks(module, syntax(module))
    helpers = {_defined(module, name)[0] for name in ("_create", "_update")}
    assert helpers == {module}
    slow = ast.parse("async def _late(kept):\n    await asyncio.sleep(1)\n").body[0]
    assert isinstance(slow, ast.AsyncFunctionDef)
    inner = Block(module, slow, "kept", tuple(slow.body))
    assert any("asyncio.sleep" in each for each in broken(inner))
    assert not list(broken(block))
