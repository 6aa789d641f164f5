"""`/sign-in`, `/sign-out`: by Discord if configured, and by a personal token."""

import base64
import hmac
import json
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from bot.domain.errors import UserError
from bot.ports import IdentityProvider
from bot.services.tokens import NewToken, sign_in_as, sign_in_by_link, sign_in_by_token, sign_out
from bot.web import sessions
from bot.web.context import WebContext, context_of, is_here
from bot.web.routes.actions.page import go, show

router = APIRouter()

_BACK = "/sign-in/discord/back"
_LINK = "/sign-in/link"
_UNDER_WAY = "podium-sign-in"
_UNDER_WAY_S = 600
_LONGEST = 200
Next = Annotated[str | None, Query(alias="next", max_length=2000)]


@router.get("/sign-in")
async def ask(request: Request, there: Next = None) -> Response:
    """Show the ways to sign in; redirect someone who is signed in."""
    if await sessions.browser_of(request) is not None:
        return go(sessions.own_path(there))
    return await _form(request, sessions.own_path(there))


@router.get(_LINK)
async def ask_by_link(
    request: Request, key: Annotated[str, Query(max_length=_LONGEST)] = ""
) -> Response:
    """Show where `podium up`'s link leads; only the button uses it up, as programs fetch links."""
    _require_local(request)
    values = {"title": "Sign in", "key": key}
    return await show(request, None, "acting/sign_in_by_link.html", values)


@router.post(_LINK)
async def enter_by_link(request: Request) -> Response:
    """Sign in as the user of this machine, by a key that works once."""
    _require_local(request)
    sessions.require_same_origin(request)
    door = context_of(request)
    async with sessions.read_form(request) as fields:
        key = fields.text("key")
    try:
        made = await sign_in_by_link(door.store, door.clock, door.links, key, label=_label(request))
    except UserError as error:
        return await _form(request, "/", error)
    return await _entered(request, made, "/")


@router.post("/sign-in")
async def enter(request: Request) -> Response:
    """Sign in by a personal token, with a new session for this browser."""
    sessions.require_same_origin(request)
    door = context_of(request)
    async with sessions.read_form(request) as fields:
        there, secret = sessions.own_path(fields.text("next")), fields.text("token")
    try:
        _require_token(secret)
        made = await sign_in_by_token(door.store, door.clock, secret, _label(request))
    except UserError as error:
        return await _form(request, there, error)
    return await _entered(request, made, there)


@router.get("/sign-in/discord")
async def ask_discord(request: Request, there: Next = None) -> Response:
    """Redirect to Discord's page; a cookie stores what must come back."""
    identities, back = _discord(context_of(request))
    state = sessions.new_state()
    answer = RedirectResponse(identities.page(state, back), HTTPStatus.SEE_OTHER)
    answer.headers["Cache-Control"] = "no-store"
    kept = json.dumps([state, sessions.own_path(there)]).encode()
    answer.set_cookie(
        _UNDER_WAY,
        base64.urlsafe_b64encode(kept).decode(),
        max_age=_UNDER_WAY_S,
        path="/sign-in",
        secure=sessions.is_https(request),
        httponly=True,
        samesite="lax",
    )
    return answer


@router.get(_BACK)
async def enter_by_discord(
    request: Request,
    state: Annotated[str, Query(max_length=_LONGEST)] = "",
    code: Annotated[str, Query(max_length=2000)] = "",
) -> Response:
    """Sign in as the person that Discord names, if this browser asked."""
    door = context_of(request)
    identities, back = _discord(door)
    expected, there = _under_way(request)
    if not expected or not hmac.compare_digest(expected.encode(), state.encode()):
        words = "this sign-in was not begun in this browser, or too long ago; begin again"
        raise UserError("sign-in-refused", words)
    if not code:
        refused = UserError("sign-in-refused", "Discord was not allowed to say who you are")
        return await _form(request, there, refused)
    known = await identities.confirmed(code, back)
    made = await sign_in_as(door.store, door.clock, known, _label(request))
    answer = await _entered(request, made, there)
    answer.delete_cookie(
        _UNDER_WAY, path="/sign-in", secure=sessions.is_https(request), httponly=True
    )
    return answer


@router.post("/sign-out")
async def leave(request: Request, act: sessions.Act) -> Response:
    """Sign out this browser."""
    session = act.browser.session
    await sign_out(context_of(request).store, session.person.id, session.token.id)
    answer = go("/")
    sessions.forget(request, answer)
    return answer


def _require_local(request: Request) -> None:
    if not is_here(request):
        raise UserError("unknown-page", "links to sign in are for the machine that runs Podium")


def _require_token(secret: str) -> None:
    if not 1 <= len(secret) <= _LONGEST:
        raise UserError("bad-token", "paste a personal token; it begins with podium_")


async def _form(request: Request, there: str, fault: UserError | None = None) -> Response:
    values = {
        "title": "Sign in",
        "next": there,
        "by_discord": context_of(request).identities is not None,
        "is_here": is_here(request),
    }
    return await show(request, None, "acting/sign_in.html", values, fault=fault)


async def _entered(request: Request, made: NewToken, there: str) -> Response:
    """Set the new session; the browser's previous one ends."""
    earlier = await sessions.browser_of(request)
    if earlier is not None:
        session = earlier.session
        await sign_out(context_of(request).store, session.person.id, session.token.id)
    answer = go(there)
    sessions.remember(request, answer, made)
    return answer


def _under_way(request: Request) -> tuple[str, str]:
    """Return the expected state and the target path; empty when no sign-in was begun."""
    try:
        kept = json.loads(base64.urlsafe_b64decode(request.cookies.get(_UNDER_WAY, "")))
    except ValueError:
        return "", "/"
    match kept:
        case [str(state), str(there)]:
            return state, sessions.own_path(there)
        case _:
            return "", "/"


def _discord(door: WebContext) -> tuple[IdentityProvider, str]:
    if door.identities is None or door.public_url is None:
        raise UserError("unknown-page", "people do not sign in by Discord here; use a token")
    return door.identities, door.public_url + _BACK


def _label(request: Request) -> str:
    """Return the browser's own name, to tell sessions apart."""
    agent = request.headers.get("User-Agent", "")
    known = ("Edg", "OPR", "Firefox", "Chrome", "Safari", "curl")
    found = next((name for name in known if name in agent), "browser")
    systems = ("Android", "iPhone", "iPad", "Windows", "Mac OS X", "Linux")
    system = next((name for name in systems if name in agent), "")
    names = {"Edg": "Edge", "OPR": "Opera", "Mac OS X": "macOS"}
    return " on ".join(names.get(each, each) for each in (found, system) if each)
