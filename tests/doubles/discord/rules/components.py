"""The checks of rows, buttons, menus and modals."""

from dataclasses import dataclass, field
from typing import Any

from tests.doubles.discord.errors import Form
from tests.doubles.discord.kinds import LINK, PREMIUM, SELECTS
from tests.doubles.discord.kinds import ComponentKind as Kind
from tests.doubles.discord.limits import Limits
from tests.doubles.discord.model.components import walk
from tests.doubles.discord.rules.fields import FIELD_CHECKS
from tests.doubles.discord.wire import Json

V2_COMPONENTS, V2_TEXT = 40, 4000
IN_ROW = 5

_TOP_OF_MESSAGE = (Kind.ROW,)
_TOP_OF_MODAL = (Kind.ROW, Kind.LABEL, Kind.TEXT_DISPLAY)
_TOP_OF_V2 = (
    Kind.ROW,
    Kind.SECTION,
    Kind.TEXT_DISPLAY,
    Kind.GALLERY,
    Kind.FILE,
    Kind.SEPARATOR,
    Kind.CONTAINER,
)
_IN_CONTAINER = _TOP_OF_V2[:-1]
_INPUTS = (
    Kind.TEXT_INPUT,
    Kind.FILE_UPLOAD,
    Kind.RADIO_GROUP,
    Kind.CHECKBOX_GROUP,
    Kind.CHECKBOX,
)
_FILLED_IN: dict[int, Json] = {
    Kind.CONTAINER: {"accent_color": None, "spoiler": False},
    Kind.SEPARATOR: {"spacing": 1, "divider": True},
    Kind.THUMBNAIL: {"description": None, "spoiler": False},
    **{kind: {"min_values": 1, "max_values": 1} for kind in SELECTS},
}
"""Fields that Discord adds to a component if they are missing."""


@dataclass
class _Visit:
    """One walk over the components of a message or a modal."""

    form: Form
    limits: Limits
    modal: bool
    last_id: int
    custom_ids: set[str] = field(default_factory=set)

    def __call__(self, part: Json, path: str, allowed: tuple[Kind, ...]) -> None:
        kind: Any = part.get("type")
        for empty in [key for key, value in part.items() if value is None]:
            del part[empty]
        if kind not in allowed:
            message = f'Value of field "type" must be one of {tuple(map(int, allowed))}.'
            self.form.wrong(f"{path}.type", "UNION_TYPE_CHOICES", message)
            return
        self._complete(part)
        if kind in (*SELECTS, *_INPUTS) or (
            kind == Kind.BUTTON and part.get("style") not in (LINK, PREMIUM)
        ):
            self._custom_id(part, path)
        if kind in FIELD_CHECKS:
            FIELD_CHECKS[kind](self.form, part, path, self.limits)
        self._children(part, path)

    def _complete(self, part: Json) -> None:
        if not part.get("id"):
            self.last_id += 1
            part["id"] = self.last_id
        if not self.modal:
            for key, value in _FILLED_IN.get(part["type"], {}).items():
                part.setdefault(key, value)

    def _custom_id(self, part: Json, path: str) -> None:
        custom_id = part.get("custom_id") or ""
        where = f"{path}.custom_id"
        self.form.required(where, custom_id, 1, self.limits.custom_id)
        if custom_id in self.custom_ids:
            message = "Component custom id cannot be duplicated"
            self.form.wrong(where, "COMPONENT_CUSTOM_ID_DUPLICATED", message)
        self.custom_ids.add(custom_id)

    def _children(self, part: Json, path: str) -> None:
        children: list[Json] = part.get("components", [])
        allowed: tuple[Kind, ...] = _IN_CONTAINER
        if part["type"] == Kind.ROW:
            self._row(children, f"{path}.components")
            allowed = (Kind.TEXT_INPUT,) if self.modal else (Kind.BUTTON, *SELECTS)
        elif part["type"] == Kind.SECTION:
            allowed = (Kind.TEXT_DISPLAY,)
        for i, child in enumerate(children):
            self(child, f"{path}.components.{i}", allowed)
        if part["type"] == Kind.LABEL:
            self(part.get("component") or {}, f"{path}.component", (*SELECTS, *_INPUTS))
        if part.get("accessory"):
            self(part["accessory"], f"{path}.accessory", (Kind.BUTTON, Kind.THUMBNAIL))

    def _row(self, children: list[Json], path: str) -> None:
        wide = any(child.get("type") != Kind.BUTTON for child in children)
        if not 1 <= len(children) <= IN_ROW or (wide and len(children) > 1):
            message = "Must be between 1 and 5 in length (a select takes the whole row)."
            self.form.wrong(path, "BASE_TYPE_BAD_LENGTH", message)


def check_message_components(form: Form, parts: list[Json], limits: Limits, *, v2: bool) -> None:
    if v2:
        _check_v2_totals(form, parts)
    else:
        form.at_most("components", parts, limits.rows)
    _check_each(form, parts, limits, modal=False, top=_TOP_OF_V2 if v2 else _TOP_OF_MESSAGE)


def check_modal_components(form: Form, parts: list[Json], limits: Limits) -> None:
    form.between("components", parts, 1, limits.rows)
    _check_each(form, parts, limits, modal=True, top=_TOP_OF_MODAL)


def _check_each(
    form: Form, parts: list[Json], limits: Limits, *, modal: bool, top: tuple[Kind, ...]
) -> None:
    last_id = max((part.get("id") or 0 for part in walk(parts)), default=0)
    visit = _Visit(form, limits, modal, last_id)
    for i, part in enumerate(parts):
        visit(part, f"components.{i}", top)


def _check_v2_totals(form: Form, parts: list[Json]) -> None:
    every = list(walk(parts))
    if len(every) > V2_COMPONENTS:
        message = "The total number of components must be 40 or fewer"
        form.wrong("components", "COMPONENT_MAX_TOTAL_COMPONENTS_EXCEEDED", message)
    displays = [part for part in every if part.get("type") == Kind.TEXT_DISPLAY]
    if sum(len(part.get("content") or "") for part in displays) > V2_TEXT:
        message = "The total text must be 4000 or fewer characters"
        form.wrong("components", "COMPONENT_DISPLAYABLE_TEXT_SIZE_EXCEEDED", message)
