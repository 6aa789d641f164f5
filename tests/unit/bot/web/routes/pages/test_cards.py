"""Link cards are drawn once, in a process of their own."""

from io import BytesIO

import pytest
from PIL import Image

from bot.reports.cards import GENERAL, SIZE, LinkCard
from bot.web.routes.pages import cards


async def test_a_card_is_drawn_once_in_a_process_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cards._DRAWING, "patience_s", 60.0)
    first = await cards.drawn(GENERAL)
    assert Image.open(BytesIO(first)).size == SIZE
    monkeypatch.setattr(cards, "_DRAWING", None)
    assert await cards.drawn(LinkCard(*(GENERAL.above, GENERAL.title, GENERAL.words))) == first
