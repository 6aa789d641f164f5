"""One submission is followed through podium.log, from the door's request to its result."""

import json
import logging
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
import structlog
from fastapi import Request

from bot.app.logs import log_to
from bot.domain.api.workers import HARNESS_HEADER
from bot.domain.ids import SubmissionId
from bot.services.submissions import submit
from bot.services.tokens import create_token
from bot.store.postgres import PostgresStore
from bot.web.app import build
from bot.web.auth import FromPerson
from bot.web.context import context_of
from bot.web.middleware import REQUEST_ID
from runners.backends import fake
from tests.doubles.agents import HARNESS, make_door, make_token
from tests.doubles.clock import ManualClock
from tests.doubles.dispatching import dispatching, until
from tests.doubles.factories import make_submission
from tests.doubles.memory_store import MemoryStore
from tests.doubles.place import make_place
from tests.doubles.stored import set_up

SOURCE = b"# fake: verdict=passed\nPRIVATE_CONSTANT = 'not for the log'\n"


@pytest.fixture(autouse=True)
def _unchanged_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers, root.level = handlers, level
    structlog.reset_defaults()


async def test_a_submission_is_followed_by_its_ids_and_no_secret_is_on_the_way(
    memory_store: MemoryStore, clock: ManualClock, tmp_path: Path
) -> None:
    log = tmp_path / "podium.log"
    log_to(log, secrets=["postgresql://ada:hunter22@db/podium", "hunter22"])
    place = await make_place(memory_store, clock)
    token = (await create_token(memory_store, place.ada, "laptop")).secret
    worker_token = await make_token(memory_store, clock)
    app = build(make_door(memory_store, clock))

    @app.post("/hand-in")
    async def take(request: Request, viewer: FromPerson) -> int:
        wish = make_submission(viewer=viewer, content=await request.body())
        return (await submit(context_of(request).store, clock, wish)).id

    way = httpx.ASGITransport(app)
    async with (
        dispatching(memory_store, clock, [fake.create(slots={"CPU": 1})]),
        httpx.AsyncClient(transport=way, base_url="http://podium.test") as client,
    ):
        headers = {"Authorization": f"Bearer {token}", REQUEST_ID: "door-1"}
        answer = await client.post("/hand-in?token=in-a-query", content=SOURCE, headers=headers)
        number = SubmissionId(answer.json())

        async def judged() -> bool:
            return bool(await memory_store.results.evaluations(number))

        await until(judged)
        agent = {"Authorization": f"Bearer {worker_token}", HARNESS_HEADER: HARNESS}
        lines = {"lines": [f"an agent's library says hunter22 and {token}"], "lost": 0}
        await client.post("/api/v1/agents/0123abcd/log", headers=agent, json=lines)
    text = log.read_text(encoding="utf-8")
    events = [json.loads(line) for line in text.splitlines()]
    story = [each for each in events if each.get("submission") == number]
    assert [each["action"] for each in story] == [
        "submitted", "job-claimed", "job-started", "job-accepted",
    ]  # fmt: skip
    assert story[0]["request"] == answer.headers[REQUEST_ID] == "door-1"
    [job] = await memory_store.jobs.of(number)
    for each in story[1:]:
        assert (each["job"], each["fence"], each["worker"]) == (job.id, job.fence, "w")
        assert "request" not in each
    assert story[-1]["verdict"] == "passed"
    assert any("an agent's library says" in each.get("line", "") for each in events)
    for secret in (token, worker_token, "hunter22", "not for the log", "in-a-query"):
        assert secret not in text


@pytest.mark.postgres
async def test_a_lease_that_ran_out_is_told_with_its_ids(
    postgres_store: PostgresStore, clock: ManualClock, tmp_path: Path
) -> None:
    scene = await set_up(postgres_store)
    await scene.submit()
    job = await scene.claim_one(worker="box")
    clock.advance(timedelta(minutes=5).total_seconds())
    log_to(tmp_path / "podium.log")
    await postgres_store.jobs.requeue_expired()
    [event] = map(json.loads, (tmp_path / "podium.log").read_text("utf-8").splitlines())
    ids = {"submission": job.submission, "job": job.id, "fence": job.fence, "worker": "box"}
    assert {"action": "lease-expired", **ids}.items() <= event.items()
