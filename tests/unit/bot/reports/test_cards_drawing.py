"""Tests of the pictures for links: their size and contents, whatever the names."""

from io import BytesIO

import pytest
from PIL import Image

from bot.reports.cards import SIZE, CardRow, LinkCard, draw

NAMES = (
    "Ada", "漢字太郎", "محمد", "नमस्ते", "😀" * 300, "<script>alert(1)</script>", "a\u0301" * 400,
    "\u202eevil", "\ud800", "", "W" * 5_000, "\x1b[31m\x00",
)  # fmt: skip


def card(name: str) -> LinkCard:
    return LinkCard(name, name, name, (CardRow(name, name, name, name),) * 5)


def picture(data: bytes) -> Image.Image:
    image = Image.open(BytesIO(data))
    image.load()
    return image


@pytest.mark.parametrize("name", NAMES)
def test_every_name_has_a_picture_of_one_size(name: str) -> None:
    image = picture(draw(card(name)))
    assert (image.format, image.size) == ("PNG", SIZE)
    assert len(draw(card(name))) < 60_000


@pytest.mark.parametrize("name", ["漢字太郎", "W" * 5_000, "a\u0301" * 400])
def test_nothing_is_written_beyond_the_margin(name: str) -> None:
    image = picture(draw(card(name))).convert("RGB")
    for left, right in ((0, 72), (SIZE[0] - 71, SIZE[0])):
        edge = image.crop((left, 0, right, SIZE[1]))
        assert len(edge.getcolors() or ()) == 1


def test_characters_without_a_glyph_are_transliterated() -> None:
    assert draw(card("漢字太郎")) == draw(card("HanZiTaiLang"))
    assert draw(card("Łódź Жук")) != draw(card("Lodz Zhuk"))
