"""The checks of a component's fields, by its kind."""

from collections.abc import Callable

from tests.doubles.discord.errors import Form
from tests.doubles.discord.kinds import LINK, PREMIUM, SELECTS
from tests.doubles.discord.kinds import ComponentKind as Kind
from tests.doubles.discord.limits import Limits
from tests.doubles.discord.wire import Json

Check = Callable[[Form, Json, str, Limits], None]

BUTTON_LABEL, URL, PLACEHOLDER, OPTION_TEXT, VALUES = 80, 512, 150, 100, 25
INPUT_LABEL, INPUT_PLACEHOLDER, INPUT_TEXT = 45, 100, 4000


def _check_button(form: Form, part: Json, path: str, _limits: Limits) -> None:
    form.at_most(f"{path}.label", part.get("label"), BUTTON_LABEL)
    form.at_most(f"{path}.url", part.get("url"), URL)
    if (part.get("style") == LINK) != bool(part.get("url")):
        message = "Only link buttons have, and must have, a url"
        form.wrong(f"{path}.url", "BUTTON_COMPONENT_INVALID_URL", message)
    if not part.get("label") and not part.get("emoji") and part.get("style") != PREMIUM:
        form.wrong(path, "BUTTON_COMPONENT_EMPTY", "A label or emoji is required")


def _check_select(form: Form, part: Json, path: str, limits: Limits) -> None:
    low, high = part.get("min_values", 1), part.get("max_values", 1)
    form.at_most(f"{path}.placeholder", part.get("placeholder"), PLACEHOLDER)
    if not 0 <= low <= VALUES or not 1 <= high <= VALUES or low > high:
        message = "min_values 0..25, max_values 1..25, min <= max"
        form.wrong(f"{path}.min_values", "NUMBER_TYPE_RANGE", message)
    if part["type"] == Kind.STRING_SELECT:
        _check_options(form, part, path, limits)


def _check_options(form: Form, part: Json, path: str, limits: Limits) -> None:
    options: list[Json] = part.get("options", [])
    form.required(f"{path}.options", options, 1, limits.select_options)
    if part.get("max_values", 1) > len(options):
        message = f"int value should be less than or equal to {len(options)}."
        form.wrong(f"{path}.max_values", "NUMBER_TYPE_MAX", message)
    for i, option in enumerate(options):
        where = f"{path}.options.{i}"
        form.required(f"{where}.label", option.get("label"), 1, OPTION_TEXT)
        form.required(f"{where}.value", option.get("value"), 1, OPTION_TEXT)
        form.at_most(f"{where}.description", option.get("description"), OPTION_TEXT)
    if len({option.get("value") for option in options}) != len(options):
        message = "The specified option value is already used"
        form.wrong(f"{path}.options", "SELECT_COMPONENT_OPTION_VALUE_DUPLICATED", message)


def _check_text_input(form: Form, part: Json, path: str, _limits: Limits) -> None:
    """Check a text input; its label is required in a row, optional in a label component."""
    label = part.get("label")
    if ".components." in path:
        form.required(f"{path}.label", label, 1, INPUT_LABEL)
    else:
        form.between(f"{path}.label", label, 1, INPUT_LABEL)
    form.at_most(f"{path}.placeholder", part.get("placeholder"), INPUT_PLACEHOLDER)
    form.at_most(f"{path}.value", part.get("value"), INPUT_TEXT)
    low, high = part.get("min_length") or 0, part.get("max_length") or INPUT_TEXT
    if not 0 <= low <= INPUT_TEXT or not 1 <= high <= INPUT_TEXT:
        form.wrong(f"{path}.max_length", "NUMBER_TYPE_RANGE", "Must be between 1 and 4000.")


def _check_label(form: Form, part: Json, path: str, _limits: Limits) -> None:
    form.required(f"{path}.label", part.get("label"), 1, INPUT_LABEL)
    form.at_most(f"{path}.description", part.get("description"), OPTION_TEXT)


FIELD_CHECKS: dict[int, Check] = {
    Kind.BUTTON: _check_button,
    Kind.TEXT_INPUT: _check_text_input,
    Kind.LABEL: _check_label,
} | dict.fromkeys(SELECTS, _check_select)
