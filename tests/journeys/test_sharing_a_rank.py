"""Grace is ranked in a competition and says how; afterwards Ken follows a link to the winners.

Grace writes a note on the page of her submission. Ada closes the competition. Ken, who has no
account, sees the schedule, the gallery with Grace's kernel and note, and her medal; he copies a
link, subscribes to the records and takes the schedule into his calendar. Every page is checked by
axe, light and dark, and at the width of a phone. Nothing is loaded from elsewhere.
"""

import re
import socket
from collections.abc import Iterator
from io import BytesIO
from xml.etree import ElementTree as ET

import pytest
from PIL import Image

pytest.importorskip("playwright", reason="the package playwright is not installed")

from playwright.async_api import Browser, expect

from tests.e2e.command import IDENTITY, Podium, fresh, terminate, timed_briefly
from tests.journeys import test_in_the_browser as shared
from tests.journeys.test_in_the_browser import Person, at_a_browser

pytestmark = shared.pytestmark
browser = shared.browser
CUP = """\
name: Spring cup
ranks: [25, 18]
problems:
  - {directory: identity, name: identity, gpus: [CPU], deadline: 2099-06-30}
"""
NOTE = "It **copies** once, with `out.copy_`. <script>alert(1)</script>"
_REFUSED = """
navigator.clipboard.writeText = () => Promise.reject(new Error("refused"));
document.execCommand = () => false;
"""


@pytest.fixture(scope="module")
def podium() -> Iterator[Podium]:
    """A competition of one board, up at the address that is its public one."""
    with fresh("local") as made:
        timed_briefly(IDENTITY, made.folder)
        cup = made.folder / "brief" / "cup.yaml"
        cup.write_text(CUP, encoding="utf-8")
        published = made("task", "publish", cup, "--unchecked")
        assert published.returncode == 0, published.stderr
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        made.environment["PODIUM_HTTP_PORT"] = str(port)
        made.environment["URL"] = f"http://127.0.0.1:{port}"
        made.environment["PODIUM_PUBLIC_URL"] = made.environment["URL"]
        process = made.up()
        try:
            yield made
        finally:
            terminate(process)


async def test_a_winner_is_found_by_a_link(podium: Podium, browser: Browser) -> None:
    async with (
        at_a_browser(podium, browser, "grace") as grace,
        at_a_browser(podium, browser, "ada") as ada,
        at_a_browser(podium, browser, "ken") as ken,
    ):
        await ken.page.goto("/boards/identity/gallery")
        await expect(ken.page.get_by_text("The gallery opens when the board")).to_be_visible()
        await ranked_with_a_note(grace)
        number = grace.page.url.partition("#")[0].rpartition("/")[2]
        await closed(ada)
        await the_winner_is_seen(ken)
        await links_are_copied(ken, f"/submissions/{number}")
        await other_programs_get_them(ken, number)


async def ranked_with_a_note(grace: Person) -> None:
    page = grace.page
    await page.goto("/boards/identity")
    await grace.sign_in()
    async with page.expect_download() as begun:
        await grace.link("Template in").click()
    template = grace.podium.folder / (await begun.value).suggested_filename
    await (await begun.value).save_as(template)
    await grace.link("Submit a kernel").click()
    await page.locator("#file").set_input_files(template)
    await grace.button("Submit").click()
    won = page.locator("[data-won]")
    await expect(won).to_contain_text("1st of 1 on CPU", timeout=shared.JUDGE_MS)
    await page.goto(page.url.replace("/submit/", "/submissions/"))
    await page.get_by_text("Write a note").click()
    await page.get_by_label("Note (Markdown)").fill(NOTE)
    await grace.look()
    await grace.button("Save the note").click()
    await expect(page.locator(".statement strong", has_text="copies")).to_be_visible()
    await expect(page.locator(".statement")).to_contain_text("<script>alert(1)</script>")
    await grace.look()


async def closed(ada: Person) -> None:
    await ada.page.goto("/competitions/Spring%20cup")
    await ada.sign_in("--admin")
    await ada.link("Edit competition").click()
    await ada.button("Close now").click()
    await expect(ada.page.get_by_text("The competition is closed.")).to_be_visible()


async def the_winner_is_seen(ken: Person) -> None:
    page = ken.page
    await page.goto("/competitions/Spring%20cup")
    await expect(page.get_by_role("row", name="grace")).to_contain_text("25.00")
    await ken.look()
    await ken.link("winning kernels").click()
    await expect(page.get_by_role("heading", name="grace")).to_be_visible()
    await expect(page.locator(".statement strong", has_text="copies")).to_be_visible()
    await page.locator("section.kernel details summary").click()
    await expect(page.get_by_text("custom_kernel").first).to_be_visible()
    await ken.look()
    await ken.link("grace").click()
    await expect(page.locator(".facts .medal")).to_contain_text("1st")
    await ken.look()
    await page.goto("/boards/identity")
    await expect(ken.link("Winning kernels")).to_be_visible()
    await ken.look()


async def links_are_copied(ken: Person, path: str) -> None:
    """Copy links with the browser's permission, and without it by selecting the text."""
    page, home = ken.page, ken.podium.environment["URL"]
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    read = "navigator.clipboard.readText()"
    await page.goto(path)
    await ken.button("Copy link").click()
    await expect(ken.button("Copied")).to_be_visible()
    assert await page.evaluate(read) == home + path
    await expect(ken.button("Copied")).to_have_count(0)
    await page.locator(".copyable:has(.code) > .copy").click()
    await expect(ken.button("Copied")).to_be_visible()
    assert "def custom_kernel" in await page.evaluate(read)
    await page.add_init_script(_REFUSED)
    await page.goto(path)
    await ken.button("Copy link").click()
    await expect(ken.button("Selected: copy it with Ctrl+C")).to_be_visible()
    assert await page.evaluate("getSelection().toString()") == home + path
    await ken.look()


async def other_programs_get_them(ken: Person, number: str) -> None:
    page, home = ken.page, ken.podium.environment["URL"]
    image = await page.locator("meta[property='og:image']").get_attribute("content")
    assert image == f"{home}/submissions/{number}/card.png"
    picture = await page.request.get(image)
    assert Image.open(BytesIO(await picture.body())).size == (1200, 630)
    await page.goto("/boards/identity")
    feed = await page.locator("link[type='application/atom+xml']").get_attribute("href")
    assert feed is not None
    text = await (await page.request.get(feed)).text()
    (entry,) = ET.fromstring(text).findall("{*}entry")  # noqa: S314 - of our own server
    assert re.search(r" on CPU by grace$", entry.findtext("{*}title") or "")
    await page.goto("/competitions/Spring%20cup")
    link = await ken.link("Add to a calendar").get_attribute("href")
    assert link is not None
    assert "SUMMARY:identity (Spring cup)" in await (await page.request.get(link)).text()
