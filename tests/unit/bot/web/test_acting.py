"""Tests of the pages for acting, from sign-in to admin, in process: who may do what, and how."""

from dataclasses import replace
from datetime import timedelta
from html import unescape
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from bot.domain.accounts import TokenScope
from bot.domain.confirmation import Confirmation, ConfirmationState
from bot.domain.errors import UserError
from bot.domain.ids import ConfirmationId, PersonId, SubmissionId, TaskVersionId
from bot.domain.records import KnownPerson
from bot.domain.scoring import PairRatio
from bot.domain.status import SubmissionStatus
from bot.remote.discord_oauth import DiscordIdentities
from bot.services import status
from bot.services.tokens import create_local_token, revoke_token
from bot.web.context import WebContext
from runners.contract.evaluation import CaseKind
from runners.contract.task import Mode
from tests.doubles.agents import make_door
from tests.doubles.browsers import HOME, SAME_ORIGIN, Browser, admin_of, signed_in
from tests.doubles.clock import ManualClock
from tests.doubles.discord.server import LocalDiscord
from tests.doubles.factories import NOON, make_case, make_measurement
from tests.doubles.memory_store import MemoryStore
from tests.doubles.place import Place, make_place
from tests.doubles.spooling import spooling
from tests.doubles.task_zips import packed

KERNEL = b"def custom_kernel(data):\n    return data\n"
FILE = ("file", "kernel.py", KERNEL)


@pytest.fixture
async def place(memory_store: MemoryStore, clock: ManualClock) -> Place:
    return await make_place(memory_store, clock)


@pytest.fixture
def door(place: Place) -> WebContext:
    return make_door(place.store, place.clock)


async def test_a_page_for_acting_asks_strangers_to_sign_in_and_leads_them_back(
    door: WebContext,
) -> None:
    stranger = Browser(door)
    for path in ("/submit?leaderboard=vectoradd", "/me", "/create", "/admin", "/edit/vectoradd"):
        answer = await stranger.get(path)
        there = urlsplit(answer.headers["Location"])
        assert (answer.status_code, there.path) == (303, "/sign-in")
        assert parse_qs(there.query) == {"next": [path]}
    person = await door.store.people.ensure("local:ada", "ada")
    made = await create_local_token(
        door.store, door.clock, person.id, "ada", scope=TokenScope.PERSON, lifetime=timedelta(1)
    )
    assert (await stranger.sign_in(made.secret, "/me")).headers["Location"] == "/me"
    assert (await stranger.sign_in(made.secret, "//evil.example")).headers["Location"] == "/"


async def test_a_token_that_is_none_is_refused_in_the_form(door: WebContext) -> None:
    stranger = Browser(door)
    for secret in ("", "podium_nonsense", "x" * 5000):
        answer = await stranger.sign_in(secret)
        assert answer.status_code == 401
        assert 'role="alert"' in answer.text
        assert "podium" not in stranger.client.cookies
    form = {"token": "podium_x"}
    foreign = await stranger.client.post(
        "/sign-in", data=form, headers={"Sec-Fetch-Site": "cross-site"}
    )
    assert foreign.status_code == 403


async def test_a_sign_in_ends_the_session_before_it(door: WebContext) -> None:
    browser, made = await signed_in(door)
    before = browser.client.cookies["podium"]
    await browser.sign_in(made.secret)
    after = browser.client.cookies["podium"]
    assert before != after
    old = Browser(door)
    old.client.cookies.set("podium", before)
    assert (await old.get("/me")).status_code == 303
    assert (await browser.get("/me")).status_code == 200


@pytest.mark.parametrize("act", ["sign-out", "revoked token", "elsewhere"])
async def test_a_session_that_has_ended_acts_no_more(door: WebContext, act: str) -> None:
    browser, made = await signed_in(door)
    person = made.token.person
    stamp = await browser.stamp()
    if act == "sign-out":
        answer = await browser.post("/sign-out")
        assert answer.headers["Location"] == "/"
        assert 'podium=""' in answer.headers["Set-Cookie"]
    elif act == "revoked token":
        await revoke_token(door.store, person, made.token.id)
    else:
        other = Browser(door)
        await other.sign_in(made.secret)
        await other.post("/me/sessions/others/end")
    answer = await browser.client.post(
        "/submit", data={"stamp": stamp, "board": "vectoradd"}, headers=SAME_ORIGIN
    )
    assert answer.status_code == 401
    assert await door.store.submissions.history(person, None, None, 5) == ()


async def test_who_acts_must_come_from_a_page_of_that_session(
    door: WebContext, place: Place
) -> None:
    ada, _ = await signed_in(door)
    eve, _ = await signed_in(door, "eve")
    foreign: list[tuple[dict[str, str], dict[str, str]]] = [
        ({"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}, {}),
        ({"Origin": "https://evil.example"}, {}),
        ({}, {}),
        (SAME_ORIGIN, {"stamp": ""}),
        (SAME_ORIGIN, {"stamp": await eve.stamp()}),
    ]
    for headers, fields in foreign:
        answer = await ada.post(
            "/submit", {"board": "vectoradd", **fields}, file=FILE, headers=headers
        )
        assert answer.status_code == 403, answer.text
    assert await place.store.submissions.history(place.ada, None, None, 5) == ()
    submitted = await ada.post("/submit", {"board": "vectoradd"}, file=FILE)
    assert submitted.status_code == 303


async def test_a_cookie_alone_reads_and_does_not_act_through_the_api(
    door: WebContext, place: Place
) -> None:
    ada, _ = await signed_in(door)
    mine = await place.submit(mode=Mode.TEST)
    read = await ada.client.get(f"/api/v1/submissions/{mine.id}")
    assert read.status_code == 200
    acted = await ada.client.post(f"/api/v1/submissions/{mine.id}/cancel", headers=SAME_ORIGIN)
    assert acted.status_code == 401


class Somewhere:
    """Stands in for a place that vouches; the real one is tested in test_discord_identities."""

    name = "Somewhere"

    def page(self, state: str, back: str) -> str:
        return f"https://somewhere.example/agree?state={state}&back={back}"

    async def confirmed(self, code: str, back: str) -> KnownPerson:
        if (code, back) != ("good", f"{HOME}/sign-in/discord/back"):
            raise UserError("sign-in-refused", "no such code")
        return KnownPerson("discord:17", "Alice")


async def test_discords_word_counts_only_for_the_browser_that_asked(door: WebContext) -> None:
    door = replace(door, identities=Somewhere(), public_url=HOME)
    browser, other = Browser(door), Browser(door)
    asked = await browser.get("/sign-in/discord?next=/submit")
    state = parse_qs(urlsplit(asked.headers["Location"]).query)["state"][0]
    back = "/sign-in/discord/back"
    for who, query in (
        (other, f"state={state}&code=good"),
        (browser, "state=forged&code=good"),
        (browser, "state=&code=good"),
        (browser, "code=good"),
        (browser, f"state={state}&code=bad"),
        (browser, f"state={state}&error=access_denied"),
    ):
        refused = await who.get(f"{back}?{query}")
        assert refused.status_code == 400, query
        assert "podium" not in who.client.cookies
    entered = await browser.get(f"{back}?state={state}&code=good")
    assert entered.headers["Location"] == "/submit"
    assert "Alice" in await browser.text("/me")
    assert (await browser.get(f"{back}?state={state}&code=good")).status_code == 400


async def test_a_sign_in_by_the_local_discord_goes_there_and_back(door: WebContext) -> None:
    back = f"{HOME}/sign-in/discord/back"
    async with LocalDiscord() as server:
        oauth = server.oauth
        oauth.redirects.add(back)
        alice = oauth.agrees = server.user("alice")
        known = DiscordIdentities(
            oauth.client_id, oauth.secret, server.api_base, server.authorize_url
        )
        browser = Browser(replace(door, identities=known, public_url=HOME))
        assert "/sign-in/discord?next=/submit" in await browser.text("/sign-in?next=/submit")
        asked = await browser.get("/sign-in/discord?next=/submit")
        async with httpx.AsyncClient() as outside:
            agreed = await outside.get(asked.headers["Location"])
        entered = await browser.get(agreed.headers["Location"].removeprefix(HOME))
        assert (entered.status_code, entered.headers["Location"]) == (303, "/submit")
        assert f"discord:{alice.id}" in await browser.text("/me")
        oauth.agrees = None
        asked = await browser.get("/sign-in/discord")
        async with httpx.AsyncClient() as outside:
            declined = await outside.get(asked.headers["Location"])
        answer = await browser.get(declined.headers["Location"].removeprefix(HOME))
        assert "did not allow Discord to share your account" in answer.text
        assert oauth.refusals == []


async def test_without_an_application_of_discord_there_is_no_such_way_in(door: WebContext) -> None:
    stranger = Browser(door)
    assert "Discord</a>" not in await stranger.text("/sign-in")
    assert (await stranger.get("/sign-in/discord")).status_code == 404


async def test_an_error_page_knows_who_is_signed_in(door: WebContext) -> None:
    ada, _ = await signed_in(door)
    for path, words in (
        ("/nothing", "there is nothing at this address"),
        ("/submissions/abc", "there is nothing at this address"),
        ("/submissions/999", "submission 999"),
    ):
        answer = await ada.get(path)
        assert answer.status_code == 404
        assert words in answer.text
        assert 'href="/me">ada</a>' in answer.text
        assert "/sign-in" not in answer.text
    wrong = await ada.get("/submit?leaderboard=" + "x" * 201)
    assert wrong.status_code == 422
    assert "“leaderboard” cannot have this value" in wrong.text
    assert "/sign-in" in (await Browser(door).get("/nothing")).text
    assert 'href="/admin"' not in wrong.text
    found = (await (await admin_of(door)).get("/nothing")).text
    assert '<a href="/create">Create</a>' in found
    assert '<a href="/admin">Admin</a>' in found


async def test_a_form_without_a_file_asks_for_one(door: WebContext) -> None:
    ada, _ = await signed_in(door)
    refused = await ada.post(
        "/submit", {"board": "vectoradd", "source": " "}, file=("file", "", b"")
    )
    assert "No file was chosen; choose one, or paste its source." in refused.text


async def test_the_form_says_what_the_heading_chose_and_what_is_left(
    door: WebContext, place: Place
) -> None:
    await place.store.boards.configure(place.board.id, ("CPU", "H100"), None)
    ada, _ = await signed_in(door)
    headed = b"#!PODIUM leaderboard vectoradd\n#!PODIUM gpus h100\n" + KERNEL
    looked = await ada.post("/submit/look", file=("file", "k.py", headed))
    assert 'value="vectoradd" selected' in looked.text
    assert 'value="H100" checked' in looked.text
    assert 'value="CPU" checked' not in looked.text
    assert place.board.access.source.statement(place.board.deadline) in unescape(looked.text)
    plain = {"earlier_board": "vectoradd", "earlier_gpu": "CPU"}
    kept = await ada.post("/submit/look", plain, file=FILE)
    assert '<option value="vectoradd" selected>' in kept.text
    assert 'value="CPU" checked' in kept.text
    other = {"earlier_board": "sort"}
    elsewhere = await ada.post("/submit/look", other, file=("file", "k.py", headed))
    assert '<option value="vectoradd" selected>' in elsewhere.text
    wrong = await ada.post("/submit/look", file=("file", "k.py", b"#!PODIUM leaderbord x\n"))
    assert "unknown key" in wrong.text
    refused = await ada.post("/submit", {"board": "vectoradd", "source": "x = '</textarea>'"})
    assert refused.status_code == 400
    assert "hoose one or more GPU types: CPU, H100" in refused.text
    assert "x = &#39;&lt;/textarea&gt;&#39;" in refused.text
    pasted = await ada.post(
        "/submit", {"board": "vectoradd", "source": "x = 1\r\n", "gpu": ["CPU"], "mode": "test"}
    )
    number = int(pasted.headers["Location"].rpartition("/")[2])
    (stored,) = await place.store.submissions.history(place.ada, None, None, 5)
    assert (stored.id, stored.file_name, stored.mode) == (number, "kernel.py", Mode.TEST)
    assert await place.store.submissions.source(stored.id) == "x = 1\n"


@pytest.mark.parametrize(
    ("file", "words"),
    [
        (("file", "k.py", b""), "is empty"),
        (("file", "k.py", b"PK\x03\x04\0\0"), "NUL bytes"),
        (("file", "k.py", "x = 1\n".encode("utf-16")), "file is UTF-16"),
        (("file", "k.cu", b"int x;"), "is a CUDA C++ file"),
        (("file", "message.txt", b"x = 1"), "ends with &#39;.txt&#39;"),
        (("file", "k.py", b"x" * 1_000_001), "at most 1,000,000"),
    ],
)
async def test_a_file_that_is_no_source_is_refused_with_what_to_do(
    door: WebContext, file: tuple[str, str, bytes], words: str
) -> None:
    ada, _ = await signed_in(door)
    answer = await ada.post("/submit", {"board": "vectoradd"}, file=file)
    assert answer.status_code in {400, 413}
    assert words in answer.text


async def test_a_submission_is_followed_to_the_place_it_won_and_can_be_taken_back(
    door: WebContext, place: Place
) -> None:
    ada, _ = await signed_in(door)
    eve, _ = await signed_in(door, "eve")
    answer = await ada.post("/submit", {"board": "vectoradd"}, file=FILE)
    page = answer.headers["Location"]
    assert "queued, position 1" in await ada.text(page)
    assert (await eve.get(page)).status_code == 403
    assert (await eve.get(f"{page}/events")).status_code == 403
    assert (await eve.post(f"{page}/cancel")).status_code == 403
    (stored,) = await place.store.submissions.history(place.ada, None, None, 5)
    await place.judged(stored)
    events = await ada.text(f"{page}/events")
    assert events.rstrip().endswith("event: done\ndata:")
    assert "1st of 1 on CPU" in events
    assert (await ada.post(f"{page}/cancel")).status_code == 409
    again = await ada.post(f"{page}/again")
    assert again.headers["Location"] != page
    assert (await eve.post(f"{page}/withdraw", {"reason": "mine"})).status_code == 403
    await ada.post(f"{page}/withdraw", {"reason": "<b>wrong</b>"})
    assert "withdrawn, so it is not ranked: &lt;b&gt;wrong&lt;/b&gt;" in await ada.text(page)


MET = Confirmation(
    ConfirmationId(1), SubmissionId(1), PersonId(1), "ada", TaskVersionId(1), "CPU", 1,
    ConfirmationState.PENDING, NOON, rival=SubmissionId(7), rival_name="bob",
    run=SubmissionId(-3), ratio=PairRatio(0.999, 0.002),
)  # fmt: skip


async def test_a_place_is_awaited_until_its_comparison_has_ended(
    door: WebContext, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, _ = await signed_in(door)
    answer = await ada.post("/submit", {"board": "vectoradd"}, file=FILE)
    (stored,) = await place.store.submissions.history(place.ada, None, None, 5)
    await place.judged(stored)
    read, pages = status.submission_status, iter((ConfirmationState.PENDING,) * 2)

    async def compared(store: MemoryStore, number: SubmissionId) -> SubmissionStatus:
        found = await read(store, number)
        met = replace(MET, state=next(pages, ConfirmationState.TIED))
        return replace(found, jobs=tuple(replace(each, confirmation=met) for each in found.jobs))

    monkeypatch.setattr(status, "submission_status", compared)
    page = await ada.text(answer.headers["Location"])
    assert "CPU: confirmation pending: it would take 1st place" in page
    assert "data-live" in page
    assert "1st of 1" not in page
    events = await ada.text(f"{answer.headers['Location']}/events")
    _, first, last = events.split("event: part")
    assert "confirmation pending" in first
    assert "CPU: tied with #7 by bob" in last
    assert "1st of 1 on CPU" in last
    assert last.rstrip().endswith("event: done\ndata:")


async def test_the_form_warns_before_a_file_is_refused_or_sent_to_another_board(
    door: WebContext,
) -> None:
    ada, _ = await signed_in(door)
    headed = ("file", "k.py", b"#!PODIUM leaderboard vectoradd\n" + KERNEL)
    same = await ada.post("/submit/look", {"earlier_board": "vectoradd"}, file=headed)
    assert "From the file's header" in same.text
    other = await ada.post("/submit/look", {"earlier_board": "softmax"}, file=headed)
    assert "header names vectoradd, not softmax." in other.text
    twice = await ada.post("/submit", {"board": "vectoradd"}, file=("file", "k.py", b"\0"))
    assert twice.text.count("NUL bytes") == 1
    assert "paused" not in await ada.text("/submit")
    await door.store.moderation.pause("maintenance")
    assert "Submissions are paused: maintenance." in await ada.text("/submit")


async def test_a_ban_is_shown_in_words(door: WebContext) -> None:
    ada, _ = await signed_in(door)
    root = await admin_of(door, "root")
    ban = {"who": "local:ada", "reason": "spam", "until": "2099-01-31 18:00"}
    assert (await root.post("/admin/ban", ban)).status_code == 303
    told = "You are banned from submitting: spam (until 2099-01-31 18:00 UTC). Ask an admin."
    assert told in await ada.text("/me")


async def test_a_tokens_secret_is_shown_once_and_never_for_more_than_the_session(
    door: WebContext, place: Place
) -> None:
    ada, _ = await signed_in(door)
    made = await ada.post("/me/tokens", {"label": "<laptop>", "scope": "submit", "days": "9"})
    assert "podium_" in made.text
    assert made.headers["Cache-Control"] == "no-store"
    page = await ada.text("/me")
    assert "&lt;laptop&gt;" in page
    assert "podium_" not in page
    newest = (await place.store.tokens.of(place.ada))[-1]
    await admin_of(door)  # ada is an admin from here on, though not in this browser
    refused = await ada.post("/me/tokens", {"label": "x", "scope": "admin", "days": "9"})
    assert refused.status_code == 403
    for days in ("0", "", "x", "99999", "٣"):
        wrong = await ada.post("/me/tokens", {"label": "x", "scope": "read", "days": days})
        assert wrong.status_code == 400
    eve, _ = await signed_in(door, "eve")
    assert (await eve.post(f"/me/tokens/{newest.id}/revoke")).status_code == 404
    assert (await ada.post(f"/me/tokens/{newest.id}/revoke")).status_code == 303
    assert newest not in await place.store.tokens.of(place.ada)


async def test_the_zip_of_who_may_not_create_is_not_even_opened(
    door: WebContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    eve, _ = await signed_in(door, "eve")
    spooled = spooling(monkeypatch)
    assert (await eve.post("/create", {"name": "double"}, file=packed())).status_code == 403
    assert not spooled


async def test_who_has_no_right_to_it_neither_creates_nor_edits_nor_decides(
    door: WebContext, place: Place
) -> None:
    eve, _ = await signed_in(door, "eve")
    for path in (
        "/create",
        "/admin",
        "/admin/audit",
        "/admin/costs",
        "/edit/vectoradd",
        "/edit/vectoradd/delete",
    ):
        assert (await eve.get(path)).status_code == 403, path
    assert (await eve.get("/edit/vectoradd/keepsake")).status_code == 403
    for path in ("/create", "/create/look", "/edit/vectoradd/look", "/edit/vectoradd/task"):
        assert (await eve.post(path, {"name": "double"}, file=packed())).status_code == 403, path
    for path in ("settings", "invite", "uninvite", "delete"):
        assert (await eve.post(f"/edit/vectoradd/{path}")).status_code == 403, path
    for deed in ("ban", "pause", "limit", "disqualify", "rejudge", "nonsense"):
        answer = await eve.post(f"/admin/{deed}", {"who": "local:ada", "reason": "x"})
        assert answer.status_code == 403, deed
    ada, _ = await signed_in(door)  # her own board, without the right to create
    assert (await ada.post("/edit/vectoradd/settings", {"gpu": "CPU"})).status_code == 403
    assert await place.store.audit.rows(5) == await place.store.audit.rows(1)


async def test_an_admin_decides_and_each_deed_is_in_the_record(
    door: WebContext, place: Place
) -> None:
    root = await admin_of(door, "root")
    await place.store.people.ensure("discord:9", "Rude", "mallory")
    submission = await place.submit(await place.person("eve"))
    number = str(submission.id)
    for time_ns, name in enumerate(("eve", "bob", "dan"), start=100):
        run = submission if name == "eve" else await place.submit(await place.person(name))
        case = make_case(CaseKind.BENCHMARK, measurement=make_measurement(10 * time_ns, 0))
        await place.judged(run, cases=(case,))
    deeds: list[tuple[str, dict[str, str]]] = [
        ("ban", {"who": "local:eve", "reason": "<i>forged</i>"}),
        ("unban", {"who": "local:eve"}),
        ("reset-name", {"who": "discord:9", "reason": "rude"}),
        ("disqualify", {"submission": f"#{number}", "reason": "copied"}),
        ("requalify", {"submission": number}),
        ("pause", {"what": "board", "which": "vectoradd", "reason": "mending"}),
        ("resume", {"what": "board", "which": "vectoradd"}),
        ("pause", {"what": "gpu", "which": "cpu", "reason": "hot"}),
        ("resume", {"what": "gpu", "which": "CPU"}),
        ("pause", {"what": "all", "reason": "moving"}),
        ("resume", {"what": "all"}),
        ("limit", {"most": "3", "minutes": "60", "board": "vectoradd", "mode": "ranked"}),
        ("unlimit", {"board": "vectoradd", "mode": "ranked"}),
        ("quota", {"most": "$2.50", "unit": "dollars", "of": "everyone", "gpu": "cpu"}),
        ("quota", {"most": "600", "unit": "seconds", "of": "person", "board": "vectoradd"}),
        ("unquota", {"unit": "dollars", "of": "everyone", "gpu": "CPU"}),
        ("rejudge", {"submission": number}),
        ("final", {"board": "vectoradd", "top": "2", "gpu": ""}),
        ("cancel-final", {"board": "vectoradd"}),
    ]
    for deed, fields in deeds:
        answer = await root.post(f"/admin/{deed}", fields)
        assert answer.status_code == 303, answer.text
        assert 'role="status"' in await root.text(answer.headers["Location"])
    assert "At most 600 s of GPU time a day, for vectoradd" in await root.text("/me")
    for days in ("1", "7", "30"):
        costs = await root.text(f"/admin/costs?days={days}")
        assert "by person" in costs
        assert costs.count('aria-current="page"') >= 1
    record = await root.text("/admin/audit")
    assert "&lt;i&gt;forged&lt;/i&gt;" in record
    assert record.count("<tr>") >= len(deeds)
    for deed, fields in (
        ("ban", {"who": "local:nobody", "reason": "x"}),
        ("ban", {"who": "local:eve", "reason": ""}),
        ("disqualify", {"submission": "x" * 30, "reason": "x"}),
        ("disqualify", {"submission": "9" * 19, "reason": "x"}),
        ("limit", {"most": "0", "minutes": "1"}),
        ("unlimit", {"board": "nowhere"}),
        ("quota", {"most": "0", "unit": "seconds"}),
        ("quota", {"most": "1e5", "unit": "seconds"}),
        ("quota", {"most": "9999999999", "unit": "seconds"}),
        ("unquota", {"unit": "dollars"}),
        ("resume", {"what": "all"}),
        ("final", {"board": "vectoradd", "top": "1"}),
        ("cancel-final", {"board": "vectoradd"}),
    ):
        refused = await root.post(f"/admin/{deed}", fields)
        assert refused.status_code in {400, 404, 409}, deed
        assert 'role="alert"' in refused.text


async def test_no_link_signs_anybody_in_where_others_than_this_machine_come(
    door: WebContext,
) -> None:
    key = door.sign_in_links.key_for("ada", door.clock.now())
    stranger = Browser(door)
    looked = await stranger.get(f"/sign-in/link?key={key}")
    entered = await stranger.client.post("/sign-in/link", data={"key": key}, headers=SAME_ORIGIN)
    assert (looked.status_code, entered.status_code) == (404, 404)
    assert door.sign_in_links.redeem(key, door.clock.now()) == "ada"


async def test_a_home_without_boards_says_what_its_reader_can_do(
    door: WebContext, place: Place
) -> None:
    await place.store.boards.delete(place.board.id)
    readers = (
        (Browser(door), "There are no public boards yet.", "/sign-in?next=/"),
        (await admin_of(door), "There are no boards yet.", "/create"),
    )
    for browser, words, address in readers:
        home = await browser.text("/")
        assert words in home
        assert f'class="button primary" href="{address}"' in home
        assert "make demo" not in home


async def test_the_pool_for_ranked_runs_is_set_shown_and_removed(
    door: WebContext, place: Place
) -> None:
    ada = await admin_of(door)
    fields = {"gpu": "CPU", "pools": "CPU=box"}
    assert (await ada.post("/edit/vectoradd/settings", fields)).status_code == 303
    assert 'value="CPU=box"' in (await ada.get("/edit/vectoradd")).text
    assert "timed only by pool box" in await ada.text("/boards/vectoradd")
    bad = await ada.post("/edit/vectoradd/settings", {"gpu": "CPU", "pools": "<b>"})
    assert "is not a pool" in bad.text
    assert "<b>" not in bad.text
    await ada.post("/edit/vectoradd/settings", {"gpu": "CPU", "pools": ""})
    found = await place.store.boards.get(place.board.id)
    assert found is not None
    assert found.pins == ()


async def test_only_pages_of_this_site_get_the_stamp_of_the_present_session(
    door: WebContext,
) -> None:
    ada, _ = await signed_in(door)
    answer = await ada.client.get("/sign-in/stamp", headers=SAME_ORIGIN)
    assert answer.json() == {"stamp": await ada.stamp()}
    assert answer.headers["Cache-Control"] == "no-store"
    elsewhere = {"Sec-Fetch-Site": "cross-site"}
    assert (await ada.client.get("/sign-in/stamp", headers=elsewhere)).status_code == 403
    await ada.post("/sign-out")
    asks = SAME_ORIGIN | {"Accept": "application/json"}
    assert (await ada.client.get("/sign-in/stamp", headers=asks)).status_code == 401


async def test_a_display_name_is_changed_on_the_account_s_page(door: WebContext) -> None:
    ada, _ = await signed_in(door)
    changed = await ada.post("/me/name", {"name": "<i>Ada</i> L."})
    assert changed.headers["Location"] == "/me?done=renamed"
    text = await ada.text("/me?done=renamed")
    assert "<h1>&lt;i&gt;Ada&lt;/i&gt; L.</h1>" in text
    again = await ada.post("/me/name", {"name": "Countess <b>"})
    assert again.status_code == 429
    assert 'value="Countess &lt;b&gt;"' in again.text
    long = await ada.post("/me/name", {"name": "x" * 33})
    assert long.status_code == 400
    assert (await door.store.people.ensure("local:ada", "ada")).name == "<i>Ada</i> L."
