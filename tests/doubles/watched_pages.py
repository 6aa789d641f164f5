"""Checks of pages in a real browser: its console, axe in both themes, and the width of a phone."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect

expect.set_options(timeout=20_000)  # on a busy machine its own five seconds are too few
CHROMIUM = Path("/usr/bin/chromium")
DESK = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
SMALL_PHONE = {"width": 360, "height": 740}
COLOR_RULES = ["color-contrast", "link-in-text-block"]
"""The rules of axe whose findings a theme can change."""
_REPEATED = """() => {
  const ids = [...document.querySelectorAll("[id]")].map((each) => each.id);
  return ids.filter((each, at) => ids.indexOf(each) !== at);
}"""
_UNFOLD = """() => {
  for (const each of document.querySelectorAll("details:not([open])"))
    each.open = each.dataset.folded = true;
}"""
_FOLD = """() => {
  for (const each of document.querySelectorAll("details[data-folded]")) {
    each.open = false;
    delete each.dataset.folded;
  }
}"""
_CUT = """() => [...document.querySelectorAll("main *")]
  .filter((each) => each.scrollWidth > each.clientWidth + 1 && each.clientWidth > 1
    && getComputedStyle(each).overflowX !== "visible"
    && !each.matches(".log, .code, .statement pre, .canvas, .hidden-words, .name, math, input, "
      + "select, textarea"))
  .map((each) => `${each.tagName}.${each.className}: ${each.textContent.trim().slice(0, 60)}`)"""
"""What hides a part of itself or has to be scrolled sideways.

Sources, formulas and names of people may.
"""


@asynccontextmanager
async def opened_chromium() -> AsyncIterator[Browser]:
    """A real browser."""
    async with async_playwright() as played:
        browser = await played.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-background-networking"]
        )
        yield browser
        await browser.close()


@dataclass
class Faults:
    """Console messages, script errors, dialogs and requests elsewhere of pages."""

    found: list[str] = field(default_factory=list)

    def watch_all(self, context: BrowserContext, home: str) -> None:
        """Collect those of every page that this browser opens."""
        context.on("page", lambda page: self.watch(page, home))

    def watch(self, page: Page, home: str) -> None:
        """Collect them from now on; `home` is the one address that may be requested."""
        page.on("console", lambda said: self.found.append(said.text))
        page.on("pageerror", lambda error: self.found.append(str(error)))
        page.on("dialog", lambda dialog: self.found.append(f"a dialog: {dialog.message}"))
        page.on(
            "request",
            lambda asked: (
                None
                if asked.url.startswith((home, "data:", "blob:"))
                else self.found.append(asked.url)
            ),
        )

    @asynccontextmanager
    async def expecting(self, page: Page, words: str) -> AsyncIterator[None]:
        """Remove one console message with these words, which this step must produce."""
        async with page.expect_console_message(lambda said: words in said.text) as awaited:
            yield
        self.found.remove((await awaited.value).text)


async def look(page: Page) -> None:
    """Check the page: by axe in both themes at a desk and on a phone, and its width on a phone."""
    before, faults = page.viewport_size, list[str]()
    for scheme in ("light", "dark"):
        await page.emulate_media(color_scheme=scheme)
        for size in (DESK, PHONE):
            await page.set_viewport_size(size)  # type: ignore[arg-type]
            rules = None if scheme == "light" else COLOR_RULES
            found = await violations(page, rules)
            faults += [f"{scheme} {size['width']}: {each}" for each in found]
    await page.emulate_media(color_scheme="light")
    faults += await sideways(page)
    faults += [f"an id twice: {each}" for each in await page.evaluate(_REPEATED)]
    if before is not None:
        await page.set_viewport_size(before)
    assert not faults, (page.url, faults)


async def violations(page: Page, rules: list[str] | None = None) -> list[str]:
    """Return what axe finds, of any impact; by default with all its rules."""
    options = {} if rules is None else {"runOnly": {"type": "rule", "values": rules}}
    found = (await Axe().run(page, options=options)).response["violations"]
    return [f"{each['id']}: {[node['html'] for node in each['nodes']][:3]}" for each in found]


async def sideways(page: Page) -> list[str]:
    """Return what is cut or has to be scrolled sideways; what is folded is opened meanwhile."""
    await page.evaluate(_UNFOLD)
    found = []
    for size in (DESK, SMALL_PHONE):
        await page.set_viewport_size(size)  # type: ignore[arg-type]
        width = await page.evaluate("document.scrollingElement.scrollWidth")
        found += [f"{width} px wide at {size['width']} px"] if width > size["width"] else []
        cut = await page.evaluate(_CUT)
        found += [f"cut or scrolled sideways at {size['width']} px: {each}" for each in cut]
    await page.evaluate(_FOLD)
    return found
