import os
import select
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest
import torch

from runners.harness.judge import pool
from runners.harness.judge.host_candidate import HostCandidate
from runners.harness.judge.pool import CandidatePool, fresh_candidate, host_start
from runners.harness.judge.session import EvaluationSession
from runners.harness.protocol.arena import Plan, lay_out
from runners.harness.supervision.handle import CandidateHandle, StartError
from runners.harness.supervision.process import ProcessGoneError
from tests.doubles.judging import make_judging
from tests.unit.runners.harness.conftest import Sit

ROOM = lay_out(torch.zeros(3))


def started(session: EvaluationSession) -> set[int]:
    """The Python processes beneath this one, without its template.

    A database server of other tests starts processes of its own at any time.
    """
    found = psutil.Process().children(recursive=True)
    named = {each.pid for each in found if name_of(each).startswith("python")}
    return named - {session.template.pid}


def name_of(process: psutil.Process) -> str:
    try:
        return process.name()
    except psutil.NoSuchProcess:
        return ""


def waiting(candidates: CandidatePool) -> list[int]:
    return [candidate.handle.process.pid for _, candidate in candidates.waiting]


def test_a_task_on_the_cpu_gets_a_seat_there(sit: Sit) -> None:
    with fresh_candidate(sit(make_judging()), lay_out(1), None) as candidate:
        assert type(candidate) is HostCandidate


def test_several_start_at_once_and_each_is_used_once(
    sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    start, meet = CandidateHandle.__init__, CandidateHandle._await_ready

    def enlisting(handle: CandidateHandle, *args: object) -> None:
        events.append("start")
        start(handle, *args)  # type: ignore[arg-type]

    def meeting(handle: CandidateHandle, *args: object) -> object:
        events.append("meet")
        return meet(handle, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(CandidateHandle, "__init__", enlisting)
    monkeypatch.setattr(CandidateHandle, "_await_ready", meeting)
    with CandidatePool(sit(make_judging()), ROOM, None) as candidates:
        candidates.prepare(3)
        assert events == ["start"] * 3 + ["meet"] * 3
        assert all(candidate.handle.process.frozen for _, candidate in candidates.waiting)

        expected, used = waiting(candidates), []
        for _ in range(4):
            with candidates.next_candidate() as candidate:
                used.append(candidate.handle.process.pid)
            candidates.wait_for_exits()
            assert candidate.handle.process.killed

    assert used[:3] == expected
    assert len(set(used)) == 4  # one more than waited had to be started


def test_begun_candidates_start_by_themselves_until_they_are_wanted(
    sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> None:
    met: list[CandidateHandle] = []
    meet = CandidateHandle._await_ready

    def meeting(handle: CandidateHandle, *args: object) -> object:
        met.append(handle)
        return meet(handle, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(CandidateHandle, "_await_ready", meeting)
    session = sit(make_judging())
    before = started(session)
    with CandidatePool(session, ROOM, None) as candidates:
        candidates.begin(2)
        candidates.begin(2)
        assert (len(candidates.starting), met) == (2, [])
        candidates.prepare(3)
        assert (len(candidates.starting), len(candidates.waiting), len(met)) == (0, 3, 3)
    with CandidatePool(session, ROOM, None) as candidates:
        candidates.begin(2)

    # Who has not even said who it is ends by itself, a moment later.
    ends = time.monotonic() + 10
    while started(session) - before and time.monotonic() < ends:
        time.sleep(0.01)
    assert not started(session) - before


def test_who_has_left_a_seat_ends_while_the_next_one_takes_his(
    sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> None:
    close, closed = CandidateHandle.close, []

    def closing(handle: CandidateHandle) -> None:
        closed.append(handle)
        close(handle)

    monkeypatch.setattr(CandidateHandle, "close", closing)
    with CandidatePool(sit(make_judging()), ROOM, None) as candidates:
        candidates.prepare(2)
        with candidates.next_candidate() as first:
            pass
        with candidates.next_candidate() as second:
            assert closed == []
            select.select([first.handle.process.pidfd], [], [], 10)  # it is on its way already
            with pytest.raises(ProcessGoneError):
                first.handle.process.check()
            candidates.wait_for_exits()
            assert closed == [first.handle]
            second.handle.process.check()
        candidates.close()
        assert closed == [first.handle, second.handle]


def test_who_has_no_namespace_is_not_struck_before_all_that_he_started_is_known(
    sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        CandidatePool(sit(make_judging()), ROOM, None) as candidates,
        candidates.next_candidate() as candidate,
    ):
        alone = candidate.handle.ready.model_copy(update={"layers": ()})
        monkeypatch.setitem(candidate.handle.__dict__, "ready", alone)
        pool._kill_nowait(candidate)
        assert select.select([candidate.handle.process.pidfd], [], [], 0.2)[0] == []


def test_those_who_wait_already_are_not_started_again(sit: Sit) -> None:
    with CandidatePool(sit(make_judging()), ROOM, None) as candidates:
        candidates.prepare(1)
        first = waiting(candidates)
        candidates.prepare(2)
        candidates.prepare(1)

        assert waiting(candidates)[:1] == first
        assert len(set(waiting(candidates))) == 2


def test_the_unused_are_closed(sit: Sit) -> None:
    session = sit(make_judging())
    before = started(session)
    with CandidatePool(session, ROOM, None) as candidates:
        candidates.prepare(3)
        assert len(set(waiting(candidates)) & (started(session) - before)) == 3
        with candidates.next_candidate():
            pass

    assert started(session) <= before  # a process of an earlier test may have ended meanwhile
    assert not candidates.waiting


def test_one_that_does_not_end_leaves_none_of_the_others(
    sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = sit(make_judging())
    before = started(session)
    close, closed = CandidateHandle.close, []

    def closing(handle: CandidateHandle) -> None:
        close(handle)
        closed.append(handle)
        if len(closed) == 1:
            raise TimeoutError

    monkeypatch.setattr(CandidateHandle, "close", closing)
    candidates = CandidatePool(session, ROOM, None)
    candidates.prepare(3)
    with pytest.raises(TimeoutError), candidates:
        pass

    assert len(closed) == 3
    assert started(session) == before


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_one_that_fails_to_start_closes_the_others(
    sit: Sit, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    session = sit(make_judging())
    before = started(session)
    files = session.files_fd
    os.ftruncate(wrong := os.memfd_create("wrong"), 8)
    starts: list[int] = []

    @contextmanager
    def starting(session: EvaluationSession, room: Plan) -> Iterator[object]:
        session.files_fd = wrong if len(starts) == failing else files
        starts.append(1)
        with host_start(session, room) as wait_ready:
            yield wait_ready

    monkeypatch.setattr(pool, "host_start", starting)
    with CandidatePool(session, ROOM, None) as candidates:
        with pytest.raises(StartError, match="did not start"):
            candidates.prepare(3)

        assert (len(starts), len(candidates.waiting)) == (3, 0)
        exiting = started(session) - before
        found = psutil.Process().children(recursive=True)
        _, left = psutil.wait_procs([each for each in found if each.pid in exiting], timeout=10)
        assert not left
        candidates.prepare(1)  # it is no worse for that
        assert len(candidates.waiting) == 1
    os.close(wrong)


@pytest.mark.parametrize(("asked", "room_for", "made"), [(5, 2, 2), (5, 9, 5), (1, 0, 1)])
def test_on_a_gpu_no_more_start_at_once_than_it_has_room_for(
    sit: Sit, monkeypatch: pytest.MonkeyPatch, asked: int, room_for: int, made: int
) -> None:
    session = sit(make_judging())
    session.on_gpu = True
    told: list[bool] = []

    def most(*_: object, varies: bool) -> int:
        told.append(varies)
        return room_for

    def start(session: EvaluationSession, room: Plan, *_: object, varies: bool) -> object:
        told.append(varies)
        return host_start(session, room)

    monkeypatch.setattr(pool, "max_parallel_candidates", most)
    monkeypatch.setattr(pool, "device_start", start)

    with CandidatePool(session, ROOM, None) as candidates:
        candidates.varies = asked > 2
        candidates.prepare(asked)
        assert len(candidates.waiting) == made
    assert told == [asked > 2] * ((asked > 1) + made)  # whether they have memory for outputs
