"""The harness of a slot on its node, played by a process that misbehaves as it is told."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from runners.backends.ray_cluster import node
from runners.backends.ray_cluster.node import NodeHarness
from runners.backends.ray_cluster.protocol import Assignment, CallUpdate, DriverFault
from runners.contract.runner import RunnerError
from runners.slots import harness
from runners.slots.harness import SandboxOptions
from tests.doubles.evaluating import make_request

IMITATION = Path(__file__).parents[2] / "slots" / "imitation.py"


@pytest.fixture
async def slot(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[NodeHarness]:
    monkeypatch.setattr(harness, "command", lambda *_: [sys.executable, str(IMITATION)])
    made = NodeHarness((), SandboxOptions())
    yield made
    await made.stop()


def assignment(source: str = "", call: str = "a-1", limit_s: float = 30.0) -> Assignment:
    request = make_request(source).model_dump_json()
    return Assignment(call=call, request=request, limit_s=limit_s)


async def ended(slot: NodeHarness, call: str = "a-1") -> CallUpdate:
    update = CallUpdate()
    while not update.ended:
        update = await slot.next_update(call, update.number)
    return update


async def test_the_last_call_can_be_asked_about_again_and_again(slot: NodeHarness) -> None:
    await slot.begin(assignment())
    first = await ended(slot)
    assert first.evaluation is not None
    assert await ended(slot) == first
    assert slot.knows("a-1")


async def test_a_harness_stays_warm_from_call_to_call(slot: NodeHarness) -> None:
    pids = []
    for call in ("a-1", "a-2"):
        await slot.begin(assignment(call=call))
        update = await ended(slot, call)
        assert update.evaluation is not None
        pids.append(update.evaluation.message)
    assert pids[0] == pids[1]
    assert not slot.knows("a-1")


async def test_progress_comes_before_the_answer(slot: NodeHarness) -> None:
    await slot.offer()
    await slot.begin(assignment("hang"))
    update = await slot.next_update("a-1", 0)
    assert update.progress is not None
    assert update.number == 1


@pytest.mark.parametrize(
    ("source", "fault", "words"),
    [
        ("die", DriverFault.LOST, "status 9: I fell"),
        ("apologise", DriverFault.ERROR, "the disk is full"),
        ("babble", DriverFault.ERROR, "broke the contract"),
    ],
)
async def test_what_fails_is_told_and_not_raised(
    slot: NodeHarness, source: str, fault: DriverFault, words: str
) -> None:
    await slot.begin(assignment(source))
    update = await ended(slot)
    assert update.fault is fault
    assert words in update.message


async def test_a_harness_over_its_limit_is_killed_on_the_node(slot: NodeHarness) -> None:
    await slot.begin(assignment(call="a-0"))
    first = await ended(slot, "a-0")
    assert first.evaluation is not None
    await slot.begin(assignment("hang", limit_s=0.2))
    update = await ended(slot)
    assert update.fault is DriverFault.ERROR
    assert "within 0 s" in update.message
    assert not psutil.pid_exists(int(first.evaluation.message))


async def test_a_harness_that_died_while_idle_was_not_reached(slot: NodeHarness) -> None:
    await slot.begin(assignment("leave", call="a-0"))
    left = await ended(slot, "a-0")
    assert left.evaluation is not None
    async with asyncio.timeout(10):
        while psutil.pid_exists(int(left.evaluation.message)):  # noqa: ASYNC110 - asyncio collects it
            await asyncio.sleep(0.01)
    await slot.begin(assignment())
    assert (await ended(slot)).fault is DriverFault.UNREACHED


async def test_a_busy_slot_takes_nothing_and_another_call_is_unknown(slot: NodeHarness) -> None:
    await slot.begin(assignment("hang"))
    with pytest.raises(RunnerError, match="busy"):
        await slot.begin(assignment(call="a-2"))
    with pytest.raises(RunnerError, match="does not know call a-2"):
        await slot.next_update("a-2", 0)


def busy(slot: NodeHarness) -> bool:
    return slot.idle_limit_s is None


async def test_an_answer_that_nobody_has_fetched_is_kept_for_longer(slot: NodeHarness) -> None:
    assert slot.idle_limit_s == node.IDLE_S
    await slot.begin(assignment("hang", limit_s=0.5))
    assert busy(slot)
    while busy(slot):  # noqa: ASYNC110 - nobody may request updates
        await asyncio.sleep(0.02)
    assert slot.idle_limit_s == node.KEPT_S
    await ended(slot)
    assert slot.idle_limit_s == node.IDLE_S


async def test_a_slot_that_is_stopped_ends_what_it_evaluates(slot: NodeHarness) -> None:
    await slot.begin(assignment("hang"))
    assert busy(slot)
    await slot.stop()
    assert not busy(slot)
    children = psutil.Process().children(recursive=True)
    running = [each for each in children if each.status() != psutil.STATUS_ZOMBIE]
    assert not [each for each in running if str(IMITATION) in each.cmdline()]
