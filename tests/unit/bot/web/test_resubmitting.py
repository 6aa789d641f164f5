"""Tests of forms that keep a chosen file, and of the editor for a failed run."""

import base64
import re
from datetime import timedelta
from html import unescape

import httpx
import pytest

from bot.domain.accounts import TokenScope
from bot.services.tokens import create_local_token
from bot.web.context import WebContext
from runners.contract.evaluation import CPU, CaseKind
from runners.contract.task import Mode
from runners.contract.verdict import Stage, Verdict
from tests.doubles.agents import application, make_door
from tests.doubles.browsers import HOME, SAME_ORIGIN, Browser, signed_in
from tests.doubles.clock import ManualClock
from tests.doubles.factories import make_case, make_measurement
from tests.doubles.memory_store import MemoryStore
from tests.doubles.place import Place, make_place
from tests.doubles.task_zips import packed

SOURCE = "def custom_kernel(data):\n    return data  # </textarea><b>\n"


@pytest.fixture
async def place(memory_store: MemoryStore, clock: ManualClock) -> Place:
    return await make_place(memory_store, clock)


@pytest.fixture
def door(place: Place) -> WebContext:
    return make_door(place.store, place.clock)


async def test_signing_in_returns_to_the_page(door: WebContext) -> None:
    stranger = Browser(door)
    shown = await stranger.text("/boards/vectoradd?gpu=cpu&evil=%22%3E")
    assert re.findall(r'href="(/sign-in[^"]*)"', shown) == [
        "/sign-in?next=/boards/vectoradd%3Fgpu%3DCPU"
    ]
    assert 'href="/sign-in?next=/queue"' in await stranger.text("/queue")


@pytest.mark.parametrize(
    "path",
    [
        "/?q=sort&gpu=H100",
        "/?q=" + "%F0%9F%9A%80" * 100,
        "/boards/vectoradd?gpu=CPU&version=1&person=ada&page=2&sort=who",
        "/boards/vectoradd/season?gpu=CPU",
        "/competitions?after=Cup",
        "/submissions/999999/compare?with=3&swap=1",
        "/nothing?a=%2F%2Fevil.example",
    ],
)
async def test_signing_in_returns_to_the_page_with_its_whole_query(
    door: WebContext, path: str
) -> None:
    stranger = Browser(door)
    (link,) = re.findall(r'href="(/sign-in[^"]*)"', (await stranger.get(path)).text)
    there = await stranger.text(unescape(link))
    (target,) = re.findall(r'name="next" value="([^"]*)"', there)
    assert unescape(target) == path
    assert f'href="{link}"' in there, "the page itself leads there too"


async def test_signing_in_after_a_refused_form_returns_to_the_form(door: WebContext) -> None:
    stranger = Browser(door)
    for sender, target in (
        ("http://podium.test/submissions/3?a=1", "/submissions/3%3Fa%3D1"),
        ("http://[", "/"),
        (None, "/"),
    ):
        headers = SAME_ORIGIN if sender is None else {**SAME_ORIGIN, "Referer": sender}
        refused = await stranger.client.post("/submit/3/cancel", headers=headers)
        assert refused.status_code == 401
        assert f'href="/sign-in?next={target}"' in refused.text


async def test_the_link_of_this_machine_returns_to_the_page_before_it(door: WebContext) -> None:
    app = application(door)
    app.state.loopback = True
    browser = Browser(door)
    browser.client = httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url=HOME, headers={"Accept": "text/html"}
    )
    await browser.text("/sign-in?next=/boards/vectoradd%3Fgpu%3DCPU")
    form = {"key": door.sign_in_links.key_for("ada", door.clock.now())}
    assert "/sign-in?next=/" in await browser.text(f"/sign-in/link?key={form['key']}")
    entered = await browser.client.post("/sign-in/link", data=form, headers=SAME_ORIGIN)
    assert entered.headers["Location"] == "/boards/vectoradd?gpu=CPU"
    assert "podium-sign-in" not in browser.client.cookies


async def test_a_refused_file_stays_in_the_form_with_its_name(door: WebContext) -> None:
    ada, _ = await signed_in(door)
    refused = await ada.post("/submit", {"mode": "test"}, file=("file", "my.py", SOURCE.encode()))
    assert refused.status_code == 400
    assert "my.py is kept" in refused.text
    assert "</textarea><b>" not in refused.text.replace("</textarea></div>", "")
    fields = {"mode": "test", "board": "vectoradd", "gpu": CPU}
    kept = {"kept_name": "my.py", "source": SOURCE.replace("\n", "\r\n")}
    assert (await ada.post("/submit", fields | kept)).status_code == 303
    (newest, *_) = await door.store.submissions.history(1, None, None, 1)  # type: ignore[arg-type]
    assert newest.file_name == "my.py"
    assert await door.store.submissions.source(newest.id) == SOURCE


async def test_a_refused_zip_stays_in_the_form(door: WebContext) -> None:
    root = await door.store.people.ensure("local:root", "root")
    made = await create_local_token(
        door.store, door.clock, root.id, "carol", scope=TokenScope.ADMIN, lifetime=timedelta(days=1)
    )
    carol = Browser(door)
    await carol.sign_in(made.secret)
    file = packed()
    refused = await carol.post("/create", {"name": "vectoradd", "gpu": CPU}, file=file)
    assert "There is a board" in refused.text
    found = re.search(r'name="kept_data" value="([^"]+)"', refused.text)
    assert found is not None
    assert base64.b64decode(found[1]) == file[2]
    late = {"name": "double", "gpu": CPU, "deadline": "2020-01-01 00:00"}
    refused = await carol.post("/create", late, file=file)
    assert "The deadline is in the past" in refused.text
    assert f'value="{found[1]}"' in refused.text
    kept = {"name": "double", "gpu": CPU, "kept_name": file[1], "kept_data": found[1]}
    assert (await carol.post("/create", kept)).status_code == 303
    for broken in ("@@", "AA"):
        answer = await carol.post("/create", kept | {"name": "other", "kept_data": broken})
        assert answer.status_code == 400


async def test_the_gpu_type_of_the_tab_is_chosen(door: WebContext, place: Place) -> None:
    ada, _ = await signed_in(door)
    assert "/submit?leaderboard=vectoradd&amp;gpu=CPU" in await ada.text("/boards/vectoradd")
    form = await ada.text("/submit?leaderboard=vectoradd&gpu=CPU")
    assert f'name="gpu" value="{CPU}" checked' in form


async def test_a_failed_run_is_mended_at_its_line_and_sent_again(
    door: WebContext, place: Place
) -> None:
    ada, _ = await signed_in(door)
    bob, _ = await signed_in(door, "bob")
    failed = await place.submit(mode=Mode.TEST)
    await place.judged(
        failed, verdict=Verdict.CRASHED, stage=Stage.TEST, message="ValueError: <no> (line 2)"
    )
    report = await ada.text(f"/submissions/{failed.id}")
    assert '<a class="badge bad" href="/docs/verdicts#crashed">crashed</a>' in report
    assert 'ValueError: &lt;no&gt; <a href="#line-2">(line 2)</a>' in report
    assert f'href="/submit/{failed.id}/edit">Fix and resubmit' in report
    assert "Fix and resubmit" not in await bob.text(f"/submissions/{failed.id}")
    assert (await bob.get(f"/submit/{failed.id}/edit")).status_code in {403, 404}
    assert 'data-line="2"' in await ada.text(f"/submit/{failed.id}/edit")
    fields = {"board": "vectoradd", "mode": "test", "gpu": CPU, "kept_name": "kernel.py"}
    refused = await ada.post(f"/submit/{failed.id}/edit", fields | {"source": " "})
    assert refused.status_code == 400
    assert 'id="editor"' in refused.text
    sent = await ada.post(f"/submit/{failed.id}/edit", fields | {"source": SOURCE})
    assert sent.status_code == 303
    assert sent.headers["Location"] != f"/submit/{failed.id}"


async def test_a_run_that_passed_is_not_to_be_fixed(door: WebContext, place: Place) -> None:
    ada, _ = await signed_in(door)
    passed = await place.submit(mode=Mode.TEST)
    await place.judged(passed)
    report = await ada.text(f"/submissions/{passed.id}")
    assert "Fix and resubmit" not in report
    assert f'<a class="button" href="/submit/{passed.id}/edit">Edit and resubmit</a>' in report
    assert '<a class="badge good" href="/docs/verdicts#passed">passed</a>' in report


async def test_after_a_run_that_is_too_noisy_the_first_thing_offered_is_another_one(
    door: WebContext, place: Place
) -> None:
    ada, _ = await signed_in(door)
    noisy = make_case(CaseKind.BENCHMARK, measurement=make_measurement(1e6, 0.5e6))
    for cases, look in (((noisy,), "button primary"), ((), "button ")):
        run = await place.submit()
        await place.judged(run, cases=cases)
        report = await ada.text(f"/submissions/{run.id}")
        assert f'<button class="{look}">Run again</button>' in report
