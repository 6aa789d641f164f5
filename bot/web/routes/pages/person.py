"""`/people/N`: a person's ranks and submissions, and the history of their times."""

from collections.abc import Iterator
from datetime import datetime
from itertools import groupby
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response

from bot.domain.ids import PersonId
from bot.domain.times import describe_speed_up, show_score, speed_up_over
from bot.reports import blocks, charts, history
from bot.reports.standings import rank_among
from bot.services.history import PersonProfile, PersonStanding, person_profile
from bot.web import auth, rendering
from bot.web.context import context_of
from bot.web.moderation import moderation_of

router = APIRouter()
FRESH_S = 5.0
"""How long a rendered page is reused for the same request."""


@router.get("/people/{number}")
async def person(
    request: Request, number: Annotated[int, Path(ge=1, lt=1 << 62)], viewer: auth.AnyViewer
) -> Response:
    """Show a person's results on the boards that the viewer may see."""
    context = context_of(request)

    async def make() -> rendering.RenderedPage:
        profile = await person_profile(context.store, viewer, PersonId(number))
        forms = await moderation_of(request, profile.person)
        values = {**_values(profile, context.clock.now()), "moderation": forms}
        values["back"] = f"/people/{number}"
        return await rendering.render_page(request, viewer, "person.html", values)

    if viewer.sees_all:  # the forms of an admin belong to one session
        return rendering.page_response(request, await make())
    return rendering.page_response(
        request, await context.cache.get(("person", viewer, number), FRESH_S, make)
    )


def _values(profile: PersonProfile, now: datetime) -> dict[str, Any]:
    places = [(each, *_cells(each)) for each in profile.best_first]
    best = "; ".join(
        f"{rank} on {each.board.name}, {each.own.gpu}" for each, rank, *_ in places[:3]
    )
    return {
        "title": profile.person.name,
        "card": f"/people/{profile.person.id}/card.png",
        "description": f"Best places: {best}." if best else "No ranked submissions yet.",
        "profile": profile,
        "places_held": places,
        "won": profile.top_places(now, closed=True),
        "held": profile.top_places(now, closed=False),
        "boards": len({each.board.id for each in profile.standings}),
        "charts": [
            (each.title, charts.describe_chart(each), charts.as_data(each))
            for each in _trends(profile)
        ],
        "history": history.history_table(profile.past),
    }


def _trends(profile: PersonProfile) -> Iterator[blocks.Chart]:
    """Yield the times of each board that has more than one."""
    for name, places in groupby(profile.standings, key=lambda each: each.board.name):
        standings = [each.own for each in places]
        if any(len(each.scores) > 1 for each in standings):
            yield history.trend(f"{name}: ranked times", standings)


def _cells(place: PersonStanding) -> tuple[str, str, str]:
    """Return the rank with the total, the time, and the speedup over the reference if known."""
    own = place.own
    faster = speed_up_over(own.reference, own.standing.score)
    gain = "" if faster is None else describe_speed_up(faster)
    rank = rank_among(own.standing.rank, own.entries, shared=own.shared)
    return rank, show_score(own.standing.score.value), gain
