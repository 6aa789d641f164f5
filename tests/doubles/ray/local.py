"""A Ray cluster on this machine, as its user sees it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

TOKEN = "a-token-of-the-tests-and-nothing-else"  # noqa: S105 - of nothing that lasts
CPU_NODE = {"num_cpus": 1, "resources": {"PODIUM_CPU": 1}}
_ROOT = Path(__file__).resolve().parents[3]
_STARTS = 3
"""How often a start is tried: Ray gives up after 30 s, and a busy machine may be slower."""


class LocalRay:
    """A head, with nodes that tests add and kill."""

    def __init__(self, process: "subprocess.Popen[str]", *, token: bool) -> None:
        self._process = process
        self.address = self._answer()
        self.environment = {"RAY_ADDRESS": self.address} | (_with_token() if token else {})

    def add(self, node: dict[str, object]) -> None:
        """Add a node."""
        self._ask(f"add {json.dumps(node)}")

    def lose(self) -> None:
        """Kill the node on which a harness runs, otherwise the last one, with all its processes."""
        self._ask("lose")

    def _ask(self, line: str) -> None:
        stdin = _there(self._process.stdin)
        stdin.write(line + "\n")
        stdin.flush()
        self._answer()

    def _answer(self) -> str:
        """The next line that `nodes.py` prints; Ray's own lines are skipped."""
        for line in _there(self._process.stdout):
            mark, _, word = line.strip().partition("podium: ")
            if not mark and word:
                return word
        raise AssertionError("the process of the Ray cluster has ended")


def _with_token() -> dict[str, str]:
    return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": TOKEN}


def _there(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


@contextmanager
def local_ray(*nodes: dict[str, object], token: bool = True) -> Iterator[LocalRay]:
    """A cluster that runs inside the block; with `token=False` it requires no token."""
    process, ray = _started(nodes, token=token)
    with process:
        yield ray
        _there(process.stdin).close()
        process.wait(60)


def _started(
    nodes: tuple[dict[str, object], ...], *, token: bool
) -> "tuple[subprocess.Popen[str], LocalRay]":
    """A cluster with these nodes; a start that fails is tried again."""
    for remaining in reversed(range(_STARTS)):
        process = _process(token=token)
        try:
            ray = LocalRay(process, token=token)
            for node in nodes:
                ray.add(node)
        except (AssertionError, BrokenPipeError):
            process.communicate()
            if not remaining:
                raise
        else:
            return process, ray
    raise AssertionError("there is no try")


def _process(*, token: bool) -> "subprocess.Popen[str]":
    ours = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    return subprocess.Popen(
        [sys.executable, "-m", "tests.doubles.ray.nodes"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=_ROOT,
        env=ours | (_with_token() if token else {"RAY_AUTH_MODE": "disabled"}),
    )
