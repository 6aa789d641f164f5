import struct
from datetime import timedelta
from io import BytesIO

import pytest
from matplotlib.image import imread

from bot.discord.plots import drawable, png
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
    assert size(png(Chart("a season " * 40, "day (UTC)", "time (µs)", series))) == (1200, 900)


@pytest.mark.parametrize("seconds", [(0,), (0, 40), (0, 40, 70)])
def test_a_season_of_minutes_fills_the_picture(seconds: tuple[int, ...]) -> None:
    points = tuple(
        Point(NOON + timedelta(seconds=each), 9.0 - number) for number, each in enumerate(seconds)
    )
    chart = Chart("t", "day (UTC)", "us", (Series("best", points, Stroke.STEPS),))
    picture = imread(BytesIO(png(chart)))
    colored = (picture[..., :3].max(axis=2) - picture[..., :3].min(axis=2) > 0.3).any(axis=0)
    (columns,) = colored.nonzero()
    assert columns.max() > 1150  # the best time still holds at the right edge
    assert columns.max() - columns.min() > 400


def test_people_and_gpu_types_with_any_names_are_drawn() -> None:
    gpus = tuple(f"RTX-PRO-6000-Blackwell-Server-{n}" for n in range(9))
    names = "_hidden", "$x^2$ $", "{%s}", "\x1b[31mred\u202e", "李小龙 🚀", "", "a" * 500
    series = tuple(
        Series(name, tuple(Point(gpu, 10.0 + n + k) for k, gpu in enumerate(gpus) if k != n))
        for n, name in enumerate(names)
    )
    assert size(png(Chart("$", "GPU type", "time (µs)", series, gpus))) == (1200, 900)


@pytest.mark.parametrize(
    ("name", "drawn"),
    [
        ("李小龙", "LiXiaoLong"),
        ("さくら", "sakura"),
        ("김연아", "GimYeonA"),
        ("محمد", "mhmd"),
        ("🚀 go", ":rocket: go"),
        ("Ольга Ω", "Ольга Ω"),
        ("Zoë", "Zoë"),
        ("\ue000\U000f0000", ""),
    ],
)
@pytest.mark.filterwarnings("error")
def test_a_name_in_any_writing_is_drawn_without_empty_boxes(name: str, drawn: str) -> None:
    assert drawable(name) == drawn
    series = Series(name, (Point("L4", 1.0),)), Series("b", (Point("L4", 2.0),))
    assert size(png(Chart(name, name, name, series, ("L4",)))) == (1200, 900)


def test_what_is_long_is_shortened() -> None:
    assert drawable("李 $x$\nü\x1b[31m") == "Li $x$ ü"
    assert drawable("a" * 30) == "a" * 23 + "…"


@pytest.mark.parametrize("name", ["Grace Hopper", "a_very_long_name_of_somebody", "W" * 24])
@pytest.mark.parametrize("count", [2, 8, 12])
def test_no_name_in_the_legend_is_cut_at_the_edge(name: str, count: int) -> None:
    series = tuple(Series(f"{n}. {name}", (Point("L4", 1.0 + n),)) for n in range(count))
    picture = imread(BytesIO(png(Chart("t", "GPU type", "time (µs)", series, ("L4",)))))
    for edge in (picture[:, :8], picture[:, -8:], picture[-8:]):
        assert edge.min() == 1.0
