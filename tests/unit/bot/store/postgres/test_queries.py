"""The named queries."""

import pytest

from bot.store.postgres.database import FOLDER, HEADING, query

NAMES = [
    f"{file.stem}.{name}"
    for file in sorted(FOLDER.glob("*.sql"))
    for name in HEADING.findall(file.read_text("utf-8"))
]


def test_a_name_gives_its_own_text_only() -> None:
    assert query("people.get") == "select * from people where id = $1"


def test_an_unknown_name_is_a_bug() -> None:
    with pytest.raises(KeyError):
        query("people.no_such_query")


@pytest.mark.parametrize("name", NAMES)
def test_every_query_is_used(name: str) -> None:
    code = [file.read_text("utf-8") for file in FOLDER.parent.rglob("*.py")]
    assert any(f'"{name}"' in text for text in code)
    assert query(name)
