"""Tests of a board's page: moves since yesterday, the deadline, the viewer's line, the weight."""

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import timedelta

import httpx
import pytest
from typing_extensions import override

from bot.domain.board import SeasonRules
from bot.domain.confirmation import Confirmation, ConfirmationState
from bot.domain.ids import ConfirmationId, PersonId, SubmissionId
from bot.domain.reference_times import Reference
from bot.reports.blocks import Attachment
from bot.services.cache import Cached, ResponseCache
from bot.web.routes.pages import board
from tests.doubles.agents import make_door
from tests.doubles.browsers import Browser, signed_in
from tests.doubles.exhibition import Exhibition, make_exhibition
from tests.doubles.factories import make_noisy_case

DAY_S = 86_400
MOST_BYTES = 60_000
KERNEL = ("file", "mine.py", b"def custom_kernel(data):\n    return data\n")
_ROW = re.compile(r'<tr id="person-(\d+)".*?</tr>', re.DOTALL)
_MOVED = re.compile(r'<small class="moved[^"]*">(.*?)</small>')


@pytest.fixture
async def shown() -> Exhibition:
    return await make_exhibition(rounds=1)


async def moves(shown: Exhibition) -> Mapping[str, str]:
    """Return what the standings on the CPU say about each person's move, by name."""
    text = await Browser(make_door(shown.store, shown.clock)).text("/boards/empty?gpu=CPU")
    names = {str(number): name for name, number in shown.people.items()}
    found = {}
    for row in _ROW.finditer(text):
        moved = _MOVED.search(row[0])
        found[names[row[1]]] = re.sub(r"<[^>]*>", " ", moved[1]).strip() if moved else ""
    return found


async def test_the_standings_say_who_rose_fell_and_came_since_yesterday(
    shown: Exhibition,
) -> None:
    for who, time_ns in (("Ada", 100_000), ("Grace", 200_000), ("John", 400_000)):
        await shown.ranked(who, "empty", "CPU", time_ns)
    shown.clock.advance(DAY_S + 1)
    assert await moves(shown) == {"Ada": "", "Grace": "", "John": ""}
    await shown.ranked("Grace", "empty", "CPU", 50_000)
    await shown.ranked("Ken", "empty", "CPU", 800_000)
    assert await moves(shown) == {
        "Grace": "▲1  up 1 since yesterday",
        "Ada": "▼1  down 1 since yesterday",
        "John": "",
        "Ken": "new",
    }
    shown.clock.advance(DAY_S + 1)
    assert set((await moves(shown)).values()) == {""}


async def closed(shown: Exhibition, *, late_runs: bool = False) -> Browser:
    """Return Ada's browser after the deadline of `vectoradd`."""
    store, board = shown.store, shown.boards["vectoradd"]
    deadline = shown.clock.now() + timedelta(hours=1)
    await store.boards.configure(board.id, board.gpus, deadline)
    await store.boards.set_rules(board.id, SeasonRules(late_runs=late_runs))
    door = make_door(store, shown.clock)
    ada, _ = await signed_in(door, "0")
    assert "Submit a kernel</a>" in await Browser(door).text("/boards/vectoradd")
    shown.clock.advance(3601)
    return ada


async def submitted(ada: Browser, mode: str) -> httpx.Response:
    return await ada.post(
        "/submit", {"board": "vectoradd", "gpu": "H100", "mode": mode}, file=KERNEL
    )


async def test_after_the_deadline_no_page_offers_to_submit(shown: Exhibition) -> None:
    ada = await closed(shown)
    board = await ada.text("/boards/vectoradd")
    assert "Submit a kernel</a>" not in board
    assert "Winning kernels</a>" in board
    assert 'class="lead">Closed <time' in board
    form = await ada.text("/submit?leaderboard=vectoradd")
    assert "accepts no more submissions." in form
    assert not re.search(r'<option value="vectoradd"', form)
    refused = await submitted(ada, "test")
    assert refused.status_code == 409
    assert "accepts no more submissions" in refused.text
    assert "mine.py is kept" in refused.text


async def test_a_board_that_takes_late_runs_still_offers_to_submit(shown: Exhibition) -> None:
    ada = await closed(shown, late_runs=True)
    assert "Submit a kernel</a>" in await ada.text("/boards/vectoradd")
    assert "accepts no more ranked submissions" in await ada.text("/submit?leaderboard=vectoradd")
    assert (await submitted(ada, "ranked")).status_code == 409
    assert (await submitted(ada, "benchmark")).status_code == 303


async def test_the_viewers_line_names_their_run_that_waits_and_no_failure_before_it(
    shown: Exhibition, monkeypatch: pytest.MonkeyPatch
) -> None:
    dennis, version = shown.people["Dennis"], shown.boards["vectoradd"].task_version
    (failed, *_) = await shown.store.submissions.history(dennis)
    waiting = Confirmation(
        ConfirmationId(1), SubmissionId(failed.id + 1000), dennis, "Dennis", version, "H100", 2,
        ConfirmationState.PENDING, shown.clock.now(),
    )  # fmt: skip

    async def pending(*_: object) -> tuple[Confirmation, ...]:
        return (waiting,)

    monkeypatch.setattr(shown.store.confirmations, "pending", pending)
    door = make_door(shown.store, shown.clock)
    browser, _ = await signed_in(door, str([*shown.people].index("Dennis")))
    text = await browser.text("/boards/vectoradd?gpu=H100")
    own = text.partition('<div class="own">')[2].partition("</div>")[0]
    assert "H100: confirmation pending: it would take 2nd place" in own
    assert f'href="/submissions/{waiting.submission}"' in own
    assert "Fix and resubmit" not in own


async def test_who_passed_too_noisily_is_not_ranked_without_a_failure(shown: Exhibition) -> None:
    number = (await shown.submit("Ada", "empty", ("CPU",))).id
    await shown.judge("CPU", cases=(make_noisy_case(),))
    browser, _ = await signed_in(make_door(shown.store, shown.clock), "0")
    text = await browser.text("/boards/empty?gpu=CPU")
    badge = (
        '<a class="badge" href="/docs/verdicts#too-noisy">passed, but too noisy to be ranked</a>'
    )
    own = text.partition('<div class="own">')[2].partition("</div>")[0]
    assert badge in own
    assert f'<a href="/submissions/{number}">Run it again</a>' in own
    assert "Fix and resubmit" not in own
    listed = text.partition('id="absent"')[2].partition("</section>")[0]
    assert badge in listed
    assert f'href="/submissions/{number}"' in listed
    assert 'id="too-noisy"' in await browser.text("/docs/verdicts")


async def test_a_private_board_says_so_and_its_creator_can_edit_it(shown: Exhibition) -> None:
    door = make_door(shown.store, shown.clock)
    creator = next(n for n, who in enumerate(shown.people.values())
                   if who == shown.boards["secret"].creator)  # fmt: skip
    browser, _ = await signed_in(door, str(creator))
    text = await browser.text("/boards/secret")
    assert '<span class="badge accent">private</span>' in text
    assert '<a class="button" href="/edit/secret">Edit board</a>' in text
    public = await Browser(door).text("/boards/vectoradd")
    assert "Edit board" not in public
    assert ">private<" not in public


async def test_the_badge_of_the_mode_is_not_green(shown: Exhibition) -> None:
    (failed, *_) = await shown.store.submissions.history(shown.people["Hedy"])
    text = await Browser(make_door(shown.store, shown.clock)).text(f"/submissions/{failed.id}")
    assert '<span class="badge">ranked</span>' in text
    assert '<a class="badge bad" href="/docs/verdicts' in text


async def test_the_page_of_a_thousand_people_weighs_less_than_60_kb(
    shown: Exhibition, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = shown.store.results
    version = shown.boards["vectoradd"].task_version
    (entrant, *_) = await results.entrants(version, "H100")
    (failed, *_) = await results.refusals(version, "H100")
    letters = "".join(map(chr, range(97, 123))) * 2

    def named(number: int) -> str:
        return f"{letters[number % 26 :][:7]} {number * 7919 % 1000}"

    crowd = tuple(
        replace(
            entrant,
            best=replace(
                entrant.best,
                submission=SubmissionId(9_000 + number * 7919 % 1000),
                person=PersonId(9_000 + number),
                person_name=named(number),
                value=replace(entrant.best.value, time_ns=30_000 + number * 137.31),
            ),
        )
        for number in range(1000)
    )
    absent = tuple(
        replace(
            failed,
            submission=SubmissionId(20_000 + number),
            person=PersonId(20_000 + number),
            person_name=named(number),
        )
        for number in range(1000)
    )

    async def entrants(*_: object) -> object:
        return crowd

    async def refusals(*_: object) -> object:
        return absent

    monkeypatch.setattr(results, "entrants", entrants)
    monkeypatch.setattr(results, "refusals", refusals)
    browser = Browser(make_door(shown.store, shown.clock))
    page = await browser.get("/boards/vectoradd?gpu=H100")
    assert "page 1 of 20" in page.text
    files = re.findall(r'(?:src|href)="(/static/[^"]+)"', page.text)
    sizes = [await _sent(browser, each) for each in ("/boards/vectoradd?gpu=H100", *files)]
    assert len(files) > 4
    assert sum(sizes) < MOST_BYTES, sizes


async def test_the_pages_of_all_viewers_share_what_is_the_same_for_them(
    shown: Exhibition, monkeypatch: pytest.MonkeyPatch
) -> None:
    await shown.ranked("Ada", "empty", "CPU", 100_000)
    door, made = make_door(shown.store, shown.clock), Counter[str]()

    def count(owner: object, name: str) -> None:
        original = getattr(owner, name)

        def counted(*values: object) -> object:
            made[name] += 1
            return original(*values)

        monkeypatch.setattr(owner, name, counted)

    async def revision(*_: object) -> int:
        return 1  # that of the store in memory grows with each call

    monkeypatch.setattr(shown.store.results, "revision", revision)
    for owner, name in (
        (shown.store.boards, "versions"),
        (shown.store.people, "get"),
        (board, "standings_notes"),
        (board, "statement"),
    ):
        count(owner, name)
    ada = str([*shown.people].index("Ada"))
    browsers = {name: (await signed_in(door, name))[0] for name in (ada, "first", "second")}
    made["get"] = 0
    for name, browser in browsers.items():
        text = await browser.text("/boards/empty?gpu=CPU")
        assert f'<a class="me" href="/me">{name}</a>' in text
        assert ("<strong>You</strong>" in text) == (name == ada)
    assert made == {"versions": 1, "standings_notes": 1, "statement": 1, "get": 0}


async def test_only_its_creator_reads_why_a_board_has_no_time_of_its_reference(
    shown: Exhibition, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def failed(*_: object) -> Reference:
        return Reference(None, failure="crashed: exit 1")

    async def revision(*_: object) -> int:
        return 1  # a failure does not change it

    monkeypatch.setattr(shown.store.references, "of", failed)
    monkeypatch.setattr(shown.store.results, "revision", revision)
    door = make_door(shown.store, shown.clock)
    creator, _ = await signed_in(door, "0")
    assert "crashed: exit 1" in await creator.text("/boards/empty?gpu=CPU")
    other, _ = await signed_in(door, "1")
    for browser in (other, Browser(door)):
        assert "crashed: exit 1" not in await browser.text("/boards/empty?gpu=CPU")


async def test_the_next_viewer_sees_the_run_that_has_just_been_ranked(shown: Exhibition) -> None:
    door = make_door(shown.store, shown.clock)
    browser, _ = await signed_in(door, "1")
    assert "nobody yet" in await browser.text("/boards/empty?gpu=CPU")
    run = await shown.ranked("Ada", "empty", "CPU", 100_000)
    assert f'href="/submissions/{run}"' in await Browser(door).text("/boards/empty?gpu=CPU")


class Kept(ResponseCache):
    """A cache that lists what it has returned."""

    def __init__(self) -> None:
        super().__init__()
        self.values: list[object] = []

    @override
    async def get(
        self, key: object, fresh_s: float, make: Callable[[], Awaitable[Cached]]
    ) -> Cached:
        self.values.append(value := await super().get(key, fresh_s, make))
        return value


async def test_the_cache_has_no_contents_of_a_tasks_files(shown: Exhibition) -> None:
    cache = Kept()
    door = replace(make_door(shown.store, shown.clock), cache=cache)
    assert re.search(
        r'download="reference.py">reference.py</a> <span class="quiet">\d+ Bytes',
        await Browser(door).text("/boards/empty?gpu=CPU"),
    )
    lists = [
        each
        for value in cache.values
        if isinstance(value, dict)
        for each in value.values()
        if isinstance(each, list)
    ]
    assert lists
    assert not any(isinstance(each, Attachment) for found in lists for each in found)


async def _sent(browser: Browser, path: str) -> int:
    """Return the bytes of a compressed answer."""
    return int((await browser.get(path)).headers["content-length"])
