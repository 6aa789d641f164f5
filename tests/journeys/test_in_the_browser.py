"""Grace follows a link to a board in a browser, and wants to be ranked; Ken watches that board.

Grace begins as a stranger with a token. Her second kernel has a mistake, which she mends on the
page. Ada, an admin, makes a board from a zip that the command line packed, and bans somebody from
the page of a submission. Every page that they see
is checked by axe, light and dark, and at the width of a phone. Nothing is loaded from elsewhere.
"""

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from tests.e2e.command import Podium, serving_identity

pytest.importorskip("playwright", reason="the package playwright is not installed")
pytest.importorskip("axe_playwright_python", reason="axe for playwright is not installed")

from playwright.async_api import Browser, BrowserContext, Locator, Page, expect

from tests.doubles.watched_pages import CHROMIUM, DESK, Faults, look, opened_chromium

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not CHROMIUM.exists(), reason="Debian's chromium is not installed"),
]
MOST_CLICKS = 9
LEAST_CLICKS = 6
"""Signing in, the template, a link, a file and a button; fewer would be a counter that fails."""
JUDGE_MS = 150_000
CHECK_MS = 300_000
MISTAKE = "def custom_kernel(data):\n    source, output = data\n    output.copi_(source)\n"
IN_ZONE = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d GMT\+5:30$")
_HAS_DRAFT = "() => JSON.stringify(localStorage).includes('output.copy_')"
_COUNT = """
addEventListener("pointerdown", (event) => event.isTrusted && clicked(), true);
addEventListener("keydown", (event) => event.key === "Enter" && clicked(), true);
addEventListener("change", (event) => event.target.matches("input[type=file]") && clicked(), true);
"""
"""Reports what the person does: mouse presses, the Enter key, and files chosen by a click."""


@pytest.fixture(scope="module")
def podium() -> Iterator[Podium]:
    with serving_identity() as made:
        yield made


@dataclass
class Person:
    """A person at a browser, whose clicks are counted and whose console messages are kept."""

    name: str
    page: Page
    podium: Podium
    clicks: int = 0
    faults: Faults = field(default_factory=Faults)

    async def counted(self, context: BrowserContext) -> None:
        """Count the clicks in every page of this browser, by the events that they cause there."""

        def count() -> None:
            self.clicks += 1

        await context.expose_function("clicked", count)
        await context.add_init_script(_COUNT)

    async def look(self) -> None:
        """Check the page as it is now."""
        await look(self.page)

    def link(self, name: str) -> Locator:
        return self.page.get_by_role("link", name=name)

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)

    def token(self, *rights: str) -> str:
        made = self.podium("token", "create", "--person", self.name, *rights)
        assert made.returncode == 0, made.stderr
        return made.stdout.strip()

    async def sign_in(self, *rights: str) -> None:
        """Sign in by the link in the page's header, and return to the page."""
        there = self.page.url.partition("#")[0]
        await self.link("Sign in").first.click()
        await self.page.get_by_label("Personal token").fill(self.token(*rights))
        await self.button("Sign in by token").click()
        await self.page.wait_for_url(lambda url: url.startswith(there))


@asynccontextmanager
async def at_a_browser(podium: Podium, browser: Browser, name: str) -> AsyncIterator[Person]:
    home = podium.environment["URL"]
    context = await browser.new_context(
        viewport=DESK,  # type: ignore[arg-type]
        base_url=home,
        timezone_id="Asia/Kolkata",
    )
    context.set_default_timeout(20_000)
    faults = Faults()
    faults.watch_all(context, home)
    person = Person(name, await context.new_page(), podium, faults=faults)
    await person.counted(context)
    yield person
    await context.close()
    assert not faults.found


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    async with opened_chromium() as opened:
        yield opened


async def test_a_person_gets_from_a_link_to_a_rank_while_another_one_watches(
    podium: Podium, browser: Browser
) -> None:
    async with (
        at_a_browser(podium, browser, "grace") as grace,
        at_a_browser(podium, browser, "ken") as ken,
    ):
        await ken.page.goto("/boards/identity")
        await expect(ken.page.get_by_text("No ranked submissions on CPU yet.")).to_be_visible()
        await grace.page.goto("/boards/identity")
        await grace.look()
        await grace.sign_in()
        async with grace.page.expect_download() as begun:
            await grace.link("Template in").click()
        template = podium.folder / (await begun.value).suggested_filename
        await (await begun.value).save_as(template)
        await grace.link("Submit a kernel").click()
        await grace.page.locator("#file").set_input_files(template)
        await expect(grace.page.get_by_label("CPU")).to_be_checked()
        await grace.look()
        await grace.button("Submit").click()
        await expect(grace.page).to_have_title(re.compile("^(Queued|Running) · "))
        won = grace.page.locator("[data-won]")
        await expect(won).to_contain_text("1st of 1 on CPU", timeout=JUDGE_MS)
        await expect(grace.page).to_have_title(re.compile("^Passed · "))
        assert LEAST_CLICKS <= grace.clicks <= MOST_CLICKS
        row = ken.page.get_by_role("row", name="grace")
        await expect(row).to_be_visible()  # without a reload
        await the_season_has_one_run(ken.page)
        await ken.look()
        await grace.look()
        await grace.link("View standings").click()
        await expect(grace.page.locator(".own")).to_contain_text("You of 1")
        await grace.look()


async def the_season_has_one_run(page: Page) -> None:
    """Its plot appears without a reload; the box about the run has the time in Ken's zone."""
    await expect(page.locator("figure[data-drawn]")).to_be_visible()
    await page.locator("#season").scroll_into_view_if_needed()
    plot = await page.locator(".u-over").bounding_box()
    assert plot is not None
    when = page.locator(".run:not([hidden]) time")
    for part in range(41):
        await page.mouse.move(plot["x"] + plot["width"] * part / 40, plot["y"] + plot["height"] / 2)
        if await when.count():
            break
    await expect(when).to_have_text(IN_ZONE)
    await expect(when).to_have_attribute("title", re.compile(" UTC$"))


async def test_a_mistake_is_mended_on_the_page(podium: Podium, browser: Browser) -> None:
    async with at_a_browser(podium, browser, "radia") as radia:
        page = radia.page
        await failed_by_mistake(radia)
        await edited(radia)
        await page.keyboard.press("Control+Enter")
        await expect(page.locator("#editor .cm-deletedChunk").first).to_contain_text("copi_")
        await expect(page.get_by_text("These are the changes since the last try.")).to_be_visible()
        await radia.look()
        await page.locator("#editor .cm-content").focus()
        await page.keyboard.press("Control+Enter")
        await page.wait_for_url(re.compile(r"/submit/\d+$"))
        await expect(page.locator("[data-ended]")).to_be_visible(timeout=JUDGE_MS)
        await expect(page).to_have_title(re.compile("^Passed · "))
        assert not await page.evaluate(_HAS_DRAFT)
        await page.goto(page.url.replace("/submit/", "/submissions/"))
        choice = page.get_by_label("Compare with", exact=True).locator("option").first
        await expect(choice).to_have_text(
            re.compile(f"{IN_ZONE.pattern[1:-1]}, test; CPU: crashed")
        )
        await expect(choice).to_have_attribute("title", re.compile(" UTC, "))


async def failed_by_mistake(radia: Person) -> None:
    """Paste a source with a mistake, and follow its run to the line that failed."""
    page = radia.page
    await page.goto("/boards/identity")
    await radia.sign_in()
    await radia.link("Submit a kernel").click()
    await page.get_by_text("Paste the source instead").click()
    await page.get_by_role("textbox", name="Source").fill(MISTAKE)
    await page.get_by_role("textbox", name="Source").blur()
    await expect(page.get_by_label("Board", exact=True)).to_have_value("identity")
    await page.get_by_role("radio", name="Test only the tests, without timing").check()
    await radia.button("Submit").click()
    await expect(page.locator("[data-ended]")).to_be_visible(timeout=JUDGE_MS)
    await expect(page).to_have_title(re.compile("^Crashed · "))
    await radia.link("line 3").click()
    await expect(page.locator("#line-3")).to_be_in_viewport()
    await expect(page.locator(".badge.bad", has_text="crashed")).to_be_visible()
    await radia.look()


async def edited(radia: Person) -> None:
    """Mend the line in the editor, and find the draft again after a reload."""
    page = radia.page
    await radia.link("Fix and resubmit").click()
    await expect(page.locator("#editor .cm-failed")).to_have_text("    output.copi_(source)")
    await expect(page.locator("[data-send]")).to_be_in_viewport(ratio=1)
    await radia.look()
    await page.locator("#editor .cm-content").focus()
    await page.keyboard.press("Shift+End")
    await page.keyboard.type("    output.copy_(source)")
    await page.keyboard.press("Control+End")
    await page.keyboard.type("    return output")
    await page.keyboard.press("Control+a")
    await page.keyboard.type("x")  # over several lines, which the browser does with inline styles
    await expect(page.locator("#editor .cm-line")).to_have_text(["x"])
    await page.keyboard.press("Control+z")
    await page.wait_for_function(_HAS_DRAFT)
    await page.reload()
    await expect(page.get_by_text("Your draft was restored.")).to_be_visible()


async def test_a_form_of_an_ended_session_keeps_what_was_typed(
    podium: Podium, browser: Browser
) -> None:
    async with at_a_browser(podium, browser, "joan") as joan:
        page = joan.page
        await page.goto("/boards/identity")
        await joan.sign_in()
        await joan.link("Submit a kernel").click()
        await page.locator("#file").set_input_files(
            {"name": "joan.py", "mimeType": "text/x-python", "buffer": MISTAKE.encode()}
        )
        await page.get_by_role("radio", name="Test only the tests, without timing").check()
        other = await page.context.new_page()
        await other.goto("/me")
        async with other.expect_navigation():
            await other.get_by_role("button", name="Sign out", exact=True).click()
        async with joan.faults.expecting(page, "401 (Unauthorized)"):
            await joan.button("Submit").click()
        await expect(page.get_by_role("alert")).to_contain_text("Nothing was sent")
        await joan.look()
        async with page.context.expect_page() as opened:
            await joan.link("Sign in in another tab").click()
        there = await opened.value
        await there.get_by_label("Personal token").fill(joan.token())
        await there.get_by_role("button", name="Sign in by token", exact=True).click()
        await there.wait_for_url("**/me")
        await page.bring_to_front()
        await joan.button("Submit").click()
        await page.wait_for_url(re.compile(r"/submit/\d+$"))
        await expect(page.get_by_text("joan.py").first).to_be_visible()


async def test_an_admin_bans_from_a_submission(podium: Podium, browser: Browser) -> None:
    podium.queue("mallory", "")
    async with (
        at_a_browser(podium, browser, "ada") as ada,
        at_a_browser(podium, browser, "mallory") as mallory,
    ):
        await mallory.page.goto("/boards/identity")
        await mallory.sign_in()
        await mallory.page.goto("/me")
        await mallory.link("Public page").click()
        await mallory.page.locator("#history ~ div a").first.click()
        where = mallory.page.url
        await expect(mallory.page.get_by_text("Moderation")).to_have_count(0)
        await ada.page.goto(where)
        await ada.sign_in("--admin")
        await expect(ada.page.get_by_text("local:mallory")).to_be_visible()
        submitted = ada.page.locator(".facts time")
        await expect(submitted).to_have_text(IN_ZONE)
        await expect(submitted).to_have_attribute("title", re.compile(" UTC$"))
        await ada.look()
        await ada.page.locator("summary", has_text="Ban").click()
        await ada.page.get_by_label("Until").fill("2099-01-31 18:00 CET")
        await ada.page.get_by_label("Why (the person can read it)").last.fill("spam")
        await ada.look()
        await ada.button("Ban").click()
        await ada.page.wait_for_url(f"{where}?done=banned")
        await expect(ada.page.get_by_text("spam (until 2099-01-31")).to_be_visible()
        await ada.look()
        await ada.link("audit log").click()
        await expect(ada.page.get_by_role("row", name="local:mallory").first).to_contain_text("ban")
        await mallory.page.goto("/me")
        await expect(mallory.page.get_by_text("You are banned from submitting")).to_be_visible()


async def test_a_board_comes_from_a_packed_zip_which_no_error_asks_for_again(
    podium: Podium, browser: Browser
) -> None:
    for command in (("task", "new", "doubling"), ("task", "pack", "tasks/doubling")):
        done = podium(*command)
        assert done.returncode == 0, done.stderr
    async with at_a_browser(podium, browser, "ada") as ada:
        page = ada.page
        await page.goto("/")
        await ada.look()
        await ada.sign_in("--admin")
        await page.goto("/create")
        assert await page.evaluate("scrollY") == 0
        await page.get_by_label("Task zip").set_input_files(podium.folder / "doubling.zip")
        await page.get_by_label("CPU").check()
        await page.get_by_label("Name", exact=True).fill("identity")
        async with ada.faults.expecting(page, "409 (Conflict)"):
            await ada.button("Check and publish").click()
        await expect(page.get_by_role("alert")).to_contain_text("There is a board")
        await expect(page.get_by_text("doubling.zip is kept")).to_be_visible()
        await expect(page.locator("#found")).to_contain_text("Task doubling")
        await ada.look()
        await page.get_by_label("Name", exact=True).fill("doubling")
        await ada.button("Check and publish").click()
        outcome = page.locator(".outcome")
        await expect(outcome).to_contain_text("doubling on CPU is published.", timeout=CHECK_MS)
        await ada.look()
        await ada.link("View board").click()
        await expect(page.get_by_role("heading", name="Task")).to_be_visible()
        await ada.look()
        await page.goto("/docs/verdicts#wrong-answer")
        await ada.look()
        await hidden_but_for_who_has_the_link(ada, podium, browser)


async def hidden_but_for_who_has_the_link(ada: Person, podium: Podium, browser: Browser) -> None:
    """Ada makes the board private and sends a link, with which Hedy joins after signing in."""
    page = ada.page
    await page.goto("/queue")
    await ada.look()
    await page.goto("/edit/doubling")
    await page.get_by_label("Only invited people").check()
    await ada.button("Save").click()
    await page.wait_for_url("**/edit/doubling?done=changed")
    await page.get_by_label("People", exact=True).fill("1")
    await ada.button("Create a link").click()
    link = await page.locator("#invite-url").inner_text()
    await ada.look()
    async with at_a_browser(podium, browser, "hedy") as hedy:
        await hedy.page.goto(link)
        await hedy.page.get_by_label("Personal token").fill(hedy.token())
        await hedy.button("Sign in by token").click()
        await expect(hedy.page.get_by_text("the private board doubling")).to_be_visible()
        await hedy.look()
        await hedy.button("Join").click()
        await expect(hedy.page.get_by_role("heading", level=1)).to_have_text("doubling")
    await page.goto("/edit/doubling")
    await expect(page.get_by_text("1 of 1 person joined")).to_be_visible()
    await page.get_by_role("button", name="Revoke").click()
    await expect(page.get_by_text("The invite link no longer works")).to_be_visible()
    await ada.look()
