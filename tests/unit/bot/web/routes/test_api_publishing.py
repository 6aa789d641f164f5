"""Making, changing and deleting boards over HTTP."""

import io
import zipfile
from datetime import timedelta
from typing import Any

import httpx
import pytest

from bot.domain.accounts import MACHINE, Rights, TokenScope
from bot.domain.tasks.bundle import MAX_PACKED
from bot.domain.tasks.scaffold import scaffold
from bot.services import moderation
from bot.services.moderation import Decision
from bot.web.publications import checking
from runners.contract.task import Mode
from tests.doubles.api import Api
from tests.doubles.dispatching import dispatching, until
from tests.doubles.scaffolded import make_judge
from tests.doubles.task_zips import RIGHT, WITH_EVAL, packed


@pytest.fixture
async def creating(api: Api) -> Api:
    """The same door with a runner, and Carol and Dan who may create boards."""
    for name in ("carol", "dan"):
        person = await api.place.person(name)
        await api.place.store.rights.replace(person, MACHINE, Rights(is_creator=True))
    await api.place.store.workers.announce("box", ("CPU",), timedelta(days=1))
    return api


def zipped(name: str = "double", **changed: str) -> dict[str, tuple[str, bytes]]:
    field, file, data = packed(name, **changed)
    return {field: (file, data)}


async def ended(api: Api, asks: httpx.AsyncClient, answer: httpx.Response) -> dict[str, Any]:
    """A check once it has ended."""
    assert answer.status_code == 202, answer.text
    assert answer.json()["state"] == "waiting"
    path = answer.headers["location"].removeprefix("/api/v1")

    async def over() -> bool:
        return (await asks.get(path)).json()["state"] in {"published", "refused"}

    door = api.door
    async with dispatching(door.store, door.clock, [make_judge()]), checking(door):
        await until(over)
    return dict((await asks.get(path)).json())


async def test_a_board_is_made_of_a_zip_and_given_a_next_version(creating: Api) -> None:
    fields = {
        "name": "doubling",
        "deadline": "2099-01-31T18:00:00+01:00",
        "gpus": "CPU",
        "visibility": "private",
        "source_visibility": "never",
    }
    async with creating.asking("carol") as carol, creating.asking("dan") as dan:
        asked = await carol.post("/leaderboards", data=fields, files=zipped())
        check = await ended(creating, carol, asked)
        assert (check["state"], check["name"]) == ("published", "doubling")
        assert check["begun"] == ["running the solutions of doubling on CPU"]
        assert check["published"]["change"] == "created"
        assert check["published"]["checked"] == [{"gpu": "CPU", "obstacle": ""}]
        assert check["published"]["board"]["deadline"] == "2099-01-31T18:00:00+01:00"
        assert {each["ok"] for each in check["runs"]} == {True}
        assert "doubling on CPU is published." in check["remarks"]
        board = (await carol.get("/leaderboards/doubling")).json()
        assert (board["visibility"], board["source_visibility"]) == ("private", "never")
        assert (await dan.get("/leaderboards/doubling")).status_code == 404
        assert (await dan.get(f"/checks/{check['id']}")).json()["code"] == "unknown-check"
        twice = await carol.post("/leaderboards", data=fields, files=zipped())
        assert (twice.status_code, twice.json()["code"]) == (409, "board-exists")
        text = scaffold("double")["task.yml"].replace("  Double every", "  New. Double every")
        changed = zipped(task__yml=f"{text}\nversion_note: faster\n")
        second = await carol.post("/leaderboards/doubling/task", files=changed)
        published = (await ended(creating, carol, second))["published"]
        assert (published["task_version"], published["change"]) == (2, "new-version")
        assert published["version_note"] == "faster"
        assert published["board"]["visibility"] == "private"
        same = await carol.post("/leaderboards/doubling/task", files=changed)
        assert (await ended(creating, carol, same))["published"]["change"] == "unchanged"
        states = [each["state"] for each in (await carol.get("/checks")).json()["checks"]]
        assert states == ["published"] * 3


async def test_an_unsound_task_is_told_and_nothing_is_published(creating: Api) -> None:
    wrong = {name.replace(".", "__"): RIGHT for name in scaffold("double") if "wrong" in name}
    async with creating.asking("carol") as carol:
        asked = await carol.post("/leaderboards", files=zipped(**wrong))
        check = await ended(creating, carol, asked)
        assert (check["state"], check["published"]) == ("refused", None)
        assert check["problem"]["code"] == "unsound-task"
        assert "expected wrong answer" in check["problem"]["detail"]
        assert False in {each["ok"] for each in check["runs"]}
        assert (await carol.get("/leaderboards/double")).status_code == 404


async def test_a_check_is_cancelled_by_its_submitter_alone(creating: Api) -> None:
    async with creating.asking("carol") as carol, creating.asking("dan") as dan:
        asked = await carol.post("/leaderboards", files=zipped())
        path = f"/checks/{asked.json()['id']}"
        assert (await dan.delete(path)).json()["code"] == "unknown-check"
        assert (await carol.delete(path)).json()["state"] == "waiting"
        assert (await carol.delete(path)).json()["code"] == "finished"
        check = await ended(creating, carol, asked)
        assert (check["state"], check["problem"]["code"]) == ("refused", "cancelled")
        assert check["problem"]["detail"].startswith("the check was cancelled by its submitter")
        assert (await carol.get("/leaderboards/double")).status_code == 404


async def test_a_token_that_only_reads_cancels_no_check(creating: Api) -> None:
    async with (
        creating.asking("carol") as carol,
        creating.asking("carol", TokenScope.READ) as reader,
    ):
        asked = await carol.post("/leaderboards", files=zipped())
        refused = await reader.delete(f"/checks/{asked.json()['id']}")
        assert (refused.status_code, refused.json()["code"]) == (403, "narrow-token")


async def test_a_banned_person_publishes_nothing(creating: Api) -> None:
    async with creating.asking("carol") as carol:
        asked = await carol.post("/leaderboards", files=zipped())
        admin = Decision(creating.place.ada, "floods")
        await moderation.ban(creating.place.store, admin, "local:carol")
        again = await carol.post("/leaderboards", files=zipped())
        assert (again.status_code, again.json()["code"]) == (403, "banned")
        check = await ended(creating, carol, asked)
        assert "because its submitter is banned (floods)" in check["problem"]["detail"]


async def test_a_grader_may_be_chosen_and_the_answer_begins_with_it(creating: Api) -> None:
    files = zipped(task__yml=WITH_EVAL, eval__py="raise SystemExit(3)\n")
    async with creating.asking("carol") as carol:
        unknown = await carol.post("/leaderboards", data={"grader": "best"}, files=files)
        assert (unknown.status_code, unknown.json()["code"]) == (400, "bad-body")
        asked = await carol.post("/leaderboards", data={"grader": "native"}, files=files)
        assert asked.json()["grading"] == ""
        check = await ended(creating, carol, asked)
        assert check["grading"].startswith("Podium's judge grades, and eval.py is not run: the")
        assert check["remarks"][:2] == [check["grading"], "double on CPU is published."]
        task = (await carol.get("/leaderboards/double/task")).json()
        assert task["grader"] == "native"
        assert [each["name"] for each in task["files"] if each["not_run"]] == ["eval.py"]
        again = await carol.post(
            "/leaderboards/double/task", data={"grader": "popcorn"}, files=files
        )
        refused = await ended(creating, carol, again)
        assert refused["problem"]["code"] == "not-dry-run"
        assert refused["problem"]["detail"].startswith("The task's own eval.py grades: the task's")


async def test_only_who_may_create_boards_hands_zips_in_and_each_changes_their_own(
    creating: Api,
) -> None:
    async with creating.asking("bob") as bob, creating.asking("dan") as dan:
        for path in ("/leaderboards", "/leaderboards/vectoradd/task"):
            refused = await bob.post(path, files=zipped())
            assert (refused.status_code, refused.json()["code"]) == (403, "not-allowed")
        theirs = "/leaderboards/vectoradd"
        for answer in (
            await dan.post(f"{theirs}/task", files=zipped()),
            await dan.patch(theirs, json={"endless": True}),
            await dan.post(f"{theirs}/guests", json={"guests": ["local:dan"]}),
            await dan.post(f"{theirs}/rejudge", json={"version": 1}),
            await dan.get(f"{theirs}/guests"),
            await dan.get(f"{theirs}/keepsake"),
            await dan.delete(theirs, headers={"If-Match": "x"}),
        ):
            assert (answer.status_code, answer.json()["code"]) == (403, "not-yours")
    async with creating.asking("carol", TokenScope.READ) as reader:
        assert (await reader.post("/leaderboards", files=zipped())).status_code == 403
    async with creating.asking() as nobody:
        assert (await nobody.post("/leaderboards", files=zipped())).status_code == 401


async def test_a_bad_form_is_refused_with_what_to_do(creating: Api) -> None:
    late = {"deadline": "2020-01-01T00:00:00Z"}
    naive = {"deadline": "2099-01-01 10:00"}
    async with creating.asking("carol") as carol:
        for data, files, status, code in (
            ({}, {"task_zip": ("a.zip", b"PK")}, 400, "bad-zip"),
            ({"name": "x"}, {"other": ("a.zip", b"PK")}, 400, "bad-body"),
            ({"nmae": "x"}, zipped(), 400, "bad-body"),
            ({"name": "not a name"}, zipped(), 400, "bad-board-name"),
            (late, zipped(), 400, "bad-deadline"),
            (late | {"endless": "true"}, zipped(), 400, "bad-deadline"),
            (naive, zipped(), 400, "bad-body"),
            ({"gpus": "CPU,/"}, zipped(), 400, "bad-body"),
            ({}, zipped(task__yml="tests: ["), 400, "bad-task"),
            ({}, {"task_zip": ("a.zip", bytes(MAX_PACKED + (1 << 17)))}, 413, "large-body"),
        ):
            answer = await carol.post("/leaderboards", data=data, files=files)
            assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
        assert (await carol.get("/checks")).json() == {"checks": []}


async def test_settings_and_guests_are_changed_and_what_is_not_named_stays(creating: Api) -> None:
    async with creating.asking("ada", TokenScope.ADMIN) as ada, creating.asking("bob") as bob:
        path, until = "/leaderboards/vectoradd", "2099-01-31T18:00:00Z"
        board = (await ada.patch(path, json={"deadline": until, "gpus": ["CPU", "H100"]})).json()
        assert (board["deadline"], board["gpus"]) == (until, ["CPU", "H100"])
        board = (await ada.patch(path, json={"visibility": "private"})).json()
        assert (board["deadline"], board["visibility"]) == (until, "private")
        assert (await bob.get(path)).status_code == 404
        guests = await ada.post(f"{path}/guests", json={"guests": ["local:bob", "local:eve"]})
        assert guests.json() == {"guests": ["local:bob", "local:eve"]}
        assert (await bob.get(path)).status_code == 200
        ended = await ada.post(f"{path}/guests/end", json={"guests": ["local:bob"]})
        assert ended.json() == (await ada.get(f"{path}/guests")).json() == {"guests": ["local:eve"]}
        assert (await bob.get(path)).status_code == 404
        for guest in ("everybody", "local:\0", "local:a\n", "local:"):
            bad = await ada.post(f"{path}/guests", json={"guests": [guest]})
            assert (bad.status_code, bad.json()["code"]) == (400, "bad-body")
        board = (await ada.patch(path, json={"endless": True})).json()
        assert (board["deadline"], board["visibility"]) == (None, "private")


async def test_a_board_is_deleted_only_by_who_has_its_newest_keepsake(creating: Api) -> None:
    submission = await creating.place.submit(mode=Mode.TEST)
    path = "/leaderboards/vectoradd"
    async with creating.asking("ada", TokenScope.ADMIN) as ada:
        kept = await ada.get(f"{path}/keepsake")
        with zipfile.ZipFile(io.BytesIO(kept.content)) as archive:
            assert f"submissions/{submission.id}-kernel.py" in archive.namelist()
        assert kept.headers["podium-parts"] == "1"
        assert (await ada.get(f"{path}/keepsake", params={"part": 2})).status_code == 404
        unseen = await ada.delete(path)
        assert (unseen.status_code, unseen.json()["code"]) == (428, "no-match")
        await creating.place.submit(mode=Mode.TEST)
        stale = await ada.delete(path, headers={"If-Match": kept.headers["etag"]})
        assert (stale.status_code, stale.json()["code"]) == (412, "stale-match")
        newest = (await ada.get(f"{path}/keepsake")).headers["etag"]
        done = await ada.delete(path, headers={"If-Match": newest}, params={"reason": "over"})
        assert done.status_code == 204
        assert (await ada.get(path)).status_code == 404
    (row,) = await creating.place.store.audit.rows(1)
    assert (row.action, row.subject, row.reason) == ("delete-board", "board vectoradd", "over")


async def test_the_best_of_an_earlier_version_is_judged_by_the_present_one(creating: Api) -> None:
    ranked = await creating.place.submit()
    await creating.place.judged(ranked)
    async with creating.asking("ada", TokenScope.ADMIN) as ada:
        path = "/leaderboards/vectoradd"
        present = await ada.post(f"{path}/rejudge", json={"version": 1})
        assert present.json()["code"] == "no-version"
        check = await ended(creating, ada, await ada.post(f"{path}/task", files=zipped()))
        assert check["published"]["task_version"] == 2
        again = await ada.post(f"{path}/rejudge", json={"version": 1})
        assert (again.status_code, again.json()) == (202, {"submissions": 1, "version": 2})


async def test_the_pool_of_ranked_runs_is_named_by_gpu_type_or_for_all(creating: Api) -> None:
    async with creating.asking("ada", TokenScope.ADMIN) as ada:
        path = "/leaderboards/vectoradd"
        wanted = {"gpus": ["CPU", "H100"], "pools": ["modal", "CPU=box modal"]}
        board = (await ada.patch(path, json=wanted)).json()
        assert board["pools"] == {"CPU": "box modal", "H100": "modal"}
        assert (await ada.patch(path, json={"endless": True})).json()["pools"] == board["pools"]
        bad = await ada.patch(path, json={"pools": ["L4=box"]})
        assert (bad.status_code, bad.json()["code"]) == (400, "bad-pool")
        board = (await ada.patch(path, json={"pools": ["any"]})).json()
        assert board["pools"] == {}
