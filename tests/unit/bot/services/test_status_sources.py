from datetime import timedelta

import pytest

from bot.domain.board import Access, SourceVisibility, Viewer, Visibility
from bot.domain.errors import UserError
from bot.services.status import source
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
    with pytest.raises(UserError, match="after its deadline, and has none yet"):
        await source(place.store, place.clock, Viewer(place.ada), submission.id)


async def test_a_board_may_show_sources_always_or_never(place: Place) -> None:
    submission = await place.submit(await place.person("bob"))
    deadline = NOON + timedelta(hours=1)
    await place.store.boards.configure(place.board.id, place.board.gpus, deadline)
    always, never = Access(source=SourceVisibility.ALWAYS), Access(source=SourceVisibility.NEVER)
    await place.store.boards.restrict(place.board.id, always)
    assert (await source(place.store, place.clock, Viewer(place.ada), submission.id)).text
    await place.store.boards.restrict(place.board.id, never)
    place.clock.advance(3601)
    with pytest.raises(UserError, match="never shows sources to others"):
        await source(place.store, place.clock, Viewer(place.ada), submission.id)


async def test_on_a_hidden_board_there_is_no_source(place: Place) -> None:
    submission = await place.submit()
    await place.store.boards.restrict(place.board.id, Access(Visibility.PRIVATE))
    bob = Viewer(await place.person("bob"))
    with pytest.raises(UserError, match="there is no submission"):
        await source(place.store, place.clock, bob, submission.id)
