"""The bases of every body, and what several of them have."""

from typing import Annotated

from pydantic import BeforeValidator, ConfigDict, Field, StringConstraints

from runners.contract.task import GPU_NAME
from runners.contract.wire import Wire

PATH = "/api/v1"
"""Of every route."""
BODY_MAX = 64 << 10
"""Bytes of every body but a submission's."""
MOST_ON_A_PAGE = 200


def _whole(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


WHOLE = BeforeValidator(_whole)
"""For an integer as JSON Schema has it: `2.0` is one."""

Number = Annotated[int, Field(ge=-(1 << 63), lt=1 << 63)]
"""What a database has room for; numbers below zero are the house's own submissions."""
GpuName = Annotated[str, StringConstraints(pattern=GPU_NAME.pattern)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Reason = Annotated[str, StringConstraints(max_length=500)]
"""It is shown to whom it concerns."""


class RequestBody(Wire):
    """What a client sends; keys that are not known are refused."""


class ResponseBody(Wire):
    """What the server says; a client passes over keys that a later server adds."""

    model_config = ConfigDict(extra="ignore")


class ProblemDetails(ResponseBody):
    """Why there is no other answer (RFC 9457); `code` is for programs, `detail` says what to do."""

    title: str
    status: int
    code: str
    detail: str


class Time(ResponseBody):
    """A time in nanoseconds and half of its 95 % interval; lower is better."""

    time_ns: float
    half_width_ns: float
