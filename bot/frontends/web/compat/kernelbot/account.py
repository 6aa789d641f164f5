"""Signing in as popcorn-cli tries it, invite codes, and whether the door answers."""

import secrets

from fastapi import APIRouter, Response

from bot.frontends.web.compat.kernelbot.callers import HOW, FromSubmitter
from bot.frontends.web.compat.kernelbot.http import Route, answered, not_offered

router = APIRouter(route_class=Route)


@router.get("/health")
async def health() -> Response:
    """That the process answers."""
    return answered({"status": "ok"})


@router.get("/auth/init")
@router.get("/auth/cli/{provider}")
async def begin() -> Response:
    """No sign-in: popcorn-cli has the addresses of another server's built in.

    A status of success would have it overwrite `~/.popcorn.yaml` with the state at once, so it is
    told by an error, which it prints.
    """
    words = (
        "popcorn-cli can only sign in at the server that is built into it, so there is no "
        f"`register` here: {HOW}"
    )
    return answered({"state": secrets.token_urlsafe(16), "detail": words}, 501)


@router.post("/user/join")
async def join(person: FromSubmitter) -> Response:  # noqa: ARG001 - for its token
    """No codes: whoever is invited to a board sees it at once."""
    return not_offered(
        "Podium has no invite codes: ask the board's creator for `/leaderboard invite` with your "
        "name; from then on the board is there for you"
    )
