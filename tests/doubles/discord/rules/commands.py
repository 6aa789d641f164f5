"""The checks of application commands and their options."""

import re
from typing import Any

from tests.doubles.discord.errors import Form
from tests.doubles.discord.kinds import NESTING, CommandKind, OptionKind
from tests.doubles.discord.wire import Json

NAME, DESCRIPTION, OPTIONS, CHOICES, CHOICE, SIZE = 32, 100, 25, 25, 100, 8000
_NAME = re.compile(r"[-_'\w]{1,32}")
_PREFIX = "APPLICATION_COMMAND"


def check_command(form: Form, command: Json, path: str = "") -> None:
    """Check a command; `path`, which ends in a dot, comes before the paths of its fields."""
    if (command.get("type") or CommandKind.SLASH) == CommandKind.SLASH:
        _check_name(form, command.get("name"), f"{path}name")
        form.required(f"{path}description", command.get("description"), 1, DESCRIPTION)
    else:
        form.required(f"{path}name", command.get("name"), 1, NAME)
        if command.get("description"):
            message = "Context menu commands cannot have description"
            form.wrong(f"{path}description", f"{_PREFIX}_CONTEXT_MENU_DESCRIPTION", message)
    size = _characters(command)
    size += _check_options(form, command.get("options") or [], f"{path}options", depth=0)
    if size > SIZE:
        message = f"Command exceeds maximum size ({SIZE})"
        form.wrong(path.rstrip(".") or "options", f"{_PREFIX}_TOO_LARGE", message)


def _characters(item: Json) -> int:
    return len(item.get("name") or "") + len(item.get("description") or "")


def _check_name(form: Form, value: str | None, path: str) -> None:
    form.required(path, value, 1, NAME)
    if value and (not _NAME.fullmatch(value) or value != value.lower()):
        form.wrong(path, f"{_PREFIX}_INVALID_NAME", "Command name is invalid")


def _check_options(form: Form, options: list[Json], path: str, *, depth: int) -> int:
    """Check the options of a command, group or subcommand; return how many characters they have."""
    form.at_most(path, options, OPTIONS)
    kinds = {option.get("type") in NESTING for option in options}
    if len({option.get("name") for option in options}) != len(options):
        message = "Option names must be unique"
        form.wrong(path, f"{_PREFIX}_OPTIONS_NAME_ALREADY_EXISTS", message)
    if kinds == {True, False}:
        message = "Sub-commands cannot be mixed with other options"
        form.wrong(path, f"{_PREFIX}_OPTIONS_TYPE_INVALID", message)
    _check_order(form, options, path)
    return sum(
        _check_option(form, option, f"{path}.{i}", depth=depth) for i, option in enumerate(options)
    )


def _check_order(form: Form, options: list[Json], path: str) -> None:
    required = [bool(option.get("required")) for option in options]
    nested = any(option.get("type") in NESTING for option in options)
    if not nested and required != sorted(required, reverse=True):
        message = "Required options must be placed before non-required options"
        form.wrong(path, f"{_PREFIX}_OPTIONS_REQUIRED_INVALID", message)


def _check_option(form: Form, option: Json, path: str, *, depth: int) -> int:
    _check_name(form, option.get("name"), f"{path}.name")
    form.required(f"{path}.description", option.get("description"), 1, DESCRIPTION)
    kind: Any = option.get("type")
    size = _characters(option)
    if kind in NESTING:
        if (kind == OptionKind.GROUP and depth) or depth > 1:
            form.wrong(f"{path}.type", f"{_PREFIX}_OPTIONS_TYPE_INVALID", "Nested too deeply")
        inner, below = option.get("options") or [], 3 - kind
        return size + _check_options(form, inner, f"{path}.options", depth=below)
    if kind not in list(OptionKind):
        form.wrong(f"{path}.type", "BASE_TYPE_CHOICES", "Value must be one of 1..11")
    choices: list[Json] = option.get("choices") or []
    check_choices(form, choices, f"{path}.choices")
    if option.get("autocomplete") and choices:
        message = "autocomplete and choices exclude each other"
        code = f"{_PREFIX}_OPTIONS_AUTOCOMPLETE_INVALID"
        form.wrong(f"{path}.autocomplete", code, message)
    return size + sum(len(str(x.get("name"))) + len(str(x.get("value"))) for x in choices)


def check_choices(form: Form, choices: list[Json], path: str, most: int = CHOICES) -> None:
    """Check the choices of an option or of an autocompletion."""
    form.at_most(path, choices, most)
    for i, choice in enumerate(choices):
        form.required(f"{path}.{i}.name", choice.get("name"), 1, CHOICE)
        if isinstance(choice.get("value"), str):
            form.at_most(f"{path}.{i}.value", choice["value"], CHOICE)
    if len({choice.get("name") for choice in choices}) != len(choices):
        message = "Choice names must be unique"
        form.wrong(path, f"{_PREFIX}_OPTIONS_CHOICE_NAME_ALREADY_EXISTS", message)
