"""YAML from outside: hostile, broken and merely wrong documents."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.errors import UserError
from bot.domain.tasks.yaml_document import read_document


def refusal(data: bytes) -> str:
    with pytest.raises(UserError) as caught:
        read_document(data, "task.yml")
    assert caught.value.message.startswith("task.yml:")
    return caught.value.message


def test_values_keep_their_lines() -> None:
    document = read_document(b"a: 1\nb:\n  - {c: x}\n  - 2.5\n", "f.yml")
    assert document.value == {"a": 1, "b": [{"c": "x"}, 2.5]}
    assert document.line(("a",)) == 1
    assert document.line(("b",)) == 2
    assert document.line(("b", 0, "c")) == 3
    assert document.line(("b", 1)) == 4
    assert document.line(("b", 1, "not", "there")) == 4


def test_dates_stay_text() -> None:
    assert read_document(b"deadline: 2030-06-30\n", "f").value == {"deadline": "2030-06-30"}


def test_a_bomb_of_aliases_is_refused_before_it_unfolds() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    assert "too many values" in refusal("\n".join(lines).encode())


def test_a_value_that_holds_itself_is_refused() -> None:
    assert "nested too deeply" in refusal(b"a: &a [*a]\n")


def test_deep_nesting_is_refused() -> None:
    assert "nested too deeply" in refusal(b"a: " + b"[" * 5000 + b"]" * 5000)


def test_very_many_values_are_refused() -> None:
    assert "too many values" in refusal(b"a: [" + b"1," * 50_000 + b"1]")


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"a: 1\na: 2\n", "2: the key 'a' appears twice (first in line 1)"),
        (b"a:\n\tb: 1\n", "2: the indentation contains a tab"),
        (b"a: 1\nb: '\xff'\n", "2: this is not UTF-8"),
        (b"- a\n- b\n", "must be a mapping"),
        (b"", "must be a mapping"),
        (b"text", "1: this must be a mapping"),
        (b"a: [1\n", "not YAML"),
        (b"a: 1\n---\nb: 2\n", "not YAML"),
        (b"a: b: c\n", "1: not YAML"),
        (b"a: *nothing\n", "not YAML"),
        (b"a: !!python/object/apply:os.system ['true']\n", "1:"),
        (b"a: !!python/name:os.system x\n", "1: this value is not plain YAML"),
        (b"a: !!binary aGFsbG8=\n", "only text, numbers"),
        (b"1: a\n", "a key must be a plain word"),
        (b"? [a]\n: b\n", "a key must be a plain word"),
        (b"<<: {a: 1}\n", "a key must be a plain word"),
        (b"a: !!int nonsense\n", "this value is not plain YAML"),
        (b"a: \x07\n", "not YAML"),
        (b"#" * ((1 << 20) + 1), "at most 1048576"),
    ],
)
def test_what_is_not_a_plain_mapping_is_refused_with_its_line(data: bytes, word: str) -> None:
    assert word in refusal(data)


@pytest.mark.parametrize(
    "value", ["1" + ":1" * 20_000, "0x" + "f" * 5_000, "9" * 5_000, "1" + "_" * 80, "1." + "0" * 80]
)
def test_a_number_too_long_to_be_one_is_refused_before_it_is_read(value: str) -> None:
    message = refusal(f"b: 1\na: {value}\n".encode())
    assert message.startswith("task.yml:2: a value of ")
    assert message.endswith("characters that is not text; put it in quotes")
    assert read_document(f"a: '{value}'\n".encode(), "f").value == {"a": value}


@pytest.mark.parametrize("value", [".inf", "-.inf", ".nan", "1.0e+999"])
def test_a_number_that_json_cannot_hold_is_refused(value: str) -> None:
    assert "is not a finite number" in refusal(f"a: {value}\n".encode())


@given(st.binary(max_size=300))
def test_any_bytes_give_a_mapping_or_a_refusal(data: bytes) -> None:
    with contextlib.suppress(UserError):
        assert isinstance(read_document(data, "task.yml").value, dict)
