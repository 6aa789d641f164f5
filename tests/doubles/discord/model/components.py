"""Buttons and menus of a message, as a person finds and uses them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.doubles.discord.errors import DriverError

if TYPE_CHECKING:
    from tests.doubles.discord.model.messages import Message
    from tests.doubles.discord.wire import Json


def walk(components: Iterable[Json] | None) -> Iterator[Json]:
    """All components of a tree, depth first: rows, sections, containers, labels."""
    for component in components or ():
        yield component
        yield from walk(component.get("components"))
        for key in ("accessory", "component"):
            if isinstance(component.get(key), dict):
                yield from walk([component[key]])


@dataclass(eq=False, repr=False)
class Component:
    """A button or a menu of a message."""

    message: Message
    raw: Json

    @property
    def kind(self) -> int:
        return int(self.raw["type"])

    @property
    def custom_id(self) -> str | None:
        return self.raw.get("custom_id")

    @property
    def label(self) -> str | None:
        return self.raw.get("label")

    @property
    def placeholder(self) -> str | None:
        return self.raw.get("placeholder")

    @property
    def style(self) -> int | None:
        return self.raw.get("style")

    @property
    def disabled(self) -> bool:
        return bool(self.raw.get("disabled"))

    @property
    def options(self) -> list[Json]:
        return list(self.raw.get("options", ()))

    @property
    def chosen(self) -> list[str]:
        """The labels of the options that are selected by default."""
        return [option["label"] for option in self.options if option.get("default")]


def find_component(
    items: list[Component], key: str, text: str | None, custom_id: str | None
) -> Component:
    """Return the only component with this label or placeholder, and this custom id if given."""
    found = [
        item
        for item in items
        if (text is None or item.raw.get(key) == text) and custom_id in (None, item.custom_id)
    ]
    if len(found) != 1:
        there = [(item.raw.get(key), item.custom_id) for item in items]
        raise DriverError(f"{len(found)} components match {text or custom_id!r} in {there}")
    return found[0]
