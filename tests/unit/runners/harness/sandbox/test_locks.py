"""Locks on files work in a sandbox, which can have a limited number of them."""

import errno
import fcntl
import os
import select
import socket
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from runners.harness.sandbox import filters, locks, syscalls
from runners.harness.sandbox.locks import LockServer

OFD_SETLK = 37
MOST = 64
ATTEMPTS = 4 * MOST
Confined = Callable[[Callable[[], object]], str]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LockServer]:
    monkeypatch.setattr(locks, "MOST", MOST)
    kept = LockServer()
    yield kept
    kept.close()


@pytest.fixture
def confined(server: LockServer) -> Confined:
    """Run a function in a filtered process; return what it returned as text."""

    def run(work: Callable[[], object]) -> str:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            with suppress(BaseException):
                syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
                filters.refuse_calls(gpu=False)
                os.write(writer, str(work()).encode())
            os._exit(0)
        os.close(writer)
        _serve_until(server, reader)
        os.waitpid(child, 0)
        with os.fdopen(reader) as said:
            return said.read()

    return run


def _serve_until(server: LockServer, reader: int) -> None:
    while reader not in (ready := _ready((reader, *server.fds()))):
        server.answer(ready)


def _ready(fds: Iterable[int]) -> dict[int, int]:
    poll = select.poll()
    for fd in fds:
        poll.register(fd, select.POLLIN)
    ready = dict(poll.poll(30_000))
    assert ready, "the process in the sandbox neither said anything nor ended"
    return ready


def _in_child(work: Callable[[], bool]) -> bool:
    child = os.fork()
    if child == 0:
        os._exit(0 if work() else 1)
    return os.waitpid(child, 0)[1] == 0


def _is_free(path: Path, how: int) -> bool:
    with path.open("r+b") as file:
        try:
            fcntl.lockf(file, how | fcntl.LOCK_NB, 1)
        except OSError:
            return False
    return True


def _locks_until_refused(
    lock: Callable[[int], object], attempts: int = ATTEMPTS
) -> tuple[int, int]:
    """How many of the locks succeeded, and the error after which no more were tried."""
    for number in range(attempts):
        try:
            lock(number)
        except OSError as error:
            return number, error.errno or 0
    return attempts, 0


@pytest.mark.parametrize(
    ("held", "wanted", "free"),
    [
        (fcntl.LOCK_EX, fcntl.LOCK_EX, False),
        (fcntl.LOCK_SH, fcntl.LOCK_EX, False),
        (fcntl.LOCK_SH, fcntl.LOCK_SH, True),
        (fcntl.LOCK_UN, fcntl.LOCK_EX, True),
    ],
)
def test_a_lock_on_a_part_of_a_file_keeps_other_processes_out(
    confined: Confined, tmp_path: Path, held: int, wanted: int, *, free: bool
) -> None:
    path = tmp_path / "locked"
    path.touch()

    def work() -> bool:
        with path.open("r+b") as file:
            fcntl.lockf(file, held, 1)
            return _in_child(lambda: _is_free(path, wanted))

    assert confined(work) == str(free)


def test_a_shared_lock_keeps_an_exclusive_one_out(confined: Confined, tmp_path: Path) -> None:
    path = tmp_path / "locked"

    def work() -> int:
        with path.open("w") as ours, path.open() as theirs:
            fcntl.flock(ours, fcntl.LOCK_SH)
            return _locks_until_refused(
                lambda _: fcntl.flock(theirs, fcntl.LOCK_EX | fcntl.LOCK_NB)
            )[1]

    assert confined(work) == str(errno.EWOULDBLOCK)


def test_released_locks_do_not_add_up(confined: Confined, tmp_path: Path) -> None:
    path = tmp_path / "locked"

    def work() -> tuple[int, int]:
        with path.open("w") as file:

            def lock_both_ways(_: int) -> None:
                fcntl.lockf(file, fcntl.LOCK_EX, 1)
                fcntl.lockf(file, fcntl.LOCK_UN, 1)
                for kind in (fcntl.F_WRLCK, fcntl.F_UNLCK):
                    fcntl.fcntl(file, OFD_SETLK, struct.pack("hhqqi4x", kind, 0, 0, 1, 0))
                with path.open() as shared:
                    fcntl.flock(shared, fcntl.LOCK_SH)

            return _locks_until_refused(lock_both_ways)

    assert confined(work) == str((ATTEMPTS, 0))


def test_locks_on_parts_of_files_end_with_their_processes(
    confined: Confined, tmp_path: Path
) -> None:
    path = tmp_path / "locked"
    path.touch()

    def work() -> bool:
        return all(_in_child(lambda: _is_free(path, fcntl.LOCK_EX)) for _ in range(MOST))

    assert confined(work) == "True"


@pytest.mark.parametrize("command", [fcntl.F_SETLK, OFD_SETLK])
def test_a_sandbox_has_a_limited_number_of_locks_on_parts_of_files(
    confined: Confined, tmp_path: Path, command: int
) -> None:
    def work() -> tuple[int, int]:
        with (tmp_path / "locked").open("w") as file:

            def lock(number: int) -> None:
                place = struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 2 * number, 1, 0)
                fcntl.fcntl(file, command, place)

            return _locks_until_refused(lock)

    number, error = map(int, confined(work).strip("()").split(","))
    assert MOST // 2 - 2 <= number <= MOST
    assert error == errno.ENOLCK


def test_shared_locks_count_after_the_end_of_the_process_that_set_them(
    confined: Confined, tmp_path: Path
) -> None:
    path = tmp_path / "locked"
    path.touch()

    def work() -> tuple[int, int]:
        files = [path.open() for _ in range(MOST + 1)]

        def share(number: int) -> bool:
            with suppress(OSError):
                fcntl.flock(files[number], fcntl.LOCK_SH)
                return True
            return False

        def share_in_child(number: int) -> None:
            if not _in_child(lambda: share(number)):
                raise OSError(errno.ENOLCK, "refused")

        return _locks_until_refused(share_in_child, MOST + 1)

    assert confined(work) == str((MOST, errno.ENOLCK))


def test_a_sandbox_makes_a_limited_number_of_netlink_sockets(
    confined: Confined, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "SOCKETS_MOST", 3)

    def work() -> tuple[int, int]:
        made = 0
        try:
            while made < ATTEMPTS:
                socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).close()
                made += 1
        except OSError as refused:
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()
            return made, refused.errno or 0
        return made, 0

    assert confined(work) == str((3, errno.ENOBUFS))


def test_a_sandbox_that_has_ended_is_dropped(server: LockServer, confined: Confined) -> None:
    confined(lambda: None)
    while len(server.fds()) > 1:
        server.answer(_ready(server.fds()))
    assert server.fds() == (server.inbox.fileno(),)
    assert not server.sandboxes


def test_a_fork_keeps_only_the_link_to_the_server(server: LockServer) -> None:
    child = os.fork()
    if child == 0:
        server.close_in_fork()
        os._exit(server.inbox.fileno() != -1 or not locks.kept_fds())
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
