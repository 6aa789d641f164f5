"""The pages in a real browser: by keyboard, live, and without script."""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
import pytest_asyncio
from starlette.types import Message, Receive, Scope, Send

from bot.domain.ids import SubmissionId
from bot.web.app import build, serving
from bot.web.context import HttpSettings, WebContext
from tests.doubles.agents import make_door
from tests.doubles.clock import ManualClock
from tests.doubles.exhibition import HOSTILE, Exhibition, make_exhibition

pytest.importorskip("playwright", reason="the package playwright is not installed")
pytest.importorskip("axe_playwright_python", reason="axe for playwright is not installed")

from playwright.async_api import Browser, Page, Request, expect

from tests.doubles.watched_pages import CHROMIUM, DESK, SMALL_PHONE, Faults, opened_chromium

pytestmark = [
    pytest.mark.slow,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(not CHROMIUM.exists(), reason="Debian's chromium is not installed"),
]
PIECES = 6
_SHIFTS = """() => new Promise((done) => {
  new PerformanceObserver((list) => done(list.getEntries().map((each) => each.value)))
    .observe({type: "layout-shift", buffered: true});
  setTimeout(() => done([]), 150);
})"""
_UNREACHED = """() => {
  const reached = new Set(window.reached);
  const wanted = "a[href], button, input:not([type=hidden]), select, summary, [tabindex='0']";
  return [...document.querySelectorAll(wanted)]
    .filter((each) => each.checkVisibility() && !reached.has(each)).map((each) => each.outerHTML);
}"""


@dataclass(frozen=True, slots=True)
class Scene:
    """A served exhibition, and a browser that looks at it."""

    url: str
    shown: Exhibition
    browser: Browser
    numbers: dict[str, int]

    def at(self, path: str) -> str:
        return self.url + path.format(**self.numbers)

    @property
    def running(self) -> SubmissionId:
        return SubmissionId(self.numbers["running"])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene() -> AsyncIterator[Scene]:
    clock = ManualClock(datetime.now(UTC) - timedelta(days=7))
    shown = await make_exhibition(clock)
    door = make_door(shown.store, shown.clock)
    async with serving(door, HttpSettings("127.0.0.1", 0)) as url, opened_chromium() as browser:
        yield Scene(url, shown, browser, await numbers_of(shown))


async def numbers_of(shown: Exhibition) -> dict[str, int]:
    """The submissions and people that addresses name."""
    newest = shown.store.submissions.history
    return {
        "hostile": shown.people[HOSTILE],
        "best": (await newest(shown.people[HOSTILE]))[0].id,
        "refused": (await newest(shown.people["Hedy"]))[0].id,
        "running": (await newest(shown.people["Ada"]))[0].id,
    }


@pytest_asyncio.fixture(loop_scope="module")
async def page(scene: Scene) -> AsyncIterator[Page]:
    """A fresh page; what its console or its scripts complain of fails the test."""
    context = await scene.browser.new_context(color_scheme="light", viewport=DESK)  # type: ignore[arg-type]
    context.set_default_timeout(20_000)
    page = await context.new_page()
    faults = Faults()
    faults.watch(page, "http://127.0.0.1")
    yield page
    await context.close()
    assert not faults.found


class InPieces:
    """An app whose pages come in pieces, as over a slow line."""

    def __init__(self, door: WebContext) -> None:
        self._app = build(door)
        self.state = self._app.state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def slowly(message: Message) -> None:
            body = message.get("body", b"")
            if body.startswith(b"<!doctype html>"):
                size = len(body) // PIECES
                for _ in range(PIECES):
                    part, body = body[:size], body[size:]
                    await send({"type": message["type"], "body": part, "more_body": True})
                    await asyncio.sleep(0.1)
                message = {**message, "body": body}
            await send(message)

        plain = [each for each in scope.get("headers", ()) if each[0] != b"accept-encoding"]
        await self._app({**scope, "headers": plain}, receive, slowly)


async def test_a_page_that_comes_in_pieces_does_not_move(
    scene: Scene, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.web.app.build", InPieces)
    door = make_door(scene.shown.store, scene.shown.clock)
    async with serving(door, HttpSettings("127.0.0.1", 0)) as url:
        await page.goto(f"{url}/boards/vectoradd")
        assert sum(await page.evaluate(_SHIFTS)) == 0
        await page.goto("about:blank")


async def test_everything_is_reached_by_keyboard(scene: Scene, page: Page) -> None:
    await page.goto(scene.at("/boards/vectoradd"))
    await page.evaluate(
        "window.reached = []; addEventListener('focusin', (event) => reached.push(event.target))"
    )
    await page.keyboard.press("Tab")
    skip = page.locator("a.skip")
    await expect(skip).to_be_focused()
    await expect(skip).to_be_in_viewport()
    for _ in range(120):
        await page.keyboard.press("Tab")
        if await page.evaluate("document.activeElement === document.body"):
            break
    assert await page.evaluate(_UNREACHED) == []
    await skip.focus()
    await page.keyboard.press("Enter")
    await expect(page.locator("#main")).to_be_focused()


async def test_the_plot_is_drawn_and_can_be_looked_into(scene: Scene, page: Page) -> None:
    await page.goto(scene.at("/boards/vectoradd"))
    await expect(page.locator("[data-chart]")).to_have_attribute("data-drawn", "")
    ink = """() => {
      const canvas = document.querySelector(".u-wrap canvas");
      const copy = Object.assign(document.createElement("canvas"), {
        width: canvas.width, height: canvas.height,
      }).getContext("2d", { willReadFrequently: true });
      copy.drawImage(canvas, 0, 0);
      const seen = copy.getImageData(0, 0, canvas.width, canvas.height).data;
      let hash = 0;
      for (let at = 0; at < seen.length; at += 4) hash = (hash * 31 + seen[at] + seen[at + 3]) | 0;
      return hash;
    }"""
    await expect(page.locator(".u-legend")).to_contain_text("best so far")
    whole = await page.evaluate(ink)
    await page.get_by_role("button", name="Last day").click()
    await page.wait_for_function(f"({ink})() !== {whole}")
    await page.get_by_role("button", name="All").click()
    await page.wait_for_function(f"({ink})() === {whole}")
    over = await page.locator(".u-over").bounding_box()
    assert over is not None
    await page.mouse.move(over["x"] + 200, over["y"] + 50)
    await page.mouse.down()
    await page.mouse.move(over["x"] + 400, over["y"] + 60, steps=4)
    await page.mouse.up()
    await page.wait_for_function(f"({ink})() !== {whole}")


async def test_at_the_deadline_an_open_page_stops_offering_to_submit(
    scene: Scene, page: Page
) -> None:
    await page.clock.install()
    await page.goto(scene.at("/boards/vectoradd"))
    left = page.locator(".lead time[data-until]")
    await expect(left).to_have_text(re.compile("^32 days .* left$"))
    await expect(page.get_by_role("link", name="Submit a kernel")).to_be_visible()
    await page.clock.fast_forward(34 * 86_400_000)
    await expect(left).to_have_text("closed")
    await expect(page.get_by_role("link", name="Submit a kernel")).to_be_hidden()


async def test_the_theme_is_the_systems_until_one_is_chosen(scene: Scene, page: Page) -> None:
    await page.goto(scene.at("/boards/vectoradd"))
    paper = "getComputedStyle(document.body).backgroundColor"
    light = await page.evaluate(paper)
    await page.get_by_role("button", name="Switch between light and dark theme").click()
    dark = await page.evaluate(paper)
    assert dark != light
    await page.reload()
    assert await page.evaluate(paper) == dark
    await page.evaluate("localStorage.clear()")
    await page.reload()
    assert await page.evaluate(paper) == light


async def test_the_queue_goes_on_by_itself(scene: Scene, page: Page) -> None:
    await page.goto(scene.at("/queue"))
    await page.get_by_role("region").first.focus()
    waiting = page.locator(".pools li", has_text="H100").locator("dd").nth(1)
    before = int(await waiting.inner_text())
    await scene.shown.submit("Ken", "vectoradd", ("H100",))
    await expect(waiting).to_have_text(str(before + 1))
    await expect(page.locator("#said")).to_contain_text(f"H100: 1 running, {before + 1} waiting")
    await expect(page.get_by_role("region").first).to_be_focused()


async def test_a_submission_goes_on_to_its_report(scene: Scene, page: Page) -> None:
    own = await scene.shown.submit("Tony", "vectoradd", ("A100",))
    await page.goto(f"{scene.url}/submissions/{own.id}")
    await expect(page.get_by_role("status")).to_contain_text("A100: queued, position 1")
    await scene.shown.judge("A100")
    await expect(page.get_by_text("Passed in a ranked run on A100")).to_be_visible()
    await expect(page.get_by_role("status")).to_have_count(0)


_HIDE = """(hidden) => {
  Object.defineProperty(document, "hidden", { get: () => Boolean(hidden), configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""
_NOTED = """
window.noted = [];
window.Notification = class extends EventTarget {
  static permission = "default";
  static requestPermission = async () => "granted";
  constructor(text) { super(); window.noted.push(text); }
};
"""


async def test_a_hidden_tab_keeps_no_connection_and_notifies_of_the_end(
    scene: Scene, page: Page
) -> None:
    await page.add_init_script(_NOTED)
    own = await scene.shown.submit("Leslie", "vectoradd", ("A100",))
    asked: list[Request] = []
    page.on("request", lambda each: asked.append(each) if each.url.endswith("/events") else None)
    await page.goto(f"{scene.url}/submissions/{own.id}")
    await expect(page).to_have_title(f"Queued · Submission {own.id}")
    await page.get_by_role("button", name="Notify me when it ends").click()
    await expect(page.get_by_text("You will be notified")).to_be_visible()
    async with page.expect_event("requestfailed", lambda each: each in asked):
        await page.evaluate(_HIDE, "hidden")
    assert len(asked) == 1
    await page.evaluate(_HIDE, "")
    await expect(page.get_by_role("status")).to_contain_text("A100: queued")
    assert len(asked) == 2
    await page.evaluate("document.querySelector('[data-reload]').removeAttribute('data-reload')")
    await page.evaluate("() => Object.defineProperty(document, 'hidden', { get: () => true })")
    await scene.shown.judge("A100")
    await expect(page).to_have_title(f"Passed · Submission {own.id}")
    await expect(page.get_by_text("You will be notified")).to_be_hidden()
    assert await page.evaluate("window.noted") == [f"Passed · Submission {own.id}"]


async def test_a_difference_has_two_columns_where_there_is_room_and_else_one(scene: Scene) -> None:
    """Without scripts; what is folded opens by keyboard."""
    context = await scene.browser.new_context(java_script_enabled=False, viewport=DESK)  # type: ignore[arg-type]
    page = await context.new_page()
    await page.goto(scene.at("/submissions/{best}"))
    await page.get_by_label("or with any number").fill(f"#{scene.numbers['refused']}")
    await page.get_by_role("button", name="Compare", exact=True).click()
    old, new = page.locator("td.old").last, page.locator("td.new").last
    await expect(old.locator("del")).to_have_count(1)
    left, right = await old.bounding_box(), await new.bounding_box()
    assert left is not None
    assert right is not None
    assert left["y"] == right["y"]
    assert left["x"] + left["width"] < right["x"]
    folded = page.locator("td:visible", has_text="import triton.language as tl")
    await expect(folded).to_have_count(0)
    await page.locator("summary").first.press("Enter")
    await expect(folded).to_have_count(2)
    await page.set_viewport_size(SMALL_PHONE)  # type: ignore[arg-type]
    above, below = await old.bounding_box(), await new.bounding_box()
    assert above is not None
    assert below is not None
    assert above["x"] == below["x"]
    assert above["y"] + above["height"] <= below["y"]
    await expect(folded).to_have_count(1)
    await context.close()


async def test_a_table_on_a_wide_page_has_its_headings_above_their_columns(
    scene: Scene, page: Page
) -> None:
    await page.set_viewport_size({"width": 1280, "height": 900})
    await page.goto(scene.at("/submissions/{best}"))
    cases = page.locator("table.stack").first
    headings, cells = cases.locator("thead th"), cases.locator("tbody tr").first.locator("th, td")
    count = await headings.count()
    assert count == await cells.count() > 2
    for number in range(count):
        above = await headings.nth(number).bounding_box()
        below = await cells.nth(number).bounding_box()
        assert above is not None
        assert below is not None
        assert above["x"] == pytest.approx(below["x"])
        assert above["width"] == pytest.approx(below["width"])


async def test_without_scripts_everything_can_still_be_read(scene: Scene) -> None:
    context = await scene.browser.new_context(java_script_enabled=False)
    page = await context.new_page()
    await page.goto(scene.at("/boards/vectoradd"))
    await expect(page.get_by_role("row", name="Frances")).to_be_visible()
    await expect(page.locator("#theme")).to_be_hidden()
    await page.get_by_label("Person").fill("franc")
    await page.get_by_role("button", name="Show").click()
    await expect(page.locator("table.standings tbody tr")).to_have_count(1)
    await page.get_by_role("link", name="The season as a table").click()
    records = page.get_by_role("region", name="Records")
    await expect(records.get_by_role("link", name="#").first).to_be_visible()
    await context.close()
