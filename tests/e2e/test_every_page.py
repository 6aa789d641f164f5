"""Every page that the routes have, in a real browser, with the content of a busy season.

A route without a row here fails the test. Each page is checked by axe in both themes, at a desk and
on a phone; nothing on it moves, is cut or is loaded from elsewhere, and its console stays empty.
"""

import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
import pytest_asyncio

from bot.domain.accounts import TokenScope
from bot.domain.publication import PublishRequest
from bot.services.publishing.publish import publish
from bot.services.tokens import create_local_token
from bot.web.app import serving
from bot.web.context import HttpSettings
from bot.web.routes import actions, pages
from runners import plugins
from runners.contract.evaluation import CaseKind
from runners.contract.task import RankingBy, Workload
from tests.doubles.agents import make_door
from tests.doubles.browsers import Browser as Forms
from tests.doubles.browsers import admin_of
from tests.doubles.clock import ManualClock
from tests.doubles.exhibition import HOSTILE, Exhibition, make_exhibition, make_timing
from tests.doubles.factories import make_case, make_task
from tests.doubles.shapes import add_shapes, profiled, referenced, shaped
from tests.doubles.task_zips import packed

pytest.importorskip("playwright", reason="the package playwright is not installed")
pytest.importorskip("axe_playwright_python", reason="axe for playwright is not installed")

from playwright.async_api import BrowserContext, Request, expect

from tests.doubles.watched_pages import CHROMIUM, DESK, Faults, look, opened_chromium

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(not CHROMIUM.exists(), reason="Debian's chromium is not installed"),
]
PAGES = {
    "/": ("/",),
    "/boards/{name}": ("/boards/vectoradd", "/boards/sort", "/boards/empty", "/boards/shapes",
                       "/boards/{wide}"),
    "/boards/{name}/gallery": ("/boards/sort/gallery",),
    "/boards/{name}/gpus": ("/boards/vectoradd/gpus",),
    "/boards/{name}/season": ("/boards/vectoradd/season",),
    "/competitions": ("/competitions",),
    "/competitions/{name}": ("/competitions/Spring%20cup", "/competitions/Later%20cup"),
    "/docs": ("/docs",),
    "/docs/verdicts": ("/docs/verdicts",),
    "/people/{number}": ("/people/{hostile}", "/people/{ada}"),
    "/queue": ("/queue",),
    "/submissions/{number}": (
        "/submissions/{best}", "/submissions/{refused}", "/submissions/{running}",
        "/submissions/{shaped}", "/submissions/{profile}",
    ),
    "/submissions/{number}/compare": (
        "/submissions/{best}/compare?with={refused}", "/submissions/{shaped}/compare?with={faster}",
    ),
    "/admin": ("/admin",),
    "/admin/audit": ("/admin/audit",),
    "/admin/costs": ("/admin/costs",),
    "/competitions/{name}/edit": ("/competitions/Spring%20cup/edit",),
    "/create": ("/create",),
    "/create/checks/{number}": ("/create/checks/{check}",),
    "/create/competition": ("/create/competition",),
    "/edit/{name}": ("/edit/vectoradd", "/edit/secret"),
    "/edit/{name}/delete": ("/edit/vectoradd/delete",),
    "/join": ("/join?code={code}",),
    "/me": ("/me",),
    "/sign-in/link": ("/sign-in/link?key=podium_once_x",),
    "/submit": ("/submit?leaderboard=vectoradd",),
    "/submit/{number}": ("/submit/{running}", "/submit/{shaped}"),
    "/submit/{number}/edit": ("/submit/{shaped}/edit",),
}  # fmt: skip
"""The addresses that are checked for each route."""
STRANGERS_PAGES = {"/sign-in": ("/sign-in",), "no route": ("/nothing",)}
"""The same for people without an account."""
NO_PAGES = frozenset({
    "/boards/{name}/card.png", "/boards/{name}/drawings/{file}", "/boards/{name}/events",
    "/boards/{name}/records.atom", "/boards/{name}/season.json", "/boards/{name}/task",
    "/boards/{name}/task/{file}", "/boards/{name}/template", "/card.png",
    "/competitions/{name}/schedule.ics", "/create/checks/{number}/events", "/edit/{name}/keepsake",
    "/favicon.ico", "/people/{number}/card.png", "/queue/events", "/robots.txt",
    "/sign-in/discord", "/sign-in/discord/back", "/sign-in/stamp", "/submissions/{number}/card.png",
    "/submissions/{number}/events", "/submissions/{number}/files/{name}",
    "/submissions/{number}/source", "/submit/{number}/events",
})  # fmt: skip
"""Routes that answer with files, streams and redirects."""
WIDE = "w" * 60
FORMULA = " + ".join([r"\sum_{k=1}^{K} a_{ik} b_{kj}"] * 4)
STATEMENT = f"""\
# Grouped matrix multiplication

Multiply **groups** of matrices: $C_g = A_g B_g$ for every group $g$.

| argument | type | meaning |
|---|---|---|
| `group_offsets` | `torch.Tensor[int32]` | {"where a group ends, " * 5} |

$${FORMULA}$$

```python
def custom_kernel(data: input_t) -> output_t:  # {"a long line " * 12}
    return data
```

{"unbroken" * 30}
"""
MOST_BYTES = 200_000
EDITOR_BYTES = 450_000
_SHIFTS = """() => new Promise((done) => {
  new PerformanceObserver((list) => done(list.getEntries().map((each) => each.value)))
    .observe({type: "layout-shift", buffered: true});
  setTimeout(() => done([]), 150);
})"""

_NOT_COPIED = """() => [
  ...[...document.querySelectorAll("pre.log, .statement pre, .code")]
    .filter((each) => !each.closest("[data-live]") && !each.parentElement.querySelector(".copy")),
  ...[...document.querySelectorAll("main code")]
    .filter((each) => /^([.]venv.bin.)?(podium|make|popcorn-cli) [a-z]/.test(each.textContent))
    .filter((each) => !each.closest("pre") && !each.parentElement.querySelector(".copy-command"))
    .filter((each) => !document.querySelector("main pre")?.closest(".prose")
      ?.textContent.includes(`${each.textContent} tasks/`)),
].map((each) => each.outerHTML.slice(0, 90))"""
"""Code and commands without a button that copies them, except those that stand in a block below."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A served exhibition, the browsers of an admin and of a stranger, and what addresses name."""

    url: str
    admin: BrowserContext
    stranger: BrowserContext
    named: dict[str, int | str]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene() -> AsyncIterator[Scene]:
    clock = ManualClock(datetime.now(UTC) - timedelta(days=7))
    shown = await make_exhibition(clock)
    named = await _add_runs(shown)
    door = make_door(shown.store, clock)
    named |= await _add_check_and_link(await admin_of(door, "0"))
    made = await create_local_token(
        shown.store, clock, shown.people["Ada"], "0", scope=TokenScope.ADMIN,
        lifetime=timedelta(days=1),
    )  # fmt: skip
    async with serving(door, HttpSettings("127.0.0.1", 0)) as url, opened_chromium() as browser:
        admin, stranger = [
            await browser.new_context(base_url=url, viewport=DESK, timezone_id="Asia/Kolkata")  # type: ignore[arg-type]
            for _ in range(2)
        ]
        page = await admin.new_page()
        await page.goto("/sign-in")
        await page.get_by_label("Personal token").fill(made.secret)
        await page.get_by_role("button", name="Sign in by token").click()
        await expect(page.get_by_role("link", name="0", exact=True)).to_be_visible()
        await shown.store.people.ensure("local:0", "Ada")
        await page.close()
        yield Scene(url, admin, stranger, named)


async def _add_runs(shown: Exhibition) -> dict[str, int | str]:
    """Add the runs of Ada on a board with several benchmarks; return the numbers of pages."""
    await add_shapes(shown)
    await referenced(shown, 40_000, 80_000, 900_000)
    slow = await shaped(shown, "Ada", 30_000, 90_000, 800_000)
    await shaped(shown, "Ken", 9_000, 30_000, 300_000)
    faster = await shaped(shown, "Ada", 12_000, 40_000, 400_000)
    profile = await profiled(shown, "Ada", "add_kernel(float *, int)", "fill<b>(void)")
    await _add_wide_board(shown)
    newest = shown.store.submissions.history
    board = shown.boards["vectoradd"].id
    return {
        "ada": shown.people["Ada"],
        "hostile": shown.people[HOSTILE],
        "best": (await newest(shown.people[HOSTILE]))[0].id,
        "refused": (await newest(shown.people["Hedy"]))[0].id,
        "running": (await newest(shown.people["Ada"], board))[0].id,
        "shaped": slow,
        "faster": faster,
        "profile": profile,
        "wide": WIDE,
    }


async def _add_wide_board(shown: Exhibition) -> None:
    """Open a board whose words are long wherever a task's author chooses them."""
    arguments = {
        "size": 1 << 24,
        "dtype": "torch.float8_e4m3fn",
        "layout": "row_major" * 12,
    }
    task = make_task(
        name=WIDE,
        description=STATEMENT,
        files={"reference.py": f"def generate_input(size): ...  # {'wide' * 50}\n"},
        tests=(Workload.model_validate({"args": arguments}),),
        benchmarks=(
            Workload.model_validate({"args": arguments}),
            Workload.model_validate({"args": arguments | {"size": 1 << 20}}),
        ),
        gpus=("H200",),
        ranking_by=RankingBy.GEOM,
    )
    request = PublishRequest(shown.people["Ada"])
    shown.boards[WIDE] = (await publish(shown.store, shown.clock, request, task)).board
    await shown.submit("Ada", WIDE, ("H200",))
    cases = (
        make_case(spec=str(arguments)),
        *(
            make_case(
                CaseKind.BENCHMARK,
                spec=str(arguments),
                measurement=make_timing(shown.chance, 1e9, 1e6),
            )
            for _ in range(2)
        ),
    )
    await shown.judge("H200", cases=cases)


async def _add_check_and_link(ada: Forms) -> dict[str, int | str]:
    """Begin the check of a task, and make a link that invites people to the private board."""
    sent = await ada.post("/create", {"name": "doubling", "gpu": "CPU"}, file=packed())
    link = await ada.post("/edit/secret/links", {"days": "7", "most": "5"})
    code = re.search(r"/join\?code=([0-9a-f]{32})<", link.text)
    assert code is not None, link.text
    return {"check": sent.headers["Location"].rpartition("/")[2], "code": code[1]}


async def test_every_route_is_a_page_that_is_checked_or_is_no_page() -> None:
    modules = (plugins.load(folder, name) for folder in (pages, actions)
               for name in plugins.names(folder))  # fmt: skip
    routes = {
        route.path
        for module in modules
        if hasattr(module, "router")
        for route in module.router.routes
        if "GET" in route.methods
    }
    assert routes | {"no route"} == PAGES.keys() | STRANGERS_PAGES.keys() | NO_PAGES


def _addresses(found: Mapping[str, tuple[str, ...]]) -> list[str]:
    return [address for addresses in found.values() for address in addresses]


@pytest.mark.parametrize("path", _addresses(PAGES))
async def test_a_page_is_accessible_and_fits(scene: Scene, path: str) -> None:
    await _check(scene, scene.admin, path.format(**scene.named))


@pytest.mark.parametrize("path", _addresses(STRANGERS_PAGES))
async def test_a_page_for_strangers_is_accessible_and_fits(scene: Scene, path: str) -> None:
    await _check(scene, scene.stranger, path)


async def test_a_command_is_copied_by_keyboard_and_that_is_announced(scene: Scene) -> None:
    await scene.stranger.grant_permissions(["clipboard-read", "clipboard-write"])
    page = await scene.stranger.new_page()
    await page.goto("/sign-in")
    button = page.get_by_role("button", name="Copy /profile link")
    await button.focus()
    await page.keyboard.press("Enter")
    await expect(page.locator("[aria-live=polite]")).to_have_text("Copied")
    await expect(button).to_have_text("Copied")
    assert await page.evaluate("navigator.clipboard.readText()") == "/profile link"
    await expect(button.locator("svg")).to_be_visible()
    await page.close()


async def _check(scene: Scene, context: BrowserContext, path: str) -> None:
    page, faults, requests = await context.new_page(), Faults(), list[Request]()
    faults.watch(page, scene.url)
    page.on("requestfinished", lambda each: requests.append(each))  # noqa: PLW0108 - wants a function
    if path == "/nothing":
        async with faults.expecting(page, "404 (Not Found)"):
            await page.goto(path)
    else:
        await page.goto(path)
    if await page.locator("[data-chart]:visible").count():
        await expect(page.locator("[data-chart]:visible").first).to_have_attribute("data-drawn", "")
    assert await _bytes_of(requests) < (EDITOR_BYTES if path.endswith("/edit") else MOST_BYTES)
    assert sum(await page.evaluate(_SHIFTS)) == 0
    assert await page.evaluate(_NOT_COPIED) == []
    await look(page)
    await page.close()
    assert not faults.found


async def _bytes_of(requests: list[Request]) -> int:
    """Return what was transferred for them."""
    sizes = [
        await each.sizes()
        for each in requests
        if not each.url.endswith("/events") and await each.response() is not None
    ]
    return sum(each["responseBodySize"] + each["responseHeadersSize"] for each in sizes)
