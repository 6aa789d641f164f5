"""A season's plot has every run with its person, and links to changes only if sources are shown."""

import pytest

from bot.domain.board import Access, SourceVisibility
from bot.web.routes.pages import season
from tests.doubles.exhibition import HOSTILE, Exhibition, make_exhibition
from tests.unit.bot.web.test_pages import asked

PATH = "/boards/vectoradd/season"


@pytest.fixture
async def shown() -> Exhibition:
    return await make_exhibition(rounds=2)


async def test_every_run_is_data_with_its_person_and_that_persons_run_before(
    shown: Exhibition,
) -> None:
    data = (await asked(shown, f"{PATH}.json?gpu=H100")).json()
    (best,) = data["series"]
    assert best["stroke"] == "steps"
    assert len(data["runs"]) == 28
    names = dict(data["people"])
    assert "<script>" in names[shown.people[HOSTILE]]  # the script shows it as text
    assert "\u202e" not in names[shown.people[HOSTILE]]
    own = [run for run in data["runs"] if data["people"][run[4]][0] == shown.people["Ada"]]
    assert [run[5] for run in own] == [0, own[0][3]]
    assert (data["unit"], data["each"], data["shown"]) == ("µs", "each ranked run", True)
    empty = await asked(shown, "/boards/empty/season.json")
    assert empty.json() == {"series": []}
    assert empty.headers["Content-Encoding"] == "gzip"


async def test_runs_of_the_same_second_are_all_there(shown: Exhibition) -> None:
    for milliseconds in (0, 1, 250):
        shown.clock.advance(milliseconds / 1000)
        await shown.ranked("Ken", "vectoradd", "A100", 9_000)
    data = (await asked(shown, f"{PATH}.json?gpu=A100")).json()
    last = data["runs"][-3:]
    assert [round(run[0] - last[0][0], 3) for run in last] == [0, 0.001, 0.251]
    assert len({run[3] for run in last}) == 3


async def test_the_tables_name_the_records_and_the_newest_runs(
    shown: Exhibition, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (await asked(shown, f"{PATH}?gpu=H100")).text
    assert "each ranked run from 62" in page
    assert "Ranked runs, newest first" in page
    assert page.count('<th scope="row">') == 28 + page.count('data-label="Speedup"')
    assert "/compare?with=" in page
    monkeypatch.setattr(season, "_MOST_ROWS", 3)
    few = (await asked(shown, f"{PATH}?gpu=H100")).text
    assert "The newest of 28 ranked runs" in few
    assert few.count('data-label="Changes since"') == 6
    assert "<tbody>" not in (await asked(shown, "/boards/empty/season")).text


@pytest.mark.parametrize(
    ("who", "changes"), [("Grace", 3), (None, 0), ("Ken", 0)], ids=["own", "nobody", "another"]
)
async def test_changes_are_offered_only_where_the_sources_may_be_read(
    shown: Exhibition, who: str | None, changes: int
) -> None:
    hidden = Access(source=SourceVisibility.NEVER)
    board = shown.boards["sort"]
    await shown.store.boards.restrict(board.id, hidden)
    for time in (2_000, 1_000):
        shown.clock.advance(60)
        await shown.ranked("Grace", "sort", "CPU", time)
    answer = await asked(shown, "/boards/sort/season", who)
    assert answer.text.count("/compare?with=") == changes
    assert (await asked(shown, "/boards/sort/season.json", who)).json()["shown"] is False


async def test_a_sample_of_a_long_season_has_each_persons_best_and_all_runs_of_the_viewer(
    shown: Exhibition, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (
        "Every ranked run, and the best time so far"
        in (await asked(shown, "/boards/vectoradd?gpu=H100", "Grace")).text
    )
    monkeypatch.setattr("bot.services.standings.MAX_HISTORY", 1)
    monkeypatch.setattr("bot.web.routes.pages.board.MAX_HISTORY", 1)
    for time in (90_000, 91_000, 92_000):
        shown.clock.advance(60)
        await shown.ranked("Ken", "vectoradd", "H100", time)
    for who, own in (("Ken", 3), ("Ada", 1), (None, 1)):
        data = (await asked(shown, f"{PATH}.json?gpu=H100", who)).json()
        runs = [data["people"][run[4]][1] for run in data["runs"]]
        assert runs.count("Ken") == own
        assert len(set(runs)) == 14
        assert data["each"] == f"sample of ranked runs ({len(runs)} of 31)"
        assert [run[0] for run in data["runs"]] == sorted(run[0] for run in data["runs"])
        page = (await asked(shown, f"{PATH}?gpu=H100", who)).text
        assert "The newest of a sample of 31 ranked runs" in page
        assert ("all of yours" in page) == (who is not None)
        board = (await asked(shown, "/boards/vectoradd?gpu=H100", who)).text
        yours = ", your runs" if who else ""
        assert (
            f"Records, each person&#39;s best{yours} and a sample of the other ranked runs, and"
            in board
        )
        assert "very ranked run" not in board
