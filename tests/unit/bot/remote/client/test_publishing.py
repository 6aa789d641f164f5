"""Tests of publishing at a server that fails in one of its ways."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from bot.domain.board import NOBODY
from bot.domain.errors import SetupError, UserError
from bot.domain.publication import Draft, PublishChange, PublishedDraft, PublishRequest
from bot.domain.tasks.bundle import TaskBundle, read_files
from bot.domain.tasks.competition import read_competition
from bot.remote.client import publishing as publish
from bot.remote.client import requests as outage
from bot.remote.client.requests import open_client
from bot.remote.http import Server
from runners.contract.runner import RunnerError
from runners.contract.task import Grader
from tests.doubles.factories import make_task
from tests.doubles.task_zips import packed_competition

CHECK: dict[str, Any] = {
    "id": 5, "name": "vectoradd", "state": "waiting", "begun": [], "runs": [], "remarks": [],
    "problem": None, "published": None,
}  # fmt: skip
PUBLISHED: dict[str, Any] = {
    "board": None, "task_version": 2, "version_note": "", "change": "created", "checked": [],
}  # fmt: skip
BOARD = {
    "name": "vectoradd", "id": 3, "gpus": ["CPU"], "deadline": None, "is_open": True,
    "created_at": "2026-11-01T12:00:00Z", "creator_id": 1, "task_version_id": 4,
    "visibility": "public", "source_visibility": "never",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outage, "_FIRST_WAIT_S", 0.001)
    monkeypatch.setattr(publish, "CHECK_POLL_S", 0.001)


async def published(
    *looks: dict[str, Any] | Exception, grader: Grader | None = None
) -> tuple[PublishedDraft, list[str]]:
    """What becomes of a task for whose check the server answers so."""
    answers, said = list(looks), list[str]()

    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            if not looks:
                raise httpx.ReadError("reset")
            assert (b'name="grader"\r\n\r\nnative\r\n' in request.read()) == (grader is not None)
            return httpx.Response(202, json=CHECK)
        if request.url.path.endswith("/leaderboards/vectoradd"):
            return httpx.Response(404, json={"code": "unknown-board", "detail": "no board"})
        assert request.url.path == "/api/v1/checks/5"
        found = answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return httpx.Response(200, json=CHECK | found)

    draft = Draft(TaskBundle({"task.yml": b""}), make_task(), PublishRequest(NOBODY, grader=grader))
    server = Server("https://podium.test", "secret")
    async with open_client(server, httpx.MockTransport(answer)) as requests:
        (done,) = await publish.publish(requests, None, [draft], say=said.append)
        return done, said


async def test_a_check_is_followed_through_a_broken_line() -> None:
    begun = {"state": "running", "begun": ["running the solutions"]}
    done = begun | {"state": "published", "published": PUBLISHED | {"board": BOARD}}
    released, said = await published(begun, httpx.ReadError("reset"), begun, done)
    assert (released.published.board.name, released.published.version) == ("vectoradd", 2)
    assert released.published.change is PublishChange.CREATED
    assert said[0] == "running the solutions"
    assert said[-1] == "https://podium.test answers again"
    assert len(said) == 3


async def test_the_chosen_grader_is_sent_and_why_it_grades_comes_back() -> None:
    done = {"state": "published", "grading": "It grades.", "published": PUBLISHED}
    done["published"] = PUBLISHED | {"board": BOARD}
    released, _ = await published(done, grader=Grader.NATIVE)
    assert released.grading == "It grades."


@pytest.mark.parametrize(
    ("code", "kind"),
    [("runner", RunnerError), ("incident", SetupError), ("unsound-task", UserError)],
)
async def test_what_kept_it_out_is_of_the_family_that_it_would_be_here(
    code: str, kind: type[Exception]
) -> None:
    problem = {"code": code, "detail": "the words"}
    with pytest.raises(kind, match="the words"):
        await published({"state": "refused", "problem": problem})


async def test_a_board_that_is_gone_by_now_and_a_strange_word_are_said() -> None:
    with pytest.raises(UserError, match="deleted meanwhile"):
        await published({"state": "published", "published": PUBLISHED})
    strange = PUBLISHED | {"board": BOARD, "change": "blessed"}
    with pytest.raises(UserError, match="does not understand") as refusal:
        await published({"state": "published", "published": strange})
    assert refusal.value.code == "other-version"


async def test_a_zip_whose_answer_is_lost_may_be_sent_again() -> None:
    with pytest.raises(SetupError, match="reset; the task may have been accepted"):
        await published()


async def test_who_waits_no_longer_is_told_that_the_check_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outage, "PATIENCE_S", 0.0)
    with pytest.raises(SetupError, match="retried for 0 s"):
        await published(httpx.ReadError("reset"))


def _competition_answer(sent: list[bytes]) -> Callable[[httpx.Request], httpx.Response]:
    boards = [PUBLISHED | {"board": BOARD | {"name": name}} for name in ("one", "two")]
    done = CHECK | {"state": "published", "competition": "Cup", "boards": boards}

    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            assert request.url.path == "/api/v1/competitions"
            sent.append(request.content)
            return httpx.Response(202, json=CHECK)
        return httpx.Response(200, json=done)

    return answer


async def test_a_competition_is_sent_as_one_zip_with_what_its_boards_are_to_have() -> None:
    data = packed_competition(
        "name: Cup\nproblems: [{directory: double, name: a}, {directory: triple, name: b}]",
        "double",
        "triple",
    )
    parsed, until = read_competition(data), datetime(2030, 1, 1, tzinfo=UTC)
    request = PublishRequest(NOBODY, gpus=("L4",), deadline=until, pins=(("L4", "box"),))
    drafts = [
        Draft(bundle, each.task, request.of_entry(entry), each.grading, parsed.definition)
        for bundle, each, entry in zip(
            parsed.bundles(read_files(data)), parsed.tasks, parsed.definition.problems, strict=True
        )
    ]
    sent: list[bytes] = []
    transport = httpx.MockTransport(_competition_answer(sent))
    async with open_client(Server("https://podium.test", "secret"), transport) as requests:
        done = await publish.publish(requests, parsed.definition, drafts, say=lambda words: None)
    assert [each.published.board.name for each in done] == ["one", "two"]
    (form,) = sent
    assert b"L4=box" in form
    again = read_competition(form[form.index(b"PK\x03\x04") : form.rindex(b"PK\x05\x06") + 22])
    assert [(each.name, each.gpus, each.deadline) for each in again.definition.problems] == [
        ("a", ("L4",), until),
        ("b", ("L4",), until),
    ]
