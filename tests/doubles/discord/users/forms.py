"""Filling in a modal as a client lets a person do it."""

from collections.abc import Callable, Iterable, Mapping
from typing import cast

from tests.doubles.discord.errors import DriverError
from tests.doubles.discord.kinds import ComponentKind as Kind
from tests.doubles.discord.kinds import OptionKind
from tests.doubles.discord.model.files import File
from tests.doubles.discord.users.filling import Filling, Value
from tests.doubles.discord.wire import Json

TEXT = 4000
Field = object
"""What a person puts into a field: text, a file, or a list of options."""
Fill = Callable[[Filling, Json, Field], Json]


def fill(form: Json, fields: Mapping[str, Field], filling: Filling) -> list[Json]:
    """Return the components that the client sends; `fields` has custom ids or labels as keys."""
    left = dict(fields)
    sent = [_fill_top(top, left, filling) for top in form["components"]]
    if left:
        raise DriverError(f"no such modal fields: {list(left)}")
    return sent


def _fill_top(top: Json, fields: dict[str, Field], filling: Filling) -> Json:
    if top["type"] == Kind.TEXT_DISPLAY:
        return {"type": top["type"], "id": top["id"]}
    labelled = top["type"] == Kind.LABEL
    inner: Json = top["component"] if labelled else top["components"][0]
    label = top.get("label") or inner.get("label") or ""
    value: Field = inner.get("value")
    for key in (inner["custom_id"], label):
        value = fields.pop(key, value)
    item: Json = {"type": inner["type"], "id": inner["id"], "custom_id": inner["custom_id"]}
    item |= _FILLS.get(inner["type"], _fill_menu)(filling, inner | {"name": label}, value)
    content = {"component": item} if labelled else {"components": [item]}
    return {"type": top["type"], "id": top["id"]} | content


def _required(part: Json) -> bool:
    return bool(part.get("required", True))


def _fill_text(_filling: Filling, part: Json, value: Field) -> Json:
    text = str(value or "")
    low, high = part.get("min_length") or 0, part.get("max_length") or TEXT
    missing = _required(part) and not text
    if missing or (text and not low <= len(text) <= high):
        raise DriverError(f"field {part['name']!r}: {len(text)} characters not accepted")
    return {"value": text}


def _fill_files(filling: Filling, part: Json, value: Field) -> Json:
    files = [value] if isinstance(value, File) else list(_several(value))
    low = part.get("min_values", 1) if _required(part) else 0
    if not low <= len(files) <= part.get("max_values", 1):
        raise DriverError(f"field {part['name']!r}: {len(files)} files not accepted")
    option: Json = {"type": OptionKind.ATTACHMENT, "name": part["name"]}
    return {"values": [filling.value(option, file) for file in files]}


def _fill_one(_filling: Filling, _part: Json, value: Field) -> Json:
    return {"value": value}


def _fill_menu(filling: Filling, part: Json, value: Field) -> Json:
    wanted = {} if _required(part) else {"min_values": 0}
    if part["type"] == Kind.CHECKBOX_GROUP:
        wanted.setdefault("min_values", part.get("min_values", 1))
        wanted["max_values"] = part.get("max_values", len(part["options"]))
    if value is None:
        value = [option["value"] for option in part.get("options", ()) if option.get("default")]
    return {"values": filling.chosen(part | wanted, _several(value))}


def _several(value: Field) -> Iterable[Value]:
    """Return a value as a list of values; a text is one value."""
    if value is None:
        return ()
    if isinstance(value, list | tuple):
        return cast("Iterable[Value]", value)
    return (cast("Value", value),)


_FILLS: dict[int, Fill] = {
    Kind.TEXT_INPUT: _fill_text,
    Kind.FILE_UPLOAD: _fill_files,
    Kind.RADIO_GROUP: _fill_one,
    Kind.CHECKBOX: _fill_one,
}
