"""Measures the coverage of processes that cannot save their own coverage data.

The sandbox and the candidate run in forked processes that lose their files, user and descriptors
and end by `os._exit` or a kill, so coverage.py can save nothing there. Each of them therefore
records its own steps in a file that the test run has mapped; the shared mapping survives. Each
pair of lines of a file has one byte, which is only ever set, so no lock is needed. At the end the
test run adds the pairs to its own coverage data, for the files that it measures. Without coverage
nothing of this is active.
"""

import mmap
import os
import runpy
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from opcode import opmap
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coverage import Coverage

ROOT = Path(__file__).resolve().parents[2]
FILE = "PODIUM_FOOTPRINTS"
"""Names the file in the environment, for programs that call `begin`."""

_FILES = sorted((ROOT / "runners" / "harness").rglob("*.py"))
_LINES = max(len(path.read_bytes().splitlines()) for path in _FILES)
_SIDE = 2 * _LINES + 1  # a negative line number, as in coverage.py, is the way in or out
_YIELD, _CATCH = opmap["YIELD_VALUE"], opmap["PUSH_EXC_INFO"]


class _Steps:
    """The trace function of one frame: each step from one of its lines to the next."""

    def __init__(self, marks: mmap.mmap, file: int, last: int) -> None:
        self.marks = marks
        self.middle = file * _SIDE**2 + _SIDE**2 // 2
        self.last = last

    def __call__(self, frame: FrameType, event: str, _: object) -> "_Steps":
        code = frame.f_code
        if event == "line" and code.co_code[frame.f_lasti] != _CATCH:
            self._mark(frame.f_lineno)
        elif event == "return" and code.co_code[frame.f_lasti] != _YIELD:
            self._mark(-code.co_firstlineno)
        return self

    def _mark(self, line: int) -> None:
        self.marks[self.middle + self.last * _SIDE + line] = 1
        self.last = line


class Footprints:
    """The mapped file, and the tracing of this process into it."""

    def __init__(self, path: str) -> None:
        self.numbers = {str(source): number for number, source in enumerate(_FILES)}
        with Path(path).open("r+b") as file:
            file.truncate(len(_FILES) * _SIDE**2)
            self.marks = mmap.mmap(file.fileno(), 0)

    def follow(self) -> None:
        """Trace this process and its later forks from now on."""
        frame: FrameType | None = sys._getframe(1)
        while frame:
            number = self.numbers.get(frame.f_code.co_filename)
            frame.f_trace = None if number is None else self._steps(number, frame.f_lineno)
            frame = frame.f_back
        sys.settrace(self._enter)

    def _enter(self, frame: FrameType, _event: str, _argument: object) -> _Steps | None:
        number = self.numbers.get(frame.f_code.co_filename)
        if number is None:
            return None
        resumed = frame.f_code.co_code[frame.f_lasti + 1]  # what RESUME says: 0 at the beginning
        return self._steps(number, frame.f_lineno if resumed else -frame.f_code.co_firstlineno)

    def _steps(self, number: int, last: int) -> _Steps:
        return _Steps(self.marks, number, last)

    def arcs(self) -> dict[str, set[tuple[int, int]]]:
        """The pairs of consecutive lines that any process executed, by file."""
        found: dict[str, set[tuple[int, int]]] = {name: set() for name in self.numbers}
        for name, number in self.numbers.items():
            marks = self.marks[number * _SIDE**2 : (number + 1) * _SIDE**2]
            at = -1
            while (at := marks.find(1, at + 1)) >= 0:
                last, line = divmod(at, _SIDE)
                found[name].add((last - _LINES, line - _LINES))
        return found


def begin() -> None:
    """Trace this program if a test run that measures coverage started it."""
    if path := os.environ.get(FILE):
        Footprints(path).follow()


def inherited() -> dict[str, str]:
    """The environment variables that a program needs to call `begin`."""
    return {FILE: os.environ[FILE]} if FILE in os.environ else {}


def harness(*arguments: str) -> list[str]:
    """The command line of the harness program, traced where coverage is measured."""
    module = "tests.doubles.footprints" if FILE in os.environ else "runners.harness"
    return [sys.executable, "-m", module, *arguments]


@contextmanager
def gathered(run: "Coverage | None") -> Iterator[None]:
    """Add what other processes execute in the block to this run's coverage data, if any."""
    if run is None:
        yield
        return
    with tempfile.NamedTemporaryFile(prefix="footprints-") as file:
        footprints = Footprints(file.name)
        os.environ[FILE] = file.name
        os.register_at_fork(after_in_child=footprints.follow)
        yield
        del os.environ[FILE]
        data = run.get_data()
        measured = data.measured_files()
        data.add_arcs({name: arcs for name, arcs in footprints.arcs().items() if name in measured})


if __name__ == "__main__":
    begin()
    runpy.run_module("runners.harness", run_name="__main__", alter_sys=True)
