"""Tests of what popcorn-cli's admins may do, and of who is none."""

import pytest

from bot.domain.accounts import MACHINE, Rights, TokenScope
from bot.domain.ids import SubmissionId
from bot.domain.submission import ExclusionKind
from tests.doubles.place import Place
from tests.doubles.popcorn_cli import Json, PopcornCli

DEEDS = [
    ("POST", "/admin/start"),
    ("POST", "/admin/stop"),
    ("GET", "/admin/stats"),
    ("GET", "/admin/submissions/{}"),
    ("DELETE", "/admin/submissions/{}"),
    ("POST", "/admin/leaderboards"),
    ("DELETE", "/admin/leaderboards/vectoradd"),
    ("POST", "/admin/update-problems"),
    ("POST", "/admin/invites"),
    ("GET", "/admin/leaderboards/vectoradd/invites"),
    ("DELETE", "/admin/invites/x"),
    ("POST", "/admin/submission/vectoradd/CPU/test"),
]


@pytest.fixture
async def root(place: Place) -> PopcornCli:
    """The command line of an admin, with a token of scope admin."""
    person = await place.person("root")
    await place.store.rights.replace(person, MACHINE, Rights(is_admin=True))
    return await PopcornCli.of(place, "root", TokenScope.ADMIN)


async def dismissed(place: Place) -> PopcornCli:
    """The command line of somebody who was an admin, with the token of those days."""
    person = await place.person("nero")
    await place.store.rights.replace(person, MACHINE, Rights(is_admin=True))
    who = await PopcornCli.of(place, "nero", TokenScope.ADMIN)
    await place.store.rights.replace(person, MACHINE, Rights())
    return who


async def done(who: PopcornCli, method: str, path: str) -> tuple[int, Json]:
    headers = [] if who.token is None else [("authorization", f"Bearer {who.token}")]
    answer = await who.asked(method, path, headers=headers)
    return answer.status_code, answer.json()


@pytest.mark.parametrize(("method", "path"), DEEDS)
async def test_who_is_no_admin_does_nothing(
    place: Place, ada: PopcornCli, anybody: PopcornCli, method: str, path: str
) -> None:
    number = await ada.submit("leaderboard")
    for who in (
        anybody,
        ada,
        await dismissed(place),
        PopcornCli.with_token(place, "nonsense"),
        PopcornCli.with_token(place, "None"),
    ):
        status, body = await done(who, method, path.format(number))
        assert 400 <= status < 500, (status, body)
        assert set(body) == {"detail"}
        assert "kernel.py" not in str(body)
    assert await place.store.moderation.pause_notice() is None
    assert await place.store.moderation.exclusion_of(SubmissionId(number)) is None


async def test_an_admin_whose_token_is_not_one_of_an_admin_s_does_nothing(
    place: Place, root: PopcornCli
) -> None:
    plain = await PopcornCli.of(place, "root")
    status, _ = await done(plain, "POST", "/admin/stop")
    assert 400 <= status < 500
    assert await place.store.moderation.pause_notice() is None


async def test_an_admin_stops_and_starts_as_often_as_wanted(
    place: Place, root: PopcornCli, ada: PopcornCli
) -> None:
    for _ in range(2):
        assert await done(root, "POST", "/admin/stop") == (
            200,
            {"status": "ok", "accepts_jobs": False},
        )
    answer = await ada.posted("/submission/vectoradd/CPU/test")
    assert "submissions are paused" in answer.json()["detail"]
    for _ in range(2):
        assert await done(root, "POST", "/admin/start") == (
            200,
            {"status": "ok", "accepts_jobs": True},
        )
    await ada.submit()


async def test_an_admin_reads_the_counts(place: Place, root: PopcornCli, ada: PopcornCli) -> None:
    stored = await place.store.submissions.get(SubmissionId(await ada.submit()))
    assert stored is not None
    await place.judged(stored)
    await ada.submit()
    _, body = await done(root, "GET", "/admin/stats")
    assert body == {
        "status": "ok",
        "stats": {
            "num_submissions": 2,
            "sub_waiting": 1,
            "num_users": 2,
            "num_run.CPU": 1,
            "total_runtime.CPU": "PT2.0S",
        },
    }
    place.clock.advance(24 * 3600)
    _, body = await done(root, "GET", "/admin/stats?last_day_only=true")
    assert body["stats"] == {"num_submissions": 0, "sub_waiting": 1, "num_users": 2}


async def test_an_admin_reads_a_submission_and_takes_it_off(
    place: Place, root: PopcornCli, ada: PopcornCli
) -> None:
    number = await ada.submit("leaderboard")
    status, body = await done(root, "GET", f"/admin/submissions/{number}")
    assert (status, body["submission"]["submission_id"]) == (200, number)
    assert body["submission"]["user_id"] == str(place.ada)
    assert body["submission"]["code"] == ""  # a hidden source is read by a recorded look
    status, body = await done(root, "DELETE", f"/admin/submissions/{number}")
    assert (status, body) == (200, {"status": "ok", "submission_id": number})
    exclusion = await place.store.moderation.exclusion_of(SubmissionId(number))
    assert exclusion is not None
    assert exclusion.kind is ExclusionKind.DISQUALIFIED
    assert (await done(root, "GET", "/admin/submissions/9999"))[0] == 404


@pytest.mark.parametrize(("method", "path"), DEEDS[5:])
async def test_what_is_done_elsewhere_is_said_with_where(
    place: Place, root: PopcornCli, method: str, path: str
) -> None:
    status, body = await done(root, method, path)
    assert (status, set(body)) == (501, {"detail"})
    assert await place.store.boards.find("vectoradd") is not None


@pytest.mark.parametrize(
    ("method", "path", "words"),
    [
        ("GET", "/admin/leaderboards/vectoradd/submissions?limit=5", "/export"),
        ("DELETE", "/admin/submissions?leaderboard_id=1&user_name=eve", "/admin/submissions/N"),
        ("POST", "/admin/submission/vectoradd/CPU/leaderboard", "deadline"),
        ("PUT", "/admin/leaderboards/vectoradd/rate-limits", "/api/v1/admin/limits"),
        ("DELETE", "/admin/leaderboards/vectoradd/rate-limits/test", "/api/v1/admin/limits"),
        ("POST", "/admin/leaderboards/vectoradd/visibility", "PATCH"),
        ("POST", "/admin/application-validations/vectoradd/CPU?wait=true", "no later validation"),
        ("POST", "/admin/invites", "/leaderboard invite"),
        ("DELETE", "/admin/leaderboards/vectoradd", "/leaderboard delete"),
    ],
)
async def test_each_deed_that_is_none_here_names_its_own_way(
    root: PopcornCli, method: str, path: str, words: str
) -> None:
    status, body = await done(root, method, path)
    assert (status, set(body)) == (501, {"detail"})
    assert words in body["detail"]
