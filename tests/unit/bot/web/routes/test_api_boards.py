"""Boards, tasks and standings as programs read them."""

import pytest

from bot.domain.accounts import Rights
from bot.domain.board import Access, Visibility
from bot.domain.ids import SubmissionId
from bot.domain.publication import PublishRequest
from bot.domain.scoring import ScoreValue
from bot.reports.standings import COLUMNS
from bot.services import moderation
from bot.services.publishing.publish import publish
from tests.doubles.api import Api
from tests.doubles.factories import make_evaluation, make_noisy_case, make_task

STANDINGS = "/leaderboards/vectoradd/standings"


async def ranked(api: Api, name: str, time_ns: float) -> SubmissionId:
    """A ranked time of a person."""
    place = api.place
    submission = await place.submit(await place.person(name))
    job = await place.claim()
    evaluation = make_evaluation(mode=submission.mode)
    value = ScoreValue(time_ns, 1.0)
    assert await place.store.jobs.accept(job.id, job.fence, evaluation, value)
    return submission.id


async def test_the_list_has_participants_and_the_best_time_of_each_gpu(api: Api) -> None:
    await ranked(api, "bob", 900.0)
    best = await ranked(api, "eve", 500.0)
    async with api.asking() as anybody:
        (board,) = (await anybody.get("/leaderboards")).json()["boards"]
        one = (await anybody.get("/leaderboards/vectoradd")).json()
    assert (board["name"], board["participants"], board["is_open"]) == ("vectoradd", 2, True)
    assert board["best"] == [
        {
            "gpu": "CPU", "person": "eve", "submission": best, "time_ns": 500.0,
            "half_width_ns": 1.0, "resolution_ns": 0.0, "claimed_ns": None,
        }
    ]  # fmt: skip
    assert one == board
    deed = moderation.Decision(api.place.ada, "")
    await moderation.disqualify(api.place.store, deed, best)
    async with api.asking() as anybody:
        (after,) = (await anybody.get("/leaderboards")).json()["boards"]
    assert [each["person"] for each in after["best"]] == ["bob"]


async def test_the_list_comes_in_pages_that_stay_where_they_are(api: Api) -> None:
    place = api.place
    for name in ("b", "d", "Z"):
        await publish(place.store, place.clock, PublishRequest(place.ada, name), make_task())
    async with api.asking() as anybody:
        first = (await anybody.get("/leaderboards", params={"limit": 2})).json()
        await publish(place.store, place.clock, PublishRequest(place.ada, "a"), make_task())
        query = {"limit": 2, "cursor": first["next"]}
        second = (await anybody.get("/leaderboards", params=query)).json()
    names = [each["name"] for each in first["boards"] + second["boards"]]
    assert (names, second["next"]) == (["Z", "b", "d", "vectoradd"], None)


async def test_a_private_board_is_for_its_guests_and_admins_alone(api: Api) -> None:
    store, board = api.place.store, api.place.board
    guests = frozenset({"discord-role:5"})
    await store.boards.restrict(board.id, Access(Visibility.PRIVATE))
    await store.boards.invite(board.id, guests)
    bob = await api.place.person("bob")
    for path in ("", "/standings", "/task", "/template", "/task/files/reference.py"):
        async with api.asking("bob") as asks:
            answer = await asks.get(f"/leaderboards/vectoradd{path}")
            assert (answer.status_code, answer.json()["code"]) == (404, "unknown-board")
            assert "vectoradd" not in answer.json()["detail"].replace("'vectoradd'", "")
    await store.rights.replace(bob, "discord-guild:1", Rights(guests))
    async with api.asking("bob") as asks:
        answer = await asks.get("/leaderboards/vectoradd")
        assert answer.status_code == 200
        assert "discord-role" not in answer.text
        assert "discord-role:5" in (await asks.get("/me")).json()["credentials"]


async def test_a_task_is_told_with_its_files(api: Api) -> None:
    async with api.asking() as anybody:
        task = (await anybody.get("/leaderboards/vectoradd/task")).json()
        assert [each["spec"] for each in task["tests"]] == ["size: 16", "size: 17"]
        (file,) = task["files"]
        text = await anybody.get(f"/leaderboards/vectoradd/task/files/{file['name']}")
        assert len(text.content) == file["size"]
        assert text.headers["content-type"] == "text/plain; charset=utf-8"
        assert text.headers["x-content-type-options"] == "nosniff"
        missing = await anybody.get("/leaderboards/vectoradd/task/files/x.py")
        assert (missing.status_code, missing.json()["code"]) == (404, "unknown-file")
        none = await anybody.get("/leaderboards/vectoradd/template")
        assert none.json()["code"] == "no-template"


async def test_who_passed_too_noisily_is_absent_until_a_run_is_ranked(api: Api) -> None:
    await ranked(api, "bob", 900.0)
    async with api.asking() as anybody:
        before = await anybody.get(STANDINGS)
        submission = await api.place.submit(await api.place.person("eve"))
        await api.place.judged(submission, cases=(make_noisy_case(),))
        same = {"If-None-Match": before.headers["ETag"]}
        changed = await anybody.get(STANDINGS, headers=same)
        await ranked(api, "eve", 500.0)
        after = (await anybody.get(STANDINGS)).json()
    (found,) = changed.json()["leaderboards"]
    (absent,) = found["absent"]
    assert [each["person"] for each in found["entries"]] == ["bob"]
    assert (absent["person"], absent["submission"], absent["stage"]) == ("eve", submission.id, None)
    assert (absent["verdict"], absent["message"]) == (
        "passed",
        "passed, but too noisy to be ranked",
    )
    assert after["leaderboards"][0]["absent"] == []


async def test_standings_that_have_not_changed_are_not_sent_again(api: Api) -> None:
    await ranked(api, "bob", 900.0)
    async with api.asking() as anybody:
        first = await anybody.get(STANDINGS)
        tag = first.headers["etag"]
        for known in (tag, f"W/{tag}", f'"other", {tag}'):
            again = await anybody.get(STANDINGS, headers={"If-None-Match": known})
            assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
        await ranked(api, "eve", 500.0)
        changed = await anybody.get(STANDINGS, headers={"If-None-Match": tag})
    assert changed.status_code == 200
    (board,) = changed.json()["leaderboards"]
    assert [(each["rank"], each["person"]) for each in board["entries"]] == [(1, "eve"), (2, "bob")]
    assert changed.headers["vary"] == "Accept, Authorization, Cookie"


@pytest.mark.parametrize(
    ("query", "accept", "kind"),
    [
        ("?format=csv", "*/*", "text/csv; charset=utf-8"),
        ("", "text/csv", "text/csv; charset=utf-8"),
        ("?format=json", "text/csv", "application/json"),
        ("", "application/json, text/csv;q=0.5", "application/json"),
    ],
)
async def test_standings_come_as_who_asks_prefers(
    api: Api, query: str, accept: str, kind: str
) -> None:
    await ranked(api, "=cmd()", 900.0)
    async with api.asking() as anybody:
        answer = await anybody.get(STANDINGS + query, headers={"Accept": accept})
    assert answer.headers["content-type"] == kind
    if kind.startswith("text/csv"):
        assert answer.headers["content-disposition"] == 'attachment; filename="vectoradd.csv"'
        head, line = answer.text.splitlines()
        assert head == ",".join(COLUMNS)
        assert line.startswith("vectoradd,CPU,1,1,'=cmd(),900.0,1.0,")


async def test_what_is_not_there_is_said_with_what_there_is(api: Api) -> None:
    async with api.asking() as anybody:
        for query, code in (("gpu=H100", "unknown-gpu"), ("version=9", "unknown-version")):
            answer = await anybody.get(f"{STANDINGS}?{query}")
            assert (answer.status_code, answer.json()["code"]) == (404, code)
            assert answer.headers["content-type"] == "application/problem+json"
        wrong = await anybody.get(f"{STANDINGS}?version=0")
        assert (wrong.status_code, wrong.json()["code"]) == (422, "bad-request")
