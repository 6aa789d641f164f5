"""Ada follows how kernels became faster: from a dot of the season to what changed, and why.

The runs, a profile among them, are those of a store in memory: its times are known, and no machine
without a GPU can profile a kernel. Browser and server are real. Each page is checked by axe, light
and dark, at a desk and on a phone. Nothing is loaded from elsewhere, and the console stays empty.
"""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from bot.domain.ids import SubmissionId
from bot.web.app import serving
from bot.web.context import HttpSettings
from tests.doubles.agents import make_door
from tests.doubles.exhibition import Exhibition, make_exhibition
from tests.doubles.shapes import add_shapes, profiled, referenced, shaped

pytest.importorskip("playwright", reason="the package playwright is not installed")
pytest.importorskip("axe_playwright_python", reason="axe for playwright is not installed")

from playwright.async_api import Browser, Page, expect

from tests.doubles.watched_pages import CHROMIUM, DESK, PHONE, Faults, look, opened_chromium

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not CHROMIUM.exists(), reason="Debian's chromium is not installed"),
]
_INK_AT = """({x, y}) => {
  const [shown, over] = [".u-wrap canvas", ".u-over"].map((each) => document.querySelector(each));
  const copy = Object.assign(document.createElement("canvas"), {
    width: shown.width,
    height: shown.height,
  }).getContext("2d", { willReadFrequently: true });
  copy.drawImage(shown, 0, 0);
  const [left, top] = [over.offsetLeft + x, over.offsetTop + y].map(Math.round);
  return [...copy.getImageData(left, top, 1, 1).data].slice(0, 3).join(",");
}"""
"""The color that is drawn at a place of the plot."""
_INK_OF = """(name) => {
  const probe = document.body.appendChild(document.createElement("i"));
  probe.style.color = `var(${name})`;
  const found = getComputedStyle(probe).color.match(/\\d+/g).join(",");
  probe.remove();
  return found;
}"""


@dataclass(frozen=True, slots=True)
class Stage:
    """A served exhibition, Ada's and Ken's runs on the board `shapes`, and a browser."""

    shown: Exhibition
    url: str
    browser: Browser
    ken: SubmissionId
    slow: SubmissionId
    best: SubmissionId
    profile: SubmissionId

    @asynccontextmanager
    async def at(self, path: str, *, touch: bool = False) -> AsyncIterator[Page]:
        """Open a page as Ada."""
        token = await self.shown.token("Ada")
        context = await self.browser.new_context(
            base_url=self.url,
            color_scheme="light",
            has_touch=touch,
            viewport=PHONE if touch else DESK,  # type: ignore[arg-type]
            extra_http_headers={"Authorization": f"Bearer {token}"},
        )
        context.set_default_timeout(20_000)
        page, faults = await context.new_page(), Faults()
        faults.watch(page, self.url)
        await page.goto(path)
        yield page
        await context.close()
        assert not faults.found


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    """Four runs within one second, of which Ada's second one is her best."""
    shown = await make_exhibition(rounds=1)
    await add_shapes(shown)
    await referenced(shown, 40_000, 80_000, 900_000)
    slow = await shaped(shown, "Ada", 30_000, 90_000, 800_000)
    await shaped(shown, "Grace", 25_000, 70_000, 700_000)
    ken = await shaped(shown, "Ken", 9_000, 30_000, 300_000)
    best = await shaped(shown, "Ada", 12_000, 40_000, 400_000)
    profile = await profiled(shown, "Ada", "add_kernel(float *, int)", "fill<b>(void)")
    shown.clock.advance(86_400)
    door = make_door(shown.store, shown.clock)
    async with serving(door, HttpSettings("127.0.0.1", 0)) as url, opened_chromium() as browser:
        yield Stage(shown, url, browser, ken, slow, best, profile)


async def test_a_dot_of_the_season_leads_to_the_change_that_made_the_kernel_faster(
    stage: Stage,
) -> None:
    async with stage.at("/boards/shapes") as page:
        await expect(page.locator("[data-chart]")).to_have_attribute("data-drawn", "")
        await look(page)
        dots = await dots_of(page)
        assert sorted(who for who, _, _ in dots) == ["Ada", "Ada", "Grace", "Ken"]
        for who, _, ink in dots:
            name = "--gold" if who == "Ada" else "--edge"
            assert ink == await page.evaluate(_INK_OF, name), who
        best = max((each[1] for each in dots if each[0] == "Ada"), key=lambda place: place["y"])
        await page.locator(".u-over").click(position=best)  # type: ignore[arg-type]
        card = page.locator(".run.kept")
        await expect(card.get_by_role("link", name=f"Submission #{stage.best}")).to_be_visible()
        await card.get_by_role("link", name=f"Changes since #{stage.slow}").click()
        await expect(page).to_have_title(re.compile(f"^#{stage.slow} and #{stage.best}"))
        await expect(page.locator(".sides .kn").first).to_have_text("import")
        times = page.get_by_role("region", name="Time of each benchmark")
        await expect(times.get_by_role("row")).to_have_count(4)
        await expect(times.get_by_text("2.5x").first).to_be_visible()  # 30 to 12 µs
        await look(page)
        await page.get_by_role("link", name="Swap sides").click()
        await expect(page).to_have_title(re.compile(f"^#{stage.best} and #{stage.slow}"))


async def dots_of(page: Page) -> list[tuple[str, dict[str, float], str]]:
    """Return the person, place and text of each run that the mouse finds at the season's start."""
    over = page.locator(".u-over")
    await page.locator(".canvas").scroll_into_view_if_needed()
    box = await over.bounding_box()
    assert box is not None
    found = {}
    for y in range(1, int(box["height"]), 3):
        await over.hover(position={"x": 8, "y": y})
        if await page.locator(".run").is_visible():
            who = (await page.locator(".run strong").inner_text()).strip()
            left, top = await page.locator(".ring").evaluate(
                "it => [it.style.left, it.style.top].map(parseFloat)"
            )
            place = {"x": left, "y": top}
            found[top] = (who, place, await page.evaluate(_INK_AT, place))
    return list(found.values())


async def test_by_touch_a_dot_leads_to_its_submission(stage: Stage) -> None:
    async with stage.at("/boards/shapes", touch=True) as page:
        await expect(page.locator("[data-chart]")).to_have_attribute("data-drawn", "")
        over = page.locator(".u-over")
        box = await over.bounding_box()
        assert box is not None
        await over.tap(position={"x": 4, "y": box["height"] - 8})  # the fastest
        await expect(page.locator(".run.kept strong")).to_have_text("Ken")
        await page.locator(".run.kept").get_by_role("link", name="Submission").tap()
        await page.wait_for_url(f"**/submissions/{stage.ken}")
        await page.go_back()
        await over.tap(position={"x": box["width"] - 4, "y": 4})
        await expect(page.locator(".run")).to_be_hidden()


async def test_a_submission_is_compared_with_others_and_the_card(stage: Stage) -> None:
    async with stage.at(f"/submissions/{stage.slow}") as page:
        table = page.get_by_role("region", name="Time of each benchmark")
        first = table.get_by_role("row").nth(1)
        for words in ("1.33x", "0.30x", "0.40x"):  # the reference, Ken, and Ada's best
            await expect(first.get_by_text(words)).to_be_visible()
        await expect(table.get_by_role("link", name=f"#{stage.ken}")).to_be_visible()
        await expect(table.get_by_text("84%")).to_be_visible()
        await expect(page.locator(".roofline circle")).to_have_count(3)
        await look(page)


async def test_a_profile_is_drawn_and_says_what_matters(stage: Stage) -> None:
    async with stage.at(f"/submissions/{stage.profile}") as page:
        found = page.locator(".findings li")
        await expect(found).to_have_count(3)
        await expect(found.first).to_contain_text("estimated speedup 78 % of the kernel")
        kernel = page.get_by_role("region", name="Kernel 2 of case 1")
        await expect(kernel).to_contain_text("fill<b>(void)")
        await expect(kernel).to_contain_text("168 per thread")
        await expect(kernel.get_by_role("row", name="Occupancy")).to_contain_text("14%")
        await look(page)
