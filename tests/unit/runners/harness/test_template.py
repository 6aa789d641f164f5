import json
import os
import socket
import threading

import pytest

from runners.contract.evaluation import Limits
from runners.harness import template as module
from runners.harness.channel import Enlistment
from runners.harness.template import Template, pack_files, serve

ENLISTED = Enlistment(
    limits=Limits(), threads=1, language="python", submission_file="s.py", arena_size=4096
)


def test_packed_files_are_read_back() -> None:
    files = pack_files({"submission.py": "x = 'ü'\n", "task.py": ""})

    with os.fdopen(files, "rb") as packed:
        packed.seek(0)
        assert json.load(packed) == {"submission.py": "x = 'ü'\n", "task.py": ""}


def test_a_template_ends_when_its_judge_hangs_up() -> None:
    forked = module.fork_template()

    forked.close()

    with pytest.raises(ChildProcessError):
        os.waitpid(forked.pid, os.WNOHANG)


def test_a_template_that_says_something_else_is_gone() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        theirs.sendall(b"")
        theirs.close()
        broken = Template(ours, 0)
        with pytest.raises(OSError, match=r"gone|Broken pipe"):
            broken.enlist(ENLISTED, [])


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
