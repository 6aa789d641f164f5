"""Sources by the hash of their exact bytes."""

from hypothesis import given
from hypothesis import strategies as st

from bot.store.postgres.submissions import source_bytes, source_hash, source_text

ANY_TEXT = st.text(st.characters(codec=None, categories=None), max_size=50)


@given(ANY_TEXT)
def test_any_source_comes_back_from_its_bytes(source: str) -> None:
    assert source_text(source_bytes(source)) == source


def test_the_hash_is_the_sha256_of_the_utf8_bytes() -> None:
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert source_hash("") == empty
    assert source_hash("x") != source_hash("x\n")
