import pytest

from bot.domain.board import Viewer
from bot.domain.errors import UserError
from bot.domain.ids import SubmissionId
from bot.domain.job import JobState
from bot.services.submissions import cancel
from tests.doubles.place import Place


async def test_an_own_queued_submission_is_cancelled(place: Place) -> None:
    submission = await place.submit()
    assert await cancel(place.store, Viewer(place.ada), submission.id) == 1
    (job,) = await place.jobs(submission)
    assert job.state is JobState.CANCELLED
    assert await cancel(place.store, Viewer(place.ada), submission.id) == 0


async def test_who_stopped_what_is_noted_once(place: Place) -> None:
    submission = await place.submit()
    for _ in range(2):
        await cancel(place.store, Viewer(place.ada), submission.id)
    rows = [row for row in await place.store.audit.rows() if row.action == "cancel"]
    assert [(row.actor, row.subject) for row in rows] == [
        (place.ada, f"submission {submission.id}")
    ]


async def test_somebody_else_s_submission_is_left_alone(place: Place) -> None:
    submission = await place.submit()
    with pytest.raises(UserError, match="another person") as refusal:
        await cancel(place.store, Viewer(await place.person("bob")), submission.id)
    assert refusal.value.code == "not-yours"
    (job,) = await place.jobs(submission)
    assert job.state is JobState.QUEUED


async def test_a_submission_that_does_not_exist_is_refused(place: Place) -> None:
    with pytest.raises(UserError, match="no submission 99") as refusal:
        await cancel(place.store, Viewer(place.ada), SubmissionId(99))
    assert refusal.value.code == "unknown-submission"
