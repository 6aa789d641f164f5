from datetime import timedelta

import pytest

from bot.domain.board import Access, Visibility, parse_pins
from bot.domain.errors import UserError
from bot.domain.publication import PublishChange, Published, PublishRequest
from bot.services.publishing.publish import NO_BOARD, find_interrupted_publish, is_new, publish
from runners.contract.task import Device, Grader
from tests.doubles.factories import NOON, make_task
from tests.doubles.place import Place


async def again(place: Place, **changes: object) -> Published:
    values = {"person": place.ada, "task": make_task()} | changes
    task = values.pop("task")
    request = PublishRequest(**values)  # type: ignore[arg-type]
    return await publish(place.store, place.clock, request, task)  # type: ignore[arg-type]


async def actions(place: Place) -> list[str]:
    return [row.action for row in await place.store.audit.rows()]


async def test_a_new_task_opens_a_board_with_its_gpus(place: Place) -> None:
    published = await again(place, task=make_task(name="sort", gpus=("H100", "L4", "H100")))
    assert (published.change, published.version) == (PublishChange.CREATED, 1)
    assert published.board.gpus == ("H100", "L4")
    assert (await actions(place))[0] == "publish-created"


async def test_the_same_task_changes_nothing_and_leaves_no_trace(place: Place) -> None:
    before = await actions(place)
    published = await again(place)
    assert published == Published(place.board, 1, PublishChange.UNCHANGED)
    assert await actions(place) == before


async def test_a_changed_task_becomes_the_next_version(place: Place) -> None:
    published = await again(place, task=make_task(description="Add them faster."))
    assert (published.change, published.version) == (PublishChange.NEW_VERSION, 2)
    assert published.board.task_version != place.board.task_version
    assert (await actions(place))[0] == "publish-new-version"


async def test_publishing_an_older_state_again_goes_back_to_its_version(place: Place) -> None:
    await again(place, task=make_task(description="Add them faster."))
    published = await again(place)
    assert (published.change, published.version) == (PublishChange.NEW_VERSION, 1)


async def test_gpus_and_deadline_are_changed_alone_and_kept_when_not_named(place: Place) -> None:
    deadline = NOON + timedelta(days=1)
    first = await again(place, gpus=("CPU", "H100"), deadline=deadline)
    assert first.change is PublishChange.CONFIGURED
    second = await again(place)
    assert (second.change, second.board.gpus) == (PublishChange.UNCHANGED, ("CPU", "H100"))
    assert second.board.deadline == deadline
    third = await again(place, endless=True)
    assert (third.change, third.board.deadline) == (PublishChange.CONFIGURED, None)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"deadline": NOON}, "bad-deadline"),
        ({"deadline": NOON + timedelta(days=1), "endless": True}, "bad-deadline"),
        ({"gpus": ("H 100",)}, "bad-gpu"),
        ({"gpus": ("H100\n",)}, "bad-gpu"),
        ({"task": make_task(device=Device.CPU), "gpus": ("H100",)}, "bad-gpu"),
        ({"task": make_task(device=Device.CUDA)}, "bad-gpu"),
        ({"task": make_task(gpus=()), "name": "other"}, "no-gpu"),
    ],
)
async def test_a_useless_board_is_refused(
    place: Place, changes: dict[str, object], code: str
) -> None:
    with pytest.raises(UserError, match=r".") as refusal:
        await again(place, **changes)
    assert refusal.value.code == code


async def test_a_deadline_in_the_past_is_named_with_its_board(place: Place) -> None:
    past = NOON - timedelta(days=400)
    with pytest.raises(UserError, match=r"in the past: \S+ 12:00 UTC for leaderboard 'vectoradd'"):
        await again(place, deadline=past)


async def test_only_its_creator_changes_a_board(place: Place) -> None:
    with pytest.raises(UserError, match="belongs to another person"):
        await again(place, person=await place.person("bob"), task=make_task(description="Mine."))
    assert await place.store.boards.find("vectoradd") == place.board


async def test_a_board_has_the_one_name_of_each_gpu_type(place: Place) -> None:
    published = await again(place, gpus=("A100:8", "H100!", "MI300x8"))
    assert published.board.gpus == ("A100", "H100", "MI300X")


async def test_an_ended_board_may_keep_its_deadline(place: Place) -> None:
    deadline = NOON + timedelta(days=1)
    await again(place, deadline=deadline)
    place.clock.advance(2 * 86_400)
    published = await again(place, deadline=deadline)
    assert (published.change, published.board.deadline) == (PublishChange.UNCHANGED, deadline)


async def test_the_note_of_a_version_is_told(place: Place) -> None:
    noted = make_task(description="Add them faster.", version_note="faster cases")
    assert (await again(place, task=noted)).note == "faster cases"


async def test_a_state_of_the_task_is_new_once(place: Place) -> None:
    request, task = PublishRequest(place.ada), make_task(description="Add them faster.")
    assert await is_new(place.store, request, task)
    await publish(place.store, place.clock, request, task)
    assert not await is_new(place.store, request, task)
    assert not await is_new(place.store, request, make_task())


@pytest.mark.parametrize("name", ["two words", "12", "a\x1b[2J", "-sort", "x" * 65, "a/b"])
async def test_a_name_that_no_heading_can_hold_is_refused(place: Place, name: str) -> None:
    with pytest.raises(UserError, match="is not a valid leaderboard name"):
        await again(place, name=name)


async def test_who_may_see_a_board_is_a_change_and_stays_otherwise(place: Place) -> None:
    hidden = Access(Visibility.PRIVATE)
    await place.store.boards.invite(place.board.id, frozenset({"discord:17"}))
    published = await again(place, access=hidden)
    assert published.change is PublishChange.CONFIGURED
    assert published.board.access == Access(Visibility.PRIVATE, guests=frozenset({"discord:17"}))
    assert (await again(place)).change is PublishChange.UNCHANGED
    new = await again(place, name="other", access=hidden)
    assert new.board.access == hidden


async def test_what_was_agreed_to_must_still_be_so(place: Place) -> None:
    first = place.board.task_version
    with pytest.raises(UserError, match="leaderboard 'vectoradd' already exists"):
        await again(place, onto=NO_BOARD)
    await again(place, task=make_task(description="Second."), onto=first)
    with pytest.raises(UserError, match="has changed in the meantime") as told:
        await again(place, task=make_task(description="Third."), onto=first)
    assert told.value.code == "board-moved"
    await place.store.boards.delete(place.board.id)
    with pytest.raises(UserError, match="was deleted in the meantime"):
        await again(place, task=make_task(description="Third."), onto=first)
    with pytest.raises(UserError, match="was deleted in the meantime"):
        await again(place, task=make_task(description="Third.", gpus=()), onto=first)


async def test_what_a_publishing_that_was_cut_off_has_done_is_known(place: Place) -> None:
    new = PublishRequest(place.ada, name="other", onto=NO_BOARD)
    assert await find_interrupted_publish(place.store, new, make_task()) is None
    await publish(place.store, place.clock, new, make_task())
    found = await find_interrupted_publish(place.store, new, make_task())
    assert found is not None
    assert (found.board.name, found.version, found.change) == ("other", 1, PublishChange.CREATED)
    second = make_task(description="Second.")
    update = PublishRequest(place.ada, name="other", onto=found.board.task_version)
    assert await find_interrupted_publish(place.store, update, second) is None
    await publish(place.store, place.clock, update, second)
    after = await find_interrupted_publish(place.store, update, second)
    assert after is not None
    assert (after.version, after.change) == (2, PublishChange.NEW_VERSION)


async def test_pools_are_pinned_kept_and_taken_away_and_each_change_is_recorded(
    place: Place,
) -> None:
    task = make_task(gpus=("A100", "H100"))
    made = await again(place, task=task, name="mine", pins=parse_pins(("A100=box",)))
    assert made.board.pins == (("A100", "box"),)
    kept = await again(place, task=task, name="mine")
    assert (kept.change, kept.board.pins) == (PublishChange.UNCHANGED, made.board.pins)
    both = await again(place, task=task, name="mine", pins=parse_pins(("modal",)))
    assert (both.change, both.board.pins) == (
        PublishChange.CONFIGURED,
        (("A100", "modal"), ("H100", "modal")),
    )
    assert (await again(place, task=task, name="mine", pins=parse_pins(("any",)))).board.pins == ()
    rows = [row for row in await place.store.audit.rows() if row.action == "pin-pools"]
    assert {row.subject for row in rows} == {"board mine"}
    assert [row.reason for row in reversed(rows)] == [
        "any -> A100=box",
        "A100=box -> A100=modal, H100=modal",
        "A100=modal, H100=modal -> any",
    ]
    with pytest.raises(UserError, match="but the leaderboard only has"):
        await again(place, task=task, name="mine", pins=parse_pins(("L4=box",)))


async def test_a_gpu_type_that_nobody_knows_needs_a_worker_that_has_it(place: Place) -> None:
    store, clock = place.store, place.clock
    with pytest.raises(UserError, match="no GPU type is called 'H1000'; did you mean H100") as told:
        await again(place, gpus=("CPU", "H1000"))
    assert told.value.code == "bad-gpu"
    await store.workers.announce("box", ("H1000",), timedelta(hours=1))
    with_it = await again(place, gpus=("CPU", "H1000"))
    assert with_it.board.gpus == ("CPU", "H1000")
    clock.advance(7200)
    assert not await store.workers.alive()
    kept = await again(place, gpus=("CPU", "H1000"), deadline=clock.now() + timedelta(days=1))
    assert kept.board.gpus == ("CPU", "H1000"), "the board has it already"
    named = make_task(name="sort", gpus=("H1001",))
    with pytest.raises(UserError, match="'H1001'"):
        await publish(store, clock, PublishRequest(place.ada), named)
    request = PublishRequest(place.ada)
    made = await publish(store, clock, request, named, served={"H1001"})
    assert made.board.gpus == ("H1001",)


async def test_a_chosen_grader_is_remembered_by_the_board(place: Place) -> None:
    assert place.board.grader is None
    chosen = await again(place, grader=Grader.POPCORN)
    assert (chosen.change, chosen.board.grader) == (PublishChange.CONFIGURED, Grader.POPCORN)
    kept = await again(place, task=make_task(description="Add them faster."))
    assert kept.board.grader is Grader.POPCORN
    other = make_task(files={**make_task().files, "eval.py": "another program"})
    assert (await again(place, task=other)).board.grader is None
    new = await again(place, task=make_task(name="sort"), grader=Grader.NATIVE)
    assert new.board.grader is Grader.NATIVE
