"""Tests of the parts of pages for other programs: tags, link cards, feeds and calendars."""

import re
from dataclasses import replace
from datetime import timedelta
from html import unescape
from io import BytesIO
from xml.etree import ElementTree as ET

import pytest
from PIL import Image

from bot.domain.accounts import ANYBODY, TokenScope
from bot.domain.board import Access, SeasonRules, Visibility
from bot.domain.ids import SubmissionId
from bot.services.competitions import find_competition
from bot.services.tokens import create_local_token
from bot.web import markup
from bot.web.context import WebContext
from bot.web.routes.pages import cards
from tests.doubles.agents import make_door
from tests.doubles.browsers import Browser, signed_in
from tests.doubles.exhibition import HOSTILE, Exhibition, make_exhibition

SITE = "http://podium.test"
_ATOM = "{http://www.w3.org/2005/Atom}"
_PRIVATE = Access(visibility=Visibility.PRIVATE)


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for the processes that render and draw to start, however busy the machine is."""
    monkeypatch.setattr(markup.HIGHLIGHTER, "patience_s", 60.0)
    monkeypatch.setattr(cards._DRAWING, "patience_s", 60.0)


@pytest.fixture
async def shown() -> Exhibition:
    return await make_exhibition(rounds=2)


@pytest.fixture
def door(shown: Exhibition) -> WebContext:
    return replace(make_door(shown.store, shown.clock), public_url=SITE)


@pytest.fixture
def stranger(door: WebContext) -> Browser:
    return Browser(door)


async def tags(browser: Browser, path: str) -> dict[str, str]:
    """The meta tags of a page, by name."""
    text = await browser.text(path)
    found = re.findall(r'<meta (?:name|property)="([^"]+)" content="([^"]*)">', text)
    assert len(found) == len(dict(found))
    return {name: unescape(value) for name, value in found}


async def best_of(shown: Exhibition, who: str) -> SubmissionId:
    return (await shown.store.submissions.history(shown.people[who]))[0].id


async def test_each_page_says_what_it_is_about_and_has_its_picture(
    shown: Exhibition, stranger: Browser
) -> None:
    number, person = await best_of(shown, HOSTILE), shown.people[HOSTILE]
    for path, title, image in (
        ("/boards/vectoradd?gpu=A100", "vectoradd on A100", "/boards/vectoradd/card.png?gpu=A100"),
        (f"/submissions/{number}", f"Submission #{number}", f"/submissions/{number}/card.png"),
        (f"/people/{person}", '<script>alert("1")', f"/people/{person}/card.png"),
        ("/", "Boards", "/card.png"),
    ):
        found = await tags(stranger, path)
        assert found["og:title"].startswith(title)
        assert found["og:image"].startswith(SITE + image)
        assert found["og:url"] == SITE + path
        assert found["description"] == found["og:description"]
        got = await stranger.get(found["og:image"].removeprefix(SITE))
        assert (got.status_code, got.headers["Content-Type"]) == (200, "image/png")
        assert Image.open(BytesIO(got.content)).size == (1200, 630)
    board = await tags(stranger, "/boards/vectoradd")
    assert re.fullmatch(
        r"Add two vectors. Fastest on H100: [\d.]+ µs ± [\d.]+ by .*", board["description"]
    )


async def test_without_a_public_address_no_page_claims_one(shown: Exhibition) -> None:
    found = await tags(Browser(make_door(shown.store, shown.clock)), "/boards/vectoradd")
    assert {"og:url", "og:image"} & set(found) == set()


async def test_a_card_does_not_tell_a_private_board_from_none(
    shown: Exhibition, door: WebContext, stranger: Browser
) -> None:
    """Also to its members, since everyone caches the picture."""
    ada, _ = await signed_in(door, "ada")
    hidden = await best_of(shown, "Grace")
    grace = shown.people["Grace"]
    await shown.store.boards.restrict(shown.boards["sort"].id, _PRIVATE)
    opens = SeasonRules(shown.clock.now() + timedelta(days=1))
    await shown.store.boards.set_rules(shown.boards["vectoradd"].id, opens)
    general = await stranger.get("/card.png")
    for path in (
        "/boards/secret/card.png", "/boards/nothing/card.png", "/boards/vectoradd/card.png",
        "/boards/sort/card.png?gpu=CPU", "/boards/empty/card.png?gpu=nothing",
        f"/submissions/{hidden}/card.png",
        "/submissions/999999/card.png", f"/people/{grace}/card.png", "/people/999999/card.png",
    ):  # fmt: skip
        for browser in (stranger, ada):
            got = await browser.get(path)
            assert got.status_code == 200, path
            assert got.content == general.content, path
            same = {name: value for name, value in got.headers.items() if "request" not in name}
            assert same == {k: v for k, v in general.headers.items() if "request" not in k}


async def test_a_card_is_cached_until_it_changes(stranger: Browser) -> None:
    first = await stranger.get("/boards/vectoradd/card.png")
    assert first.headers["Cache-Control"] == "public, max-age=300"
    tag = {"If-None-Match": first.headers["ETag"]}
    again = await stranger.client.get("/boards/vectoradd/card.png", headers=tag)
    assert (again.status_code, again.content) == (304, b"")
    other = await stranger.client.get("/boards/vectoradd/card.png?gpu=A100", headers=tag)
    assert other.status_code == 200


async def test_records_are_a_feed(stranger: Browser) -> None:
    got = await stranger.get("/boards/vectoradd/records.atom")
    assert got.headers["Content-Type"] == "application/atom+xml; charset=utf-8"
    feed = ET.fromstring(got.text)  # noqa: S314
    assert feed.tag == f"{_ATOM}feed"
    own = [each.get("href") for each in feed.iter(f"{_ATOM}link") if each.get("rel") == "self"]
    assert own == [f"{SITE}/boards/vectoradd/records.atom"]
    entries = feed.findall(f"{_ATOM}entry")
    assert len(entries) > 2
    for each in (feed, *entries):
        for name in ("id", "title", "updated"):
            assert each.findtext(f"{_ATOM}{name}")
    assert len({each.findtext(f"{_ATOM}id") for each in entries}) == len(entries)
    dates = [each.findtext(f"{_ATOM}updated") or "" for each in entries]
    assert dates == sorted(dates, reverse=True)
    assert feed.findtext(f"{_ATOM}updated") == dates[0]
    names = [each.findtext(f"{_ATOM}author/{_ATOM}name") for each in entries]
    assert '<script>alert("1")</script><img src=x onerror=alert(2)> evil' in names
    tag = {"If-None-Match": got.headers["ETag"]}
    again = await stranger.client.get("/boards/vectoradd/records.atom", headers=tag)
    assert again.status_code == 304
    empty = await stranger.text("/boards/empty/records.atom")
    assert "<updated>" in empty
    assert "<entry>" not in empty


async def test_a_private_board_has_no_feed_and_no_gallery_for_strangers(
    door: WebContext, stranger: Browser
) -> None:
    ada, _ = await signed_in(door, "0")  # who created it
    for path in ("/boards/{}/records.atom", "/boards/{}/gallery"):
        hidden = await stranger.get(path.format("secret"))
        missing = await stranger.get(path.format("secrit"))
        assert hidden.status_code == missing.status_code == 404
        assert hidden.text.replace("secret", "secrit") == missing.text
        assert (await ada.get(path.format("secret"))).status_code == 200


async def test_a_schedule_is_a_calendar(door: WebContext, stranger: Browser) -> None:
    got = await stranger.get("/competitions/Spring%20cup/schedule.ics")
    assert got.headers["Content-Type"] == "text/calendar; charset=utf-8"
    assert f"URL:{SITE}/boards/vectoradd\r\n" in got.text
    assert "secret" not in got.text
    assert got.text.count("BEGIN:VEVENT") == 2
    later = (await stranger.get("/competitions/Later%20cup/schedule.ics")).text
    assert "SUMMARY:Later cup opens" in later
    assert "vectoradd" not in later
    assert (await stranger.get("/competitions/none/schedule.ics")).status_code == 404
    page = await stranger.text("/competitions/Spring%20cup")
    assert 'href="/competitions/Spring%20cup/schedule.ics"' in page
    found = await find_competition(door.store, door.clock, ANYBODY, "Spring cup")
    assert all(f">{each.name}</a></th>" in page for each in found.boards)


async def test_files_that_programs_request_by_a_fixed_name_exist(stranger: Browser) -> None:
    icon = await stranger.get("/favicon.ico")
    assert icon.headers["Content-Type"] == "image/x-icon"
    assert Image.open(BytesIO(icon.content)).size == (48, 48)
    robots = await stranger.text("/robots.txt")
    assert robots.startswith("User-agent: *\n")
    assert "Disallow: /api/\n" in robots


async def test_the_author_writes_a_note_which_the_gallery_shows(
    shown: Exhibition, door: WebContext, stranger: Browser
) -> None:
    ada, _ = await signed_in(door, "0")
    sort = shown.boards["sort"].id
    number = (await shown.store.submissions.history(shown.people["Ada"], sort))[0].id
    text = "**Fast** <img src=x onerror=alert(1)> [x](javascript:alert(2))"
    answer = await ada.post(f"/submit/{number}/note", {"note": text})
    assert answer.headers["Location"] == f"/submissions/{number}#note"
    assert "<strong>Fast</strong>" in await ada.text(f"/submissions/{number}")
    assert "Fast" not in await stranger.text(f"/submissions/{number}")
    assert "The gallery opens when the board has closed" in await stranger.text(
        "/boards/sort/gallery"
    )
    shown.clock.advance(41 * 86_400)
    late = Browser(replace(door, cache=type(door.cache)()))
    found = await late.text("/boards/sort/gallery")
    assert (
        "<strong>Fast</strong> &lt;img src=x onerror=alert(1)&gt; [x](javascript:alert(2))" in found
    )
    assert "<strong>Fast</strong>" in await late.text(f"/submissions/{number}")
    assert 'action="/submit/' not in await late.text(f"/submissions/{number}")
    assert "Winning kernels" in await late.text("/boards/sort")


async def test_an_admin_removes_a_note_on_its_page(shown: Exhibition, door: WebContext) -> None:
    number = await best_of(shown, "Grace")
    await shown.store.submissions.write_note(number, "rude words")
    root = await door.store.people.ensure("local:root", "root")
    day = timedelta(days=1)
    made = await create_local_token(
        door.store, door.clock, root.id, "root", scope=TokenScope.ADMIN, lifetime=day
    )
    admin = Browser(door)
    await admin.sign_in(made.secret)
    assert "Remove the note" in await admin.text(f"/submissions/{number}")
    assert (await admin.post(f"/submit/{number}/note", {})).status_code == 303
    assert "rude words" not in await admin.text(f"/submissions/{number}")


async def test_a_foreign_form_writes_no_note(shown: Exhibition, door: WebContext) -> None:
    ada, _ = await signed_in(door, "0")
    number = await best_of(shown, "Ada")
    other = {"Sec-Fetch-Site": "cross-site"}
    form = {"note": "x", "stamp": await ada.stamp()}
    answer = await ada.client.post(f"/submit/{number}/note", data=form, headers=other)
    assert answer.status_code == 403
    grace = await best_of(shown, "Grace")
    assert (await ada.post(f"/submit/{grace}/note", {"note": "x"})).status_code == 403
    (kept,) = await shown.store.submissions.several([grace])
    assert kept.note == ""
