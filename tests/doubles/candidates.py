"""A template of candidates that is forked from a small process, not from that of the tests.

The process of the tests is large, and every candidate would copy its page tables.
"""

import os
import socket
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import torch

from runners.harness.protocol.channel import pair
from runners.harness.sandbox import isolate
from runners.harness.supervision import template
from tests.doubles import footprints, launcher

Fork = Callable[[], template.TemplateProcess]


def fork_small_template() -> template.TemplateProcess:
    """Fork a template as the harness does, with the environment and the folder of this process.

    If coverage is measured, fork this process instead, because its forks are measured too.
    """
    if footprints.FILE in os.environ:
        return fork_own_template()
    ours, theirs = pair()
    with theirs:
        start = launcher.Start(
            module=__name__,
            arguments=[],
            environment=dict(os.environ),
            folder=str(Path.cwd()),
            own_session=False,
        )
        pid = launcher.fork(start, (theirs.fileno(), 1, 2))
    return template.TemplateProcess(ours, pid)


def fork_own_template() -> template.TemplateProcess:
    """A fork of this process, with all that a test has changed in it."""
    captured = sys.stdout, sys.stderr  # pytest's files, which a candidate has to close
    sys.stdout, sys.stderr = (os.fdopen(fd, "w", 1, closefd=False) for fd in (1, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pytest's filters make errors of some
        forked = template.fork_template()
    sys.stdout, sys.stderr = captured
    return forked


def main() -> int:
    """Serve as a template; standard input is its link to the judge."""
    link = socket.socket(fileno=os.dup(0))
    isolate.detach_streams()
    for _ in range(3):
        os.pipe()  # as a judge has files that no candidate may keep
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    sys.modules.pop(__name__)
    template.serve(link)
    return 0
