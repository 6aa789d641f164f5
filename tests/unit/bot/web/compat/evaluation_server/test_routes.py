"""`/health`, `/job/ID`, `/stats` and `/admin/cleanup-jobs`."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from bot.web.compat.evaluation_server import responses
from tests.doubles.clock import ManualClock
from tests.doubles.dispatching import failing, until
from tests.doubles.eval_server import EvalServer, eval_server, evaluation
from tests.doubles.memory_store import MemoryStore


@pytest.fixture
async def server(memory_store: MemoryStore, clock: ManualClock) -> AsyncIterator[EvalServer]:
    async with eval_server(memory_store, clock, {"H200": 2}) as opened:
        yield opened


async def judged(server: EvalServer, directive: str = "") -> str:
    answer = await server.asked("POST", "/evaluate", json=evaluation(directive))
    return str(answer.json()["job_id"])


async def test_health_has_the_fields_of_code_and_docs(server: EvalServer) -> None:
    await judged(server)
    answer = await server.asked("GET", "/health")
    body = answer.json()
    assert (answer.status_code, body["status"]) == (200, "healthy")
    assert body["job_stats"]["by_status"] == {"completed": 1}
    assert (body["gpu_available"], body["gpu_count"]) == (True, 2)
    assert body["gpu_manager"]["available_gpus"] == 2


async def test_who_can_judge_nothing_is_not_healthy(
    memory_store: MemoryStore, clock: ManualClock
) -> None:
    async with eval_server(memory_store, clock, {}) as server:
        answer = await server.asked("GET", "/health")
    assert (answer.status_code, answer.json()["status"]) == (500, "unhealthy")
    assert (answer.json()["gpu_available"], answer.json()["gpu_count"]) == (False, 0)


async def test_health_says_that_the_database_is_away(
    memory_store: MemoryStore, clock: ManualClock
) -> None:
    broken = failing(memory_store, {"find": 9}, "boards")
    async with eval_server(broken, clock, {}) as server:
        answer = await server.asked("GET", "/health")
    assert (answer.status_code, answer.json()["error"]) == (500, "the database is unavailable")


async def test_a_job_is_told_with_its_result_also_after_a_restart(server: EvalServer) -> None:
    """The evaluation server kept jobs in memory, and told no result of any."""
    answer = await server.asked("POST", "/evaluate", json=evaluation("time_us=30"))
    number = answer.json()["job_id"]
    job = (await server.asked("GET", f"/job/{number}")).json()
    assert (job["job_id"], job["status"], job["error"]) == (number, "completed", None)
    assert job["created_at"] == server.clock.now().timestamp()
    assert job["result"] == answer.json()


async def test_a_job_is_followed_while_it_waits_and_runs(
    memory_store: MemoryStore, clock: ManualClock
) -> None:
    async with eval_server(memory_store, clock, {"CPU": 1}) as server:
        asks = [
            asyncio.create_task(server.asked("POST", "/evaluate", json=evaluation("seconds=0.3")))
            for _ in range(2)
        ]
        board: list[int] = []

        async def two_are_there() -> bool:
            board[:] = sorted(memory_store.submissions._tables.submissions)
            return len(board) == 2

        await until(two_are_there)
        seen: set[str] = set()

        async def all_seen() -> bool:
            for number in board:
                seen.add((await server.asked("GET", f"/job/{number}")).json()["status"])
            return {"submitted", "completed"} < seen

        await until(all_seen)
        assert seen <= {"submitted", "compiling", "validating", "profiling", "completed"}
        assert len(seen) > 2
        await asyncio.gather(*asks)


@pytest.mark.parametrize("number", ["0", "1", "-1", "x", "9" * 40, "%F0%9F%98%80", "²"])
async def test_an_unknown_job_is_404(server: EvalServer, number: str) -> None:
    answer = await server.asked("GET", f"/job/{number}")
    assert answer.status_code == 404
    assert answer.json()["status"] == "error"
    assert "not found" in answer.json()["error"]


async def test_stats_count_what_was_really_done(server: EvalServer) -> None:
    """The evaluation server counted in a child process, so that all its numbers were 0."""
    for directive in ("", "verdict=build_failed", "verdict=wrong_answer"):
        await judged(server, f"seconds=0.02 {directive}")
    body = (await server.asked("GET", "/stats")).json()
    assert body["job_stats"]["total_jobs"] == 3
    compiled, profiled = body["compilation_metrics"], body["profiling_metrics"]
    assert (compiled["total_compilations"], compiled["failed_compilations"]) == (3, 1)
    assert (profiled["total_profilings"], profiled["correctness_failed"]) == (2, 1)
    assert profiled["total_time_seconds"] == pytest.approx(0.04)
    assert body["gpu_utilization"]["gpu_acquisitions"] == 3
    assert body["gpu_utilization"]["utilization_by_gpu"]["H200"] == pytest.approx(0.06)
    assert body["throughput"]["completed_requests"] == 3
    assert body["throughput"]["server_uptime_seconds"] > 0
    assert body["timestamp"] == server.clock.now().timestamp()


async def test_cleaning_up_removes_ones_own_old_jobs_and_takes_no_body(
    server: EvalServer, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(responses, "_AGAIN_S", 0.02)  # time flies, and the worker with it
    old = await judged(server)
    headers = {"Authorization": f"Bearer {await server.token()}"}
    clock.advance(299)
    young = await judged(server)
    clock.advance(2)
    for asks, removed in ((headers, 0), ({}, 1), ({}, 0)):
        answer = await server.asked("POST", "/admin/cleanup-jobs", headers=asks)
        assert answer.json() == {"status": "cleanup_completed", "removed": removed}
    assert (await server.asked("GET", f"/job/{old}")).status_code == 404
    assert (await server.asked("GET", f"/job/{young}")).status_code == 200
    again = await server.asked("POST", "/evaluate", json=evaluation())
    assert again.status_code == 200
