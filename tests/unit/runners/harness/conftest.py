"""Fixtures of the judge's tests: a template to fork candidates from, and a session on it."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch

from runners.contract.evaluation import Evaluation, EvaluationRequest, Isolation, Progress
from runners.harness import evaluate as evaluating
from runners.harness.evaluate import workspace
from runners.harness.judge import cpu_caches
from runners.harness.judge.session import PUBLIC_NONCE, EvaluationSession, candidate_files
from runners.harness.judge.task_code import KernelTask
from runners.harness.protocol.builds import Builds
from runners.harness.sandbox import syscalls
from runners.harness.sandbox.syscalls import adopt_orphans
from runners.harness.supervision.template import TemplateProcess, pack_files
from runners.harness.toolchains import ncu
from tests.doubles import candidates
from tests.doubles.ncu import installed

torch.set_num_threads(1)  # a template may only be forked from a process without OpenMP threads
SUBREAPER = 36
OPEN = Isolation(outer="none")

Judge = Callable[[EvaluationRequest], Evaluation]
Sit = Callable[[EvaluationRequest], EvaluationSession]


@pytest.fixture(autouse=True)
def _candidate_is_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is run, never imported, save by its own test: what is forked must find it so."""
    monkeypatch.delitem(sys.modules, "runners.harness.candidate.program", raising=False)


@pytest.fixture(autouse=True)
def _memory_is_allocated_as_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge's settings of the C library would stay in this process for all later tests."""
    monkeypatch.setattr(syscalls, "large_blocks_returned", nullcontext)


@pytest.fixture
def fork_template() -> candidates.Fork:
    """How templates are forked; what a test changes in this process does not reach them."""
    return candidates.fork_small_template


@pytest.fixture
def template(fork_template: candidates.Fork) -> Iterator[TemplateProcess]:
    """A template whose judge is this process, which adopts the candidates' orphans meanwhile."""
    alarm = signal.getsignal(signal.SIGALRM)
    sys.modules.pop("reference", None)  # of an earlier test; a real template has seen no task
    forked = fork_template()
    adopt_orphans()
    yield forked
    forked.close()
    ctypes.CDLL(None).prctl(SUBREAPER, 0, 0, 0, 0)
    signal.signal(signal.SIGALRM, alarm)


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ncu.Ncu:
    """A stand-in for `ncu` where NVIDIA's packages put it, and so where every sandbox shows it."""
    monkeypatch.setattr(ncu, "_PACKAGES", tmp_path / "nsight-compute")
    monkeypatch.setattr(ncu, "_DRIVER", tmp_path / "params")
    installed(tmp_path / "nsight-compute" / "0.0.1")
    return ncu.here()


@pytest.fixture
def progress() -> list[Progress]:
    return []


@pytest.fixture
def judge(template: TemplateProcess, progress: list[Progress]) -> Judge:
    """Judges requests in this process, with real candidates."""
    return lambda request: evaluating.evaluate(request, template, OPEN, progress.append)


@pytest.fixture(autouse=True)
def _flush_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let judges write less to flush caches, as those that tests start do."""
    monkeypatch.setattr(cpu_caches, "FLUSH_MOST", 4 << 20)


@pytest.fixture
def sit(template: TemplateProcess, progress: list[Progress]) -> Iterator[Sit]:
    """Makes sessions, as an evaluation does before it grades."""
    opened: list[int] = []
    kept: list[Builds] = []
    folders = []

    def make(request: EvaluationRequest) -> EvaluationSession:
        folder = workspace(request.task)
        folders.append(folder)
        files = pack_files(candidate_files(request.task, request.source))
        opened.append(files)
        kept.append(Builds(request.limits.disk))
        return EvaluationSession(
            request=request,
            task_code=KernelTask(Path(folder.__enter__())),
            template=template,
            files_fd=files,
            builds=kept[-1],
            nonce=PUBLIC_NONCE,
            report=progress.append,
            isolation=OPEN,
        )

    yield make
    for files in opened:
        os.close(files)
    for builds in kept:
        builds.close()
    for folder in folders:
        folder.__exit__(None, None, None)
