"""`/me`: the user's account: tokens, browsers, notices, submissions, current limits."""

from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response

from bot.domain.accounts import TokenScope, require_acting
from bot.domain.errors import UserError
from bot.domain.ids import TokenId
from bot.domain.notifications import NotificationKind
from bot.domain.records import NamedLimit
from bot.domain.submission import span
from bot.reports.history import history_table
from bot.services import history, lookup, moderation, notify, tokens
from bot.web.context import context_of
from bot.web.routes.actions.page import SignedIn, go, show
from bot.web.sessions import Act, Browser, number_in

router = APIRouter(prefix="/me")

_Number = Annotated[int, Path(ge=1, le=2**53)]
_DELIVERED = "discord:"
"""The prefix of the identities that get notifications by direct message."""
_NEWEST = 10
_MOST_DAYS = 3650
_SCOPES = {"submit": TokenScope.PERSON, "read": TokenScope.READ, "admin": TokenScope.ADMIN}
_NEWS = (
    (NotificationKind.DEADLINE, "A board closes within 24 hours"),
    (NotificationKind.LOST_RANK, "Somebody has taken your rank among the first ten"),
    (NotificationKind.RECORD, "A board has a new best time"),
)


@router.get("")
async def account(request: Request, browser: SignedIn) -> Response:
    """Show the user's account."""
    return await _page(request, browser)


@router.post("/tokens")
async def make(request: Request, act: Act) -> Response:
    """Create a token and show it once; never with more rights than this session."""
    require_acting(act.caller)
    door, fields = context_of(request), act.fields
    try:
        made = await tokens.create_token_for_caller(
            door.store,
            door.clock,
            act.caller,
            fields.text("label"),
            scope=_SCOPES.get(fields.text("scope"), TokenScope.PERSON),
            lifetime=timedelta(days=_days(fields.text("days"))),
        )
    except UserError as error:
        return await _page(request, act.browser, fault=error)
    return await _page(request, act.browser, made=made)


def _days(text: str) -> int:
    days = number_in(text, _MOST_DAYS)
    if days is None:
        raise UserError("bad-days", f"a token lasts 1 to {_MOST_DAYS} days")
    return days


@router.post("/tokens/{number}/revoke")
async def revoke(request: Request, act: Act, number: _Number) -> Response:
    """Revoke a token: its programs, and the browsers it signed in, are refused from now on."""
    require_acting(act.caller)
    own = {each.id for each in await context_of(request).store.tokens.of(act.caller.person)}
    if TokenId(number) not in own:
        raise UserError("unknown-token", f"you have no token {number}")
    await tokens.revoke_token(context_of(request).store, act.caller.person, TokenId(number))
    return go("/me", "revoked")


@router.post("/sessions/others/end")
async def end_others(request: Request, act: Act) -> Response:
    """Sign out every browser but this one."""
    await tokens.sign_out_elsewhere(context_of(request).store, act.browser.session)
    return go("/me", "ended")


@router.post("/sessions/{number}/end")
async def end(request: Request, act: Act, number: _Number) -> Response:
    """Sign out one browser."""
    await tokens.sign_out(context_of(request).store, act.caller.person, TokenId(number))
    return go("/me", "ended")


@router.post("/notices")
async def notices(request: Request, act: Act) -> Response:
    """Set what the user is told of by direct message; by default nothing."""
    require_acting(act.caller)
    identity = act.browser.session.person.identity
    if not identity.startswith(_DELIVERED):
        raise UserError("no-way", "news goes out by Discord, and you have no account of Discord")
    ticked = set(act.fields.texts("news"))
    await notify.set_notifications(
        context_of(request).store, identity, {each: each in ticked for each in NotificationKind}
    )
    return go("/me", "notices")


async def _page(
    request: Request, browser: Browser, *, fault: UserError | None = None, made: object = None
) -> Response:
    values = {"title": "Your account", "made": made, **await _values(request, browser)}
    return await show(request, browser, "acting/me.html", values, fault=fault)


async def _values(request: Request, browser: Browser) -> dict[str, Any]:
    door, person = context_of(request), browser.session.person
    caller = browser.session.caller
    past = await history.submission_history(door.store, caller, limit=_NEWEST)
    rules = await moderation.submission_rules(door.store)
    seen = await lookup.visible_boards(door.store, caller)
    names = {None, *(each.name for each in seen)}
    return {
        "person": person,
        "is_creator": caller.is_creator,
        "tokens": await door.store.tokens.of(person.id),
        "sessions": await tokens.sessions_of(door.store, door.clock, person.id),
        "this": browser.session.token.id,
        "news": _NEWS,
        "wanted": await door.store.listeners.kinds(person.identity),
        "delivered": person.identity.startswith(_DELIVERED),
        "past": list(zip(past, history_table(past).rows, strict=True)),
        "limits": [_words(each) for each in rules.limits if each.board in names],
        "ban": await door.store.moderation.ban_of(person.id),
        "pause": rules.pause,
        "own": [each for each in seen if each.creator == person.id],
    }


def _words(named: NamedLimit) -> str:
    limit = named.limit
    mode = f"{limit.mode} " if limit.mode else ""
    noun = "submission" if limit.most == 1 else "submissions"
    where = named.board or "all leaderboards together"
    return f"At most {limit.most} {mode}{noun} to {where} in {span(limit.window)}"
