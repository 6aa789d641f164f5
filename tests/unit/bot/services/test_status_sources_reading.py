from datetime import timedelta

import pytest

from bot.domain.board import Access, SourceVisibility, Viewer, Visibility
from bot.domain.errors import UserError
from bot.domain.ids import SubmissionId
from bot.services.status import read_files, read_submission
from runners.contract.files import EvaluationFile
from runners.contract.task import Mode
from runners.contract.verdict import Verdict
from tests.doubles.place import Place

LOG = "line 3: secret = 7"
FILE = EvaluationFile.of("torch.txt", b"table")


async def profiled(place: Place) -> SubmissionId:
    submission = await place.submit(mode=Mode.PROFILE)
    await place.judged(submission, log=LOG, files=(FILE,))
    return submission.id


async def seen(place: Place, viewer: Viewer, number: SubmissionId) -> tuple[str, int]:
    """The log that this viewer gets, and how many files."""
    found = await read_submission(place.store, place.clock, viewer, number)
    evaluation = found.jobs[0].evaluation
    assert evaluation is not None
    files = await read_files(place.store, place.clock, viewer, number)
    return evaluation.log, len(files)


async def test_logs_and_files_of_others_are_hidden_as_long_as_their_source_is(place: Place) -> None:
    number = await profiled(place)
    bob = await place.person("bob")
    other, owner, admin = Viewer(bob), Viewer(place.ada), Viewer(bob, sees_all=True)
    assert await seen(place, other, number) == ("", 0)
    assert await seen(place, owner, number) == (LOG, 1)
    assert await seen(place, admin, number) == (LOG, 1)
    until = place.clock.now() + timedelta(hours=1)
    await place.store.boards.configure(place.board.id, ("CPU",), until)
    assert await seen(place, other, number) == ("", 0)
    place.clock.advance(3601)
    assert await seen(place, other, number) == (LOG, 1)
    await place.store.boards.restrict(place.board.id, Access(source=SourceVisibility.NEVER))
    assert await seen(place, other, number) == ("", 0)


async def test_of_a_hidden_board_there_is_nothing(place: Place) -> None:
    number = await profiled(place)
    await place.store.boards.restrict(place.board.id, Access(Visibility.PRIVATE))
    bob = Viewer(await place.person("bob"))
    for read in (read_submission, read_files):
        with pytest.raises(UserError, match="no submission"):
            await read(place.store, place.clock, bob, number)


async def test_one_that_waits_has_nothing_to_hide(place: Place) -> None:
    submission = await place.submit()
    bob = Viewer(await place.person("bob"))
    found = await read_submission(place.store, place.clock, bob, submission.id)
    assert found.jobs[0].place is not None


@pytest.mark.parametrize(
    ("verdict", "words"),
    [(Verdict.CRASHED, ""), (Verdict.BUILD_FAILED, ""), (Verdict.WRONG_ANSWER, "no trick")],
)
async def test_the_words_of_an_exception_are_its_owners_as_long_as_the_source_is(
    place: Place, verdict: Verdict, words: str
) -> None:
    submission = await place.submit(mode=Mode.TEST)
    await place.judged(submission, verdict=verdict, message="no trick")
    other = Viewer(await place.person("bob"))
    for viewer, told in ((Viewer(place.ada), "no trick"), (other, words)):
        found = await read_submission(place.store, place.clock, viewer, submission.id)
        evaluation = found.jobs[0].evaluation
        assert evaluation is not None
        assert evaluation.message == told
