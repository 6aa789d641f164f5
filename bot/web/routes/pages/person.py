"""`/people/N`: a person's places and submissions, and the history of their times."""

from collections.abc import Iterator
from itertools import groupby
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response

from bot.domain.ids import PersonId
from bot.domain.reference_times import speed_up
from bot.domain.times import show_factor, show_time
from bot.reports.blocks import Chart
from bot.reports.charts import describe_chart
from bot.reports.history import history_table, trend
from bot.reports.standings import ordinal
from bot.services.history import PersonProfile, PersonStanding, person_profile
from bot.web.auth import AnyViewer
from bot.web.context import context_of
from bot.web.figures import as_data
from bot.web.rendering import RenderedPage, sent, sheet

router = APIRouter()
FRESH_S = 5.0
"""How long a rendered page is reused for the same request."""


@router.get("/people/{number}")
async def person(
    request: Request, number: Annotated[int, Path(ge=1, lt=1 << 62)], viewer: AnyViewer
) -> Response:
    """Show a person's results on the boards that the viewer may see."""
    door = context_of(request)

    async def make() -> RenderedPage:
        found = await person_profile(door.store, viewer, PersonId(number))
        return await sheet(request, viewer, "person.html", _values(found))

    return sent(request, await door.kept.get(("person", viewer, number), FRESH_S, make))


def _values(found: PersonProfile) -> dict[str, Any]:
    return {
        "title": found.person.name,
        "portrait": found,
        "places_held": [(each, *_cells(each)) for each in found.places],
        "charts": [(each.title, describe_chart(each), as_data(each)) for each in _trends(found)],
        "history": history_table(found.past),
    }


def _trends(found: PersonProfile) -> Iterator[Chart]:
    """Yield the times of each board that has more than one."""
    for name, places in groupby(found.places, key=lambda each: each.board.name):
        standings = [each.own for each in places]
        if any(len(each.scores) > 1 for each in standings):
            yield trend(f"{name}: ranked times", standings)


def _cells(place: PersonStanding) -> tuple[str, str, str]:
    """Return the rank with the total, the time, and the speedup over the reference if known."""
    own = place.own
    value = own.standing.score.value
    gain = "" if own.reference is None else show_factor(speed_up(own.reference, value))
    rank = f"{ordinal(own.standing.rank)} of {own.entries}"
    return rank, show_time(value.time_ns, value.half_width_ns), gain
