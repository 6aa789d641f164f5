"""Boards open together, and only for tasks that were run."""

from dataclasses import replace
from datetime import timedelta

import pytest

from bot.domain.errors import UserError
from bot.domain.publication import Draft, PublishChange, PublishedDraft, PublishRequest
from bot.domain.tasks.bundle import TaskBundle
from bot.domain.tasks.scaffold import scaffold
from bot.domain.tasks.task_file import parse_task
from bot.services.publishing.pipeline import Pipeline
from runners.backends.fake import FakeRunner, create
from runners.contract.runner import Capabilities
from tests.doubles.place import Place

REFUSED = "#!PODIUM expect wrong_answer\n# fake: verdict=wrong_answer\n"
CUDA_TEXT = scaffold("double")["task.yml"].replace("lang: py\n", "lang: py\ndevice: cuda\n")


def draft(place: Place, name: str, *gpus: str, **changes: str) -> Draft:
    """A task without degenerate answers to try, for the fake runner would let them pass."""
    files = {
        **scaffold(name),
        "solutions/correct/torch_add.py": "#!PODIUM needs mojo\n",
        "solutions/wrong/almost_two.py": REFUSED,
        **changes,
    }
    bundle = TaskBundle({f"{name}/{path}": text.encode() for path, text in files.items()}, name)
    return Draft(bundle, parse_task(bundle), PublishRequest(place.ada, gpus=gpus))


async def release(
    place: Place, *drafts: Draft, runner: FakeRunner | None = None, unchecked: bool = False
) -> tuple[PublishedDraft, ...]:
    runner = runner or create()
    try:
        pipeline = Pipeline(place.store, place.clock, [runner], lambda words: None)
        return await pipeline.check_and_publish(drafts, unchecked=unchecked)
    finally:
        await runner.aclose()


async def boards(place: Place) -> list[str]:
    return [board.name for board in await place.store.boards.all()]


async def test_each_task_is_run_and_gets_its_board_for_the_gpus_that_are_here(place: Place) -> None:
    first, second = await release(place, draft(place, "double"), draft(place, "triple", "CPU"))
    assert first.published.change is second.published.change is PublishChange.CREATED
    assert [report.was_run for report in first.reports] == [True] * len(first.published.board.gpus)
    assert second.published.board.gpus == ("CPU",)


async def test_one_unsound_task_leaves_all_as_it_was(place: Place) -> None:
    before = await boards(place)
    lucky = draft(place, "triple", "CPU", **{"solutions/wrong/almost_two.py": "x = 1\n"})
    with pytest.raises(UserError, match=r"triple on CPU: \S+almost_two\.py: got passed"):
        await release(place, draft(place, "double", "CPU"), lucky)
    assert await boards(place) == before


async def test_one_task_of_somebody_else_leaves_all_as_it_was(place: Place) -> None:
    before = await boards(place)
    bob = await place.person("bob")
    theirs = draft(place, "vectoradd", "CPU")
    stolen = replace(theirs, request=PublishRequest(bob, gpus=("CPU",)))
    with pytest.raises(UserError, match="belongs to another person"):
        await release(place, draft(place, "double", "CPU"), stolen)
    assert await boards(place) == before


async def test_a_task_that_no_runner_can_run_opens_no_board_unless_somebody_vouches(
    place: Place,
) -> None:
    here = create(capabilities=Capabilities(harness_version="1", gpus={"CPU": 1}))
    wanted = draft(place, "double", "H100", **{"task.yml": CUDA_TEXT})
    with pytest.raises(
        UserError, match="its solutions could not be run: missing GPU type H100"
    ) as told:
        await release(place, wanted, runner=here)
    assert told.value.code == "not-dry-run"
    assert "double" not in await boards(place)
    (opened,) = await release(place, wanted, runner=here, unchecked=True)
    assert (opened.published.change, opened.reports) == (PublishChange.CREATED, ())
    assert (await place.store.audit.rows())[0].action == "publish-unchecked"


async def test_one_gpu_type_that_is_here_is_enough(place: Place) -> None:
    here = create(capabilities=Capabilities(harness_version="1", gpus={"CPU": 1}))
    (opened,) = await release(place, draft(place, "double", "CPU", "H100"), runner=here)
    assert [(each.gpu, each.was_run) for each in opened.reports] == [("CPU", True), ("H100", False)]


async def test_a_new_board_gets_only_gpu_types_that_fit_its_task(place: Place) -> None:
    here = create(capabilities=Capabilities(harness_version="1", gpus={"CPU": 1, "H100": 1}))
    await place.store.workers.announce("box", ("L4", "CPU"), timedelta(seconds=30))
    (opened,) = await release(place, draft(place, "double", **{"task.yml": CUDA_TEXT}), runner=here)
    assert opened.published.board.gpus == ("H100", "L4")
    assert [(each.gpu, each.was_run) for each in opened.reports] == [("H100", True), ("L4", False)]


async def test_nothing_is_stored_before_every_check_has_passed(place: Place) -> None:
    before, seen = await boards(place), []

    async def look() -> None:
        seen.append(await boards(place))

    runner = create()
    pipeline = Pipeline(place.store, place.clock, [runner], lambda words: None, before_publish=look)
    drafts = [draft(place, "double", "CPU"), draft(place, "triple", "CPU")]
    await pipeline.check_and_publish(drafts)
    await runner.aclose()
    assert seen == [before]
    assert len(await boards(place)) == len(before) + 2


async def test_a_state_of_the_task_is_run_once(place: Place) -> None:
    await release(place, draft(place, "double", "CPU"))
    (again,) = await release(place, draft(place, "double", "CPU"))
    assert (again.published.change, again.reports) == (PublishChange.UNCHANGED, ())


async def test_without_a_runner_nothing_is_published_that_nobody_vouches_for(place: Place) -> None:
    before = await boards(place)
    pipeline = Pipeline(place.store, place.clock, (), lambda words: None)
    with pytest.raises(UserError, match="double: no runner is available") as told:
        await pipeline.check_and_publish([draft(place, "double", "H100")])
    assert told.value.code == "no-runner"
    assert await boards(place) == before
