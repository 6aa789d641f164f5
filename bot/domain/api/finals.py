"""The bodies of finals, and of comparisons for the first places."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from pydantic import Field

from bot.domain.api.admin import DecisionBody
from bot.domain.api.base import WHOLE, GpuName, Name, ResponseBody, Time, time_of
from bot.domain.confirmation import Confirmation, ConfirmationState, LostPlace
from bot.domain.finals import DEFAULT_TOP, LEAST_TOP, MOST_TOP, Final, FinalRow
from bot.domain.scoring import PairRatio


class RatioBody(ResponseBody):
    """The time of a run divided by that of the holder, and half of its 95 % interval."""

    ratio: float
    half_width: float

    @classmethod
    def of(cls, ratio: PairRatio | None) -> "RatioBody | None":
        """Return a ratio, if there is one."""
        if ratio is None:
            return None
        return cls(ratio=ratio.ratio, half_width=ratio.half_width)


class FinalRowBody(Time):
    """A row of a final's table; the ratio is to the entry before, None where undecided."""

    rank: int
    person: str
    submission: int
    ratio: RatioBody | None

    @classmethod
    def of(cls, row: FinalRow) -> "FinalRowBody":
        """Return a row."""
        return cls(
            rank=row.rank,
            person=row.person_name,
            submission=row.submission,
            time_ns=row.time_ns,
            half_width_ns=row.half_width_ns,
            resolution_ns=row.resolution_ns,
            ratio=RatioBody.of(row.ratio),
        )


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
    comparison_s: float | None = None
    """The seconds that one of them took on average."""
    left: int | None = None
    """The least number of comparisons that remain; None until it starts."""
    rows: tuple[FinalRowBody, ...] | None

    @classmethod
    def of(cls, final: Final) -> "FinalBody":
        """Return a final."""
        return cls(
            gpu=final.gpu,
            top=final.top,
            created_at=final.created_at,
            ended_at=final.ended_at,
            entries=None if final.entries is None else len(final.entries),
            compared=final.compared,
            comparison_s=final.comparison_s,
            left=None if final.entries is None or final.rows is not None else final.left,
            rows=None if final.rows is None else tuple(map(FinalRowBody.of, final.rows)),
        )


class FinalsAnswer(ResponseBody):
    """The newest final of each GPU type of a board."""

    board: str
    finals: tuple[FinalBody, ...]

    @classmethod
    def of(cls, board: str, found: Sequence[Final]) -> "FinalsAnswer":
        """Return the finals of a board."""
        return cls(board=board, finals=tuple(map(FinalBody.of, found)))


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

    @classmethod
    def of(cls, found: Confirmation | None) -> "ConfirmationBody | None":
        """Return a comparison, if there is one."""
        if found is None:
            return None
        return cls(
            state=found.state,
            place=found.place,
            comparing=found.run is not None,
            rival=found.rival,
            rival_person=found.rival_name,
            ratio=RatioBody.of(found.ratio),
            reason=found.reason,
        )


class LostPlaceBody(ResponseBody):
    """A first place that another run took from this one, or shares, by a comparison of the two."""

    place: int
    shared: bool
    submission: int
    person: str
    ratio: RatioBody | None
    """The time of the other run divided by that of this one."""

    @classmethod
    def of(cls, found: LostPlace | None) -> "LostPlaceBody | None":
        """Return what was lost, if anything was."""
        if found is None:
            return None
        return cls(
            place=found.place,
            shared=found.shared,
            submission=found.submission,
            person=found.person_name,
            ratio=RatioBody.of(found.ratio),
        )


class PendingBody(ResponseBody):
    """A run that is not ranked until it is confirmed."""

    person: str
    person_id: int
    submission: int
    place: int
    """The place that it would take."""
    time: Time | None
    submitted_at: datetime | None

    @classmethod
    def of(cls, found: Confirmation) -> "PendingBody":
        """Return a run whose score is held back."""
        return cls(
            person=found.person_name,
            person_id=found.person,
            submission=found.submission,
            place=found.place,
            time=time_of(found.held),
            submitted_at=found.submitted_at,
        )
