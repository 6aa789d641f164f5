"""Answering an interaction: the first response, then edits and followups."""

from collections.abc import Callable

from tests.doubles.discord.errors import Form, refusal
from tests.doubles.discord.kinds import Callback, CommandKind, Flag, InteractionKind, MessageKind
from tests.doubles.discord.limits import CALLBACK, FOLLOWUPS
from tests.doubles.discord.model.interactions import Interaction
from tests.doubles.discord.model.messages import Message
from tests.doubles.discord.model.posting import Draft, delete, edit, post
from tests.doubles.discord.rest.calls import Answer, Call, route
from tests.doubles.discord.rules.commands import check_choices
from tests.doubles.discord.rules.components import check_modal_components
from tests.doubles.discord.wire import Json

MODAL_TITLE = 45
_SENDS = (Callback.MESSAGE, Callback.DEFERRED_MESSAGE)
_UPDATES = (Callback.DEFERRED_UPDATE, Callback.UPDATE)
_ALLOWED: dict[InteractionKind, tuple[Callback, ...]] = {
    InteractionKind.COMMAND: (*_SENDS, Callback.MODAL),
    InteractionKind.COMPONENT: (*_SENDS, *_UPDATES, Callback.MODAL),
    InteractionKind.AUTOCOMPLETE: (Callback.CHOICES,),
    InteractionKind.MODAL: _SENDS,
}


@route("POST", CALLBACK)
def answer(call: Call) -> Answer:
    interaction = _unanswered(call)
    kind, data = _callback(call, interaction), call.body.get("data") or {}
    _ANSWERS[kind](call, interaction, data)
    interaction.answer, interaction.answered = kind, call.world.clock.now()
    if call.query.get("with_response", "").lower() not in ("1", "true"):
        return None
    return _callback_response(interaction, kind)


def _unanswered(call: Call) -> Interaction:
    """Return the interaction if it may still be answered."""
    interaction = call.world.interactions.get(call.id("interaction_id"))
    if interaction is None or interaction.token != call.path["interaction_token"]:
        raise refusal(10062)
    if interaction.answer:
        raise refusal(40060)
    if call.world.clock.now() - interaction.created > call.world.limits.response_deadline:
        raise refusal(10062)
    return interaction


def _callback(call: Call, interaction: Interaction) -> Callback:
    allowed = _ALLOWED[interaction.kind]
    if interaction.kind is InteractionKind.MODAL and interaction.source:
        allowed += _UPDATES
    kind = call.body.get("type")
    if kind not in allowed:
        form = Form()
        message = f"Value must be one of {tuple(map(int, allowed))} for this interaction."
        form.wrong("type", "BASE_TYPE_CHOICES", message)
        raise form.refusal()
    return Callback(kind)


def _message_kind(interaction: Interaction) -> MessageKind:
    if interaction.kind is not InteractionKind.COMMAND:
        return MessageKind.DEFAULT
    slash = interaction.command is CommandKind.SLASH
    return MessageKind.SLASH_COMMAND if slash else MessageKind.CONTEXT_MENU_COMMAND


def _draft(interaction: Interaction, data: Json) -> Draft:
    ephemeral = bool((data.get("flags") or 0) & Flag.EPHEMERAL)
    kind = _message_kind(interaction)
    return Draft(data, interaction=interaction, ephemeral=ephemeral, kind=kind)


def _send(call: Call, interaction: Interaction, data: Json) -> None:
    draft, source = _draft(interaction, data), interaction.source
    draft.files = call.files
    if interaction.kind is InteractionKind.COMPONENT and source and not source.ephemeral:
        draft.reference = source
    interaction.reply = post(call.world.bot, interaction.channel, draft)


def _defer_message(call: Call, interaction: Interaction, data: Json) -> None:
    draft = _draft(interaction, data)
    draft.payload, draft.loading = {}, True
    interaction.reply = post(call.world.bot, interaction.channel, draft)


def _defer_update(_call: Call, interaction: Interaction, _data: Json) -> None:
    interaction.reply = interaction.source


def _update(call: Call, interaction: Interaction, data: Json) -> None:
    if interaction.source:
        interaction.reply = edit(interaction.source, data, call.files)


def _offer_choices(call: Call, interaction: Interaction, data: Json) -> None:
    form, choices = Form(), data.get("choices") or []
    check_choices(form, choices, "data.choices", call.world.limits.choices)
    form.done()
    interaction.choices = choices


def _open_modal(call: Call, interaction: Interaction, data: Json) -> None:
    form = Form()
    form.required("data.title", data.get("title"), 1, MODAL_TITLE)
    form.required("data.custom_id", data.get("custom_id"), 1, call.world.limits.custom_id)
    check_modal_components(form, data.get("components") or [], call.world.limits)
    form.done()
    interaction.form = data


_ANSWERS: dict[Callback, Callable[[Call, Interaction, Json], None]] = {
    Callback.MESSAGE: _send,
    Callback.DEFERRED_MESSAGE: _defer_message,
    Callback.DEFERRED_UPDATE: _defer_update,
    Callback.UPDATE: _update,
    Callback.CHOICES: _offer_choices,
    Callback.MODAL: _open_modal,
}


def _callback_response(interaction: Interaction, kind: Callback) -> Json:
    channel = interaction.channel
    about: Json = {
        "id": str(interaction.id),
        "type": interaction.kind,
        "channel_id": str(channel.id),
    } | ({"guild_id": str(channel.guild.id)} if channel.guild else {})
    answered: Json = {"interaction": about}
    reply = interaction.reply
    if reply and kind in (*_SENDS, Callback.UPDATE):
        about["response_message_id"] = str(reply.id)
        about["response_message_loading"] = reply.loading
        about["response_message_ephemeral"] = reply.ephemeral
    if reply and kind in (Callback.MESSAGE, Callback.UPDATE):
        answered["resource"] = {"type": kind, "message": reply.to_api()}
    return answered


def _by_token(call: Call) -> Interaction:
    token = call.path["webhook_token"]
    found = [x for x in call.world.interactions.values() if x.token == token]
    if call.id("webhook_id") != call.world.bot.id or not found:
        raise refusal(10015)
    if call.world.clock.now() - found[0].created > call.world.limits.token_lifetime:
        raise refusal(50027)
    if not found[0].answer:
        raise refusal(10015)
    return found[0]


def _sent(call: Call) -> Message:
    """Return the message, if it was sent with this interaction's token."""
    interaction, wanted = _by_token(call), call.path["message_id"]
    sent = [interaction.reply, *interaction.followups]
    if wanted == "@original":
        message = interaction.reply
    else:
        message = next((x for x in sent if x and str(x.id) == wanted), None)
    if message is None or message.deleted:
        raise refusal(10008)
    return message


@route("POST", FOLLOWUPS)
def follow_up(call: Call) -> Answer:
    """Send another message; the first one after a deferral replaces "thinking..."."""
    interaction = _by_token(call)
    reply = interaction.reply
    deferred = interaction.answer is Callback.DEFERRED_MESSAGE
    if deferred and reply and reply.loading and not reply.deleted:
        return edit(reply, call.body, call.files).to_api()
    draft = _draft(interaction, call.body)
    draft.files, draft.kind = call.files, MessageKind.DEFAULT
    if reply and not reply.deleted and not reply.ephemeral:
        draft.reference = reply
    message = post(call.world.bot, interaction.channel, draft)
    interaction.followups.append(message)
    call.world.changed()
    return message.to_api()


@route("GET", f"{FOLLOWUPS}/messages/{{message_id}}")
def get_sent(call: Call) -> Answer:
    return _sent(call).to_api()


@route("PATCH", f"{FOLLOWUPS}/messages/{{message_id}}")
def edit_sent(call: Call) -> Answer:
    return edit(_sent(call), call.body, call.files).to_api()


@route("DELETE", f"{FOLLOWUPS}/messages/{{message_id}}")
def delete_sent(call: Call) -> Answer:
    delete(_sent(call))
    return None
