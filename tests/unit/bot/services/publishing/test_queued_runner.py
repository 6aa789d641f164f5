"""Tests of the runs of a check as jobs of the queue."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from unittest.mock import AsyncMock

import pytest

from bot.domain.costs import Quota, QuotaKey, Unit
from bot.domain.ids import JobId, PublicationId
from bot.domain.job import Claim
from bot.domain.publication import NewPublication
from bot.domain.tasks.lint import CheckStep
from bot.reports.tasks import step_line
from bot.services.publishing import queued_runner
from bot.services.publishing.queued_runner import (
    QueuedRunner,
    command_publication,
    has_workers,
    key_of,
    queued_runners,
)
from runners.contract.evaluation import EvaluationRequest, Progress
from runners.contract.runner import Capabilities, RunnerError
from runners.contract.task import Mode
from runners.contract.verdict import Stage
from tests.doubles.factories import make_capabilities, make_evaluation, make_task
from tests.doubles.place import Place

LEASE = timedelta(seconds=30)
POLL_S = queued_runner.POLL_S
ABSENT_S = queued_runner.ABSENT_S


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queued_runner, "POLL_S", 0.001)
    monkeypatch.setattr(queued_runner, "WORKER_S", 0.05)
    monkeypatch.setattr(queued_runner, "ABSENT_S", 0.02)


async def publication(place: Place) -> PublicationId:
    new = NewPublication("web", place.ada, b"PK", "{}")
    return await place.store.publications.add(new)


@pytest.fixture
async def runner(place: Place) -> AsyncIterator[QueuedRunner]:
    await offer(place, "box", make_capabilities())
    (found,) = await queued_runners(place.store, await publication(place), ("CPU",), resumed=False)
    assert isinstance(found, QueuedRunner)
    yield found
    await found.aclose()


async def offer(place: Place, worker: str, offered: Capabilities) -> None:
    gpus = tuple(offered.gpus)
    await place.store.workers.announce(worker, gpus, LEASE, {"local": offered})


def asked(source: str = "right", request_id: str = "check-1") -> EvaluationRequest:
    return EvaluationRequest(
        request_id=request_id, task=make_task(), source=source, mode=Mode.TEST, gpu="CPU"
    )


def ignored(progress: Progress) -> None:
    del progress


def test_the_waits_suit_people_and_workers_that_restart() -> None:
    assert (POLL_S, ABSENT_S) == (0.5, 600.0)


async def test_the_runners_are_those_of_the_live_workers(place: Place) -> None:
    release = await publication(place)
    assert not await has_workers(place.store)
    assert await queued_runners(place.store, release, ("CPU",), resumed=False) == ()
    await place.store.workers.announce("silent", None, LEASE)
    await offer(place, "box", make_capabilities())
    (found,) = await queued_runners(place.store, release, ("CPU", "H100"), resumed=False)
    assert (found.name, await found.capabilities()) == ("box/local", make_capabilities())
    assert await has_workers(place.store)


async def test_a_resumed_check_waits_for_each_gpu_type(place: Place) -> None:
    release = await publication(place)
    await offer(place, "box", make_capabilities())
    waiting = asyncio.create_task(
        queued_runners(place.store, release, ("CPU", "H100"), resumed=True)
    )
    await asyncio.sleep(0.01)
    assert not waiting.done()
    await offer(place, "card", make_capabilities(gpus={"H100": 1}))
    assert [each.name for each in await waiting] == ["box/local", "card/local"]


async def test_the_evaluation_of_a_run_comes_back_with_its_progress(
    place: Place, runner: QueuedRunner
) -> None:
    call = await runner.start(asked())
    told: asyncio.Queue[Progress] = asyncio.Queue()
    waiting = asyncio.create_task(runner.wait(call, told.put_nowait))
    (job,) = await place.store.jobs.claim(Claim("box", {"CPU": 1}, LEASE))
    progress = Progress(stage=Stage.TEST, done=1, total=2)
    await place.store.check_runs.save_progress(job.id, job.fence, progress)
    assert await asyncio.wait_for(told.get(), 5) == progress
    await runner.cancel(call)
    await place.store.check_runs.accept(job.id, job.fence, make_evaluation())
    assert await asyncio.wait_for(waiting, 5) == make_evaluation()
    assert told.empty()


async def test_a_run_that_waits_for_a_quota_says_so_and_how_long(
    place: Place, runner: QueuedRunner
) -> None:
    await place.store.costs.set_quota(Quota(QuotaKey(Unit.SECONDS), 1.0))
    call = await runner.start(asked())
    told: asyncio.Queue[Progress] = asyncio.Queue()
    waiting = asyncio.create_task(runner.wait(call, told.put_nowait))
    assert await place.store.jobs.claim(Claim("w", {"CPU": 1}, LEASE)) == ()
    said = await asyncio.wait_for(told.get(), 10)
    assert said.stage is Stage.PREPARE
    assert "which is more than each person's 1 s a day" in said.note
    assert step_line(CheckStep("CPU", "a.py", "prepare", note=said.note), with_gpu=False) == (
        f"a.py: prepare, {said.note}"
    )
    waiting.cancel()


async def test_a_process_that_takes_over_finds_the_same_run(
    place: Place, runner: QueuedRunner
) -> None:
    call = await runner.start(asked())
    assert await runner.start(asked(request_id="check-2")) == call
    assert await runner.start(asked("wrong")) != call
    ranked = asked().model_copy(update={"mode": Mode.RANKED})
    assert len({key_of(asked(), "a"), key_of(asked(), "b"), key_of(ranked, "a")}) == 3


async def test_the_task_of_all_runs_is_stored_once(
    place: Place, runner: QueuedRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = AsyncMock(wraps=place.store.check_runs.store_task)
    monkeypatch.setattr(place.store.check_runs, "store_task", kept)
    task = make_task()
    same = [asked(source).model_copy(update={"task": task}) for source in "abc"]
    other = asked().model_copy(update={"task": make_task(description="Another one.")})
    calls = await asyncio.gather(*map(runner.start, (*same, other)))
    assert len(set(calls)) == 4
    assert [call.args[2] for call in kept.await_args_list] == [
        each.model_dump_json() for each in (task, other.task)
    ]


async def test_a_run_that_no_worker_can_take_or_finish_is_a_runners_error(
    place: Place, runner: QueuedRunner
) -> None:
    failed, cancelled, queued = [await runner.start(asked(source)) for source in "abc"]
    for call, final in ((failed, True), (cancelled, False)):
        (job,) = await place.store.jobs.claim(Claim("box", {"CPU": 1}, LEASE))
        assert job.id == JobId(int(call))
        if final:
            await place.store.jobs.release(job.id, job.fence, "no compiler", final=True)
        else:
            await place.store.jobs.end_cancelled(job.id, job.fence)
    await place.store.workers.leave("box")
    for call, words in (
        (failed, "no compiler"),
        (cancelled, "was cancelled"),
        (queued, "no connected worker offered CPU for"),
    ):
        with pytest.raises(RunnerError, match=words):
            await asyncio.wait_for(runner.wait(call, ignored), 5)


async def test_the_runs_of_a_publication_that_has_ended_belong_to_nobody(
    place: Place, runner: QueuedRunner
) -> None:
    call = await runner.start(asked())
    await place.store.publications.claim("web", "one", LEASE)
    await place.store.publications.end(runner.publication, "one")
    with pytest.raises(RunnerError, match="publication has ended"):
        await runner.wait(call, ignored)
    with pytest.raises(RunnerError, match="publication has ended"):
        await runner.start(asked())


async def test_the_runs_of_a_command_are_deleted_with_it(place: Place) -> None:
    async with command_publication(place.store, place.ada) as release:
        await place.store.check_runs.store_task(release, "d", make_task().model_dump_json())
        job = await place.store.check_runs.add(release, "k", asked(), "d")
        assert job is not None
        assert await place.store.jobs.get(job) is not None
    assert await place.store.jobs.get(job) is None
