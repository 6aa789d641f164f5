"""What every store must do when a board is deleted: everything of it goes, nothing else."""

from dataclasses import replace
from datetime import timedelta

import pytest

from bot.domain.board import NewBoard
from bot.domain.errors import UserError
from bot.domain.ids import BoardId, SubmissionId
from bot.domain.publication import PublishRequest
from bot.domain.scoring import ScoreValue
from bot.domain.submission import Exclusion, ExclusionKind, NewDisplay, NewSubmission, RateLimit
from bot.services.boards import demo_owner, remove_demo
from bot.services.publishing.publish import publish
from runners.contract.files import EvaluationFile
from runners.contract.task import Mode
from tests.doubles.clock import ManualClock
from tests.doubles.stored import Scene, make_evaluation, make_task


async def test_everything_of_a_deleted_board_goes_and_nothing_else(scene: Scene) -> None:
    store, board = scene.store, scene.board
    new = NewBoard("other", ("CPU",), None, scene.ada.id)
    other = await store.boards.publish(new, make_task("other"), "digest-o")
    judged = await scene.submit()
    job = await scene.claim_one()
    with_file = make_evaluation().model_copy(update={"files": (EvaluationFile.of("a", b"b"),)})
    await store.jobs.accept(job.id, job.fence, with_file, ScoreValue(1.0, 0.1))
    await store.moderation.exclude(Exclusion(judged.id, ExclusionKind.WITHDRAWN, ""))
    await store.moderation.set_limit(RateLimit(5, timedelta(hours=1), board.id))
    kept_limit = RateLimit(5, timedelta(hours=1), other.id)
    await store.moderation.set_limit(kept_limit)
    shown = await _shown(scene)
    running = await scene.claim_one()
    queued = await scene.submit()
    kept = await Scene(store, other, scene.ada).submit()

    assert await store.boards.delete(board.id)
    assert not await store.boards.delete(board.id)
    assert not await store.boards.delete(BoardId(999))

    assert [each.name for each in await store.boards.all()] == ["other"]
    assert await store.boards.version(board.task_version) is None
    for gone in (judged.id, shown, queued.id):
        assert await store.submissions.get(gone) is None
        assert await store.jobs.of(gone) == ()
        assert await store.results.evaluations(gone) == ()
        assert await store.results.files(gone) == ()
        assert await store.displays.find(gone) is None
    assert await store.moderation.limits() == (kept_limit,)
    assert not await store.jobs.accept(running.id, running.fence, make_evaluation(), None)
    assert await store.submissions.get(kept.id) is not None
    assert (await scene.claim_one()).submission == kept.id


async def test_what_is_gone_cannot_be_excluded(scene: Scene) -> None:
    gone = await scene.submit()
    await scene.store.boards.delete(scene.board.id)
    await scene.store.moderation.exclude(Exclusion(gone.id, ExclusionKind.WITHDRAWN, ""))
    assert await scene.store.moderation.exclusion_of(gone.id) is None


async def test_a_board_with_more_submissions_than_were_looked_at_stays(scene: Scene) -> None:
    boards = scene.store.boards
    await scene.submit()
    with pytest.raises(UserError, match="a submission arrived in the meantime"):
        await boards.delete(scene.board.id, 0)
    assert await boards.get(scene.board.id) is not None
    assert await boards.delete(scene.board.id, 1)


async def _shown(scene: Scene) -> SubmissionId:
    new = NewSubmission(
        person=scene.ada.id,
        board=scene.board.id,
        task_version=scene.board.task_version,
        file_name="kernel.py",
        source="x",
        mode=Mode.TEST,
        gpus=("CPU",),
        priority=1,
        display=NewDisplay("discord", "here"),
    )
    return (await scene.store.submissions.add(new)).id


async def test_the_demo_goes_and_what_others_submitted_to_its_boards_stays(
    scene: Scene, clock: ManualClock
) -> None:
    store = scene.store
    owner = await demo_owner(store)
    boards = []
    for name in ("demo-own", "demo-shared"):
        request = PublishRequest(owner.id, name, ("CPU",))
        boards.append((await publish(store, clock, request, make_task())).board)
    made_up = await store.people.ensure("demo:ada", "Ada")
    for board in boards:
        await replace(scene, board=board).submit(made_up)
    hers = await replace(scene, board=boards[1]).submit()

    removed = await remove_demo(store)

    assert (removed.boards, removed.kept) == (("demo-own",), ("demo-shared",))
    assert [each.id for each in await store.submissions.to(boards[1].id)] == [hers.id]
    assert await store.boards.find("vectoradd") == scene.board
