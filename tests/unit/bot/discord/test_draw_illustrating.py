import pytest

from bot.discord import draw
from bot.discord.draw import message_drafts, with_pictures
from bot.reports.blocks import Attachment, Chart, Point, Report, Series, Text

CHART = Chart(
    "matmul: best times", "GPU type", "time (µs)", (Series("ada", (Point("L4", 2.0),)),), ("L4",)
)
REPORT = Report("r", (Text("words"), CHART))


async def test_a_chart_becomes_a_picture_with_words_for_who_cannot_see_it() -> None:
    words, picture = (await with_pictures(REPORT)).blocks
    assert words == REPORT.blocks[0]
    assert isinstance(picture, Attachment)
    assert picture.name == "matmul-best-times.png"
    assert picture.data.startswith(b"\x89PNG")
    assert picture.about == "matmul: best times, time (µs) by GPU type: ada 2 (L4)"
    (draft,) = message_drafts(Report("r", (picture,)))
    assert (draft.content, draft.files) == ("**r**", (picture,))


async def test_a_chart_that_cannot_be_drawn_is_shown_as_a_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(chart: Chart) -> bytes:
        raise MemoryError

    monkeypatch.setattr(draw, "_png", broken)
    report = await with_pictures(REPORT)
    assert report == REPORT
    (draft,) = message_drafts(report)
    assert "ada" in draft.content
    assert draft.files == ()
