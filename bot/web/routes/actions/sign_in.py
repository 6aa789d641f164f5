"""`/sign-in` and `/sign-out`: by a personal token, a link, or Discord if configured."""

import base64
import hmac
import json
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse

from bot.domain.errors import UserError
from bot.ports import IdentityProvider
from bot.services.tokens import NewToken, sign_in_as, sign_in_by_link, sign_in_by_token, sign_out
from bot.web import sessions
from bot.web.context import WebContext, context_of, is_here
from bot.web.routes.actions.page import redirect, show

router = APIRouter()

_CALLBACK = "/sign-in/discord/back"
_LINK = "/sign-in/link"
_PENDING_COOKIE = "podium-sign-in"
_PENDING_S = 600
_LONGEST = 200
Next = Annotated[str | None, Query(alias="next")]


@router.get("/sign-in")
async def sign_in_page(request: Request, target: Next = None) -> Response:
    """Show the ways to sign in; redirect someone who is signed in."""
    if await sessions.browser_of(request) is not None:
        return redirect(sessions.local_path(target))
    return await _form(request, sessions.local_path(target))


@router.get(_LINK)
async def link_page(
    request: Request, key: Annotated[str, Query(max_length=_LONGEST)] = ""
) -> Response:
    """Show the page of `podium up`'s link; only its button uses it, because previews open links."""
    _require_local(request)
    values = {"title": "Sign in", "key": key, "back": "/"}
    return await show(request, None, "actions/sign_in_by_link.html", values)


@router.post(_LINK)
async def sign_in_with_link(request: Request) -> Response:
    """Sign in as the user of this machine, by a key that works once."""
    _require_local(request)
    sessions.require_same_origin(request)
    context = context_of(request)
    async with sessions.read_form(request) as fields:
        key = fields.text("key")
    _, target = _pending_sign_in(request)
    try:
        token = await sign_in_by_link(
            context.store, context.clock, context.sign_in_links, key, label=_label(request)
        )
    except UserError as error:
        return await _form(request, target, error)
    return await _signed_in(request, token, target)


@router.post("/sign-in")
async def sign_in_with_token(request: Request) -> Response:
    """Sign in by a personal token, with a new session for this browser."""
    sessions.require_same_origin(request)
    context = context_of(request)
    async with sessions.read_form(request) as fields:
        target, secret = sessions.local_path(fields.text("next")), fields.text("token")
    try:
        _require_token(secret)
        token = await sign_in_by_token(context.store, context.clock, secret, _label(request))
    except UserError as error:
        return await _form(request, target, error)
    return await _signed_in(request, token, target)


@router.get("/sign-in/stamp")
async def stamp(request: Request) -> Response:
    """Return the stamp of this browser's forms, which a page requests before it sends a form."""
    sessions.require_same_origin(request)
    browser = await sessions.browser_of(request)
    if browser is None:
        raise UserError("signed-out", "you are not signed in; sign in and try again")
    return JSONResponse({"stamp": browser.stamp}, headers={"Cache-Control": "no-store"})


@router.get("/sign-in/discord")
async def redirect_to_discord(request: Request, target: Next = None) -> Response:
    """Redirect to Discord's page; a cookie stores the state that Discord must return."""
    identities, callback = _discord(context_of(request))
    state = sessions.new_state()
    response = RedirectResponse(identities.page(state, callback), HTTPStatus.SEE_OTHER)
    response.headers["Cache-Control"] = "no-store"
    _set_pending(request, response, state, sessions.local_path(target))
    return response


def _set_pending(request: Request, response: Response, state: str, target: str) -> None:
    """Store in the browser where the sign-in leads, and the state, which Discord returns."""
    response.set_cookie(
        _PENDING_COOKIE,
        base64.urlsafe_b64encode(json.dumps([state, target]).encode()).decode(),
        max_age=_PENDING_S,
        path="/sign-in",
        secure=sessions.is_https(request),
        httponly=True,
        samesite="lax",
    )


@router.get(_CALLBACK)
async def discord_callback(
    request: Request,
    state: Annotated[str, Query(max_length=_LONGEST)] = "",
    code: Annotated[str, Query(max_length=2000)] = "",
) -> Response:
    """Sign in as the person that Discord names, if this browser started the sign-in."""
    context = context_of(request)
    identities, callback = _discord(context)
    expected, target = _pending_sign_in(request)
    if not expected or not hmac.compare_digest(expected.encode(), state.encode()):
        message = "this sign-in was started in another browser or too long ago; start again"
        raise UserError("sign-in-refused", message)
    if not code:
        refused = UserError("sign-in-refused", "you did not allow Discord to share your account")
        return await _form(request, target, refused)
    identity = await identities.confirmed(code, callback)
    token = await sign_in_as(context.store, context.clock, identity, _label(request))
    return await _signed_in(request, token, target)


@router.post("/sign-out")
async def sign_out_browser(request: Request, submitted: sessions.SmallForm) -> Response:
    """Sign out this browser."""
    session = submitted.browser.session
    await sign_out(context_of(request).store, session.person.id, session.token.id)
    response = redirect("/")
    sessions.delete_cookie(request, response)
    return response


def _require_local(request: Request) -> None:
    if not is_here(request):
        raise UserError("unknown-page", "sign-in links work only on the machine that runs Podium")


def _require_token(secret: str) -> None:
    if not 1 <= len(secret) <= _LONGEST:
        raise UserError("bad-token", "paste a personal token; it begins with podium_")


async def _form(request: Request, target: str, fault: UserError | None = None) -> Response:
    values = {
        "title": "Sign in",
        "next": target,
        "back": target,
        "by_discord": context_of(request).identities is not None,
        "is_here": is_here(request),
    }
    response = await show(request, None, "actions/sign_in.html", values, fault=fault)
    if is_here(request):  # for the link that `podium up` prints
        _set_pending(request, response, "", target)
    return response


async def _signed_in(request: Request, token: NewToken, target: str) -> Response:
    """Redirect with the new session's cookie, and end the browser's previous session."""
    earlier = await sessions.browser_of(request)
    if earlier is not None:
        session = earlier.session
        await sign_out(context_of(request).store, session.person.id, session.token.id)
    response = redirect(target)
    sessions.set_cookie(request, response, token)
    response.delete_cookie(
        _PENDING_COOKIE, path="/sign-in", secure=sessions.is_https(request), httponly=True
    )
    return response


def _pending_sign_in(request: Request) -> tuple[str, str]:
    """Return the expected state and the target path; empty when no sign-in was begun."""
    try:
        pending = json.loads(base64.urlsafe_b64decode(request.cookies.get(_PENDING_COOKIE, "")))
    except ValueError:
        return "", "/"
    match pending:
        case [str(state), str(target)]:
            return state, sessions.local_path(target)
        case _:
            return "", "/"


def _discord(context: WebContext) -> tuple[IdentityProvider, str]:
    if context.identities is None or context.public_url is None:
        raise UserError("unknown-page", "sign-in with Discord is not available here; use a token")
    return context.identities, context.public_url + _CALLBACK


def _label(request: Request) -> str:
    """Return the browser and its system, such as `Firefox on Linux`, to tell sessions apart."""
    agent = request.headers.get("User-Agent", "")
    known = ("Edg", "OPR", "Firefox", "Chrome", "Safari", "curl")
    browser = next((name for name in known if name in agent), "browser")
    systems = ("Android", "iPhone", "iPad", "Windows", "Mac OS X", "Linux")
    system = next((name for name in systems if name in agent), "")
    names = {"Edg": "Edge", "OPR": "Opera", "Mac OS X": "macOS"}
    return " on ".join(names.get(each, each) for each in (browser, system) if each)
