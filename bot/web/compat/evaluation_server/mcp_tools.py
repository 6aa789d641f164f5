"""`/mcp`: the two tools of the evaluation server, as a Model Context Protocol server over HTTP.

Each request has its own session manager, which exists only for the request. There is no state
between requests, and the application needs no lifespan.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from bot.domain.board import Viewer
from bot.web.compat.evaluation_server import http, requests, responses

_NAME = "podium-evaluation-server"


class _Evaluate(BaseModel):
    """Judge one GPU kernel: whether it runs, and how long it takes."""

    request: requests.EvaluateRequest


class _Compare(BaseModel):
    """Judge a GPU kernel against its reference: whether it is right, and how much faster."""

    request: requests.CompareRequest


_TOOLS: dict[str, type[_Evaluate | _Compare]] = {
    "evaluate_kernel": _Evaluate,
    "compare_kernels": _Compare,
}

Call = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class _Caller:
    """The caller of a tool, the request, and its start by the event loop's time."""

    request: Request
    viewer: Viewer
    begun: float

    async def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the same body as over HTTP, or an error."""
        try:
            tool = _TOOLS[name]
            parsed = await asyncio.to_thread(lambda: tool.model_validate(arguments).request)
            found = await responses.exchange(self.request, self.viewer, parsed, self.begun)
        except KeyError:
            return self._failed(f"no tool named {name}; there are {' and '.join(_TOOLS)}")
        except ValidationError as error:
            return self._failed(f"Invalid request format: {_faults(error)}")
        except Exception as error:  # noqa: BLE001 - as the routes' error handler does
            problem = await http.other_error(self.request, error)
            return self._failed(json.loads(bytes(problem.body))["error"])
        return found.body if found.status == 200 else {**found.body, "status": "failed"}

    def _failed(self, error: str) -> dict[str, Any]:
        body = responses.failure(
            500, responses.ErrorDetail("refused", error), responses.address_of(self.request)
        ).body
        return {**body, "status": "failed"}


async def answer_call(scope: Scope, receive: Receive, send: Send) -> None:
    """Serve the endpoint as an ASGI application; UserError if the caller may not call."""
    request = Request(scope, receive)
    begun = asyncio.get_running_loop().time()
    viewer = await http.submitter_of(request)
    body = await http.body_of(request)
    caller = _Caller(request, viewer, begun)
    manager = StreamableHTTPSessionManager(
        _server(caller.call),
        json_response=True,
        stateless=True,
        max_request_body_size=http.BODY_MAX,
    )
    async with manager.run():
        await manager.handle_request(scope, _replaying(body, receive), send)


def _server(call: Call) -> Server[Any]:
    async def list_tools(
        _: ServerRequestContext[Any], __: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_tool(name, kind) for name, kind in _TOOLS.items()])

    async def call_tool(
        _: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        found = await call(params.name, dict(params.arguments or {}))
        text = types.TextContent(type="text", text=json.dumps(found))
        failed = found["status"] != "success"
        return types.CallToolResult(content=[text], structured_content=found, is_error=failed)

    return Server(_NAME, on_list_tools=list_tools, on_call_tool=call_tool)


def _tool(name: str, kind: type[BaseModel]) -> types.Tool:
    schema = kind.model_json_schema()
    return types.Tool(name=name, description=schema.pop("description"), input_schema=schema)


def _faults(error: ValidationError) -> str:
    found = error.errors(include_input=False, include_url=False, include_context=False)
    return "; ".join(f"{' -> '.join(map(str, each['loc']))}: {each['msg']}" for each in found)


def _replaying(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that returns the body again, then what the original one returns."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay
