"""Reads untrusted YAML as plain values, and records the line of each."""

import difflib
import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import yaml
from pydantic import ValidationError

from bot.domain.errors import UserError, fault_words

MAX_BYTES = 1 << 20
MAX_NODES = 20_000
"""The most values in a document; an alias counts each time it is used."""
MAX_DEPTH = 24
MAX_SCALAR = 64
"""The most characters of a value other than text, because long numbers are slow to parse."""

_TEXT = "tag:yaml.org,2002:str"
_PLAIN = frozenset({"tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"})

Path = tuple[str | int, ...]
Value = None | bool | int | float | str | list["Value"] | dict[str, "Value"]


@dataclass(frozen=True, slots=True)
class Document:
    """A mapping read from `file`; `lines` has the line of each value by its path."""

    file: str
    value: dict[str, Value]
    lines: dict[Path, int]

    def line(self, path: Path) -> int:
        """Return the line of the value at `path`, or of its nearest parent."""
        while path not in self.lines and path:
            path = path[:-1]
        return self.lines.get(path, 1)

    def refusal(self, path: Path, message: str) -> UserError:
        """Return the refusal of the value at `path`."""
        return refusal(self.file, self.line(path), message)


def refusal(file: str, line: int, message: str) -> UserError:
    """Return a refusal with file and line."""
    return UserError("bad-task", f"{file}:{line}: {message}")


class _Loader(yaml.SafeLoader):
    """The safe loader, with dates kept as text."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in pairs if tag != "tag:yaml.org,2002:timestamp"]
    for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


@dataclass(slots=True)
class _Reader:
    """Converts the nodes of one document to plain values, within the limits."""

    file: str
    loader: _Loader
    lines: dict[Path, int] = field(default_factory=dict)
    nodes: int = 0

    def value(self, node: yaml.Node, path: Path) -> Value:
        self.nodes += 1
        if self.nodes > MAX_NODES or len(path) > MAX_DEPTH:
            raise self.refusal(node, "too many values, or nested too deeply; simplify the file")
        self.lines.setdefault(path, node.start_mark.line + 1)
        if isinstance(node, yaml.CollectionNode) and node.tag not in _PLAIN:
            raise self.refusal(node, "this value is not plain YAML; remove the tag")
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*path, i)) for i, item in enumerate(node.value)]
        return self.scalar(node)

    def mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Value]:
        values: dict[str, Value] = {}
        for key_node, value_node in node.value:
            key = self.key(key_node)
            if key in values:
                first = self.lines[(*path, key)]
                raise self.refusal(
                    key_node, f"the key {key!r} appears twice (first in line {first})"
                )
            self.lines[(*path, key)] = key_node.start_mark.line + 1
            values[key] = self.value(value_node, (*path, key))
        return values

    def key(self, node: yaml.Node) -> str:
        plain = isinstance(node, yaml.ScalarNode) and node.tag == _TEXT
        if not plain:
            raise self.refusal(node, "a key must be a plain word, as in 'lang: py'")
        return str(node.value)

    def scalar(self, node: yaml.Node) -> Value:
        if node.tag != _TEXT and len(node.value) > MAX_SCALAR:
            words = f"a value of {len(node.value)} characters that is not text; put it in quotes"
            raise self.refusal(node, words)
        try:
            value = self.loader.construct_object(node)
        except (yaml.YAMLError, ValueError, OverflowError) as error:
            raise self.refusal(node, "this value is not plain YAML; put it in quotes") from error
        if isinstance(value, float) and not math.isfinite(value):
            raise self.refusal(node, f"{node.value} is not a finite number; put it in quotes")
        if value is None or isinstance(value, bool | int | float | str):
            return value
        raise self.refusal(
            node, "only text, numbers, true and false, lists and mappings are allowed"
        )

    def refusal(self, node: yaml.Node, message: str) -> UserError:
        return refusal(self.file, node.start_mark.line + 1, message)


def read_document(data: bytes, file: str) -> Document:
    """Read one mapping; UserError with file and line for anything that is not plain YAML."""
    text = _text(data, file)
    try:
        _check_size(text, file)
        loader = _Loader(text)
        reader = _Reader(file, loader)
        node = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        raise _yaml_refusal(error, text, file) from error
    except yaml.YAMLError as error:
        raise refusal(file, 1, f"not YAML: {error}".splitlines()[0]) from error
    if not isinstance(node, yaml.MappingNode):
        raise refusal(file, 1, "this must be a mapping of keys to values, as in 'lang: py'")
    return Document(file, reader.mapping(node, ()), reader.lines)


def _text(data: bytes, file: str) -> str:
    if len(data) > MAX_BYTES:
        raise refusal(file, 1, f"the file has {len(data)} bytes; at most {MAX_BYTES} are allowed")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise refusal(file, line, "this is not UTF-8 text; save the file as UTF-8") from error


def _check_size(text: str, file: str) -> None:
    """Refuse documents that are too large or too deep before building values."""
    depth = 0
    for count, event in enumerate(yaml.parse(text, Loader=_Loader)):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if count > 2 * MAX_NODES or depth > MAX_DEPTH:
            line = event.start_mark.line + 1 if event.start_mark else 1
            raise refusal(file, line, "too many values, or nested too deeply; simplify the file")


def _yaml_refusal(error: yaml.MarkedYAMLError, text: str, file: str) -> UserError:
    mark = error.problem_mark or error.context_mark
    line = mark.line + 1 if mark else 1
    lines = text.splitlines()
    written = lines[line - 1] if line <= len(lines) else ""
    if written[: len(written) - len(written.lstrip())].count("\t"):
        return refusal(file, line, "the indentation contains a tab; use spaces")
    return refusal(file, line, f"not YAML: {error.problem or error.context}")


def validation_refusal(document: Document, error: ValidationError) -> UserError:
    """Return pydantic's first error as a refusal with its line."""
    fault = error.errors(include_url=False, include_context=False)[0]
    path = tuple(part for part in fault["loc"] if part != "[key]")
    if fault["type"] == "missing":
        where = ".".join(map(str, path))
        return document.refusal(path[:-1], f"the key {where!r} is missing")
    where = ".".join(str(part) for part in path if not _is_type_label(part, document))
    message = fault_words(fault)
    return document.refusal(path, f"{where}: {message}" if where else message)


def _is_type_label(part: str | int, document: Document) -> bool:
    """Return whether a path part is pydantic's label of a union member, not a key."""
    return isinstance(part, str) and not any(part in path for path in document.lines)


def unknown_key(key: str, known: Iterable[str]) -> str:
    """Return the message for an unknown key."""
    names = sorted(known)
    near = difflib.get_close_matches(key, names, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"the keys are: {', '.join(names)}"
    return f"unknown key {key!r}; {hint}"
