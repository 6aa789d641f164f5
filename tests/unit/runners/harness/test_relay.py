"""What a judge and its server tell each other about a check of an answer."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import nullcontext

import pytest

from runners.contract.verdict import Stage
from runners.harness import relay
from runners.harness.relay import CheckWatch


@pytest.fixture
def watch() -> Iterator[CheckWatch]:
    made = CheckWatch()
    made.evaluations_at = lambda stage, rival: (
        b"rival" if rival else stage.value.encode(),
        b"crashed",
    )
    yield made
    made.close()


def test_only_a_check_makes_a_judge_late_and_only_after_its_time(watch: CheckWatch) -> None:
    watch.begin(60)
    with watch.checking():
        assert not watch.is_late()

    watch.begin(-1)
    assert not watch.is_late()
    with watch.checking():
        assert watch.is_late()
    assert not watch.is_late()


def test_a_check_whose_time_a_signal_handler_ends_has_a_little_more_of_it(
    watch: CheckWatch,
) -> None:
    watch.begin(-1)
    with watch.checking():
        watch.interrupted()
        assert not watch.is_late()


def test_a_check_that_goes_on_after_the_signal_is_late(watch: CheckWatch) -> None:
    """A task's check caught the exception of the signal handler, and nothing ended it."""
    watch.begin(-1 - relay.AGAIN_S)
    with watch.checking():
        watch.interrupted()
        assert watch.is_late()
        watch.interrupted()  # by a second signal, which gives it no more time
        assert watch.is_late()


@pytest.mark.parametrize(
    ("status", "checking", "late", "crashed"),
    [
        (-signal.SIGSEGV, True, False, True),
        (-signal.SIGABRT, True, False, True),
        (-signal.SIGSEGV, False, False, False),
        (-signal.SIGKILL, True, True, False),
        (-signal.SIGKILL, True, False, False),  # perhaps for the machine's memory
        (70, True, False, False),
    ],
)
def test_a_judge_has_crashed_in_a_check_if_a_signal_of_its_own_ended_it(
    watch: CheckWatch, *, status: int, checking: bool, late: bool, crashed: bool
) -> None:
    """An index far outside crashed a library in the task's check, and no evaluation came."""
    watch.begin(60)
    watch.late = late
    with watch.checking() if checking else nullcontext():
        watch.ended(status)

    assert watch.crashed is crashed
    if checking:
        assert watch.evaluation() == (b"crashed" if crashed else b"test")


def test_evaluations_that_are_too_long_are_not_written(watch: CheckWatch) -> None:
    watch.evaluations_at = lambda *_: (b"x" * relay._SIZE, b"y")
    with watch.checking():
        assert watch.evaluation() == b""


def test_the_evaluation_for_a_rivals_answer_is_another_one(watch: CheckWatch) -> None:
    for rival, found in ((False, b"test"), (True, b"rival"), (False, b"test")):
        with watch.checking(rival=rival):
            assert watch.evaluation() == found


def test_the_evaluation_is_that_of_the_stage(watch: CheckWatch) -> None:
    asked: list[Stage] = []

    def evaluations_at(stage: Stage, _rival: bool) -> tuple[bytes, bytes]:  # noqa: FBT001
        asked.append(stage)
        return stage.value.encode(), b""

    watch.evaluations_at = evaluations_at
    assert watch.evaluation() == b""
    for stage in (Stage.TEST, Stage.TEST, Stage.TIMING, Stage.TIMING):
        watch.stage = stage
        with watch.checking():
            assert watch.evaluation() == stage.value.encode()

    assert asked == [Stage.TEST, Stage.TIMING]


def test_a_server_reads_what_its_judge_tells(watch: CheckWatch) -> None:
    judge = os.fork()
    if judge == 0:
        watch.begin(0.1)
        with watch.checking():
            time.sleep(60)
    ended = os.pidfd_open(judge)

    assert not watch.wait(ended)
    assert watch.late
    assert watch.evaluation() == b"test"

    os.kill(judge, signal.SIGKILL)
    assert not watch.wait(ended)
    os.waitpid(judge, 0)
    os.close(ended)


def test_a_judge_that_is_over_time_outside_of_a_check_is_waited_for(
    watch: CheckWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "POLL_S", 0.01)
    watch.begin(-1)
    judge = os.fork()
    if judge == 0:
        time.sleep(0.2)
        os._exit(0)
    ended, (reader, writer) = os.pidfd_open(judge), os.pipe()

    assert not watch.wait(ended, reader)
    assert os.waitpid(judge, os.WNOHANG)[0] == judge
    os.write(writer, b"x")
    assert watch.wait(ended, reader)
    for fd in (ended, reader, writer):
        os.close(fd)


def test_no_process_that_the_judge_forks_has_the_memory(watch: CheckWatch) -> None:
    """A candidate could otherwise write its own evaluation there."""
    watch.keep_from_forks()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGSEGV, signal.SIG_DFL)
        watch.memory[0] = 1
        os._exit(0)

    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGSEGV
