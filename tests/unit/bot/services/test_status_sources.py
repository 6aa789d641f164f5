from datetime import timedelta

import pytest

from bot.domain.board import Access, SourceVisibility, Viewer, Visibility
from bot.domain.errors import UserError
from bot.domain.ids import SubmissionId
from bot.services.audit import audit_rows
from bot.services.comparison import compare
from bot.services.moderation import Decision, look
from bot.services.status import source
from bot.services.submissions import rejudge_submission
from tests.doubles.factories import NOON
from tests.doubles.place import Place


async def test_one_s_own_source_is_always_there(place: Place) -> None:
    submission = await place.submit(content=b"def custom_kernel(data): ...\n")
    found = await source(place.store, place.clock, Viewer(place.ada), submission.id)
    assert (found.file_name, found.text) == (
        submission.file_name,
        "def custom_kernel(data): ...\n",
    )


async def test_somebody_else_s_source_is_shown_once_the_board_has_closed(place: Place) -> None:
    deadline = NOON + timedelta(hours=1)
    await place.store.boards.configure(place.board.id, place.board.gpus, deadline)
    submission = await place.submit(await place.person("bob"))
    with pytest.raises(UserError, match="after 2026-11-01 13:00 UTC") as refusal:
        await source(place.store, place.clock, Viewer(place.ada), submission.id)
    assert refusal.value.code == "hidden-source"
    place.clock.advance(3601)
    assert (await source(place.store, place.clock, Viewer(place.ada), submission.id)).text


async def test_of_a_board_without_end_nobody_sees_another_s_source(place: Place) -> None:
    submission = await place.submit(await place.person("bob"))
    with pytest.raises(UserError, match="after a deadline, and has none yet"):
        await source(place.store, place.clock, Viewer(place.ada), submission.id)


async def test_a_board_may_show_sources_always_or_never(place: Place) -> None:
    deadline = NOON + timedelta(hours=1)
    await place.store.boards.configure(place.board.id, place.board.gpus, deadline)
    always, never = Access(source=SourceVisibility.ALWAYS), Access(source=SourceVisibility.NEVER)
    await place.store.boards.restrict(place.board.id, always)
    submission = await place.submit(await place.person("bob"))
    assert (await source(place.store, place.clock, Viewer(place.ada), submission.id)).text
    await place.store.boards.restrict(place.board.id, never)
    place.clock.advance(3601)
    with pytest.raises(UserError, match="never shows sources to others"):
        await source(place.store, place.clock, Viewer(place.ada), submission.id)


@pytest.mark.parametrize(
    ("stated", "open_words", "closed_words"),
    [
        (SourceVisibility.NEVER, "its board never showed", "its board never showed"),
        (SourceVisibility.AFTER_DEADLINE, "after 20", ""),
        (SourceVisibility.ALWAYS, "", ""),
    ],
)
async def test_a_source_is_shown_to_no_more_people_than_was_stated(
    place: Place, stated: SourceVisibility, open_words: str, closed_words: str
) -> None:
    boards, number = place.store.boards, place.board.id
    await boards.configure(number, place.board.gpus, NOON + timedelta(hours=1))
    await boards.restrict(number, Access(source=stated))
    submission = await place.submit(await place.person("bob"))
    again = await rejudge_submission(place.store, Decision(place.ada, ""), submission.id)
    await boards.restrict(number, Access(source=SourceVisibility.ALWAYS))

    async def told(which: SubmissionId) -> str:
        try:
            await source(place.store, place.clock, Viewer(place.ada), which)
        except UserError as error:
            return error.message
        return ""

    for words in (open_words, closed_words):
        for each in (submission.id, again.id):
            assert words in await told(each)
            assert bool(words) == bool(await told(each))
        place.clock.advance(3601)


async def test_an_admin_reads_a_hidden_source_only_by_a_recorded_look(place: Place) -> None:
    own, hidden = await place.submit(), await place.submit(await place.person("bob"))
    admin = Viewer(place.ada, sees_all=True)
    assert (await source(place.store, place.clock, admin, own.id)).text
    for read in (
        source(place.store, place.clock, admin, hidden.id),
        compare(place.store, place.clock, admin, first=own.id, second=hidden.id),
    ):
        with pytest.raises(UserError, match="which is recorded") as refusal:
            await read
        assert refusal.value.code == "hidden-source"
    seen = await look(place.store, place.clock, Decision(place.ada, "a report"), hidden.id)
    assert seen.source.text
    entries = [each.entry for each in await audit_rows(place.store, 9, None)]
    looks = [(each.subject, each.reason) for each in entries if each.action == "look"]
    assert looks == [(f"submission {hidden.id}", "a report")]
    await place.store.boards.restrict(place.board.id, Access(source=SourceVisibility.ALWAYS))
    shown = await place.submit(await place.person("bob"))
    assert (await source(place.store, place.clock, admin, shown.id)).text


async def test_on_a_hidden_board_there_is_no_source(place: Place) -> None:
    submission = await place.submit()
    await place.store.boards.restrict(place.board.id, Access(Visibility.PRIVATE))
    bob = Viewer(await place.person("bob"))
    with pytest.raises(UserError, match="there is no submission"):
        await source(place.store, place.clock, bob, submission.id)
