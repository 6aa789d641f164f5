"""Bodies about comparisons with the holders of the first places, and about finals."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from bot.domain.api.admin import DecisionBody
from bot.domain.api.base import WHOLE, GpuName, Name, ResponseBody, Time
from bot.domain.confirmation import ConfirmationState
from bot.domain.finals import DEFAULT_TOP, LEAST_TOP, MOST_TOP


class RatioBody(ResponseBody):
    """The time of a run divided by that of the holder, and half of its 95 % interval."""

    ratio: float
    half_width: float


class ConfirmationBody(ResponseBody):
    """The last comparison of a run that would take one of the first places."""

    state: ConfirmationState
    place: int
    """The place that it would take."""
    comparing: bool
    """Whether the comparison has started."""
    rival: int | None
    """The submission that holds the place; None until the comparison starts."""
    rival_person: str
    ratio: RatioBody | None
    reason: str


class PendingBody(ResponseBody):
    """A run that is not ranked until it is confirmed."""

    person: str
    person_id: int
    submission: int
    place: int
    """The place that it would take."""
    time: Time | None
    submitted_at: datetime | None


class FinalRowBody(Time):
    """A row of a final's table; the ratio is to the entry before, None where undecided."""

    rank: int
    person: str
    submission: int
    ratio: RatioBody | None


class FinalBody(ResponseBody):
    """A final on one GPU type; `rows` is None until it has ended."""

    gpu: str
    top: int
    created_at: datetime
    ended_at: datetime | None
    entries: int | None
    """How many entries it compares; None until it starts."""
    compared: int
    """How many comparisons are decided."""
    rows: tuple[FinalRowBody, ...] | None


class FinalsAnswer(ResponseBody):
    """The newest final of each GPU type of a board."""

    board: str
    finals: tuple[FinalBody, ...]


class FinalOrder(DecisionBody):
    """A final of the first entries of a board, on one of its GPU types or on each."""

    board: Name
    gpu: GpuName | None = None
    top: Annotated[int, Field(ge=LEAST_TOP, le=MOST_TOP), WHOLE] = DEFAULT_TOP


class FinalKey(DecisionBody):
    """The board whose running finals are cancelled."""

    board: Name


class FinalsCancelled(ResponseBody):
    """How many running finals were cancelled."""

    cancelled: int
