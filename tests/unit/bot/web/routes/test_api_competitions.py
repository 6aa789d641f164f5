"""Competitions over HTTP: published from a zip, ranked, closed, extended, exported."""

import csv
import io
import json
from datetime import timedelta

import httpx
import pytest

from bot.domain.accounts import MACHINE, Rights, TokenScope
from bot.web.publications import checking
from runners.contract.evaluation import CaseKind
from tests.doubles.api import Api
from tests.doubles.dispatching import dispatching, until
from tests.doubles.factories import make_case, make_measurement
from tests.doubles.scaffolded import make_judge
from tests.doubles.task_zips import packed_competition, zipped

TEXT = """\
name: Spring cup
prize: a mug
opens: 2026-11-01 13:00
ranks: [25, 18]
description: Two tasks.
late_runs: true
problems:
  - {directory: double, name: double, deadline: "2026-11-01 14:00", gpus: [CPU]}
  - {directory: triple, name: third, deadline: "2026-11-01 17:00", gpus: [CPU]}
"""
CUP = "/competitions/Spring%20cup"
HOUR_S = timedelta(hours=1).total_seconds()


@pytest.fixture
async def creating(api: Api) -> Api:
    """The same server with a runner, and Carol and Dan who may create boards."""
    for name in ("carol", "dan"):
        person = await api.place.person(name)
        await api.place.store.rights.replace(person, MACHINE, Rights(is_creator=True))
    await api.place.store.workers.announce("box", ("CPU",), timedelta(days=1))
    return api


def form(text: str = TEXT, *names: str) -> dict[str, tuple[str, bytes]]:
    return {
        "competition_zip": ("set.zip", packed_competition(text, *(names or ("double", "triple"))))
    }


async def published(api: Api, client: httpx.AsyncClient, text: str = TEXT) -> dict[str, object]:
    """The check of a competition once it has ended."""
    answer = await client.post("/competitions", files=form(text))
    assert answer.status_code == 202, answer.text
    path = answer.headers["location"].removeprefix("/api/v1")

    async def over() -> bool:
        return (await client.get(path)).json()["state"] in {"published", "refused"}

    door = api.door
    async with dispatching(door.store, door.clock, [make_judge()]), checking(door):
        await until(over)
    return dict((await client.get(path)).json())


async def ran(api: Api, name: str, board: str, time_ns: float) -> None:
    person = await api.place.person(name)
    case = make_case(CaseKind.BENCHMARK, measurement=make_measurement(time_ns, 0))
    await api.place.judged(await api.place.submit(person, board=board), cases=(case,))


async def test_a_competition_is_published_from_one_zip(creating: Api) -> None:
    async with creating.asking("carol") as carol:
        check = await published(creating, carol)
    assert (check["name"], check["competition"], check["problem"]) == (
        "Spring cup", "Spring cup", None,
    )  # fmt: skip
    boards = check["boards"]
    assert isinstance(boards, list)
    assert [(each["board"]["name"], each["change"]) for each in boards] == [
        ("double", "created"),
        ("third", "created"),
    ]
    assert boards[0]["board"]["late_runs"]
    assert boards[0]["board"]["opens_at"] == "2026-11-01T13:00:00Z"
    remarks = check["remarks"]
    assert isinstance(remarks, list)
    assert remarks[0] == "Competition Spring cup with 2 boards is published."
    assert "Ignored: set.yaml:2: unknown key 'prize'" in remarks[1]


async def test_before_it_opens_people_get_its_name_and_date_alone(creating: Api) -> None:
    async with creating.asking("carol") as carol, creating.asking() as anyone:
        await published(creating, carol)
        seen = (await anyone.get(CUP)).json()
        assert seen == {
            "name": "Spring cup", "state": "upcoming", "opens_at": "2026-11-01T13:00:00Z",
            "closes_at": None, "description": "", "creator_id": None, "ranks": [], "boards": [],
            "leaderboards": [], "entries": [],
        }  # fmt: skip
        (listed,) = (await anyone.get("/competitions")).json()["competitions"]
        assert listed == {key: seen[key] for key in listed}
        names = {each["name"] for each in (await anyone.get("/leaderboards")).json()["boards"]}
        assert names == {"vectoradd"}
        for path in ("", "/task", "/standings", "/template"):
            refused = await anyone.get(f"/leaderboards/double{path}")
            assert (refused.status_code, refused.json()["code"]) == (409, "not-open")
            assert "opens at 2026-11-01 13:00 UTC" in refused.json()["detail"]
        own = (await carol.get(CUP)).json()
        assert [each["name"] for each in own["boards"]] == ["double", "third"]
        assert own["closes_at"] == "2026-11-01T17:00:00Z"


async def test_submitting_before_it_opens_is_refused_with_the_date(creating: Api) -> None:
    order = {"file_name": "k.py", "source": "x = 1\n", "mode": "test", "board": "double"}
    async with creating.asking("carol") as carol, creating.asking("bob") as bob:
        await published(creating, carol)
        refused = await bob.post("/submissions", json=order)
        assert (refused.status_code, refused.json()["code"]) == (409, "not-open")
        assert "opens at 2026-11-01 13:00 UTC" in refused.json()["detail"]
        assert (await carol.post("/submissions", json=order)).status_code == 201
        creating.place.clock.advance(HOUR_S)
        assert (await bob.post("/submissions", json=order)).status_code == 201


async def test_its_ranking_adds_points_and_comes_as_csv_too(creating: Api) -> None:
    async with creating.asking("carol") as carol, creating.asking() as anyone:
        await published(creating, carol)
        creating.place.clock.advance(HOUR_S)
        await ran(creating, "ada", "double", 100)
        await ran(creating, "=bob", "double", 200)
        await ran(creating, "=bob", "third", 100)
        found = (await anyone.get(CUP)).json()
        assert (found["state"], found["ranks"]) == ("open", [25.0, 18.0])
        assert found["leaderboards"] == [
            {"board": "double", "gpu": "CPU"},
            {"board": "third", "gpu": "CPU"},
        ]
        assert [(each["rank"], each["total"], each["points"]) for each in found["entries"]] == [
            (1, 43.0, [18.0, 25.0]),
            (2, 25.0, [25.0, None]),
        ]
        answer = await anyone.get(CUP, params={"format": "csv"})
        assert answer.headers["content-type"].startswith("text/csv")
        assert list(csv.reader(io.StringIO(answer.text))) == [
            ["rank", "person", "total", "double", "third"],
            ["1", "'=bob", "43.0", "18.0", "25.0"],
            ["2", "ada", "25.0", "25.0", ""],
        ]


async def test_after_the_deadline_only_unranked_runs_go_on(creating: Api) -> None:
    order = {"file_name": "k.py", "source": "x = 1\n", "board": "double"}
    async with creating.asking("carol") as carol, creating.asking("bob") as bob:
        await published(creating, carol)
        creating.place.clock.advance(2 * HOUR_S + 1)
        late = await bob.post("/submissions", json=order | {"mode": "benchmark"})
        assert late.status_code == 201
        refused = await bob.post("/submissions", json=order | {"mode": "ranked"})
        assert refused.json()["code"] == "closed"


async def test_its_creator_closes_and_extends_it(creating: Api) -> None:
    clock = creating.place.clock
    async with creating.asking("carol") as carol, creating.asking("dan") as dan:
        await published(creating, carol)
        early = await carol.post(f"{CUP}/close")
        assert (early.status_code, early.json()["code"]) == (409, "not-open")
        clock.advance(HOUR_S)
        assert (await dan.post(f"{CUP}/close")).json()["code"] == "not-yours"
        closed = (await carol.post(f"{CUP}/close")).json()
        assert closed["closes_at"] == "2026-11-01T13:00:00Z"
        clock.advance(1)
        assert (await carol.get(CUP)).json()["state"] == "closed"
        assert (await carol.post(f"{CUP}/close")).json()["code"] == "unchanged"
        until = {"deadline": "2026-12-01T17:00:00Z"}
        extended = (await carol.post(f"{CUP}/extend", json=until)).json()
        assert (extended["state"], extended["closes_at"]) == ("open", "2026-12-01T17:00:00Z")
        assert (await dan.post(f"{CUP}/extend", json=until)).status_code == 403


async def test_it_is_exported_as_one(creating: Api) -> None:
    async with creating.asking("carol") as carol, creating.asking("dan") as dan:
        await published(creating, carol)
        creating.place.clock.advance(HOUR_S)
        await ran(creating, "ada", "double", 100)
        lines = (await carol.get(f"{CUP}/export")).text.splitlines()
        pieces = [json.loads(line) for line in lines]
        assert pieces[0] == {
            "kind": "competition", "competition": "Spring cup", "boards": ["double", "third"],
        }  # fmt: skip
        kinds = [each.get("table", each["kind"]) for each in pieces[1:]]
        assert kinds == [
            "overall", "points", "board", "submissions", "results", "cases", "source", "end",
            "board", "end", "end",
        ]  # fmt: skip
        assert pieces[1]["rows"][0] == {
            "rank": 1, "person": "ada", "person_id": pieces[1]["rows"][0]["person_id"],
            "total": 25.0,
        }  # fmt: skip
        assert (await dan.get(f"{CUP}/export")).json()["code"] == "not-yours"


async def test_the_same_zip_again_changes_nothing_and_an_admin_may_change_it(
    creating: Api,
) -> None:
    dan = await creating.place.person("dan")
    async with creating.asking("carol") as carol:
        await published(creating, carol)
        again = await published(creating, carol)
        boards = again["boards"]
        assert isinstance(boards, list)
        assert [each["change"] for each in boards] == ["unchanged", "unchanged"]
    async with creating.asking("dan") as asking:
        refused = await asking.post("/competitions", files=form())
        assert (refused.status_code, refused.json()["code"]) == (403, "not-yours")
    await creating.place.store.rights.replace(dan, MACHINE, Rights(is_admin=True, is_creator=True))
    async with creating.asking("dan", TokenScope.ADMIN) as admin:
        changed = await published(creating, admin, TEXT.replace("Two", "2"))
        assert changed["state"] == "published"
    found = await creating.place.store.competitions.find("Spring cup")
    assert found is not None
    assert (found.description, found.creator == dan) == ("2 tasks.", False)


@pytest.mark.parametrize(
    ("files", "code", "detail"),
    [
        ({"task_zip": ("a.zip", b"")}, "bad-body", "send it as the file `competition_zip`"),
        ({"competition_zip": ("a.zip", b"no zip")}, "bad-zip", "not a readable zip"),
        ({"competition_zip": ("a.zip", zipped({"a/task.yml": "x"}))}, "bad-zip", "no competition"),
        (form("name: x"), "bad-task", "set.yaml:1: the key 'problems' is missing"),
        (form(TEXT.replace("third", "vectoradd")), "not-yours", "'vectoradd' belongs to another"),
    ],
)
async def test_what_cannot_be_published_is_refused_at_once(
    creating: Api, files: dict[str, tuple[str, bytes]], code: str, detail: str
) -> None:
    async with creating.asking("carol") as carol:
        refused = await carol.post("/competitions", files=files)
    assert (refused.status_code >= 400, refused.json()["code"]) == (True, code)
    assert detail in refused.json()["detail"]


async def test_only_creators_publish_competitions(creating: Api) -> None:
    async with creating.asking("bob") as bob, creating.asking() as anyone:
        assert (await bob.post("/competitions", files=form())).status_code == 403
        assert (await anyone.post("/competitions", files=form())).status_code == 401
        assert (await anyone.get("/competitions/none")).json()["code"] == "unknown-competition"


async def test_the_list_comes_in_pages(creating: Api) -> None:
    async with creating.asking("carol") as carol, creating.asking() as anyone:
        await published(creating, carol)
        await published(creating, carol, TEXT.replace("Spring", "Autumn"))
        page = (await anyone.get("/competitions", params={"limit": 1})).json()
        assert [each["name"] for each in page["competitions"]] == ["Autumn cup"]
        rest = await anyone.get("/competitions", params={"cursor": page["next"]})
        assert [each["name"] for each in rest.json()["competitions"]] == ["Spring cup"]
        assert rest.json()["next"] is None


async def test_its_creator_deletes_it_and_its_boards_stay(creating: Api) -> None:
    async with creating.asking("carol") as carol, creating.asking("dan") as dan:
        await published(creating, carol)
        creating.place.clock.advance(HOUR_S)
        await ran(creating, "ada", "double", 100)
        assert (await dan.delete(CUP)).json()["code"] == "not-yours"
        assert (await carol.delete(CUP, params={"reason": "over"})).status_code == 204
        assert (await carol.get(CUP)).json()["code"] == "unknown-competition"
        assert (await carol.delete(CUP)).status_code == 404
        names = {each["name"] for each in (await dan.get("/leaderboards")).json()["boards"]}
        assert names == {"double", "third", "vectoradd"}
        standings = (await dan.get("/leaderboards/double/standings")).json()
        assert len(standings["leaderboards"][0]["entries"]) == 1


async def test_its_boards_are_deleted_with_it_once_their_archives_were_downloaded(
    creating: Api,
) -> None:
    async with creating.asking("carol") as carol:
        await published(creating, carol)
        creating.place.clock.advance(HOUR_S)
        tags = [
            (await carol.get(f"/leaderboards/{name}/keepsake")).headers["etag"]
            for name in ("double", "third")
        ]
        await ran(creating, "ada", "third", 100)
        for sent in ([], tags[:1], tags):
            refused = await carol.delete(CUP, params={"boards": True, "archive": sent})
            assert (refused.status_code, refused.json()["code"]) == (412, "stale-match")
        assert (await carol.get(CUP)).status_code == 200
        tags[1] = (await carol.get("/leaderboards/third/keepsake")).headers["etag"]
        deleted = await carol.delete(CUP, params={"boards": True, "archive": tags})
        assert deleted.status_code == 204, deleted.text
        left = (await carol.get("/leaderboards")).json()["boards"]
        assert [each["name"] for each in left] == ["vectoradd"]


async def test_a_board_is_not_closed_before_it_opens(creating: Api) -> None:
    text = TEXT.replace('"2026-11-01 17:00"', '"2026-11-03", opens: 2026-11-02')
    async with creating.asking("carol") as carol:
        await published(creating, carol, text)
        creating.place.clock.advance(HOUR_S)
        requests = [
            carol.post(f"{CUP}/close"),
            carol.post(f"{CUP}/extend", json={"deadline": "2026-11-01T20:00:00Z"}),
            carol.patch("/leaderboards/third", json={"deadline": "2026-11-01T20:00:00Z"}),
        ]
        for each in requests:
            refused = await each
            assert (refused.status_code, refused.json()["code"]) == (400, "bad-deadline")
            assert "'third' closes before it opens at 2026-11-02" in refused.json()["detail"]
