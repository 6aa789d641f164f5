"""The pages for acting in a real browser: in by token, a kernel dropped, and ranked at its end.

The door is served, the runner is a fake one with a dispatcher of its own, the store is in memory.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

import pytest
import pytest_asyncio
from typing_extensions import override

from bot.app.context import SystemClock
from bot.domain.accounts import TokenScope
from bot.domain.publication import PublishRequest
from bot.services.dispatch.config import DispatchConfig
from bot.services.dispatch.dispatcher import Dispatcher
from bot.services.dispatch.worker_queue import StoreQueue
from bot.services.publishing.check import ROUNDS
from bot.services.publishing.publish import publish
from bot.services.tokens import create_local_token
from bot.web.app import serving
from bot.web.context import HttpSettings, WebContext
from bot.web.publications import checking
from runners.backends import fake
from runners.contract.evaluation import EvaluationRequest
from runners.contract.runner import CallId
from runners.contract.task import Grader
from tests.doubles.agents import make_door
from tests.doubles.factories import make_task
from tests.doubles.memory_store import MemoryStore
from tests.doubles.scaffolded import code_of
from tests.doubles.task_zips import RIGHT, WITH_EVAL, packed, packed_competition

pytest.importorskip("playwright", reason="the package playwright is not installed")
pytest.importorskip("axe_playwright_python", reason="axe for playwright is not installed")

from playwright.async_api import Browser, Page, expect

from tests.doubles.watched_pages import CHROMIUM, DESK, Faults, look, opened_chromium

pytestmark = [
    pytest.mark.slow,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(not CHROMIUM.exists(), reason="Debian's chromium is not installed"),
]
KERNEL = """#!PODIUM leaderboard vectoradd
#!PODIUM gpus H100
# fake: verdict=passed seconds=4 time_us=29
def custom_kernel(data):
    return data
"""
CUP = """\
name: Winter cup
ranks: [25, 18]
problems:
  - {directory: double, name: cup-one, gpus: [CPU]}
  - {directory: triple, name: cup-two, gpus: [CPU], opens: 2098-01-01 09:00}
"""
_DROP = """([selector, name, text]) => {
  const data = new DataTransfer();
  data.items.add(new File([text], name, { type: "text/x-python" }));
  const zone = document.querySelector(selector);
  const rest = { dataTransfer: data, bubbles: true, cancelable: true };
  for (const kind of ["dragenter", "dragover", "drop"])
    zone.dispatchEvent(new DragEvent(kind, rest));
}"""


_PASTE = """(text) => {
  const data = new DataTransfer();
  data.setData("text/plain", text);
  const rest = { clipboardData: data, bubbles: true, cancelable: true };
  document.querySelector(".dropzone").dispatchEvent(new ClipboardEvent("paste", rest));
}"""


class Judge(fake.FakeRunner):
    """Of a task's own sources the right one passes; every other one says itself how it ends."""

    @override
    async def start(self, request: EvaluationRequest) -> CallId:
        if request.rounds == ROUNDS:  # of a check
            native = request.task.grader is Grader.NATIVE  # a task's own evaluation fails all
            right = native and code_of(request.source) == code_of(RIGHT)
            verdict = "passed" if right else "wrong_answer"
            directive = f"# fake: verdict={verdict} seconds=0.3\n"
            request = request.model_copy(update={"source": directive + request.source})
        return await super().start(request)


@dataclass(frozen=True, slots=True)
class Scene:
    """A served door with somebody who judges, the token of an admin, and a browser."""

    url: str
    door: WebContext
    token: str
    browser: Browser


@asynccontextmanager
async def staged() -> AsyncIterator[Scene]:
    """A board of two GPU types that Ada made, who is an admin."""
    clock = SystemClock()
    store = MemoryStore(clock)
    ada = await store.people.ensure("local:ada", "Ada")
    task = make_task(gpus=("H100", "CPU"), description="Add two vectors.")
    for each in (task, make_task(name="another", gpus=("H100", "CPU"))):
        await publish(store, clock, PublishRequest(ada.id), each)
    made = await create_local_token(
        store, clock, ada.id, "ada", scope=TokenScope.ADMIN, lifetime=timedelta(days=1)
    )
    known = await fake.create(slots={"H100": 2, "CPU": 8}).capabilities()
    runner = Judge("fake", known)
    door = make_door(store, clock)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(judging(store, runner, clock))
        await stack.enter_async_context(checking(door))
        url = await stack.enter_async_context(serving(door, HttpSettings("127.0.0.1", 0)))
        browser = await stack.enter_async_context(opened_chromium())
        yield Scene(url, door, made.secret, browser)


@asynccontextmanager
async def judging(
    store: MemoryStore, runner: fake.FakeRunner, clock: SystemClock
) -> AsyncIterator[None]:
    stop = asyncio.Event()
    config = DispatchConfig()
    dispatcher = Dispatcher(StoreQueue(store, config), (runner,), clock, config)
    task = asyncio.create_task(dispatcher.run(stop))
    try:
        yield
    finally:
        stop.set()
        await task


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene() -> AsyncIterator[Scene]:
    async with staged() as found:
        yield found


@pytest_asyncio.fixture(loop_scope="module")
async def page(scene: Scene) -> AsyncIterator[Page]:
    """A fresh browser, signed in by the token; what its console complains of fails the test."""
    context = await scene.browser.new_context(viewport=DESK)  # type: ignore[arg-type]
    context.set_default_timeout(20_000)
    page = await context.new_page()
    faults = Faults()
    faults.watch(page, scene.url)
    await page.goto(f"{scene.url}/submit?leaderboard=vectoradd")
    await page.get_by_label("Personal token").fill(scene.token)
    await page.get_by_role("button", name="Sign in by token").click()
    await expect(page).to_have_url(f"{scene.url}/submit?leaderboard=vectoradd")
    yield page
    await context.close()
    assert not faults.found


async def test_a_kernel_is_dropped_followed_and_ranked(scene: Scene, page: Page) -> None:
    await page.get_by_role("link", name="Submit", exact=True).click()
    await page.evaluate(_DROP, [".dropzone", "fast.py", KERNEL])
    await expect(page.get_by_text("fast.py, ")).to_be_visible()
    await expect(page.get_by_label("Board", exact=True)).to_have_value("vectoradd")
    await expect(page.get_by_label("H100")).to_be_checked()
    await expect(page.get_by_label("CPU")).not_to_be_checked()
    await page.get_by_role("button", name="Submit").click()
    await page.wait_for_url(re.compile(r"/submit/\d+$"))
    progress = page.locator(".card.progress")
    await expect(page.get_by_role("button", name="Cancel")).to_be_visible()
    await expect(page.locator("progress")).to_be_visible()
    await expect(progress).to_contain_text("H100: passed", timeout=30_000)
    await expect(progress).to_contain_text("1st of 1 on H100: 29.00 µs")
    await expect(page.locator("#said")).to_contain_text("1st of 1 on H100")
    await page.get_by_role("link", name="View standings").click()
    await expect(page.get_by_role("row", name="ada")).to_contain_text("29.00 µs")
    await page.go_back()
    await page.get_by_role("button", name="Run again").click()
    await page.get_by_role("button", name="Cancel").click()
    await expect(progress).to_contain_text("H100: cancelled")


async def test_a_double_click_submits_once(scene: Scene, page: Page) -> None:
    sent: list[str] = []
    page.on("request", lambda each: sent.append(each.url) if each.is_navigation_request() else None)
    await page.get_by_text("Paste the source instead").click()
    await page.get_by_role("textbox", name="Source").fill(KERNEL)
    await page.get_by_role("textbox", name="Source").blur()
    await page.get_by_role("radio", name="Test only the tests, without timing").check()
    await page.get_by_role("button", name="Submit").dblclick()
    await page.wait_for_url(re.compile(r"/submit/\d+$"))
    first = page.url
    again = page.get_by_role("button", name="Run again")
    await again.dblclick()
    await expect(page).not_to_have_url(first)
    await expect(again).to_be_visible(timeout=30_000)
    assert [each for each in sent if each.endswith(("/submit", "/again"))] == [
        f"{scene.url}/submit",
        f"{first}/again",
    ]


async def test_a_file_without_a_heading_keeps_the_chosen_board_and_the_gpu_type_of_the_tab(
    scene: Scene, page: Page
) -> None:
    await page.goto(f"{scene.url}/boards/vectoradd")
    await page.get_by_role("navigation", name="GPU types").get_by_role("link", name="CPU").click()
    await page.get_by_role("link", name="Submit a kernel").click()
    await _is_chosen(page, "vectoradd")
    plain = KERNEL.partition("# fake")[2]
    for script, given in ((_DROP, [".dropzone", "fast.py", f"#{plain}"]), (_PASTE, f"# {plain}")):
        async with page.expect_response("**/submit/look") as looked:
            await page.evaluate(script, given)
        await (await looked.value).finished()
        await expect(page.locator("#choice")).not_to_have_attribute("aria-busy", "true")
        await _is_chosen(page, "vectoradd")
    await expect(page.get_by_role("textbox", name="Source")).to_have_value(f"# {plain}")
    await page.get_by_role("button", name="Submit").click()
    await page.wait_for_url(re.compile(r"/submit/\d+$"))
    await expect(page.locator(".card.progress")).to_contain_text("CPU: ")
    await expect(page.get_by_role("link", name="vectoradd").first).to_be_visible()


async def test_a_pasted_source_stays_in_the_browser_until_it_is_sent(page: Page) -> None:
    form, source = page.url, page.get_by_role("textbox", name="Source")
    await page.get_by_text("Paste the source instead").click()
    await source.fill(KERNEL)
    await page.reload()
    await expect(source).to_have_value(KERNEL)
    await page.get_by_role("radio", name="Test only the tests, without timing").check()
    await page.get_by_role("button", name="Submit").click()
    await page.wait_for_url(re.compile(r"/submit/\d+$"))
    await page.goto(form)
    await page.get_by_text("Paste the source instead").click()
    await expect(source).to_have_value("")


async def test_a_pasted_source_is_looked_at_before_its_field_is_left(page: Page) -> None:
    await page.get_by_text("Paste the source instead").click()
    source = page.get_by_label("Source", exact=True)
    await source.fill(KERNEL.replace("vectoradd", "another"))
    await expect(page.get_by_label("Board", exact=True)).to_have_value("another", timeout=20_000)
    await expect(source).to_be_focused()


async def test_a_form_of_an_admin_stays_open_when_the_run_ends(scene: Scene, page: Page) -> None:
    long = KERNEL.replace("seconds=4", "seconds=600")
    await page.get_by_text("Paste the source instead").click()
    await page.get_by_label("Source", exact=True).fill(long)
    await expect(page.get_by_label("H100")).to_be_checked(timeout=20_000)
    await page.get_by_label("Source", exact=True).blur()
    await page.get_by_role("button", name="Submit").click()
    await page.wait_for_url(re.compile(r"/submit/\d+$"))
    followed = page.url
    shown = followed.replace("/submit/", "/submissions/")
    await page.goto(shown)
    await page.locator("summary", has_text="Disqualify").click()
    reason = page.locator("details[open] [name=reason]")
    await reason.fill("copied from")
    other = await page.context.new_page()
    await other.goto(followed)
    await other.get_by_role("button", name="Cancel").click()
    again = page.get_by_role("link", name="Reload the page")
    await expect(again).to_be_visible(timeout=30_000)
    await expect(page.get_by_role("status").last).to_contain_text("cancelled")
    await expect(reason).to_have_value("copied from")
    await again.click()
    await expect(page.get_by_role("heading", name="Progress")).to_have_count(0)


async def _is_chosen(page: Page, board: str) -> None:
    """Check that the form has this board, and of its two GPU types the second one."""
    await expect(page.get_by_label("Board", exact=True)).to_have_value(board)
    await expect(page.get_by_label("CPU")).to_be_checked()
    await expect(page.get_by_label("H100")).not_to_be_checked()


async def test_a_pasted_source_that_fails_says_why_and_keeps_no_rank(
    scene: Scene, page: Page
) -> None:
    await page.get_by_text("Paste the source instead").click()
    wrong = "# fake: verdict=build_failed message=no_such_module\n"
    await page.get_by_role("textbox", name="Source").fill(wrong)
    await page.get_by_role("textbox", name="Source").blur()
    await page.get_by_label("CPU").check()
    await page.get_by_role("radio", name="Test only the tests, without timing").check()
    await page.get_by_role("button", name="Submit").click()
    await page.wait_for_url(re.compile(r"/submit/\d+$"))
    progress = page.locator(".card.progress")
    await expect(progress).to_contain_text("CPU: build failed")
    await expect(progress).to_contain_text("no such module")
    await page.get_by_role("link", name="Full report").click()
    await expect(page.get_by_role("button", name="Run again")).to_be_visible()


async def test_a_board_is_made_from_a_zip_and_its_check_is_followed(
    scene: Scene, page: Page
) -> None:
    for path in ("/edit/vectoradd", "/create"):  # nothing is complained of, or scrolled to, yet
        await page.goto(f"{scene.url}{path}")
        assert await page.evaluate("[document.activeElement.tagName, scrollY]") == ["BODY", 0]
    field, name, data = packed()
    file = {"name": name, "mimeType": "application/zip", "buffer": data}
    bad = {"name": "bad.zip", "mimeType": "application/zip", "buffer": b"nothing"}
    chosen = page.locator(f"input[name={field}]")
    await chosen.set_input_files(bad)  # type: ignore[arg-type]
    await expect(page.get_by_text("This zip cannot be used.")).to_be_visible()
    await chosen.set_input_files(file)  # type: ignore[arg-type]
    await expect(page.get_by_text("1 correct and 1 wrong solution")).to_be_visible()
    await page.get_by_label("CPU").check()
    await page.get_by_label("Name").fill("doubling")
    await page.get_by_role("button", name="Check and publish").click()
    await page.wait_for_url("**/create/checks/*")
    await expect(page.locator(".outcome")).to_contain_text("doubling on CPU is published.")
    assert await scene.door.store.boards.find("doubling") is not None
    await page.get_by_role("link", name="View board").click()
    await expect(page.get_by_role("heading", name="doubling")).to_be_visible()


async def test_a_button_goes_on_after_a_check_whose_graders_disagree(
    scene: Scene, page: Page
) -> None:
    await page.goto(f"{scene.url}/create")
    field, name, data = packed(task__yml=WITH_EVAL, eval__py="raise SystemExit(3)\n")
    file = {"name": name, "mimeType": "application/zip", "buffer": data}
    await page.locator(f"input[name={field}]").set_input_files(file)  # type: ignore[arg-type]
    await page.get_by_label("CPU").check()
    await page.get_by_label("Name").fill("disputed")
    await page.get_by_role("button", name="Check and publish").click()
    await page.wait_for_url("**/create/checks/*")
    outcome = page.locator(".outcome")
    await expect(outcome).to_contain_text("Choose who grades disputed")
    await look(page)
    await page.get_by_role("button", name="Podium's judge").click()
    await expect(outcome).to_contain_text("disputed on CPU is published.")
    await page.get_by_role("link", name="Edit board").click()
    await expect(page.get_by_text("Now: Podium's judge grades")).to_be_visible()
    await expect(page.get_by_label("Grader")).to_have_value("")
    await page.go_back()
    await page.go_back()
    await page.reload()
    await expect(outcome).to_contain_text("The zip of this check is no longer kept")


async def test_a_competition_is_made_from_a_zip_and_deleted_at_its_pages(
    scene: Scene, page: Page
) -> None:
    await page.get_by_role("navigation", name="Main").get_by_role("link", name="Boards").click()
    await page.get_by_role("link", name="Create a competition").click()
    chosen = page.get_by_label("Competition zip")
    data = packed_competition(CUP, "double", "triple")
    file = {"name": "cup.zip", "mimeType": "application/zip", "buffer": data}
    await chosen.set_input_files(file)  # type: ignore[arg-type]
    opening = page.get_by_role("row", name="cup-two").locator("time")
    await expect(opening.first).to_have_attribute("title", "2098-01-01 09:00 UTC")
    await look(page)
    await page.get_by_role("button", name="Check and publish").click()
    await page.wait_for_url("**/create/checks/*")
    await expect(page.locator(".outcome")).to_contain_text("with 2 boards is published")
    await page.get_by_role("link", name="View competition").click()
    await expect(page.get_by_role("heading", name="Winter cup")).to_be_visible()
    await page.get_by_role("link", name="Edit competition").click()
    await look(page)
    opens = page.get_by_role("group", name="cup-two").get_by_label("Opens")
    await opens.fill("2097-12-31")
    await page.get_by_role("button", name="Save the dates").click()
    await expect(page.get_by_role("status")).to_contain_text("Your changes are saved.")
    await expect(opens).to_have_value("2097-12-31 00:00 UTC")
    await opens.fill("")
    await page.get_by_role("button", name="Save the dates").click()
    await page.get_by_role("button", name="Close now").click()
    await expect(page.get_by_role("status")).to_contain_text("The competition is closed.")
    await page.get_by_label("The competition's exact name").fill("Winter cup")
    await page.get_by_role("button", name="Delete the competition").click()
    await expect(page.get_by_text("The competition is deleted.")).to_be_visible()
    await page.goto(f"{scene.url}/boards/cup-one")
    await expect(page.get_by_role("heading", name="cup-one")).to_be_visible()
