"""`/mcp`: the two tools, as a client of the Model Context Protocol finds them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from bot.domain.errors import StoreError
from tests.doubles.agents import application
from tests.doubles.clock import ManualClock
from tests.doubles.eval_server import (
    HERE,
    EvalServer,
    comparison,
    eval_server,
    evaluation,
    hurrying,
)
from tests.doubles.memory_store import MemoryStore


@pytest.fixture
async def server(memory_store: MemoryStore, clock: ManualClock) -> AsyncIterator[EvalServer]:
    async with eval_server(memory_store, clock) as opened:
        yield opened


@asynccontextmanager
async def tools(
    server: EvalServer, mode: Literal["auto", "legacy"] = "auto"
) -> AsyncIterator[Client]:
    app = application(server.door)
    app.state.loopback = True
    async with (
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app)) as way,
        Client(streamable_http_client(f"{HERE}/eval/mcp", http_client=way), mode=mode) as client,
    ):
        yield client


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_there_are_two_tools_which_answer_as_the_routes_do(
    server: EvalServer, mode: Literal["auto", "legacy"]
) -> None:
    async with tools(server, mode) as client:
        listed = (await client.list_tools()).tools
        assert [each.name for each in listed] == ["evaluate_kernel", "compare_kernels"]
        assert all("request" in each.input_schema["properties"] for each in listed)
        one = await client.call_tool("evaluate_kernel", {"request": evaluation("time_us=30")})
        two = await client.call_tool("compare_kernels", {"request": comparison()})
    assert one.structured_content is not None
    assert two.structured_content is not None
    assert not one.is_error
    assert one.structured_content["kernel_exec_result"]["runtime"] == pytest.approx(0.03)
    assert two.structured_content["ref_runtime"]["mean"] > 0
    job = await server.asked("GET", f"/job/{one.structured_content['job_id']}")
    assert job.json()["result"] == one.structured_content


async def test_a_request_that_spells_out_its_nulls_is_taken(server: EvalServer) -> None:
    """The evaluation server's tools refused every kernel with an io for this reason."""
    init = {"kind": "randn", "seed": None, "mean": None, "low": None, "step": None}
    tensor = {"shape": [4], "dtype": "float32", "data": None, "init": init}
    arg = {"name": "x", "type": "tensor", "value": None, "tensor_spec": tensor, "role": "input"}
    io = {"args": [arg], "launch": {"grid": None, "block": None, "num_warps": None}}
    sent = comparison(atol=None)
    for side in ("ref_kernel", "custom_kernel"):
        sent[side] |= {"io": io, "metadata": None}
    async with tools(server) as client:
        found = await client.call_tool("compare_kernels", {"request": sent})
    assert not found.is_error


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("evaluate_kernel", {}, "request: Field required"),
        ("compare_kernels", {"request": {"ref_kernel": 1}}, "request -> custom_kernel"),
        ("evaluate_kernel", {"request": evaluation(timeout=1)}, "timeout must be between"),
        ("evaluate_kernel", {"request": evaluation("error=boom")}, "boom"),
        ("validate_kernel", {}, "there are evaluate_kernel and compare_kernels"),
    ],
)
async def test_a_failed_call_says_why(
    server: EvalServer, name: str, arguments: dict[str, object], words: str
) -> None:
    async with tools(server) as client, hurrying(server.clock):
        found = await client.call_tool(name, arguments)
    assert found.structured_content is not None
    assert (found.is_error, found.structured_content["status"]) == (True, "failed")
    assert words in found.structured_content["error"]
    assert {"pod_name", "pod_ip"} <= found.structured_content.keys()


@pytest.mark.parametrize("fault", [ValueError("password=hunter2"), StoreError("hunter2 is away")])
async def test_a_fault_of_ours_is_said_without_its_words(
    server: EvalServer, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    async def broken(*_: object) -> None:
        raise fault

    monkeypatch.setattr(server.store.requests, "add", broken)
    async with tools(server) as client:
        found = await client.call_tool("evaluate_kernel", {"request": evaluation()})
    assert found.structured_content is not None
    assert (found.is_error, found.structured_content["status"]) == (True, "failed")
    assert "hunter2" not in str(found)


async def test_the_tools_are_also_at_a_path_that_ends_with_a_slash(server: EvalServer) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    headers = {"Accept": "application/json, text/event-stream"}
    answer = await server.asked("POST", "/mcp/", json=call, headers=headers)
    assert len(answer.json()["result"]["tools"]) == 2
