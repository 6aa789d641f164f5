"""A fork begins with numbers of its own, and ends as the interpreter ends."""

import atexit
import gc
import os
import sys
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from runners.harness.supervision import renew
from tests.unit.runners.harness.supervision.conftest import Fork

DRAWS = """
import multiprocessing, random, tempfile, torch, numpy
tell([torch.initial_seed(), torch.rand(1).item(), numpy.random.rand(), random.random(),
      multiprocessing.current_process().authkey.hex(), next(tempfile._get_candidate_names())])
"""


def test_no_two_forks_draw_the_same(fork: Fork) -> None:
    drawn = [fork(DRAWS).told for _ in range(2)]
    for one, other in zip(*drawn, strict=True):
        assert one != other


ENDS: dict[str, tuple[str, int, list[str]]] = {
    "by itself": ("print('out')", 0, ["out"]),
    "with a status": ("import sys\nprint('out')\nsys.exit(112)", 112, ["out"]),
    "with a negative status": ("raise SystemExit(-1)", 255, []),
    "with words": ("raise SystemExit('words')", 1, ["words"]),
    "with none": ("raise SystemExit", 0, []),
    "raising": (
        "def deep():\n    raise ValueError('here')\ndeep()",
        1,
        ["    deep()", "    raise ValueError('here')", "ValueError: here"],
    ),
    "by a hook of its own": (
        "import sys\nsys.excepthook = lambda *_: print('hooked')\n1 / 0", 1, ["hooked"]
    ),
    "at once": ("print('lost')\nos._exit(7)", 7, []),
    "by a signal": ("import ctypes\nctypes.string_at(0)", -11, []),
    "after its threads": (
        ("import threading, time\n"
        "threading.Thread(target=lambda: (time.sleep(0.1), print('late'))).start()\nprint('main')"),
        0,
        ["main", "late"],
    ),
    "after its handlers": (
        ("import atexit\natexit.register(print, 'second')\natexit.register(print, 'first')\n"
        "atexit.register(lambda: 1 / 0)"),
        0,
        ["ZeroDivisionError: division by zero", "first", "second"],
    ),
    "with files left open": (
        ("import helper, warnings\nwarnings.simplefilter('ignore')\n"
        "kept = os.fdopen(os.dup(1), 'w')\nkept.write('kept ')\nhelper.kept.write('kept ')"),
        0,
        ["kept kept "],
    ),
    "with what C has buffered": (
        "import ctypes\nctypes.CDLL(None).printf(b'from C')", 0, ["from C"]
    ),
    "with an output that is closed": ("os.close(1)\nos.close(2)\nprint('nowhere')", 120, []),
    "without its streams": ("import sys\nsys.stdout = sys.stderr = None", 0, []),
}  # fmt: skip
"""Scripts with the status and the last lines that Python gives them, started by `exec`.

(Of two files that were left open it may lose one.)
"""
HELPER = "import os\nkept = os.fdopen(os.dup(1), 'w')\ndef use(): return kept\n"


class Ending:
    """Says when it ends, as what removes a folder would do that then."""

    itself: object = None

    def __del__(self) -> None:
        os.write(2, b"ended")


@pytest.fixture
def parents() -> Iterator[None]:
    """What the process that is forked has: to be done at its end, and as garbage."""
    kept = [Ending()]
    forget = atexit.register(kept.clear)
    finalize = weakref.finalize(sys, print, Ending())
    gc.disable()
    lost = Ending()
    lost.itself = lost
    del lost, kept
    yield
    gc.enable()
    atexit.unregister(forget)
    finalize.detach()


def test_what_its_parent_has_is_not_ended_by_a_fork(parents: None, fork: Fork) -> None:
    assert fork("import gc\ngc.collect()").printed == ""


@pytest.mark.parametrize("how", ENDS)
def test_a_script_ends_as_if_it_had_been_executed(fork: Fork, how: str) -> None:
    script, status, lines = ENDS[how]
    ran = fork(script, **{"helper.py": HELPER})
    said = [
        line for line in ran.printed.splitlines() if '  File "' not in line and "^^" not in line
    ]
    assert (ran.status, said[-len(lines) :] if lines else said) == (status, lines), ran.printed


def test_what_its_parent_would_do_at_its_end_is_left_to_it(tmp_path: Path) -> None:
    def forks() -> None:
        if (child := os.fork()) == 0:
            renew.renew(["python"])
            renew.interpret("", {})
        assert os.waitpid(child, 0)[1] == 0

    shown = tmp_path / "shown"
    kept = tempfile.TemporaryDirectory(dir=tmp_path)
    atexit.register(shown.touch)
    forks()
    atexit.unregister(shown.touch)
    assert not shown.exists()
    assert Path(kept.name).exists()
    kept.cleanup()


def test_a_new_interpreters_path_is_told_from_this_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    library = f"/x/python{sys.version_info.major}{sys.version_info.minor}.zip"
    monkeypatch.setattr(sys, "path", ["/from/PYTHONPATH", library, "/usr", "/no/such/folder"])
    assert renew.search_path() == [library, "/usr"]


@pytest.mark.parametrize("path", [["/usr"], []])
def test_a_path_without_a_library_tells_nothing(
    monkeypatch: pytest.MonkeyPatch, path: list[str]
) -> None:
    monkeypatch.setattr(sys, "path", path)
    assert renew.search_path() == []
