"""The checks of messages."""

from tests.doubles.discord.errors import Form, refusal
from tests.doubles.discord.kinds import Flag
from tests.doubles.discord.limits import Limits
from tests.doubles.discord.model.files import File
from tests.doubles.discord.model.messages import Message
from tests.doubles.discord.rules.components import check_message_components
from tests.doubles.discord.rules.embeds import check_embeds
from tests.doubles.discord.rules.mentions import check_allowed_mentions
from tests.doubles.discord.wire import Json

NONCE = 25
FIRST_SNOWFLAKE = 1000
"""A smaller attachment id is the number of a file in the same request."""


def check_message(
    limits: Limits, payload: Json, files: list[File], old: Message | None = None
) -> None:
    """Raise ApiError if Discord would refuse this body; `old` is the message that it edits."""
    form = Form()
    content, embeds = payload.get("content"), payload.get("embeds") or []
    v2 = bool(((payload.get("flags") or 0) | (old.flags if old else 0)) & Flag.COMPONENTS_V2)
    form.at_most("content", content, limits.content)
    check_embeds(form, embeds, limits)
    check_message_components(form, payload.get("components") or [], limits, v2=v2)
    check_allowed_mentions(form, payload.get("allowed_mentions"))
    form.at_most("nonce", str(payload.get("nonce") or ""), NONCE)
    count = _kept(payload, old) + len(files)
    form.at_most("attachments", range(count), limits.attachments)
    if v2 and (content or embeds):
        code = "MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH_COMPONENTS_V2"
        message = "The 'content' and 'embeds' fields cannot be used with components v2"
        form.wrong("content", code, message)
    form.done()
    if not count and not _says_something(payload, old, v2=v2):
        raise refusal(50006)


def _kept(payload: Json, old: Message | None) -> int:
    if payload.get("attachments") is None:
        return len(old.files) if old else 0
    return sum(int(item["id"]) > FIRST_SNOWFLAKE for item in payload["attachments"])


def _says_something(payload: Json, old: Message | None, *, v2: bool) -> bool:
    new: Json = {"content": "", "embeds": [], "components": []}
    if old:
        new = {"content": old.content, "embeds": old.embeds, "components": old.components}
    new |= {key: payload[key] for key in new if key in payload}
    text = (new["content"] or "").strip()
    return bool(text or new["embeds"] or (v2 and new["components"]))
