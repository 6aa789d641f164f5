"""Processes for candidates that start before there is a request."""

import os
import select
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from runners.contract.evaluation import Limits
from runners.contract.task import Mode
from runners.contract.verdict import Verdict
from runners.harness.judge.host_candidate import HostCandidate, threads_of
from runners.harness.protocol.channel import CandidateSpec, SpareSpec
from runners.harness.supervision.handle import CandidateHandle
from runners.harness.supervision.spares import ForkedProcess
from runners.harness.supervision.template import TemplateProcess
from runners.harness.timing.rounds import Round
from runners.harness.timing.stopwatch import WorkloadTimer
from runners.languages import Recipe
from tests.doubles.judging import SORTED, make_judging
from tests.unit.runners.harness.conftest import Judge, judge, progress, template

__all__ = ["judge", "progress", "template"]


def spec(limits: Limits) -> SpareSpec:
    return SpareSpec(limits=limits, threads=threads_of(limits, gpu=False), gpu=False)


USUAL = make_judging().limits


def _candidate(limits: Limits) -> CandidateSpec:
    recipe = Recipe(language="py", submission_file="submission.py")
    threads = threads_of(limits, gpu=False)
    return CandidateSpec(limits=limits, threads=threads, recipe=recipe, arena_size=1 << 20)


@pytest.fixture
def request_fd() -> Iterator[int]:
    """A descriptor on which no request arrives."""
    reader, writer = os.pipe()
    yield reader
    os.close(reader)
    os.close(writer)


def pids(of: TemplateProcess) -> list[int]:
    return [spare.process.pid for _, spare in of.spares.waiting if spare.process]


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The processes of all candidates, in the order in which they were ready."""
    found: list[int] = []
    watch = CandidateHandle._start_watching

    def watching(handle: CandidateHandle) -> None:
        found.append(handle.process.pid)
        watch(handle)

    monkeypatch.setattr(CandidateHandle, "_start_watching", watching)
    return found


def test_an_evaluation_uses_the_spares_first_and_each_once(
    template: TemplateProcess, request_fd: int, judge: Judge, used: list[int]
) -> None:
    template.spares.prepare(spec(USUAL), 3, request_fd)
    started = pids(template)

    found = judge(make_judging(SORTED, Mode.RANKED))

    assert found.verdict is Verdict.PASSED, found.message
    assert len(started) == len(set(started)) == 3
    assert used[:2] == started[:2]
    assert started[2] in used[2:4]  # it starts while the reference does
    assert len(used) == len(set(used)) > 3
    assert not template.spares.waiting
    assert not any(map(psutil.pid_exists, used))


def test_a_spare_is_in_its_sandbox_and_has_no_file_of_any_submission(
    template: TemplateProcess, request_fd: int, judge: Judge
) -> None:
    """What it is given later is all that distinguishes it from others."""
    template.spares.prepare(spec(USUAL), 1, request_fd)
    (pid,) = pids(template)
    assert Path(f"/proc/{pid}/ns/pid").readlink() != Path("/proc/self/ns/pid").readlink()
    listing = "import os\nfrom pathlib import Path\nprint(sorted(os.listdir(Path.home())))\n"

    with_spare = judge(make_judging(listing + SORTED))
    without = judge(make_judging(listing + SORTED))

    assert with_spare.verdict is Verdict.PASSED
    assert with_spare.log == without.log
    assert with_spare.isolation == without.isolation


def test_the_preparation_ends_once_there_is_a_request(
    template: TemplateProcess, request_fd: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, writer = os.pipe()
    await_start = ForkedProcess.await_start

    def waiting(spare: ForkedProcess, *request_fds: int) -> bool:
        if len(template.spares.waiting) == 2:
            os.write(writer, b"request")
        return await_start(spare, *request_fds)

    monkeypatch.setattr(ForkedProcess, "await_start", waiting)
    template.spares.prepare(spec(USUAL), 5, reader)
    assert len(template.spares.waiting) == 2
    template.spares.prepare(spec(USUAL), 5, reader)
    assert len(template.spares.waiting) == 2
    os.close(reader)
    os.close(writer)


@pytest.mark.parametrize("limits", [Limits(memory=1 << 30), Limits(processes=16)])
def test_a_spare_with_other_limits_is_not_used_and_ends_with_the_rest(
    template: TemplateProcess, request_fd: int, limits: Limits
) -> None:
    template.spares.prepare(spec(limits), 1, request_fd)
    (pid,) = pids(template)

    assert not spec(USUAL).fits(_candidate(limits))
    assert template.spares.take(_candidate(USUAL), []) is None
    assert pids(template) == [pid]
    template.spares.close()
    assert not psutil.pid_exists(pid)


def test_a_spare_that_has_ended_is_replaced(
    template: TemplateProcess, request_fd: int, judge: Judge, used: list[int]
) -> None:
    template.spares.prepare(spec(USUAL), 1, request_fd)
    process = template.spares.waiting[0][1].process
    assert process
    process.kill_nowait()
    select.select([process.pidfd], [], [], 10)

    found = judge(make_judging())

    assert found.verdict is Verdict.PASSED, found.message
    assert used
    assert process.pid not in used


def test_one_that_does_not_start_ends_the_preparation(
    template: TemplateProcess, request_fd: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(template.spares, "fork", lambda *_: None)  # so nobody has its descriptors
    template.spares.prepare(spec(USUAL), 3, request_fd)

    assert len(template.spares.waiting) == 1


def test_what_is_missing_starts_without_waiting_and_becomes_candidates(
    template: TemplateProcess, request_fd: int, judge: Judge, used: list[int]
) -> None:
    template.spares.prepare(spec(USUAL), 1, request_fd)
    template.spares.fill(spec(USUAL), 3)
    assert [spare.started for _, spare in template.spares.waiting] == [True, False, False]
    template.spares.fill(spec(USUAL), 2)
    template.spares.fill(spec(Limits(processes=16)), 5)  # the others could not be used
    template.spares.await_all()
    started = pids(template)
    assert [spare.started for _, spare in template.spares.waiting] == [True] * 3

    assert judge(make_judging(SORTED, Mode.RANKED)).verdict is Verdict.PASSED
    assert used[:2] == started[:2]
    assert started[2] in used[2:4]


def test_a_spare_that_is_still_starting_becomes_a_candidate(
    template: TemplateProcess, judge: Judge, used: list[int]
) -> None:
    template.spares.fill(spec(USUAL), 2)
    assert judge(make_judging(SORTED, Mode.RANKED)).verdict is Verdict.PASSED
    assert not template.spares.waiting
    assert len(used) > 2


def test_nothing_is_timed_before_every_spare_has_started_or_ended(
    template: TemplateProcess, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    fork, begun = template.spares.fork, WorkloadTimer._calibrate
    template.spares.fill(spec(Limits(processes=16)), 1)  # no candidate can use it
    monkeypatch.setattr(template.spares, "fork", lambda *_: None)
    template.spares.fill(spec(Limits(processes=16)), 2)
    monkeypatch.setattr(template.spares, "fork", fork)
    seen: list[list[bool]] = []

    def calibrate(
        timer: WorkloadTimer, candidate: HostCandidate, calibrator: HostCandidate, result: Round
    ) -> None:
        seen.append([spare.started for _, spare in template.spares.waiting])
        begun(timer, candidate, calibrator, result)

    monkeypatch.setattr(WorkloadTimer, "_calibrate", calibrate)
    assert judge(make_judging(SORTED, Mode.RANKED)).verdict is Verdict.PASSED
    assert seen
    assert all(each == [True] for each in seen)


def test_a_template_that_is_gone_forks_no_spare(
    template: TemplateProcess, request_fd: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object) -> None:
        raise ConnectionResetError("the template is gone")

    monkeypatch.setattr(template.spares, "fork", gone)
    with pytest.raises(ConnectionResetError):
        template.spares.prepare(spec(USUAL), 3, request_fd)
    assert not template.spares.waiting
