"""Text that any database takes."""

from hypothesis import given
from hypothesis import strategies as st

from bot.store.postgres.database import storable
from bot.store.postgres.queue import without_worker

ANY_TEXT = st.text(st.characters(codec=None, categories=None), max_size=50)


def test_the_worker_that_an_old_error_names_is_left_out() -> None:
    old = "worker gpu-box-1:0123abcd vanished during attempt 2"
    assert without_worker(old) == "the worker vanished during attempt 2"
    assert without_worker("a worker gpu-box-1 vanished") == "a worker gpu-box-1 vanished"
    assert without_worker(None) is None


def test_a_nul_and_a_lone_surrogate_stay_visible() -> None:
    assert storable("a\x00b\udc80c") == "a\u2400b\ufffdc"


@given(ANY_TEXT)
def test_any_text_becomes_utf8_without_nul_and_keeps_its_length(text: str) -> None:
    stored = storable(text)
    assert b"\0" not in stored.encode()
    assert len(stored) == len(text)


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0")))
def test_text_that_can_be_stored_is_left_alone(text: str) -> None:
    assert storable(text) == text
