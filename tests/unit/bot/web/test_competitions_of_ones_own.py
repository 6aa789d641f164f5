"""Tests of making, changing and deleting a competition at its pages."""

from datetime import timedelta
from html import unescape

import pytest

from bot.domain.board import Viewer
from bot.domain.competition import Competition, NewCompetition
from bot.web.context import WebContext
from bot.web.publications import checking
from runners.contract.task import Grader
from tests.doubles.agents import make_door
from tests.doubles.browsers import Browser, signed_in
from tests.doubles.clock import ManualClock
from tests.doubles.dispatching import dispatching
from tests.doubles.memory_store import MemoryStore
from tests.doubles.place import Place, make_place
from tests.doubles.scaffolded import make_doubter, make_judge
from tests.doubles.task_zips import WITH_EVAL, packed_competition
from tests.unit.bot.web.test_boards_of_ones_own import creator

TEXT = """\
name: Spring cup
prize: a mug
opens: 2026-11-01 13:00
ranks: [25, 18]
problems:
  - {directory: double, name: double, deadline: "2026-11-01 14:00:30", gpus: [CPU]}
  - {directory: triple, name: third, deadline: "2026-11-01 17:00", gpus: [CPU]}
"""
CUP = "/competitions/Spring%20cup"
NEW = "/create/competition"
HOUR_S = timedelta(hours=1).total_seconds()
File = tuple[str, str, bytes]


@pytest.fixture
async def place(memory_store: MemoryStore, clock: ManualClock) -> Place:
    return await make_place(memory_store, clock)


@pytest.fixture
async def door(place: Place) -> WebContext:
    await place.store.workers.announce("box", ("CPU",), timedelta(days=1))
    return make_door(place.store, place.clock)


def file(text: str = TEXT) -> File:
    return "competition_zip", "cup.zip", packed_competition(text, "double", "triple")


async def published(door: WebContext, text: str = TEXT) -> Browser:
    """The browser of Carol, who has published the competition at its page."""
    carol = await creator(door)
    sent = await carol.post(NEW, file=file(text))
    assert sent.status_code == 303, sent.text
    page = sent.headers["Location"]
    async with dispatching(door.store, door.clock, [make_judge()]), checking(door):
        events = await carol.text(f"{page}/events")
    assert events.rstrip().endswith("event: done\ndata:")
    told = unescape(await carol.text(page))
    assert "Competition Spring cup with 2 boards is published." in told
    assert f'href="{CUP}"' in told
    return carol


async def test_a_competition_is_published_from_its_zip(door: WebContext) -> None:
    carol = await creator(door)
    assert NEW in await carol.text("/create")
    looked = unescape((await carol.post(f"{NEW}/look", file=file())).text)
    for words in ("Competition Spring cup", "double", "third", "2026-11-01 13:00 UTC", "'prize'"):
        assert words in looked
    assert "points of the first places on each board and GPU type: 25, 18" in looked
    await published(door)
    home = await carol.text("/")
    assert (CUP in home, NEW in home) == (True, True)
    assert f"{CUP}/edit" in await carol.text(NEW)
    assert f"{CUP}/edit" in await carol.text(CUP)
    assert f"{CUP}/edit" not in await Browser(door).text(CUP)


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (("competition_zip", "", b""), "hoose a competition's zip"),
        (("competition_zip", "a.zip", b"no zip"), "not a readable zip"),
        (file("name: x"), "et.yaml:1: the key 'problems' is missing"),
        (
            file(TEXT.replace("[CPU]", "[H1000]", 1)),
            "o GPU type is called 'H1000'; did you mean H100? Known: CPU,",
        ),
    ],
)
async def test_what_cannot_be_published_is_said_at_once(
    door: WebContext, sent: File, words: str
) -> None:
    carol = await creator(door)
    looked = await carol.post(f"{NEW}/look", file=sent)
    assert words in unescape(looked.text)
    answer = await carol.post(NEW, {"pools": "box"}, file=sent)
    assert words in unescape(answer.text)
    assert answer.status_code == 400
    assert 'value="box"' in answer.text


async def test_its_dates_are_changed_at_its_page(door: WebContext, place: Place) -> None:
    carol = await published(door)
    boards = [await door.store.boards.find(name) for name in ("double", "third")]
    double, third = [each for each in boards if each is not None]
    form = unescape(await carol.text(f"{CUP}/edit"))
    fields = {
        f"opens-{double.id}": "2026-11-01 13:00 UTC",
        f"deadline-{double.id}": "2026-11-01 14:00 UTC",
        f"opens-{third.id}": "2026-11-02",
        f"deadline-{third.id}": "",
    }
    assert f'name="deadline-{double.id}" value="2026-11-01 14:00 UTC"' in form
    assert "Close now" not in form
    changed = await carol.post(f"{CUP}/dates", fields)
    assert (changed.status_code, changed.headers["Location"]) == (303, f"{CUP}/edit?done=changed")
    after = await door.store.boards.get(third.id)
    assert after is not None
    assert (str(after.rules.opens_at), after.deadline) == ("2026-11-02 00:00:00+00:00", None)
    assert await door.store.boards.get(double.id) == double
    bad = await carol.post(f"{CUP}/dates", fields | {f"deadline-{third.id}": "2026-11-01"})
    assert bad.status_code == 400
    assert "The board 'third' closes before it opens at 2026-11-02" in unescape(bad.text)
    assert "soon" in unescape((await carol.post(f"{CUP}/extend", {"until": "soon"})).text)
    place.clock.advance(HOUR_S)
    early = await carol.post(f"{CUP}/close")
    assert "an earlier opening date on its competition's page" in unescape(early.text)
    until = {"until": "2026-12-01"}
    assert (await carol.post(f"{CUP}/extend", until)).status_code == 303
    assert (await carol.post(f"{CUP}/extend", until)).status_code == 409


async def test_it_is_closed_early_at_its_page(door: WebContext, place: Place) -> None:
    carol = await published(door)
    place.clock.advance(HOUR_S)
    assert "Close now" in await carol.text(f"{CUP}/edit")
    closed = await carol.post(f"{CUP}/close")
    assert closed.headers["Location"] == f"{CUP}/edit?done=closed"
    place.clock.advance(1)
    assert "Closed 2026-11-01 13:00 UTC." in await carol.text(f"{CUP}/edit")


async def test_it_is_deleted_and_its_boards_stay(door: WebContext) -> None:
    carol = await published(door)
    wrong = await carol.post(f"{CUP}/delete", {"typed": "Spring", "boards": "keep"})
    assert "nothing was deleted" in unescape(wrong.text)
    typed = {"typed": "Spring cup", "boards": "keep"}
    deleted = await carol.post(f"{CUP}/delete", typed)
    assert deleted.headers["Location"] == f"{NEW}?done=competition-ended"
    assert "The competition is deleted." in await carol.text(deleted.headers["Location"])
    assert (await carol.get(CUP)).status_code == 404
    assert [each.name for each in await door.store.boards.all()] == ["double", "third", "vectoradd"]


async def test_its_boards_are_deleted_too_as_they_were_when_they_were_saved(
    door: WebContext, place: Place
) -> None:
    carol = await published(door)
    place.clock.advance(HOUR_S)
    fields: dict[str, str | list[str]] = {"typed": "Spring cup", "boards": "delete"}
    before = await archives(carol)
    saved: dict[str, str | list[str]] = {"archive": before, "saved": "yes"}
    await place.submit(await place.person("bob"), board="third")
    for more, words in (
        ({}, "onfirm that you have saved"),
        (saved, "'third' was not downloaded, or the board has"),
    ):
        refused = await carol.post(f"{CUP}/delete", fields | more)
        assert words in unescape(refused.text)
    assert "/edit/third/keepsake" in await carol.text(f"{CUP}/edit")
    done = await carol.post(
        f"{CUP}/delete", fields | {"archive": await archives(carol), "saved": "yes"}
    )
    assert done.status_code == 303
    assert [each.name for each in await door.store.boards.all()] == ["vectoradd"]


async def archives(browser: Browser) -> list[str]:
    """The states of the archives that the form names."""
    parts = (await browser.text(f"{CUP}/edit")).split('name="archive" value="')[1:]
    return [each.partition('"')[0] for each in parts]


async def test_who_does_not_own_it_changes_nothing(door: WebContext) -> None:
    await published(door)
    eve, _ = await signed_in(door, "eve")
    assert (await eve.get(NEW)).status_code == 403
    assert (await eve.post(NEW, file=file())).status_code == 403
    assert (await Browser(door).get(NEW)).status_code == 303
    for path in ("dates", "extend", "close", "delete"):
        answer = await eve.post(f"{CUP}/{path}", {"typed": "Spring cup", "until": "2027-01-01"})
        assert answer.status_code == 403, path
    assert (await eve.get(f"{CUP}/edit")).status_code == 403
    assert await door.store.competitions.find("Spring cup") is not None


async def test_the_home_page_reads_only_the_competitions_that_it_shows(
    door: WebContext, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    carol = await published(door)
    cup = await door.store.competitions.find("Spring cup")
    assert cup is not None
    for number in range(12):
        await door.store.competitions.put(
            NewCompetition(
                f"Cup {number:02}", cup.creator, "", cup.points,
                cup.opens_at + timedelta(days=number), (cup.boards[0].id,),
            )
        )  # fmt: skip
    limits, read = [], door.store.competitions.known_to

    async def known_to(
        viewer: Viewer, *, after: str | None = "", limit: int | None = None
    ) -> tuple[Competition, ...]:
        limits.append(limit)
        return await read(viewer, after=after, limit=limit)

    monkeypatch.setattr(door.store.competitions, "known_to", known_to)
    home = await carol.text("/")
    assert limits == [11]
    assert [each for each in range(12) if f"Cup%20{each:02}" in home] == [*range(2, 12)]
    assert 'href="/competitions"' in home
    listed = await carol.text("/competitions")
    assert [each for each in range(12) if f"Cup%20{each:02}" in listed] == [*range(12)]
    assert "?after=" not in listed
    monkeypatch.setattr("bot.web.routes.pages.boards._ROWS", 5)
    assert "/competitions?after=Cup+04" in await carol.text("/competitions")
    assert "Cup%2005" in await carol.text("/competitions?after=Cup+04")


async def ended(door: WebContext, browser: Browser, page: str) -> str:
    """The last words of a check of graders that disagree."""
    async with dispatching(door.store, door.clock, [make_doubter()]), checking(door):
        await browser.text(f"{page}/events")
    return unescape(await browser.text(page))


async def test_the_grader_of_each_disputed_task_is_chosen_in_turn(door: WebContext) -> None:
    carol = await creator(door)
    changed = {
        f"{name}/{path}": text
        for name in ("double", "triple")
        for path, text in (("task.yml", WITH_EVAL), ("eval.py", "raise SystemExit(3)\n"))
    }
    data = packed_competition(TEXT, "double", "triple", **changed)
    page = (await carol.post(NEW, file=("competition_zip", "cup.zip", data))).headers["Location"]
    for board in ("double", "third"):
        told = await ended(door, carol, page)
        assert f"Choose who grades {board}; then the same zip is checked again." in told
        assert await door.store.boards.find(board) is None
        page = (await carol.post(f"{page}/grader", {"grader": "native"})).headers["Location"]
    assert "Competition Spring cup with 2 boards is published." in await ended(door, carol, page)
    boards = [await door.store.boards.find(name) for name in ("double", "third")]
    assert [each and each.grader for each in boards] == [Grader.NATIVE, Grader.NATIVE]
