import ast
import gc
import sys
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from runners.contract import formula
from runners.contract.formula import expression_tree, module_tree

FILE = "x = (1 + 2 * (3 - 4)) // f(a, b, [1, 2, 3])\n" * 200


@pytest.fixture
def _changing_threads() -> Iterator[None]:
    """The collector runs all the time, and gives way to another thread whenever it does."""
    interval, threshold = sys.getswitchinterval(), gc.get_threshold()

    def give_way(*_: object) -> None:
        time.sleep(0)

    sys.setswitchinterval(1e-6)
    gc.set_threshold(20)
    gc.callbacks.append(give_way)
    yield
    gc.callbacks.remove(give_way)
    gc.set_threshold(*threshold)
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("_changing_threads")
def test_threads_that_parse_at_once_do_not_disturb_each_other() -> None:
    failed: list[BaseException] = []

    def parse() -> None:
        try:
            for _ in range(10):
                module_tree(FILE)
        except SystemError as error:
            failed.append(error)

    threads = [threading.Thread(target=parse) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert failed == []


def test_who_disturbs_now_and_then_is_outlasted(monkeypatch: pytest.MonkeyPatch) -> None:
    parse, tries = ast.parse, []

    def disturbed(text: str, mode: str) -> ast.AST:
        tries.append(mode)
        if len(tries) < 3:
            raise SystemError("AST constructor recursion depth mismatch")
        return parse(text, mode=mode)

    monkeypatch.setattr(formula, "ast", SimpleNamespace(parse=disturbed))
    assert ast.unparse(expression_tree("1+2")) == "1 + 2"
    assert tries == ["eval"] * 3


def test_what_never_ends_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> ast.AST:
        raise SystemError("broken")

    monkeypatch.setattr(formula, "ast", SimpleNamespace(parse=broken))
    with pytest.raises(SystemError, match="broken"):
        module_tree("")


def test_a_mistake_is_a_syntax_error() -> None:
    with pytest.raises(SyntaxError):
        module_tree("def")
