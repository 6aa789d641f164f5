from bot.domain.board import Viewer
from bot.domain.submission import Exclusion, ExclusionKind
from bot.services.boards import export_board
from runners.contract.verdict import Verdict
from tests.doubles.place import Place


async def test_everything_is_handed_out_and_it_is_noted_who_asked(place: Place) -> None:
    passed = await place.submit()
    await place.judged(passed)
    withdrawn = await place.submit()
    await place.judged(withdrawn)
    await place.store.moderation.exclude(Exclusion(withdrawn.id, ExclusionKind.WITHDRAWN, ""))
    await place.judged(await place.submit(await place.person("bob")), verdict=Verdict.CRASHED)
    found = await export_board(place.store, Viewer(place.ada), "vectoradd")
    assert [each.person.name for each in found.submissions] == ["ada", "ada", "bob"]
    assert [each.version for each in found.submissions] == [1, 1, 1]
    assert [bool(each.ranked_on) for each in found.submissions] == [True, False, False]
    assert found.submissions[2].outcomes[0].verdict is Verdict.CRASHED
    row = (await place.store.audit.rows(1))[0]
    assert (row.actor, row.action, row.subject) == (place.ada, "export", "board vectoradd")
