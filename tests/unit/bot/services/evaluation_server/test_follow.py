"""Requests are followed to their end, and killed when their caller is about to hang up."""

import asyncio

import pytest

from bot.domain.access import Viewer
from bot.domain.errors import UserError
from bot.domain.job import JobState
from bot.domain.submission import Submission
from bot.services.evaluation_server import follow
from bot.services.evaluation_server.accept import accept
from bot.services.evaluation_server.follow import ClosingError, margin_s, served, wait
from runners.contract.verdict import Stage
from tests.doubles.clock import ManualClock
from tests.doubles.dispatching import failing, until
from tests.doubles.eval_server import EvalServer, eval_server, make_request
from tests.doubles.memory_store import MemoryStore
from tests.doubles.place import make_place


def never() -> bool:
    return False


def soon(seconds: float) -> float:
    return asyncio.get_running_loop().time() + seconds


async def taken(server: EvalServer, directive: str) -> tuple[Submission, Viewer]:
    ada = await server.store.people.ensure("local:ada", "Ada")
    made = await accept(server.store, server.clock, ada.id, make_request(directive))
    return made, Viewer(ada.id)


async def test_a_request_is_waited_for_until_it_is_judged(
    memory_store: MemoryStore, clock: ManualClock
) -> None:
    async with eval_server(memory_store, clock) as server:
        made, ada = await taken(server, "seconds=0.1")
        await wait(memory_store, made.id, soon(20), never)
        found = await served(memory_store, ada, made.id)
    assert (found.job.state, found.is_final) == (JobState.SUCCEEDED, True)
    assert found.evaluation is not None
    assert found.request.num_trials == 20


async def test_the_job_of_a_caller_whose_time_is_over_is_killed_and_its_slot_is_free(
    memory_store: MemoryStore, clock: ManualClock
) -> None:
    """The evaluation server let it run on, and all that waited behind it timed out as well."""
    async with eval_server(memory_store, clock) as server:
        endless, ada = await taken(server, "seconds=1000")
        behind, _ = await taken(server, "seconds=0")
        begun = asyncio.get_running_loop().time()
        await wait(memory_store, endless.id, soon(0.2), never)
        assert asyncio.get_running_loop().time() - begun < 2
        await wait(memory_store, behind.id, soon(10), never)
        assert (await served(memory_store, ada, behind.id)).job.state is JobState.SUCCEEDED
        killed = await served(memory_store, ada, endless.id)
    assert killed.job.state is JobState.CANCELLED
    assert killed.evaluation is None


async def test_a_stopped_request_ran_out_only_if_its_time_was_over(
    memory_store: MemoryStore, clock: ManualClock
) -> None:
    async with eval_server(memory_store, clock, {"CPU": 1}) as server:
        (early, ada), (late, _) = await taken(server, "seconds=99"), await taken(server, "")
        await memory_store.jobs.request_cancel(late.id)
        assert not (await served(memory_store, ada, late.id)).ran_out
        clock.advance(28)
        await memory_store.jobs.request_cancel(early.id)

        async def is_final() -> bool:
            return (await served(memory_store, ada, early.id)).is_final

        await until(is_final)
        assert (await served(memory_store, ada, early.id)).ran_out


async def test_a_database_that_is_away_for_a_moment_is_waited_for(
    memory_store: MemoryStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "_RETRY_S", 0.02)
    async with eval_server(memory_store, clock) as server:
        made, _ = await taken(server, "seconds=0")
        await wait(failing(memory_store, {"of": 2}), made.id, soon(10), never)
        (job,) = await memory_store.jobs.of(made.id)
    assert job.state is JobState.SUCCEEDED


async def test_who_waits_is_told_when_the_door_closes_and_the_job_goes_on(
    memory_store: MemoryStore, clock: ManualClock
) -> None:
    async with eval_server(memory_store, clock) as server:
        made, _ = await taken(server, "seconds=99")
        with pytest.raises(ClosingError):
            await wait(memory_store, made.id, soon(20), lambda: True)
        (job,) = await memory_store.jobs.of(made.id)
        assert not job.cancel_requested


async def test_a_running_request_says_what_it_does(
    memory_store: MemoryStore, clock: ManualClock
) -> None:
    async with eval_server(memory_store, clock) as server:
        made, ada = await taken(server, "seconds=99")

        async def is_running() -> bool:
            return (await served(memory_store, ada, made.id)).stage is not None

        await until(is_running)
        assert (await served(memory_store, ada, made.id)).stage in set(Stage)


async def test_what_the_profiler_counted_is_there_for_who_asked_for_it(
    memory_store: MemoryStore, clock: ManualClock
) -> None:
    ada = await memory_store.people.ensure("local:ada", "Ada")
    async with eval_server(memory_store, clock):
        for asked, names in ((True, ["custom.csv"]), (False, [])):
            request = make_request("file=custom.csv", device_metrics=asked)
            made = await accept(memory_store, clock, ada.id, request)
            await wait(memory_store, made.id, soon(20), never)
            found = await served(memory_store, Viewer(ada.id), made.id)
            assert found.evaluation is not None
            assert [each.name for each in found.evaluation.files] == names


async def test_a_request_that_was_forgotten_meanwhile_is_unknown(
    memory_store: MemoryStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def none_of(_: object) -> tuple[()]:
        return ()

    async with eval_server(memory_store, clock) as server:
        made, ada = await taken(server, "seconds=0")
        monkeypatch.setattr(memory_store.jobs, "of", none_of)
        with pytest.raises(UserError, match="not found"):
            await served(memory_store, ada, made.id)


async def test_only_ones_own_requests_are_found_and_nothing_that_is_none(
    memory_store: MemoryStore, clock: ManualClock
) -> None:
    place = await make_place(memory_store, clock)
    other = await place.submit()
    async with eval_server(memory_store, clock) as server:
        made, ada = await taken(server, "seconds=0")
        bob = Viewer(await place.person("bob"))
        for viewer, number in ((bob, made.id), (Viewer(place.ada), other.id), (ada, other.id)):
            with pytest.raises(UserError, match=f"Job {number} not found"):
                await served(memory_store, viewer, number)
        admin = Viewer(bob.person, sees_all=True)
        assert (await served(memory_store, admin, made.id)).submission.id == made.id


@pytest.mark.parametrize(("timeout", "margin"), [(5, 0.5), (10, 1.0), (120, 2.0), (600, 2.0)])
def test_the_answer_is_sent_before_the_caller_hangs_up(timeout: int, margin: float) -> None:
    assert margin_s(make_request(timeout=timeout)) == margin
