from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.errors import UserError
from bot.domain.times import parse_deadline, parse_opening, show_deadline, show_rate


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2027-01-31 18:00", "2027-01-31T18:00"),
        ("2027-01-31", "2027-01-31T23:59"),
        ("2027-01-31 UTC", "2027-01-31T23:59"),
        ("2027-01-31 18:00 Europe/Berlin", "2027-01-31T17:00"),
        ("2027-07-31 18:00 Europe/Berlin", "2027-07-31T16:00"),
        ("2027-01-31 18:00 +05:30", "2027-01-31T12:30"),
        ("2027-01-31 18:00 UTC-8", "2027-02-01T02:00"),
        ("2027-01-31T18:00Z", "2027-01-31T18:00"),
        ("2027-1-9 6:59", "2027-01-09T06:59"),
        ("2027-10-15 00:00:00", "2027-10-15T00:00:00"),
        ("2027-10-15 18:30:05 +02:00", "2027-10-15T16:30:05"),
    ],
)
def test_a_deadline_is_read_in_its_zone(text: str, utc: str) -> None:
    assert parse_deadline(text) == datetime.fromisoformat(utc).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("tomorrow", "the format is not valid"),
        ("2027-02-30", "this day or time does not exist"),
        ("2027-01-31 25:00", "this day or time does not exist"),
        ("2027-01-31 18:00:61", "this day or time does not exist"),
        ("0001-01-01", "out of range"),
        ("2027-01-31 18:00 Europe/Berlim", "did you mean Europe/Berlin"),
        ("2027-01-31 18:00 ../etc/passwd", "no time zone"),
        ("2027-01-31 18:00 +99", "not a valid UTC offset"),
        ("2027-03-28 02:30 Europe/Berlin", "is skipped by"),
    ],
)
def test_a_bad_deadline_is_refused_with_the_form_to_use(text: str, why: str) -> None:
    with pytest.raises(UserError, match="YYYY-MM-DD") as refusal:
        parse_deadline(text)
    assert why in refusal.value.message


def test_an_opening_date_without_a_time_is_at_the_beginning_of_the_day() -> None:
    assert parse_opening("2027-01-31") == datetime(2027, 1, 31, tzinfo=UTC)
    assert parse_opening("2027-01-31 18:00") == parse_deadline("2027-01-31 18:00")
    with pytest.raises(UserError, match="YYYY-MM-DD"):
        parse_opening("soon")


def test_a_deadline_is_shown_with_its_zone_and_in_utc() -> None:
    assert show_deadline(parse_deadline("2027-01-31 18:00 UTC")) == "2027-01-31 18:00 UTC"
    berlin = parse_deadline("2027-01-31 18:00 Europe/Berlin")
    assert show_deadline(berlin) == "2027-01-31 18:00 CET (17:00 UTC)"
    tokyo = parse_deadline("2027-01-31 08:00 Asia/Tokyo")
    assert show_deadline(tokyo) == "2027-01-31 08:00 JST (2027-01-30 23:00 UTC)"


def test_a_naive_deadline_cannot_be_shown() -> None:
    with pytest.raises(ValueError, match="aware"):
        show_deadline(datetime(2027, 1, 31))  # noqa: DTZ001  the very thing that is refused


moments = st.datetimes().filter(lambda moment: 1972 <= moment.year < 8000)


@given(moments, st.integers(-1439, 1439))
def test_what_is_written_with_an_offset_is_read_back(moment: datetime, minutes: int) -> None:
    sign = "-" if minutes < 0 else "+"
    offset = f"{sign}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"
    read = parse_deadline(f"{moment:%Y-%m-%d %H:%M} {offset}")
    assert read.utcoffset() == timedelta(minutes=minutes)
    assert read.replace(tzinfo=None) == moment.replace(second=0, microsecond=0)


@given(st.text())
def test_any_text_gives_an_aware_time_or_a_refusal(text: str) -> None:
    with suppress(UserError):
        assert parse_deadline(text).tzinfo is not None


@pytest.mark.parametrize(
    ("per_s", "words"), [(3.35e12, "3.35 T"), (999.9e9, "1 T"), (5.0, "5"), (1.979e15, "1.98 P")]
)
def test_rates_have_three_digits_and_a_prefix(per_s: float, words: str) -> None:
    assert show_rate(per_s) == words
