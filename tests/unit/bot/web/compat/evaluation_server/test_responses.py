"""`/evaluate`, `/compare` and `/`: what the evaluation server's own client sends and reads."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import httpx
import pytest

from bot.domain.submission import RateLimit
from bot.domain.tasks.task_file import MAX_TASK
from bot.web.compat.evaluation_server import jobs, responses
from runners.backends import fake
from tests.doubles.clock import ManualClock
from tests.doubles.dispatching import dispatching
from tests.doubles.eval_server import (
    HERE,
    EvalServer,
    comparison,
    eval_server,
    evaluation,
    hurrying,
    kernel,
)
from tests.doubles.memory_store import MemoryStore

STATS = {"mean", "std", "min", "max", "median", "percentile_95", "percentile_99"}
NAMELESS = {"args": [{"type": "int"}]}
LONG_NAME = {"args": [{"name": "n" * 1001, "type": "int", "value": 1}]}
LONG_CLASS = {"class_name": "C" * 1001}
LARGE_INT = {"args": [{"name": "n", "type": "float", "value": 10**400}]}
UNCACHED = ("no-cache, no-store, must-revalidate", "no-cache", "0")


@pytest.fixture
async def server(memory_store: MemoryStore, clock: ManualClock) -> AsyncIterator[EvalServer]:
    async with eval_server(memory_store, clock, {"H100": 1}) as opened:
        yield opened


def uncached(answer: httpx.Response) -> bool:
    names = ("cache-control", "pragma", "expires")
    return tuple(answer.headers[name] for name in names) == UNCACHED


async def test_a_kernel_that_runs_is_told_with_its_seven_numbers(server: EvalServer) -> None:
    answer = await server.asked("POST", "/evaluate", json=evaluation("time_us=30"))
    assert answer.status_code == 200
    body = answer.json()
    assert body["status"] == "success"
    assert isinstance(body["job_id"], str)
    result = body["kernel_exec_result"]
    assert (result["compiled"], result["correctness"]) == (True, True)
    assert result["runtime"] == pytest.approx(0.03)
    assert set(result["runtime_stats"]) == STATS
    assert result["metadata"]["timed_samples"] == 20  # as many as asked for, over the rounds
    assert "ref_runtime" not in body
    assert None not in result.values()
    assert (body["gpu_type"], answer.headers["x-gpu-type"]) == ("h100", "h100")
    assert uncached(answer)


async def test_a_comparison_has_the_references_times_and_a_speedup(server: EvalServer) -> None:
    body = (await server.asked("POST", "/compare", json=comparison("time_us=30"))).json()
    assert set(body["ref_runtime"]) == STATS
    assert body["ref_runtime"]["mean"] > 0
    assert body["kernel_exec_result"]["speedup"] == pytest.approx(1.0)


@pytest.mark.parametrize("path", ["/eval", "/eval/", "/eval/compare"])
async def test_the_older_form_is_a_comparison_too(server: EvalServer, path: str) -> None:
    path = f"{HERE}{path}"
    sent = {"ref_code": "class Model: ...\n", "custom_code": "class ModelNew: ...\n"}
    body = (await server.asked("POST", path, json=sent)).json()
    assert (body["status"], set(body["ref_runtime"])) == ("success", STATS)


@pytest.mark.parametrize(
    ("category", "error"),
    [
        ("build_failed", "compilation_error"),
        ("wrong_answer", "validation_error"),
        ("crashed", "validation_error"),
        ("timed_out", "validation_error"),
    ],
)
async def test_a_faulty_kernel_is_a_success_with_flags_words_and_a_category(
    server: EvalServer, category: str, error: str
) -> None:
    """The evaluation server often answered such with no word at all."""
    sent = comparison(f"verdict={category} message=a-reason")
    answer = await server.asked("POST", "/compare", json=sent)
    assert (answer.status_code, answer.json()["status"]) == (200, "success")
    result = answer.json()["kernel_exec_result"]
    assert result["compiled"] is (error == "validation_error")
    assert (result["correctness"], result["runtime"]) == (False, 0.0)
    assert result["error_category"] == category
    assert "a-reason" in result[error]
    assert answer.json()["ref_runtime"] == dict.fromkeys(STATS, 0.0)


@pytest.mark.parametrize(
    ("path", "sent", "field"),
    [
        ("/evaluate", {}, "kernel"),
        ("/evaluate", {"kernel": kernel(language="c")}, "kernel -> language"),
        ("/evaluate", {"kernel": kernel(kernel_type="hip")}, "kernel -> kernel_type"),
        ("/evaluate", {"kernel": kernel(io=NAMELESS)}, "kernel -> io -> args -> 0 -> name"),
        ("/evaluate", {"kernel": kernel(io=LONG_NAME)}, "kernel -> io -> args -> 0 -> name"),
        ("/evaluate", {"kernel": kernel(io=LARGE_INT)}, "kernel -> io -> args -> 0"),
        ("/evaluate", {"kernel": kernel(metadata=LONG_CLASS)}, "kernel -> metadata"),
        ("/compare", {"ref_kernel": kernel()}, "custom_kernel"),
        ("/", {"ref_code": "x"}, "custom_code"),
    ],
)  # fmt: skip
async def test_a_body_of_the_wrong_form_is_400_with_its_fields(
    server: EvalServer, path: str, sent: dict[str, object], field: str
) -> None:
    answer = await server.asked("POST", path, json=sent)
    assert answer.status_code == 400
    body = answer.json()
    assert (body["error"], body["status"]) == ("Invalid request format", "client_error")
    assert body["validation_errors"][0].keys() == {"field", "message", "type"}
    assert field in [each["field"] for each in body["validation_errors"]]
    assert uncached(answer)


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (evaluation(num_trials=0), "num_trials must be between 1 and 10000"),
        (evaluation(num_trials=10**4000), "num_trials must be between 1 and 10000"),
        (evaluation(timeout=601), "timeout must be between 5 and 600"),
        ({"kernel": kernel(kernel_type="triton")}, "Triton kernels require io_contract"),
        ({"kernel": kernel(source_code=" ")}, "the file is empty"),
        (evaluation(gpu="H200"), "no GPU type named 'H200'"),
    ],
)
async def test_what_cannot_be_meant_is_refused_with_details(
    server: EvalServer, sent: dict[str, object], words: str
) -> None:
    answer = await server.asked("POST", "/evaluate", json=sent)
    assert answer.status_code in {400, 404}
    assert words in answer.json()["error"]
    assert answer.json()["status"] == "client_error"
    assert answer.json()["details"]


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[]", b'"text"', b'{"num_trials": NaN}', b'{"num_trials": Infinity}', b"\xff",
        b'{"kernel":' + b"[" * 5000 + b"]" * 5000 + b"}", b'{"kernel": "\\ud800"}',
        b'{"num_trials": ' + b"9" * 5000 + b"}",
    ],
)  # fmt: skip
async def test_a_body_that_is_no_json_object_is_422(server: EvalServer, body: bytes) -> None:
    answer = await server.asked("POST", "/evaluate", content=body)
    assert answer.status_code == 422
    (detail,) = answer.json()["detail"]
    assert detail["loc"] == ["body"]


async def test_a_body_that_is_too_long_is_refused(server: EvalServer) -> None:
    answer = await server.asked("POST", "/evaluate", content=b" " * (MAX_TASK + 1))
    assert (answer.status_code, answer.json()["status"]) == (413, "client_error")


@pytest.mark.parametrize(
    ("method", "path", "status", "words"),
    [
        ("GET", "/evaluate", 405, "Method Not Allowed"),
        ("GET", "/mcp", 405, "Method Not Allowed"),
        ("POST", "/nothing", 404, "Not Found"),
        ("GET", "/job", 404, "Not Found"),
    ],
)
async def test_another_route_or_method_is_said_in_a_detail(
    server: EvalServer, method: str, path: str, status: int, words: str
) -> None:
    answer = await server.asked(method, path)
    assert (answer.status_code, answer.json()) == (status, {"detail": words})


async def test_who_waits_in_vain_is_told_before_hanging_up_and_the_job_is_killed(
    server: EvalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "margin_s", lambda asked: asked.timeout - 0.2)
    sent = evaluation("seconds=1000", timeout=5)
    async with asyncio.timeout(4):
        answer = await server.asked("POST", "/evaluate", json=sent)
    body = answer.json()
    assert (answer.status_code, body["status"]) == (500, "error")
    assert body["error"] == "Job timed out after 5 seconds"
    assert body["kernel_exec_result"] == body["ref_runtime"] == {}
    assert body["error_category"] == "job_timed_out"
    assert {"pod_name", "pod_ip", "compilation_method", "job_id"} <= body.keys()
    after = await server.asked("POST", "/evaluate", json=evaluation("seconds=0"))
    assert after.status_code == 200


async def test_a_job_that_we_failed_is_500_with_the_reason_and_so_is_its_page(
    server: EvalServer,
) -> None:
    async with hurrying(server.clock):
        answer = await server.asked("POST", "/evaluate", json=evaluation("error=boom"))
    body = answer.json()
    assert (answer.status_code, body["error_category"]) == (500, "our_fault")
    assert "boom" in body["error"]
    job = (await server.asked("GET", f"/job/{body['job_id']}")).json()
    assert (job["status"], job["error"]) == ("failed", body["error"])


async def test_two_at_once_share_one_gpu_one_after_the_other(server: EvalServer) -> None:
    sent = [evaluation(f"seconds=0.05 time_us={number}") for number in range(1, 5)]
    answers = await asyncio.gather(*(server.asked("POST", "/evaluate", json=each) for each in sent))
    times = [each.json()["kernel_exec_result"]["runtime"] for each in answers]
    assert times == pytest.approx([0.001, 0.002, 0.003, 0.004])


async def test_two_equal_requests_at_once_have_each_a_job_and_an_answer(
    server: EvalServer,
) -> None:
    asked = (server.asked("POST", "/compare", json=comparison("time_us=7")) for _ in range(2))
    first, second = [each.json() for each in await asyncio.gather(*asked)]
    assert first["job_id"] != second["job_id"]
    assert first["kernel_exec_result"] == second["kernel_exec_result"]


async def test_without_any_runner_a_request_waits_for_one(
    memory_store: MemoryStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(responses, "_AGAIN_S", 0.05)
    async with eval_server(memory_store, clock, {}) as server:
        waits = asyncio.create_task(server.asked("POST", "/evaluate", json=evaluation()))
        await asyncio.sleep(0.1)
        assert not waits.done()
        async with dispatching(memory_store, clock, [fake.create()]):
            assert (await waits).status_code == 200


async def test_what_no_runner_can_judge_is_500_with_what_is_missing(
    memory_store: MemoryStore, clock: ManualClock
) -> None:
    sent = {"kernel": kernel(kernel_type="triton", io={"args": []})}
    async with eval_server(memory_store, clock, {"CPU": 1}) as server:
        answer = await server.asked("POST", "/evaluate", json=sent)
    assert (answer.status_code, answer.json()["error_category"]) == (500, "no_runner")
    assert "the device cuda" in answer.json()["error"]


async def test_an_admins_limit_and_the_number_of_waiting_jobs_are_429(
    server: EvalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await server.store.moderation.set_limit(RateLimit(1, timedelta(hours=1)))
    assert (await server.asked("POST", "/evaluate", json=evaluation())).status_code == 200
    answer = await server.asked("POST", "/evaluate", json=evaluation())
    assert (answer.status_code, answer.json()["details"]) == (429, {"code": "rate-limit"})
    monkeypatch.setattr(responses, "MOST_WAITING", 0)
    answer = await server.asked("POST", "/evaluate", json=evaluation())
    assert (answer.status_code, answer.json()["details"]) == (429, {"code": "rate-limit"})


async def test_a_door_that_closes_says_where_the_result_will_be(server: EvalServer) -> None:
    waits = asyncio.create_task(server.asked("POST", "/evaluate", json=evaluation("seconds=0.5")))
    await asyncio.sleep(0.1)
    server.door.closing.begun = True
    answer = await waits
    body = answer.json()
    assert (answer.status_code, body["error_category"]) == (503, "server_stops")
    assert f"/job/{body['job_id']}" in body["error"]


async def test_a_bug_is_an_incident_without_its_words(
    server: EvalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> None:
        raise ValueError("password=hunter2")

    monkeypatch.setattr(server.store.requests, "add", broken)
    answer = await server.asked("POST", "/evaluate", json=evaluation())
    assert (answer.status_code, answer.json()["status"]) == (500, "error")
    assert "incident" in answer.json()["error"]
    assert "hunter2" not in answer.text


async def test_a_body_of_a_million_arguments_is_refused_before_each_is_looked_at(
    server: EvalServer,
) -> None:
    many = {"kernel": {**evaluation("pass")["kernel"], "io": {"args": [{}] * 500_000}}}
    refused = await server.asked("POST", "/evaluate", json=many)
    assert refused.status_code == 400
    assert "too many values" in refused.json()["error"]
