import json
import os
import socket
import threading
import time
from pathlib import Path

import psutil
import pytest

from runners.contract.evaluation import Limits
from runners.harness.protocol.channel import CandidateSpec
from runners.harness.supervision import template as module
from runners.harness.supervision.template import TemplateProcess, pack_files, serve
from runners.languages import Recipe

ENLISTED = CandidateSpec(
    limits=Limits(),
    threads=1,
    recipe=Recipe(language="py", submission_file="s.py"),
    arena_size=4096,
)


def _children() -> set[int]:
    """Those that have ended and were not collected included."""
    return {each.pid for each in psutil.Process().children()}


def test_packed_files_are_read_back() -> None:
    files = pack_files({"submission.py": "x = 'ü'\n", "task.py": ""})

    with os.fdopen(files, "rb") as packed:
        packed.seek(0)
        assert json.load(packed) == {"submission.py": "x = 'ü'\n", "task.py": ""}


def test_packed_files_cannot_be_changed_by_whoever_holds_them() -> None:
    files = pack_files({"submission.py": "x = 1\n"})

    with pytest.raises(PermissionError):
        os.pwrite(files, b"!", 0)
    with pytest.raises(PermissionError):
        os.ftruncate(files, 0)
    os.close(files)


def test_a_template_ends_when_its_judge_hangs_up() -> None:
    forked = module.fork_template()

    forked.close()

    with pytest.raises(ChildProcessError):
        os.waitpid(forked.pid, os.WNOHANG)


def test_a_template_ends_although_a_fork_of_its_judge_still_has_the_link() -> None:
    forked = module.fork_template()
    kept = os.dup(forked.link.fileno())

    forked.close()

    os.close(kept)
    with pytest.raises(ChildProcessError):
        os.waitpid(forked.pid, os.WNOHANG)


def test_a_template_that_says_something_else_is_gone() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        theirs.sendall(b"")
        theirs.close()
        broken = TemplateProcess(ours, 0)
        with pytest.raises(OSError, match=r"gone|Broken pipe"):
            broken.fork_candidate(ENLISTED, [])


def test_an_enlistment_that_cannot_be_read_costs_one_child_only() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        served = threading.Thread(target=serve, args=(theirs,))
        served.start()
        line = os.pipe()
        socket.send_fds(ours, [b"nonsense"], list(line))
        assert ours.recv(64) == b"forked"
        for fd in line:
            os.close(fd)
        ours.shutdown(socket.SHUT_RDWR)
        served.join(10)
        assert not served.is_alive()


def test_several_start_beside_each_other_and_all_are_collected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate = os.pipe()

    def starts(*_: object) -> None:
        os.read(gate[0], 1)
        os._exit(0)

    monkeypatch.setattr(module, "_become", starts)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        served = threading.Thread(target=serve, args=(theirs,))
        served.start()
        ours.settimeout(10)
        for _ in range(3):
            socket.send_fds(ours, [b"one"], [gate[0]])
            assert ours.recv(64) == b"forked"  # while none before it has come further
        ours.shutdown(socket.SHUT_RDWR)
        os.write(gate[1], b"123")
        served.join(10)
        assert not served.is_alive()
    for fd in gate:
        os.close(fd)


def test_an_intermediate_that_has_ended_is_collected_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else it would count as one of the processes that its candidate may have."""
    monkeypatch.setattr(module, "_become", lambda *_: os._exit(0))
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        served = threading.Thread(target=serve, args=(theirs,))
        served.start()
        before = _children()
        ours.sendall(b"one")
        assert ours.recv(64) == b"forked"
        deadline = time.monotonic() + 10
        while _children() - before and time.monotonic() < deadline:
            time.sleep(0.005)
        assert _children() <= before
        ours.shutdown(socket.SHUT_RDWR)
        served.join(10)


def test_a_template_has_none_of_the_judges_streams() -> None:
    forked = module.fork_template()
    held = [Path(f"/proc/{forked.pid}/fd/{fd}") for fd in (0, 1)]
    deadline = time.monotonic() + 5

    while {str(fd.readlink()) for fd in held} != {os.devnull} and time.monotonic() < deadline:
        time.sleep(0.001)

    assert {str(fd.readlink()) for fd in held} == {os.devnull}
    forked.close()


def test_a_template_that_says_nothing_is_not_waited_for_without_end() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        assert TemplateProcess(ours, 0).link.gettimeout() == 30
