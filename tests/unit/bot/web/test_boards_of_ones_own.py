"""Tests of making, changing and deleting a board at its pages, with its task's check."""

import io
import re
import zipfile
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest

from bot.domain.accounts import TokenScope
from bot.domain.board import Viewer, Visibility
from bot.domain.tasks.scaffold import scaffold
from bot.services.publishing.own_checks import MOST_OPEN
from bot.services.tokens import create_local_token
from bot.web.context import FRONT_END, WebContext
from bot.web.publications import checking
from runners.contract.task import Mode
from tests.doubles.agents import make_door
from tests.doubles.browsers import Browser
from tests.doubles.clock import ManualClock
from tests.doubles.dispatching import dispatching
from tests.doubles.memory_store import MemoryStore
from tests.doubles.place import Place, make_place
from tests.doubles.scaffolded import make_doubter, make_judge
from tests.doubles.task_zips import RIGHT, WITH_EVAL, packed


@pytest.fixture
async def place(memory_store: MemoryStore, clock: ManualClock) -> Place:
    return await make_place(memory_store, clock)


@pytest.fixture
async def door(place: Place) -> WebContext:
    await place.store.workers.announce("box", ("CPU",), timedelta(days=1))
    return make_door(place.store, place.clock)


async def creator(door: WebContext, name: str = "carol") -> Browser:
    day = timedelta(days=1)
    by = await door.store.people.ensure("local:root", "root")
    made = await create_local_token(
        door.store, door.clock, by.id, name, scope=TokenScope.ADMIN, lifetime=day
    )
    browser = Browser(door)
    await browser.sign_in(made.secret)
    return browser


async def checked(door: WebContext, browser: Browser, page: str) -> str:
    """The last words of a check, once it has ended."""
    async with dispatching(door.store, door.clock, [make_judge()]), checking(door):
        events = await browser.text(f"{page}/events")
    assert events.rstrip().endswith("event: done\ndata:")
    return await browser.text(page)


async def test_a_board_is_made_of_a_zip_whose_solutions_end_as_they_must(door: WebContext) -> None:
    carol = await creator(door)
    looked = await carol.post("/create/look", file=packed())
    assert "1 correct and 1 wrong solution" in looked.text
    assert 'value="CPU" checked' in looked.text
    asked = await carol.post(
        "/create",
        {
            "name": "doubling",
            "deadline": "2099-01-31 18:00 Europe/Berlin",
            "visibility": "private",
            "sources": "never",
            "gpu": "CPU",
        },
        file=packed(),
    )
    assert asked.status_code == 303, asked.text
    page = asked.headers["Location"]
    assert "Waiting to start" in await carol.text(page)
    assert await door.store.boards.find("doubling") is None
    told = await checked(door, carol, page)
    assert "doubling on CPU is published." in told
    board = await door.store.boards.find("doubling")
    assert board is not None
    assert (board.access.visibility, board.access.source.value) == (Visibility.PRIVATE, "never")
    assert board.deadline == datetime(2099, 1, 31, 17, tzinfo=UTC)
    assert '<span class="badge good">published</span>' in await carol.text("/create")
    eve = Browser(door)
    assert "doubling" not in await eve.text("/")


async def test_an_unsound_task_is_told_whole_and_nothing_is_published(door: WebContext) -> None:
    carol = await creator(door)
    wrong = {name: RIGHT for name in scaffold("double") if "wrong" in name}
    asked = await carol.post(
        "/create",
        {"name": "unsound", "gpu": "CPU"},
        file=packed(**{name.replace(".", "__"): text for name, text in wrong.items()}),
    )
    told = await checked(door, carol, asked.headers["Location"])
    assert ", expected" in told
    assert "Nothing was published" in told
    assert await door.store.boards.find("unsound") is None
    other = await creator(door, "dave")
    assert (await other.get(asked.headers["Location"])).status_code == 200  # an admin
    stranger = Browser(door)
    assert (await stranger.get(asked.headers["Location"])).status_code == 303


async def test_a_chosen_grader_is_told_first_and_an_eval_py_that_does_not_run_is_marked(
    door: WebContext,
) -> None:
    carol = await creator(door)
    file = packed(task__yml=WITH_EVAL, eval__py="raise SystemExit(3)\n")
    looked = await carol.post("/create/look", file=file)
    assert "The task's own eval.py grades: Podium does not know this program." in unescape(
        looked.text
    )
    fields = {"name": "graded", "gpu": "CPU", "grader": "native"}
    refused = await carol.post("/create", fields | {"name": "1"}, file=file)
    assert '<option value="native" selected>' in refused.text
    asked = await carol.post("/create", fields, file=file)
    told = unescape(await checked(door, carol, asked.headers["Location"]))
    first = "Podium's judge grades, and eval.py is not run: the task's creator chose so."
    assert told.index(first) < told.index("graded on CPU is published.")
    task = await carol.text("/boards/graded")
    assert "eval.py is not run: Podium" in task
    assert re.search(r">eval\.py</a> <span[^>]*>[^<]+, not run</span>", task)
    own = await carol.post("/edit/graded/look", {"grader": "popcorn"}, file=file)
    assert "popcorn" in own.text


DISPUTED = packed(task__yml=WITH_EVAL, eval__py="raise SystemExit(3)\n")


async def disputed(door: WebContext, browser: Browser, page: str) -> str:
    """The last words of a check whose graders disagree, once it has ended."""
    async with dispatching(door.store, door.clock, [make_doubter()]), checking(door):
        await browser.text(f"{page}/events")
    return unescape(await browser.text(page))


async def test_the_zip_and_the_settings_of_a_failed_or_cancelled_check_are_used_again(
    door: WebContext,
) -> None:
    carol, eve = await creator(door), await creator(door, "eve")
    wrong = {name.replace(".", "__"): RIGHT for name in scaffold("double") if "wrong" in name}
    fields = {
        "name": "doubling", "gpu": "CPU", "visibility": "private", "sources": "never",
        "deadline": "2099-01-31 18:00 Europe/Berlin",
    }  # fmt: skip
    failed = await carol.post("/create", fields, file=packed(**wrong))
    told = await checked(door, carol, failed.headers["Location"])
    assert "Nothing was published" in told
    assert (
        f'href="/create?check={failed.headers["Location"].rpartition("/")[2]}">Check again' in told
    )
    cancelled = await carol.post("/create", fields, file=packed())
    await carol.post(f"{cancelled.headers['Location']}/cancel")
    told = await checked(door, carol, cancelled.headers["Location"])
    assert "was cancelled" in told
    (again,) = re.findall(r'href="(/create\?check=\d+)">Check again</a>', told)
    form = await carol.text(again)
    assert ".zip is kept" in form
    for value in ("doubling", "2099-01-31 17:00 UTC", "CPU"):
        assert f'value="{value}"' in form
    assert 'value="private" checked' in form
    assert (await eve.get(again)).status_code == 404
    kept = dict(re.findall(r'name="(kept_(?:name|data))" value="([^"]+)"', form))
    sent = await carol.post("/create", fields | kept)
    told = await checked(door, carol, sent.headers["Location"])
    assert "doubling on CPU is published." in told
    assert "Check again" not in told
    assert "no longer kept" not in told


async def test_after_a_check_whose_graders_disagree_a_button_goes_on_with_the_same_zip(
    door: WebContext,
) -> None:
    carol, eve = await creator(door), await creator(door, "eve")
    sent = await carol.post("/create", {"name": "graded", "gpu": "CPU"}, file=DISPUTED)
    page = sent.headers["Location"]
    told = await disputed(door, carol, page)
    assert "Choose who grades graded; then the same zip is checked again." in told
    assert (await eve.post(f"{page}/grader", {"grader": "native"})).status_code == 404
    assert (await carol.post(f"{page}/grader", {"grader": "best"})).status_code == 400
    again = await carol.post(f"{page}/grader", {"grader": "native"})
    assert again.status_code == 303
    told = await disputed(door, carol, again.headers["Location"])
    assert "graded on CPU is published." in told
    gone = await carol.text(page)
    assert "The zip of this check is no longer kept" in gone
    assert 'href="/edit/graded"' in gone
    assert (await carol.post(f"{page}/grader", {"grader": "native"})).status_code == 409


async def test_the_next_version_keeps_the_grader_that_was_chosen_for_the_board(
    door: WebContext,
) -> None:
    carol = await creator(door)
    fields = {"name": "graded", "gpu": "CPU", "grader": "native"}
    sent = await carol.post("/create", fields, file=DISPUTED)
    assert "is published" in await disputed(door, carol, sent.headers["Location"])
    edit = unescape(await carol.text("/edit/graded"))
    now = "Now: Podium's judge grades, and eval.py is not run, as chosen for this board."
    assert now in " ".join(edit.split())
    assert "Keep your choice" in edit
    text = f"{WITH_EVAL}seed: 5\n"
    file = packed(task__yml=text, eval__py="raise SystemExit(3)\n")
    looked = unescape((await carol.post("/edit/graded/look", file=file)).text)
    assert "the task's creator chose so" in looked
    assert "popcorn" not in looked, "the grader does not change"
    onto = looked.partition('name="onto" value="')[2].partition('"')[0]
    sent = await carol.post("/edit/graded/task", {"onto": onto}, file=file)
    told = await disputed(door, carol, sent.headers["Location"])
    assert "graded on CPU now has task version 2." in told
    sent = await carol.post("/create", {"name": "other", "gpu": "CPU"}, file=DISPUTED)
    assert "Choose who grades other" in await disputed(door, carol, sent.headers["Location"])


@pytest.mark.parametrize(
    ("file", "words"),
    [
        (("task_zip", "x.zip", b"not a zip"), "not a readable zip"),
        (packed(task__yml="lang: py\nfiles: [\n"), "task.yml:"),
        (packed(task__yml="nonsense: 1\n"), "double/task.yml:1"),
        (("task_zip", "", b""), "choose a task zip"),
        (("task_zip", "x.zip", b"PK" + b"x" * (11 << 20)), "too long"),
    ],
)
async def test_a_bad_zip_is_refused_with_file_and_line_and_leaves_nothing(
    door: WebContext, file: tuple[str, str, bytes], words: str
) -> None:
    carol = await creator(door)
    fields = {"name": "<b>bad</b>", "deadline": "2099-01-01"}
    answer = await carol.post("/create", fields, file=file)
    assert answer.status_code in {400, 413}, answer.text
    assert words.lower() in answer.text.lower()
    assert "<b>bad</b>" not in answer.text
    person = await door.store.people.find("local:carol")
    assert person is not None
    assert await door.store.publications.summaries_of(FRONT_END, person.id) == ()


async def test_a_name_that_is_taken_and_too_many_checks_are_refused(door: WebContext) -> None:
    carol = await creator(door)
    for fields, words in (
        ({"name": "vectoradd", "gpu": "CPU"}, "there is a board"),
        ({"name": "1", "gpu": "CPU"}, "not a valid leaderboard name"),
        ({"name": "x", "gpu": "CPU", "deadline": "1999-01-01"}, "in the past"),
        ({"name": "x", "gpu": "CPU", "deadline": "soon"}, "yyyy-mm-dd"),
        ({"name": "x", "other_gpus": "<gpu>"}, "is not a gpu type"),
    ):
        answer = await carol.post("/create", fields, file=packed())
        assert answer.status_code in {400, 409}
        assert words in answer.text.lower()
    handed_in = [
        await carol.post("/create", {"name": f"board-{number}", "gpu": "CPU"}, file=packed())
        for number in range(MOST_OPEN + 1)
    ]
    assert [each.status_code for each in handed_in] == [303] * MOST_OPEN + [409]
    assert "being checked already" in handed_in[-1].text


async def test_a_check_is_cancelled_on_its_page(door: WebContext) -> None:
    carol = await creator(door)
    asked = await carol.post("/create", {"name": "double", "gpu": "CPU"}, file=packed())
    page = asked.headers["Location"]
    assert "Cancel check" in (await carol.get(page)).text
    assert (await carol.post(f"{page}/cancel")).headers["Location"] == page
    told = await checked(door, carol, page)
    assert "the check was cancelled by its submitter; nothing was published" in told
    assert "Cancel check" not in told


async def test_a_next_version_is_looked_at_before_it_is_proven_and_can_be_rejudged(
    door: WebContext, place: Place
) -> None:
    carol = await creator(door)
    await checked(
        door,
        carol,
        (await carol.post("/create", {"name": "double", "gpu": "CPU"}, file=packed())).headers[
            "Location"
        ],
    )
    submission = await place.submit(board="double", mode=Mode.RANKED)
    await place.judged(submission)
    text = scaffold("double")["task.yml"]
    assert "  Double every element" in text
    changed = packed(task__yml=text.replace("  Double every", "  New. Double every"))
    same = await carol.post("/edit/double/look", file=packed())
    assert "Nothing. The task is unchanged." in same.text
    looked = await carol.post("/edit/double/look", file=changed)
    assert "New." in looked.text
    board = await place.store.boards.find("double")
    assert board is not None
    unseen = await carol.post("/edit/double/task", file=changed)
    assert "Press again to confirm" in unseen.text
    onto = str(board.task_version)
    nothing = await carol.post("/edit/double/task", {"onto": onto}, file=packed())
    assert nothing.status_code == 400
    asked = await carol.post("/edit/double/task", {"onto": onto}, file=changed)
    page = asked.headers["Location"]
    told = await checked(door, carol, page)
    assert "now has task version 2" in told
    assert "best submission (1)" in told
    again = await carol.post(f"{page}/rejudge")
    assert again.headers["Location"] == "/edit/double?done=rejudging"
    assert (await carol.post(f"{page}/rejudge")).status_code == 400
    late = await carol.post("/edit/double/task", {"onto": onto}, file=changed)
    assert "Press again to confirm" in late.text


async def test_settings_and_guests_change_alone(door: WebContext, place: Place) -> None:
    carol = await creator(door)
    form: dict[str, str | list[str]] = {
        "gpu": ["CPU", "H100"],
        "deadline": "2099-05-01 12:00",
        "visibility": "private",
        "sources": "always",
    }
    changed = await carol.post("/edit/vectoradd/settings", form)
    assert changed.headers["Location"].endswith("done=changed")
    form["deadline"] = "2099-05-01 12:00 UTC"
    same = await carol.post("/edit/vectoradd/settings", form)
    assert same.headers["Location"].endswith("done=unchanged")
    assert (await carol.post("/edit/vectoradd/settings", {"gpu": []})).status_code == 400
    bob = await place.person("bob")
    seen = Viewer(bob, frozenset({"local:bob"}))
    for guests, status in (("local:bob, discord-role:5", 303), ("", 400), ("bob", 400)):
        answer = await carol.post("/edit/vectoradd/invite", {"guests": guests})
        assert answer.status_code == status
    board = await place.store.boards.find("vectoradd")
    assert board is not None
    assert (board.gpus, board.visible_to(seen)) == (("CPU", "H100"), True)
    await carol.post("/edit/vectoradd/uninvite", {"guest": "local:bob"})
    board = await place.store.boards.find("vectoradd")
    assert board is not None
    assert board.access.guests == {"discord-role:5"}


async def test_a_board_is_deleted_by_its_exact_name_once_its_sources_were_handed_out(
    door: WebContext, place: Place
) -> None:
    carol = await creator(door)
    await place.submit()
    kept = await carol.get("/edit/vectoradd/keepsake")
    assert 'filename="vectoradd.zip"' in kept.headers["Content-Disposition"]
    with zipfile.ZipFile(io.BytesIO(kept.content)) as archive:
        assert any(name.startswith("submissions/") for name in archive.namelist())
    assert (await carol.get("/edit/vectoradd/keepsake?part=2")).status_code == 404
    page = await carol.text("/edit/vectoradd/delete")
    told = page.partition('name="told" value="')[2].partition('"')[0]
    good = {"told": told, "typed": "vectoradd", "saved": "yes"}
    for wrong in ({"typed": "Vectoradd"}, {"saved": ""}, {"told": ""}):
        refused = await carol.post("/edit/vectoradd/delete", {**good, **wrong})
        assert refused.status_code in {400, 409}
    await place.submit()  # somebody submits after the page was opened
    moved = await carol.post("/edit/vectoradd/delete", good)
    assert "download its archive again" in moved.text
    assert await place.store.boards.find("vectoradd") is not None
    page = moved.text
    good["told"] = page.partition('name="told" value="')[2].partition('"')[0]
    gone = await carol.post("/edit/vectoradd/delete", good)
    assert gone.headers["Location"] == "/create?done=deleted"
    assert await place.store.boards.find("vectoradd") is None
    assert (await carol.get("/edit/vectoradd")).status_code == 404
