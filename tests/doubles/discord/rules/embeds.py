"""The checks of embeds."""

import re
from collections.abc import Sized
from typing import Any

from tests.doubles.discord.errors import Form
from tests.doubles.discord.limits import Limits
from tests.doubles.discord.wire import Json

TITLE, DESCRIPTION, FOOTER, AUTHOR, FIELDS, FIELD_NAME, FIELD_VALUE = (
    256, 4096, 2048, 256, 25, 256, 1024,
)  # fmt: skip
_VISIBLE = (
    "title", "description", "fields", "footer", "author", "image", "thumbnail", "video",
)  # fmt: skip
_URL = re.compile(r"(https?|attachment)://")


def check_embeds(form: Form, embeds: list[Json], limits: Limits) -> None:
    form.at_most("embeds", embeds, limits.embeds)
    total = sum(_check(form, embed, f"embeds.{i}") for i, embed in enumerate(embeds))
    if total > limits.embed_total:
        message = f"Embed size exceeds maximum size of {limits.embed_total}"
        form.wrong("embeds", "MAX_EMBED_SIZE_EXCEEDED", message)


def _check(form: Form, embed: Json, path: str) -> int:
    """Check one embed; return how many of its characters count toward the limit."""
    texts: list[tuple[str, int]] = [
        ("title", TITLE),
        ("description", DESCRIPTION),
        ("footer.text", FOOTER),
        ("author.name", AUTHOR),
    ]
    total = 0
    for key, most in texts:
        value: Sized | None = _at(embed, key)
        form.at_most(f"{path}.{key}", value, most)
        total += len(value or "")
    if not any(embed.get(key) for key in _VISIBLE):
        form.wrong(f"{path}.description", "BASE_TYPE_REQUIRED", "This field is required")
    _check_urls(form, embed, path)
    return total + _check_fields(form, embed.get("fields") or [], f"{path}.fields")


def _check_fields(form: Form, fields: list[Json], path: str) -> int:
    form.at_most(path, fields, FIELDS)
    total = 0
    for i, item in enumerate(fields):
        for key, most in (("name", FIELD_NAME), ("value", FIELD_VALUE)):
            form.required(f"{path}.{i}.{key}", item.get(key), 1, most)
            total += len(item.get(key) or "")
    return total


def _check_urls(form: Form, embed: Json, path: str) -> None:
    for key in ("url", "image.url", "thumbnail.url"):
        url = _at(embed, key)
        if url and not _URL.match(url):
            message = "Scheme must be one of ('http', 'https')."
            form.wrong(f"{path}.{key}", "URL_TYPE_INVALID_SCHEME", message)


def _at(embed: Json, key: str) -> str | None:
    value: Any = embed
    for part in key.split("."):
        value = (value or {}).get(part)
    return str(value) if value else None
