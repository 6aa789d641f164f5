"""The base classes of all bodies, and fields that several have."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated

from pydantic import AwareDatetime, BeforeValidator, ConfigDict, Field, StringConstraints

from bot.domain.scoring import ScoreValue
from runners.contract.task import GPU_NAME
from runners.contract.wire import Wire

PATH = "/api/v1"
"""The prefix of every route."""
BODY_MAX = 64 << 10
"""The maximum bytes of every JSON body except a submission's."""
MOST_ON_A_PAGE = 200


def _whole(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


WHOLE = BeforeValidator(_whole)
"""For an integer as JSON Schema defines it: `2.0` is one."""

Number = Annotated[int, Field(ge=-(1 << 63), lt=1 << 63)]
"""The range that a database can store; negative numbers are the system's own submissions."""
GpuName = Annotated[str, StringConstraints(pattern=GPU_NAME.pattern)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Reason = Annotated[str, StringConstraints(max_length=500)]
"""Shown to the person concerned."""


class RequestBody(Wire):
    """What a client sends; unknown keys are refused."""


class ResponseBody(Wire):
    """What the server returns; clients ignore keys that a newer server adds."""

    model_config = ConfigDict(extra="ignore")


class ProblemDetails(ResponseBody):
    """An error (RFC 9457); `code` is for programs, `detail` says what to do."""

    title: str
    status: int
    code: str
    detail: str


class Time(ResponseBody):
    """The time that counts, in nanoseconds; lower is better.

    It is the judge's own value. It counts at the upper end of its interval, which is `time_ns` plus
    `half_width_ns` plus `resolution_ns`.
    """

    time_ns: float
    half_width_ns: float
    """Half of the 95 % interval, which describes the noise."""
    resolution_ns: float | None = None
    """What the judge's clock cannot see; null if it does not confirm the time, which then counts as
    it was reported."""
    claimed_ns: float | None = None
    """What the submission's own clock says, if it was asked; it decides nothing."""


def time_of(value: ScoreValue | None) -> Time | None:
    """Return a time, if there is one."""
    return None if value is None else Time(**asdict(value))


Zoned = Annotated[
    AwareDatetime, Field(ge=datetime(1971, 1, 1, tzinfo=UTC), lt=datetime(9000, 1, 1, tzinfo=UTC))
]
"""A time with a zone, in a year that can be represented in every zone."""
