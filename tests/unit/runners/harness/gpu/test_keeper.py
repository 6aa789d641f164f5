"""The process that has the driver open: what it has, what ends it, and what spares it."""

import os
import select
import signal
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from runners.harness import server
from runners.harness.gpu import warm
from runners.harness.gpu.warm import DriverKeepAlive

WITHIN_S = 10.0

Does = Callable[[int], int]


@pytest.fixture
def init(monkeypatch: pytest.MonkeyPatch) -> Callable[[Does], None]:
    """Say what `cuInit` does."""

    def say(does: Does) -> None:
        monkeypatch.setattr(warm, "cuda_driver", lambda: SimpleNamespace(cuInit=does))

    say(lambda _: 0)
    return say


def ended(pidfd: int) -> bool:
    return bool(select.select([pidfd], [], [], WITHIN_S)[0])


@pytest.mark.usefixtures("init")
def test_it_lives_until_it_is_closed() -> None:
    kept = DriverKeepAlive()
    pidfd = os.pidfd_open(kept.pid)
    assert kept.living == (kept.pid,)
    kept.close()
    assert ended(pidfd)
    os.close(pidfd)


def test_it_begins_to_use_the_driver_and_has_no_stream_of_its_parents(
    init: Callable[[Does], None],
) -> None:
    reader, writer = os.pipe()

    def told(_: int) -> int:
        os.write(writer, b" ".join(bytes(Path(f"/proc/self/fd/{n}").readlink()) for n in (0, 1)))
        return 0

    init(told)
    with closing(DriverKeepAlive()):
        assert os.read(reader, 100) == b"/dev/null /dev/null"
    os.close(reader)
    os.close(writer)


@pytest.mark.parametrize("failure", [100, OSError("no such library")])
def test_without_a_driver_there_is_none(
    init: Callable[[Does], None], failure: int | OSError
) -> None:
    def fails(_: int) -> int:
        if isinstance(failure, OSError):
            raise failure
        return failure

    init(fails)
    with closing(DriverKeepAlive()) as made:
        assert ended(made.pidfd)
        assert made.living == ()


def in_a_server(body: Callable[[DriverKeepAlive], bool]) -> bool:
    """Whether it is so in a process of its own, for a sweep ends all that a process has begun."""
    pid = os.fork()
    if pid == 0:
        so = False
        try:
            so = body(DriverKeepAlive())
        finally:
            os._exit(0 if so else 1)
    return os.waitpid(pid, 0)[1] == 0


@pytest.mark.usefixtures("init")
def test_what_a_judge_left_is_ended_and_it_is_spared() -> None:
    def body(kept: DriverKeepAlive) -> bool:
        left = os.fork()
        if left == 0:
            signal.pause()
        pidfd = os.pidfd_open(left)
        server._kill_leftovers(kept)
        return ended(pidfd) and kept.living == (kept.pid,)

    assert in_a_server(body)


@pytest.mark.usefixtures("init")
def test_once_it_has_ended_it_is_collected_and_its_process_id_not_spared() -> None:
    def body(kept: DriverKeepAlive) -> bool:
        os.kill(kept.pid, signal.SIGKILL)
        if not ended(kept.pidfd):
            return False
        server._kill_leftovers(kept)
        with pytest.raises(ChildProcessError):
            os.waitpid(kept.pid, os.WNOHANG)
        return kept.living == ()

    assert in_a_server(body)


@pytest.mark.usefixtures("init")
def test_it_ends_with_who_serves() -> None:
    reader, writer = os.pipe()
    parent = os.fork()
    if parent == 0:
        DriverKeepAlive()
        os._exit(0)
    os.waitpid(parent, 0)
    os.close(writer)
    assert select.select([reader], [], [], WITHIN_S)[0]
    assert os.read(reader, 1) == b""  # nobody holds the writing end any more
    os.close(reader)
