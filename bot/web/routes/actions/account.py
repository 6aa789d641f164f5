"""`/me`: the user's tokens, browsers, notifications, newest submissions and current limits."""

from datetime import timedelta
from typing import Any

from fastapi import APIRouter, Request, Response

from bot.domain.accounts import TokenScope, require_acting
from bot.domain.errors import UserError
from bot.domain.ids import TokenId
from bot.domain.notifications import NotificationKind
from bot.reports.admin import rules_of_person
from bot.reports.history import history_table
from bot.services import accounts, history, lookup, notify, tokens
from bot.services.rules import submission_rules
from bot.web.context import context_of
from bot.web.routes.actions.page import Number, SignedIn, redirect, show
from bot.web.sessions import Browser, SmallForm, parse_number

router = APIRouter(prefix="/me")

_DISCORD = "discord:"
"""The prefix of the identities that get notifications by direct message."""
_NEWEST = 10
_MOST_DAYS = 3650
_SCOPES = {"submit": TokenScope.PERSON, "read": TokenScope.READ, "admin": TokenScope.ADMIN}
_NOTIFICATIONS = (
    (NotificationKind.COMPETITION, "A competition opens or closes"),
    (NotificationKind.DEADLINE, "A board closes within 24 hours"),
    (NotificationKind.LOST_RANK, "Another person has taken your rank in the top ten"),
    (NotificationKind.RECORD, "A board has a new best time"),
    (NotificationKind.RESULT, "A run of yours that took two minutes or more has ended"),
)


@router.get("")
async def account(request: Request, browser: SignedIn) -> Response:
    """Show the user's account."""
    return await _page(request, browser)


@router.post("/name")
async def name(request: Request, submitted: SmallForm) -> Response:
    """Change the display name."""
    require_acting(submitted.caller)
    person, typed = submitted.browser.session.person, submitted.fields.text("name")
    try:
        await accounts.choose_name(context_of(request).store, person, typed)
    except UserError as error:
        return await _page(request, submitted.browser, fault=error, typed_name=typed)
    return redirect("/me", "renamed")


@router.post("/tokens")
async def create_token(request: Request, submitted: SmallForm) -> Response:
    """Create a token and show it once; never with more rights than this session."""
    require_acting(submitted.caller)
    context, fields = context_of(request), submitted.fields
    try:
        made = await tokens.create_token_for_caller(
            context.store,
            context.clock,
            submitted.caller,
            fields.text("label"),
            scope=_SCOPES.get(fields.text("scope"), TokenScope.PERSON),
            lifetime=timedelta(days=_days(fields.text("days"))),
        )
    except UserError as error:
        return await _page(request, submitted.browser, fault=error)
    return await _page(request, submitted.browser, made=made)


def _days(text: str) -> int:
    days = parse_number(text, _MOST_DAYS)
    if days is None:
        raise UserError("bad-days", f"a token lasts 1 to {_MOST_DAYS} days")
    return days


@router.post("/tokens/{number}/revoke")
async def revoke(request: Request, submitted: SmallForm, number: Number) -> Response:
    """Revoke a token; programs that use it, and browsers that it signed in, are refused at once."""
    require_acting(submitted.caller)
    own = {each.id for each in await context_of(request).store.tokens.of(submitted.caller.person)}
    if TokenId(number) not in own:
        raise UserError("unknown-token", f"you have no token {number}")
    await tokens.revoke_token(context_of(request).store, submitted.caller.person, TokenId(number))
    return redirect("/me", "revoked")


@router.post("/sessions/others/end")
async def end_others(request: Request, submitted: SmallForm) -> Response:
    """Sign out every browser except this one."""
    await tokens.sign_out_elsewhere(context_of(request).store, submitted.browser.session)
    return redirect("/me", "ended")


@router.post("/sessions/{number}/end")
async def end(request: Request, submitted: SmallForm, number: Number) -> Response:
    """Sign out one browser."""
    await tokens.sign_out(context_of(request).store, submitted.caller.person, TokenId(number))
    return redirect("/me", "ended")


@router.post("/notices")
async def notices(request: Request, submitted: SmallForm) -> Response:
    """Set the notifications that the user gets by direct message; none by default."""
    require_acting(submitted.caller)
    identity = submitted.browser.session.person.identity
    if not identity.startswith(_DISCORD):
        raise UserError(
            "no-way", "notifications are sent on Discord, and this is no Discord account"
        )
    ticked = set(submitted.fields.texts("news"))
    await notify.set_notifications(
        context_of(request).store, identity, {each: each in ticked for each in NotificationKind}
    )
    return redirect("/me", "notices")


async def _page(
    request: Request,
    browser: Browser,
    *,
    fault: UserError | None = None,
    made: object = None,
    typed_name: str | None = None,
) -> Response:
    values = {"title": "Your account", "made": made, **await _values(request, browser)}
    values["typed_name"] = browser.session.person.name if typed_name is None else typed_name
    return await show(request, browser, "actions/me.html", values, fault=fault)


async def _values(request: Request, browser: Browser) -> dict[str, Any]:
    context, person = context_of(request), browser.session.person
    caller = browser.session.caller
    entries = await history.submission_history(context.store, caller, limit=_NEWEST)
    rules = await submission_rules(context.store)
    boards = await lookup.visible_boards(context.store, caller)
    return {
        "person": person,
        "is_creator": caller.is_creator,
        "tokens": await context.store.tokens.of(person.id),
        "sessions": await tokens.sessions_of(context.store, context.clock, person.id),
        "this": browser.session.token.id,
        "news": _NOTIFICATIONS,
        "wanted": await context.store.listeners.kinds(person.identity),
        "delivered": person.identity.startswith(_DISCORD),
        "conversation": await context.store.displays.conversation(person.id),
        "past": list(zip(entries, history_table(entries).rows, strict=True)),
        "limits": rules_of_person(rules, person.id, {each.name for each in boards}),
        "ban": await context.store.moderation.ban_of(person.id),
        "pause": rules.pause,
        "own": [each for each in boards if each.creator == person.id],
    }
