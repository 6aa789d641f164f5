import pytest

from bot.domain.board import Viewer
from bot.domain.errors import UserError
from bot.domain.records import JobResult
from bot.domain.scoring import ScoreValue
from bot.services.history import submission_history
from runners.contract.task import Mode
from runners.contract.verdict import Verdict
from tests.doubles.place import Place


async def test_history_lists_newest_first_with_verdict_and_score(place: Place) -> None:
    ranked = await place.submit()
    await place.judged(ranked)
    tested = await place.submit(mode=Mode.TEST)
    await place.judged(tested, verdict=Verdict.WRONG_ANSWER)
    waiting = await place.submit()
    entries = await submission_history(place.store, Viewer(place.ada))
    assert [entry.submission.id for entry in entries] == [waiting.id, tested.id, ranked.id]
    assert [entry.results for entry in entries] == [
        (),
        (JobResult(tested.id, "CPU", Verdict.WRONG_ANSWER, None),),
        (JobResult(ranked.id, "CPU", Verdict.PASSED, ScoreValue(1_000, 1, 1)),),
    ]
    assert {(entry.board_name, entry.version) for entry in entries} == {("vectoradd", 1)}


async def test_history_goes_on_below_an_id_and_is_one_person_s(place: Place) -> None:
    first, second, _ = [await place.submit() for _ in range(3)]
    await place.submit(await place.person("bob"))
    page = await submission_history(
        place.store, Viewer(place.ada), "vectoradd", before=second.id, limit=5
    )
    assert [entry.submission.id for entry in page] == [first.id]


async def test_history_of_an_unknown_board_is_refused(place: Place) -> None:
    with pytest.raises(UserError, match="no board named"):
        await submission_history(place.store, Viewer(place.ada), "nothing")
