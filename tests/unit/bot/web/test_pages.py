"""Tests of the pages without a browser: what they say, to whom, and that nobody's words act."""

import json
import re
from dataclasses import replace
from datetime import timedelta
from html.parser import HTMLParser
from urllib.parse import quote

import httpx
import pytest
from typing_extensions import override

from bot.domain.accounts import ANYBODY
from bot.domain.board import Access, SourceVisibility
from bot.domain.publication import PublishRequest
from bot.ports.outside import ServiceConnection
from bot.services.publishing.publish import publish
from bot.web.routes.pages import board, comparison
from runners.contract.comparison import Ratio
from runners.contract.evaluation import CaseKind
from runners.contract.task import Difficulty
from runners.contract.verdict import VERDICT_WORDS
from tests.doubles.agents import make_door, way_to
from tests.doubles.exhibition import HOSTILE, Exhibition, make_exhibition
from tests.doubles.factories import make_case, make_measurement, make_task
from tests.doubles.memory_store import MemoryStore

_WAYS: dict[Exhibition, httpx.ASGITransport] = {}
BROWSER = {"Accept": "text/html,application/xhtml+xml", "Accept-Encoding": "gzip"}
PAGES = (
    "/", "/boards/vectoradd", "/boards/vectoradd?gpu=A100", "/boards/sort", "/boards/empty",
    "/boards/vectoradd/gpus", "/queue", "/docs", "/docs/verdicts", "/people/{hostile}",
    "/submissions/{best}", "/submissions/{refused}", "/submissions/{running}",
    "/submissions/{best}/compare?with={refused}", "/competitions/Spring%20cup",
    "/boards/sort/gallery", "/competitions/Later%20cup", "/nothing",
)  # fmt: skip


@pytest.fixture
async def shown() -> Exhibition:
    return await make_exhibition(rounds=2)


async def asked(shown: Exhibition, path: str, who: str | None = None) -> httpx.Response:
    """The answer to a browser, perhaps with a person's token."""
    headers = dict(BROWSER)
    if who is not None:
        headers["Authorization"] = f"Bearer {await shown.token(who)}"
    return await through(shown).get(path, headers=headers)


def through(shown: Exhibition) -> httpx.AsyncClient:
    """A way to the one application of a test, which costs 50 ms to build."""
    if shown not in _WAYS:
        _WAYS.clear()
        _WAYS[shown] = way_to(make_door(shown.store, shown.clock))
    return httpx.AsyncClient(transport=_WAYS[shown], base_url="http://podium.test")


async def numbers(shown: Exhibition) -> dict[str, int]:
    """The submissions and people that the addresses of `PAGES` name."""
    store, boards = shown.store, shown.boards["vectoradd"]
    hostile = await store.submissions.history(shown.people[HOSTILE])
    refused = await store.submissions.history(shown.people["Hedy"])
    running = await store.submissions.history(shown.people["Ada"], boards.id)
    return {
        "hostile": shown.people[HOSTILE],
        "best": hostile[0].id,
        "refused": refused[0].id,
        "running": running[0].id,
    }


class Read(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.headings: list[int] = []
        self.feed(text)

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))


@pytest.mark.parametrize("path", PAGES)
async def test_a_page_is_whole_and_nothing_that_anybody_wrote_acts_on_it(
    shown: Exhibition, path: str
) -> None:
    answer = await asked(shown, path.format(**await numbers(shown)))
    assert answer.status_code == (404 if path == "/nothing" else 200)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    read = Read(answer.text)
    assert not [tag for tag, _ in read.tags if tag in {"img", "iframe", "style", "object"}]
    for tag, attributes in read.tags:
        assert not {"style", "onerror", "onclick", "onload"} & attributes.keys(), tag
        if tag == "script":
            assert attributes.get("src", "/static/").startswith("/static/")  # type: ignore[union-attr]
            assert "src" in attributes or attributes["type"] == "application/json"
    assert "\u202e" not in answer.text
    assert read.headings[0] == 1
    assert read.headings.count(1) == 1
    assert all(after - before <= 1 for before, after in zip(read.headings, read.headings[1:]))  # noqa: B905
    assert len(answer.content) < 200_000


@pytest.mark.parametrize("path", PAGES[:-1])
async def test_what_a_page_leads_to_is_there(shown: Exhibition, path: str) -> None:
    answer = await asked(shown, path.format(**await numbers(shown)))
    led = {
        (attributes.get("href") or attributes.get("src") or "").split("#")[0]
        for tag, attributes in Read(answer.text).tags
        if tag in {"a", "link", "script"}
    }
    elsewhere = re.compile(r"/(sign-in|submit)\b|^$")  # pages of another package
    for address in sorted(each for each in led if not elsewhere.search(each))[:40]:
        assert (await asked(shown, address)).status_code == 200, address


async def test_a_private_board_is_not_there_for_others(shown: Exhibition) -> None:
    (secret,) = await shown.store.submissions.to(shown.boards["secret"].id)
    assert "secret" not in (await asked(shown, "/")).text
    for path in (
        "/boards/secret", "/boards/secret/season", "/boards/secret/season.json",
        "/boards/secret/task", "/boards/secret/task/reference.py",
        "/boards/secret/gpus", "/boards/secret/template",
        f"/submissions/{secret.id}", f"/submissions/{secret.id}/source",
        f"/submissions/{secret.id}/events", f"/submissions/{secret.id}/files/x.zip",
    ):  # fmt: skip
        assert (await asked(shown, path)).status_code == 404, path
        assert (await asked(shown, path, "John")).status_code == 404, path
    assert (await asked(shown, "/boards/secret", "Ada")).status_code == 200
    grace = await asked(shown, f"/people/{shown.people['Grace']}")
    assert "vectoradd" in grace.text
    assert "secret" not in grace.text
    there, not_there = await asked(shown, "/boards/secret"), await asked(shown, "/boards/xxxxxx")
    there_is = "; available: empty, sort, vectoradd</p>"
    assert there_is in not_there.text
    assert "no board named &#39;secret&#39;; did you mean sort?" in there.text


async def test_a_hidden_source_is_nowhere_on_the_page_and_its_log_neither(
    shown: Exhibition,
) -> None:
    hidden = Access(source=SourceVisibility.AFTER_DEADLINE)
    boards = shown.boards["vectoradd"]
    await shown.store.boards.restrict(boards.id, hidden)
    number = (await shown.store.submissions.history(shown.people["Dennis"]))[0].id
    for who in (None, "John"):
        page = await asked(shown, f"/submissions/{number}", who)
        assert page.status_code == 200
        assert "add_kernel" not in page.text
        assert "Traceback" not in page.text
        assert "its board shows sources to others after" in page.text
        assert (await asked(shown, f"/submissions/{number}/source", who)).status_code == 403
        compared = await asked(shown, f"/submissions/{number}/compare?with={number}", who)
        assert compared.status_code == 200
        assert "add_kernel" not in compared.text
        assert "Traceback" not in compared.text
        assert "its board shows sources to others after" in compared.text
    own = await asked(shown, f"/submissions/{number}", "Dennis")
    assert "add_kernel" in own.text
    assert "Traceback" in own.text
    shown.clock.advance(timedelta(days=100).total_seconds())
    assert "add_kernel" in (await asked(shown, f"/submissions/{number}", "John")).text


async def test_a_board_says_ranks_intervals_and_who_is_not_ranked(shown: Exhibition) -> None:
    text = (await asked(shown, "/boards/vectoradd?gpu=h100")).text
    assert text.count('<td class="span">') == 14
    assert 'class="band"' in text
    assert "Speed of light" in text
    assert "build failed" in text
    assert text.count("</caption>") == 4
    assert "/api/v1/leaderboards/vectoradd/standings?gpu=H100&amp;format=csv" in text


async def test_a_board_is_filtered_by_name_and_by_version(shown: Exhibition) -> None:
    found = (await asked(shown, "/boards/vectoradd?person=FRANC")).text
    assert found.count('<td class="span">') == 1
    assert "Frances" in found
    none = (await asked(shown, "/boards/vectoradd?person=%3Cscript%3E%26")).text
    assert "<script>&" not in none
    assert "name contains" in none
    for wrong in ("gpu=H1", "version=7", "version=x", "page=0", f"person={'x' * 101}"):
        assert (await asked(shown, f"/boards/vectoradd?{wrong}")).status_code in {404, 422}, wrong
    last = (await asked(shown, "/boards/vectoradd?page=99")).text
    assert "Frances" in last


async def test_many_people_are_leafed_through_and_keep_what_all_of_them_mean(
    shown: Exhibition, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(board, "_ROWS", 3)
    first = (await asked(shown, "/boards/vectoradd?gpu=H100")).text
    assert first.count('<td class="span">') == 3
    assert "page 1 of 5" in first
    assert "page=2" in first
    last = (await asked(shown, "/boards/vectoradd?gpu=H100&page=5")).text
    assert last.count('<td class="span">') == 2
    assert 'rel="next"' not in last
    assert "1.00x" not in last  # compared with the first of all
    monkeypatch.setattr(board, "_ROWS", 1)
    few = await asked(shown, "/boards/vectoradd?gpu=H100&version=1")
    assert "And 1 person more" in few.text


async def test_a_submission_shows_its_samples_and_how_far_they_are_confirmed(
    shown: Exhibition,
) -> None:
    found = await numbers(shown)
    text = (await asked(shown, f"/submissions/{found['best']}")).text
    assert "240 samples between" in text
    assert "up to 400 ns, by the judge's clock" in text
    assert "by the submission's own clock" in text
    assert "<strong>Time</strong> is by the judge's own clock" in text
    assert "32 registers" in text
    assert "NVIDIA H100" in text
    assert "1st (shared) of 14 on H100" in text


async def test_files_are_downloads_and_never_pages(shown: Exhibition) -> None:
    (profile,) = [
        each
        for each in await shown.store.submissions.history(shown.people["Ada"])
        if each.mode.value == "profile"
    ]
    page = await asked(shown, f"/submissions/{profile.id}", "Ada")
    (path,) = re.findall(r'href="(/submissions/\d+/files/[^"]+)"', page.text)
    for address in (path, f"/submissions/{profile.id}/source", "/boards/vectoradd/template"):
        answer = await asked(shown, address, "Ada")
        if answer.status_code == 400:  # the task has no template
            continue
        assert answer.headers["content-disposition"].startswith("attachment")
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert (await asked(shown, path)).content[:2] == b"PK"


async def test_a_finished_submission_has_no_more_events(shown: Exhibition) -> None:
    found = await numbers(shown)
    answer = await asked(shown, f"/submissions/{found['best']}/events")
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.text.endswith("event: done\ndata: \n\n")
    assert "H100: passed" in answer.text


async def test_who_looks_is_named_and_an_unknown_token_is_refused(shown: Exhibition) -> None:
    text = (await asked(shown, "/", HOSTILE)).text
    assert 'class="me"' in text
    assert "Sign in" not in text
    headers = BROWSER | {"Authorization": "Bearer nope"}
    answer = await through(shown).get("/", headers=headers)
    assert answer.status_code == 401
    assert answer.headers["content-type"].startswith("text/html")


async def test_an_asset_is_kept_for_ever_and_another_one_is_not_given_for_it(
    shown: Exhibition,
) -> None:
    (path,) = re.findall(r'href="(/static/[^"]+\.css)"', (await asked(shown, "/")).text)
    answer = await asked(shown, path)
    assert "immutable" in answer.headers["cache-control"]
    assert answer.headers["content-encoding"] == "gzip"
    _, _, digest, name = path.split("/")
    for wrong in (
        f"/static/{digest[::-1]}/{name}",
        f"/static/{digest}/../x",
        f"/static/{digest}/x",
    ):
        assert (await asked(shown, wrong)).status_code == 404


async def test_two_submissions_that_cannot_be_compared_say_why(shown: Exhibition) -> None:
    found = await numbers(shown)
    sort = (await shown.store.submissions.to(shown.boards["sort"].id))[0]
    base = f"/submissions/{found['best']}/compare"
    shown.clock.advance(timedelta(days=10).total_seconds())
    assert (await asked(shown, f"{base}?with={sort.id}")).status_code == 400
    for wrong in ("x", "", "\uff11", "9999999"):
        assert (await asked(shown, f"{base}?with={wrong}")).status_code in {400, 404, 422}
    same = await asked(shown, f"{base}?with=%23{found['best']}")
    assert "The sources are identical." in same.text


async def test_a_difference_is_side_by_side_with_how_both_ended(shown: Exhibition) -> None:
    found = await numbers(shown)
    text = (
        await asked(shown, f"/submissions/{found['best']}/compare?with={found['refused']}")
    ).text
    assert f"#{found['best']} and #{found['refused']}" in text
    assert '<span class="badge bad">wrong answer</span>' in text
    assert '<span class="badge good">passed</span>' in text
    assert re.search(r"<del>\d+</del>", text)
    assert re.search(r"<ins>\d+</ins>", text)
    assert "unchanged lines</summary>" in text
    assert "&lt;/pre&gt;&lt;script&gt;" in text
    assert '<span class="kn">import</span>' in text


async def test_of_two_submissions_the_older_is_on_the_left_unless_they_are_swapped(
    shown: Exhibition,
) -> None:
    found = await numbers(shown)
    assert found["best"] < found["refused"]
    for one, other in (("best", "refused"), ("refused", "best")):
        page = f"/submissions/{found[one]}/compare?with={found[other]}"
        text = (await asked(shown, page)).text
        assert f"<h1>#{found['best']} and #{found['refused']}</h1>" in text
        assert f'href="{page}&amp;swap=1">Swap sides' in text
        assert f'href="/sign-in?next={quote(page)}"' in text
        swapped = (await asked(shown, f"{page}&swap=1")).text
        assert f"<h1>#{found['refused']} and #{found['best']}</h1>" in swapped
        assert f'href="{page}">Swap sides' in swapped


async def test_times_of_each_benchmark_are_compared_within_a_task_version(
    shown: Exhibition,
) -> None:
    first, second = [
        each.id
        for each in await shown.store.submissions.history(shown.people["Grace"])
        if each.board == shown.boards["vectoradd"].id and each.state.value == "finished"
    ][:2]
    text = (await asked(shown, f"/submissions/{first}/compare?with={second}")).text
    assert f"Benchmarks of #{first} on H100" in text
    assert f'vs the other</span> <a href="/submissions/{second}">' in text
    assert (
        "Benchmarks of"
        not in (await asked(shown, f"/submissions/{first}/compare?with={first}")).text
    )


async def test_what_to_compare_with_is_offered_to_those_who_may_see_it(shown: Exhibition) -> None:
    boards = shown.boards["vectoradd"]
    own = (await shown.store.submissions.history(shown.people["Grace"], boards.id))[-1].id
    page = f"/submissions/{own}"
    offered: list[str] = []
    for who in (None, "Grace", "John"):
        text = (await asked(shown, page, who)).text
        assert ('<optgroup label="Your own">' in text) == (who == "John")
        assert '<optgroup label="Other versions">' in text
        offered = re.findall(r'<option value="(\d+)">', text)
        assert len(offered) == len(set(offered)) > 10
        for number in (offered[0], offered[-1]):
            answer = await asked(shown, f"{page}/compare?with={number}", who)
            assert answer.status_code == 200
    await shown.store.boards.restrict(boards.id, Access(source=SourceVisibility.NEVER))
    for who in (None, "John"):
        text = (await asked(shown, page, who)).text
        assert "<option" not in text
        assert "/compare" not in text
        refused = await asked(shown, f"{page}/compare?with={offered[-1]}", who)
        assert "belongs to another person" in refused.text
        assert "add_kernel" not in refused.text
    mine = (await asked(shown, page, "Grace")).text
    assert '<optgroup label="Other versions">' in mine
    assert '<optgroup label="The fastest">' not in mine


async def test_only_one_comparison_is_made_at_a_time_and_the_next_waits_not_for_ever(
    shown: Exhibition, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "WAIT_S", 0.01)
    found = await numbers(shown)
    door = make_door(shown.store, shown.clock)
    client = httpx.AsyncClient(transport=way_to(door), base_url="http://podium.test")
    page = f"/submissions/{found['best']}/compare?with={found['refused']}"
    async with door.comparison_lock:
        answer = await client.get(page, headers=BROWSER)
    assert answer.status_code == 429
    assert answer.headers["Retry-After"] == "1"
    assert (await client.get(page, headers=BROWSER)).status_code == 200


async def test_the_task_says_which_inputs_ranked_runs_have(shown: Exhibition) -> None:
    text = (await asked(shown, "/boards/vectoradd")).text
    assert "makes its inputs from secret seeds that are drawn for that run" in text


async def test_the_queue_names_what_runs_and_who_judges(shown: Exhibition) -> None:
    text = (await asked(shown, "/queue")).text
    assert re.search(r"<dt>Running</dt><dd>1</dd>.*<dt>Waiting</dt><dd>2</dd>", text, re.DOTALL)
    assert "box:0123abcd" not in text
    assert "worker 1" in text
    assert 'data-live="/queue/events"' in text
    assert "are paused" not in text


async def test_the_queue_says_what_is_paused_to_those_who_see_the_board(shown: Exhibition) -> None:
    moderation, boards = shown.store.moderation, await shown.store.boards.all()
    await moderation.pause("a new disk")
    for each in boards:
        await moderation.pause_board(each.id, f"<b>{each.name}")
    text = (await asked(shown, "/queue")).text
    assert "Submissions are paused: a new disk." in text
    for each in boards:
        said = f"&lt;b&gt;{each.name}." in text
        assert said == each.visible_to(ANYBODY), each.name
    assert not all(each.visible_to(ANYBODY) for each in boards)


async def test_the_queue_names_no_private_board_of_others(shown: Exhibition) -> None:
    await shown.submit("Grace", "secret", ("CPU",))
    await shown.submit("Hedy", "vectoradd", ("H100",))
    for who in (None, "John"):
        text = (await asked(shown, "/queue", who)).text
        assert ">Hedy</a>" in text
        assert "secret" not in text
        assert text.count('class="quiet">private<') == 1
    own = (await asked(shown, "/queue", "Grace")).text
    assert "/boards/secret" in own
    assert 'class="quiet">private<' not in own
    assert own.count('class="mine"') == own.count(">you</span>") >= 1


async def test_the_queue_lists_all_jobs_of_the_viewer_however_far_back(
    shown: Exhibition, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.services.operations.LISTED_JOBS", 1)
    for who in ("Hedy", "Ken"):
        await shown.submit(who, "vectoradd", ("A100",))
    own = await shown.submit("John", "vectoradd", ("A100",))
    for viewer, is_listed in (("John", True), ("Ada", False), (None, False)):
        text = (await asked(shown, "/queue", viewer)).text
        assert (f">#{own.id}</a>" in text) == is_listed
        assert ("are listed, and all of yours." in text) == (viewer in {"John", "Ada"})
        assert '<span class="badge">waiting, 3</span>' not in text or is_listed


def test_json_in_a_page_cannot_end_its_script() -> None:
    from bot.web.rendering import environment  # noqa: PLC0415

    made = environment().from_string("{{ it | tojson }}").render(it={"a": "</script>"})
    assert "<" not in made
    assert json.loads(made) == {"a": "</script>"}


async def test_the_docs_name_a_board_of_this_server_and_discord_only_where_a_bot_runs(
    shown: Exhibition,
) -> None:
    text = (await asked(shown, "/docs")).text
    assert "#!PODIUM leaderboard empty\n#!PODIUM gpus H100" in text
    assert "podium submit my_kernel.py --leaderboard empty" in text
    assert "vectoradd" not in text
    assert ".venv/bin/podium submit" not in text
    assert "Discord" not in text.partition("<main")[2]
    door = make_door(shown.store, shown.clock)
    with_bot = replace(door, connections=(ServiceConnection("discord"),))
    bare = make_door(MemoryStore(shown.clock), shown.clock)
    async with httpx.AsyncClient(transport=way_to(with_bot), base_url="http://podium.test") as web:
        assert "/leaderboard submit ranked" in (await web.get("/docs")).text
        assert "<dt>Confirmation pending</dt>" in (await web.get("/docs")).text
    async with httpx.AsyncClient(transport=way_to(bare), base_url="http://podium.test") as web:
        assert "#!PODIUM leaderboard BOARD\n#!PODIUM gpus GPU" in (await web.get("/docs")).text


async def test_a_card_names_everyone_who_shares_the_first_rank(shown: Exhibition) -> None:
    board = (await asked(shown, "/")).text.partition(">empty</a>")[2].partition("</li>")[0]
    assert "No ranked submissions yet." in board
    for who in ("Ada", "Grace"):
        await shown.ranked(who, "empty", "CPU", 1000.0)
    shown.clock.advance(2)
    card = (await asked(shown, "/")).text.partition(">empty</a>")[2].partition("</li>")[0]
    assert re.search('class="by">(Ada, Grace|Grace, Ada)<', card)
    board = (await asked(shown, "/boards/empty?gpu=CPU")).text
    assert re.search("<dt>Fastest</dt>.*<small>(Ada, Grace|Grace, Ada)</small>", board)
    await shown.ranked("Ken", "empty", "CPU", 1000.0)
    _WAYS.clear()
    card = (await asked(shown, "/")).text.partition(">empty</a>")[2].partition("</li>")[0]
    assert re.search('class="by">[A-Z][a-z]+ and 2 more<', card)


async def test_a_competition_shows_its_tasks_and_its_ranking(shown: Exhibition) -> None:
    text = (await asked(shown, "/competitions/Spring%20cup")).text
    assert 'href="/boards/vectoradd"' in text
    assert "Open until" in text
    assert "100 x best / own time" in text
    assert "Overall ranking" in text
    assert "vectoradd on H100" in text
    assert "secret" not in text
    assert "&lt;script&gt;alert" in text
    listed = (await asked(shown, "/")).text
    assert '<a href="/competitions/Spring%20cup">Spring cup</a>: open until' in listed
    assert '<a href="/competitions/Later%20cup">Later cup</a>: opens at' in listed


async def test_before_a_competition_opens_its_page_has_its_date_alone(shown: Exhibition) -> None:
    text = (await asked(shown, "/competitions/Later%20cup")).text
    assert "Opens at" in text
    for word in ("vectoradd", "mug", "Overall ranking"):
        assert word not in text.partition("<main")[2]
    own = (await asked(shown, "/competitions/Later%20cup", "Ken")).text
    assert "vectoradd" in own.partition("<main")[2]


async def test_an_unknown_competition_is_not_found(shown: Exhibition) -> None:
    answer = await asked(shown, "/competitions/none")
    assert answer.status_code == 404
    assert "no competition named" in answer.text


async def test_every_verdict_is_explained_by_its_name(shown: Exhibition) -> None:
    text = (await asked(shown, "/docs/verdicts")).text
    for words in VERDICT_WORDS.values():
        assert f'id="{words.replace(" ", "-")}"' in text
    board = (await asked(shown, "/boards/vectoradd?gpu=H100")).text
    assert 'href="/docs/verdicts#build-failed">build failed</a>' in board


async def test_the_old_page_of_a_task_leads_to_the_board(shown: Exhibition) -> None:
    answer = await asked(shown, "/boards/vectoradd/task")
    assert (answer.status_code, answer.headers["Location"]) == (307, "/boards/vectoradd#task")
    for name in ("reference.py", "x.svg"):
        assert (await asked(shown, f"/boards/vectoradd/drawings/{name}")).status_code == 404


async def test_the_viewers_line_has_rank_and_gaps_or_why_they_are_not_ranked(
    shown: Exhibition,
) -> None:
    frances = (await asked(shown, "/boards/vectoradd?gpu=H100", "Frances")).text
    own = frances.partition('<div class="own">')[2].partition("</div>")[0]
    assert " behind " in own
    assert f"#person-{shown.people['Frances']}" in own
    assert 'id="mine"' in frances
    dennis = (await asked(shown, "/boards/vectoradd?gpu=H100", "Dennis")).text
    assert "are not ranked yet" in dennis
    assert "Fix and resubmit" in dennis
    stranger = (await asked(shown, "/boards/vectoradd?gpu=H100")).text
    for words in ('class="own"', 'id="mine"', "no module named", "16 elements differ"):
        assert words not in stranger


async def test_the_standings_are_sorted_by_a_column(shown: Exhibition) -> None:
    text = (await asked(shown, "/boards/vectoradd?gpu=H100&sort=who")).text
    names = re.findall(r'<a class="name" href="/people/\d+" title="([^"]+)"', text)[:14]
    assert names == sorted(names, key=str.casefold)
    assert 'aria-sort="ascending"' in text
    assert (await asked(shown, "/boards/vectoradd?sort=x")).status_code == 422


async def test_a_card_says_what_the_task_is_about_and_cards_are_filtered(shown: Exhibition) -> None:
    text = (await asked(shown, "/")).text
    assert "14 of 16 people ranked" in text
    found = (await asked(shown, "/?q=VECTOR&gpu=H100")).text
    assert 'href="/boards/vectoradd"' in found
    assert 'href="/boards/empty"' in found
    assert 'href="/boards/empty"' not in (await asked(shown, "/?gpu=A100")).text
    assert 'href="/boards/empty"' not in (await asked(shown, "/?q=vectoradd")).text
    assert "No open board matches." in (await asked(shown, "/?q=%3Cb%3E")).text


async def test_one_speedup_over_the_reference_is_on_every_page(shown: Exhibition) -> None:
    """Ada and Grace share the first rank; the reference ran in turn with Ada's kernel."""
    ratio = Ratio(ratio=0.5, half_width=0.01, rounds=5)
    for who, update in (("Ada", {"vs_reference": ratio, "slowdown": 1.0}), ("Grace", {})):
        await shown.submit(who, "empty", ("CPU",))
        timed = make_measurement().model_copy(update=update)
        number = await shown.judge("CPU", cases=(make_case(CaseKind.BENCHMARK, measurement=timed),))
        if who == "Ada":
            found = (await asked(shown, f"/submissions/{number}")).text
            assert "2.0x vs reference, timed in turn with it" in found
            assert "On the CPU it is the ratio to the reference" in found
    board = (await asked(shown, "/boards/empty?gpu=CPU", "Ada")).text
    assert ">2.0x</td>" in board
    assert "2.0x vs reference, timed in turn with it" in board
    assert "Time: the ratio to the reference times its usual time on this board" in board
    person = (await asked(shown, f"/people/{shown.people['Ada']}")).text
    assert 'title="timed in turn with it">2.0x</td>' in person
    assert ">1st (shared) of 2</span>" in person
    api = await through(shown).get("/api/v1/leaderboards/empty/standings?gpu=CPU")
    told = {each["person"]: each for each in api.json()["leaderboards"][0]["entries"]}
    names = "vs_reference", "vs_reference_in_turn"
    assert [told["Ada"][name] for name in names] == [2.0, True]
    assert [told["Grace"][name] for name in names] == [None, False]


async def test_a_card_has_the_difficulty_of_its_task_by_which_boards_are_filtered(
    shown: Exhibition,
) -> None:
    assert "ifficulty" not in (await asked(shown, "/")).text
    for difficulty in (Difficulty.HARD, Difficulty.EASY):
        task = make_task(name=f"is-{difficulty}", gpus=("CPU",), difficulty=difficulty)
        await publish(shown.store, shown.clock, PublishRequest(shown.people["Ada"]), task)
    home = (await asked(shown, "/")).text
    assert '<span class="hidden-words">difficulty: </span>hard</span>' in home
    assert re.findall(r"<option>(easy|medium|hard)</option>", home) == ["easy", "hard"]
    hard = (await asked(shown, "/?difficulty=hard")).text
    assert "<option selected>hard</option>" in hard
    assert re.findall(r'<h3><a href="/boards/([^"]+)"', hard) == ["is-hard"]
