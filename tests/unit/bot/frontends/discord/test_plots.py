import struct
from datetime import timedelta

import pytest

from bot.frontends.discord.plots import png, shown
from bot.reports.blocks import Chart, Point, Series, Stroke
from tests.doubles.factories import NOON


def size(picture: bytes) -> tuple[int, int]:
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", picture[16:24])
    return width, height


@pytest.mark.parametrize("count", [0, 1, 30, 300])
def test_a_season_of_any_length_is_drawn(count: int) -> None:
    points = tuple(Point(NOON + timedelta(hours=n), 1e6 / (1 + n) ** 2, 5.0) for n in range(count))
    series = Series("best so far", points, Stroke.STEPS), Series("runs", points, Stroke.DOTS)
    assert size(png(Chart("a season " * 40, "day (UTC)", "time (us)", series))) == (1200, 675)


def test_people_and_gpu_types_with_any_names_are_drawn() -> None:
    gpus = tuple(f"RTX-PRO-6000-Blackwell-Server-{n}" for n in range(9))
    names = "_hidden", "$x^2$ $", "{%s}", "\x1b[31mred\u202e", "李小龙 🚀", "", "a" * 500
    series = tuple(
        Series(name, tuple(Point(gpu, 10.0 + n + k) for k, gpu in enumerate(gpus) if k != n))
        for n, name in enumerate(names)
    )
    assert size(png(Chart("$", "GPU type", "time (us)", series, gpus))) == (1200, 675)


def test_what_the_font_lacks_is_replaced_and_what_is_long_is_shortened() -> None:
    assert shown("李 $x$\nü\x1b[31m") == "? $x$ ü"
    assert shown("a" * 30) == "a" * 23 + "…"
