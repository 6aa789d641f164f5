import asyncio

import pytest
from structlog.testing import capture_logs
from typing_extensions import override

from bot.domain.requirements import in_service
from bot.services.dispatch.runner_pool import CannotServeError, RunnerPool
from runners.backends import fake
from runners.contract.runner import Capabilities, OutOfService, Runner, RunnerError
from tests.doubles.factories import make_capabilities, make_task


class AwayRunner(fake.FakeRunner):
    """A runner that does not answer while `away` is set."""

    away = True

    @override
    async def capabilities(self) -> Capabilities:
        if self.away:
            raise RunnerError("no route")
        return await super().capabilities()


class ChangingRunner(fake.FakeRunner):
    """A runner that offers what it is told to."""

    offer = make_capabilities()

    @override
    async def capabilities(self) -> Capabilities:
        return self.offer


async def pool_of(*runners: Runner) -> RunnerPool:
    pool = RunnerPool(runners, offer_s=1)
    await pool.refresh()
    return pool


async def test_slots_add_up_over_the_runners_that_answer() -> None:
    away = AwayRunner("c", make_capabilities(gpus={"CPU": 5}))
    one, other = fake.create(slots={"CPU": 2}, name="a"), fake.create(slots={"CPU": 1}, name="b")
    pool = await pool_of(one, other, away)
    assert pool.slots() == {"CPU": 3}
    away.away = False
    await pool.refresh()
    assert pool.slots() == {"CPU": 8}


async def test_a_runner_that_answers_no_more_offers_nothing_until_it_answers_again() -> None:
    runner = AwayRunner("far", make_capabilities())
    runner.away = False
    pool = await pool_of(runner)
    for away in (True, False):
        runner.away = away
        await pool.refresh()
        assert pool.slots() == ({} if away else {"CPU": 1})


async def test_a_taken_slot_is_waited_for() -> None:
    pool = await pool_of(fake.create())
    order: list[str] = []

    async def use(name: str) -> None:
        async with pool.hold_slot(make_task(), "CPU"):
            order.append(f"{name} in")
            await asyncio.sleep(0.01)
            order.append(f"{name} out")

    await asyncio.gather(use("one"), use("two"), use("three"))
    assert [each.split()[1] for each in order] == ["in", "out"] * 3


async def test_the_runner_that_can_serve_is_chosen() -> None:
    rich = fake.create(name="rich", capabilities=make_capabilities(libraries=("cutlass",)))
    pool = await pool_of(fake.create(slots={"CPU": 9}, name="poor"), rich)
    async with pool.hold_slot(make_task(libraries=("cutlass",)), "CPU") as runner:
        assert runner is rich


async def test_what_no_runner_offers_is_said() -> None:
    pool = await pool_of(fake.create())
    with pytest.raises(CannotServeError, match="missing library cutlass"):
        async with pool.hold_slot(make_task(libraries=("cutlass",)), "CPU"):
            pass


async def test_nothing_is_final_while_a_runner_is_away() -> None:
    pool = await pool_of(fake.create(), AwayRunner("far", make_capabilities()))
    with pytest.raises(RunnerError, match="unavailable: runner far"):
        async with pool.hold_slot(make_task(libraries=("cutlass",)), "CPU"):
            pass


async def test_a_doubtful_runner_offers_nothing_until_it_is_asked_again() -> None:
    runner = fake.create()
    pool = await pool_of(runner)
    pool.drop_offer(runner)
    assert (pool.slots(), pool.offer_dropped.is_set()) == ({}, True)
    await pool.refresh()
    assert (pool.slots(), pool.offer_dropped.is_set()) == ({"CPU": 1}, False)


def test_two_runners_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="same name"):
        RunnerPool([fake.create(), fake.create()], offer_s=1)


async def test_cards_that_go_out_of_service_and_come_back_are_told() -> None:
    runner = ChangingRunner("a", make_capabilities())
    out = OutOfService(gpu="H200", card="GPU-0", why="its memory failed")
    pool = RunnerPool([runner], offer_s=1)
    with capture_logs() as told:
        for changes in (
            {"out_of_service": (out,)},
            {"out_of_service": (out,)},
            {"gpus": {"H200": 1}},
        ):
            runner.offer = make_capabilities(gpus={"H200": 0}).model_copy(update=changes)
            await pool.refresh()
    assert [each["action"] for each in told] == ["gpu-out", "gpu-back"]
    assert (told[0]["card"], told[0]["why"]) == ("GPU-0", "its memory failed")


async def test_a_type_whose_cards_are_all_out_is_not_offered_but_waited_for() -> None:
    pool = await pool_of(fake.create(name="a", capabilities=make_capabilities(gpus={"H200": 0})))
    assert in_service((pool.offers() or {}).values()) == ()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05), pool.hold_slot(make_task(), "H200"):
            pytest.fail("it got a slot that is not there")


async def test_a_pinned_job_has_a_runner_of_its_pool_and_waits_for_that() -> None:
    local, modal = (
        fake.create(name="local_process"),
        fake.create(slots={"CPU": 9}, name="modal_app"),
    )
    pool = RunnerPool((local, modal), offer_s=1, worker="box:1")
    await pool.refresh()
    async with pool.hold_slot(make_task(), "CPU", "box") as runner:
        assert runner is local
        assert pool.free("CPU") == {"local_process": 0, "modal_app": 9}
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01), pool.hold_slot(make_task(), "CPU", "box"):
                pass
    assert pool.free("H100") == {"local_process": 0, "modal_app": 0}
    with pytest.raises(RunnerError, match="no runner of pool modal"):
        async with pool.hold_slot(make_task(), "CPU", "modal"):
            pass
    with pytest.raises(CannotServeError, match="missing library cutlass"):
        async with pool.hold_slot(make_task(libraries=("cutlass",)), "CPU", "box modal"):
            pass
