"""Competitions are published whole: read from a zip, checked together, stored with their boards."""

from dataclasses import replace
from datetime import timedelta

import pytest

from bot.domain.board import SeasonRules, Viewer
from bot.domain.competition import Competition, NewCompetition, PointsRule
from bot.domain.errors import UserError
from bot.domain.ids import PersonId
from bot.domain.publication import Draft, PublishChange, PublishedDraft, PublishRequest
from bot.services.publishing.pipeline import Pipeline
from bot.services.publishing.publish import read_competition
from tests.doubles.place import Place
from tests.doubles.scaffolded import make_judge
from tests.doubles.task_zips import packed_competition

OPENS, CLOSES = "2026-11-02 12:00", "2026-11-03 12:00"
"""A day and two days after the clock of these tests."""
TEXT = f"""\
name: Cup
description: Two tasks.
ranks: [25, 18]
opens: {OPENS}
late_runs: true
problems:
  - {{directory: double, name: double, deadline: {CLOSES}, gpus: [CPU]}}
  - {{directory: triple, name: third, deadline: {CLOSES}, gpus: [CPU]}}
"""


async def read(place: Place, text: str = TEXT, person: PersonId | None = None) -> tuple[Draft, ...]:
    request = PublishRequest(person or place.ada, "Cup", competition=True, strict=False)
    drafts, _ = await read_competition(packed_competition(text, "double", "triple"), request)
    return drafts


async def publish(place: Place, *drafts: Draft, unchecked: bool = True) -> list[PublishedDraft]:
    pipeline = Pipeline(place.store, place.clock, [make_judge()], lambda words: None)
    return [*await pipeline.check_and_publish(drafts, unchecked=unchecked)]


async def cup(place: Place) -> Competition:
    found = await place.store.competitions.find("Cup")
    assert found is not None
    return found


async def audited(place: Place) -> list[str]:
    rows = await place.store.audit.rows()
    changes = [each for each in reversed(rows) if each.action != "publish-unchecked"]
    return [f"{each.action} {each.subject}: {each.reason}" for each in changes]


async def test_a_competition_is_stored_with_its_boards_and_their_dates(place: Place) -> None:
    await publish(place, *await read(place))
    competition, now = await cup(place), place.clock.now()
    day = timedelta(days=1)
    assert (competition.creator, competition.description) == (place.ada, "Two tasks.")
    assert (competition.points, competition.opens_at) == (PointsRule((25.0, 18.0)), now + day)
    assert [each.name for each in competition.boards] == ["double", "third"]
    for board in competition.boards:
        assert board.rules == SeasonRules(now + day, late_runs=True)
        assert (board.deadline, board.gpus) == (now + 2 * day, ("CPU",))
    assert "publish-created competition Cup: 2 boards" in await audited(place)


async def test_all_tasks_are_checked_and_none_is_published_when_one_is_unsound(
    place: Place,
) -> None:
    steps: list[str] = []
    pipeline = Pipeline(
        place.store,
        place.clock,
        [make_judge()],
        lambda words: None,
        lambda step: steps.append(step.name),
    )
    drafts = await read(place)
    files = {**drafts[1].bundle.files, "triple/solutions/wrong/fine.py": b"x = 1\n"}
    wrong = drafts[0].bundle.files["double/solutions/correct/torch_add.py"]
    files["triple/solutions/wrong/right.py"] = wrong
    unsound = replace(drafts[1], bundle=replace(drafts[1].bundle, files=files))
    with pytest.raises(UserError, match=r"third on CPU: \S+right\.py: got passed"):
        await pipeline.check_and_publish((drafts[0], unsound))
    assert [each.name for each in await place.store.boards.all()] == ["vectoradd"]
    assert await place.store.competitions.known_to(Viewer(place.ada)) == ()
    assert {name.partition(":")[0] for name in steps} == {"double", "third"}


async def test_publishing_again_changes_what_differs_and_records_only_that(place: Place) -> None:
    await publish(place, *await read(place))
    before = len(await audited(place))
    again = await publish(place, *await read(place))
    assert {each.published.change for each in again} == {PublishChange.UNCHANGED}
    assert len(await audited(place)) == before
    text = TEXT.replace("ranks: [25, 18]\n", "").replace(OPENS, "2026-11-02 18:00")
    first, _ = await publish(place, *await read(place, text.replace("late_runs: true\n", "")))
    assert first.published.change is PublishChange.CONFIGURED
    competition, opens = await cup(place), place.clock.now() + timedelta(hours=30)
    assert (competition.points, competition.opens_at) == (PointsRule(), opens)
    assert {each.rules for each in competition.boards} == {SeasonRules(opens)}
    assert (await audited(place))[-1] == "publish-configured competition Cup: 2 boards"


async def test_without_an_opening_date_a_competition_opens_when_it_is_published(
    place: Place,
) -> None:
    text = TEXT.replace(f"opens: {OPENS}\n", "")
    await publish(place, *await read(place, text))
    begun = place.clock.now()
    place.clock.advance(60)
    await publish(place, *await read(place, text.replace("Two", "2")))
    assert ((await cup(place)).description, (await cup(place)).opens_at) == ("2 tasks.", begun)
    await publish(place, *await read(place))
    await publish(place, *await read(place, text))
    assert (await cup(place)).opens_at == place.clock.now()
    assert {each.rules.opens_at for each in (await cup(place)).boards} == {None}


async def test_a_board_that_leaves_a_competition_stays_a_board(place: Place) -> None:
    await publish(place, *await read(place))
    await publish(place, *(await read(place))[:1])
    assert [each.name for each in (await cup(place)).boards] == ["double"]
    assert await place.store.boards.find("third") is not None


async def test_the_competition_of_another_person_is_only_changed_by_an_admin(
    place: Place,
) -> None:
    await publish(place, *await read(place))
    bob = await place.person("bob")
    text = TEXT.replace("name: double,", "name: other,").replace("name: third,", "name: more,")
    drafts = await read(place, text, bob)
    with pytest.raises(UserError, match="'Cup' belongs to another person") as refusal:
        await publish(place, *drafts)
    assert refusal.value.code == "not-yours"
    assert await place.store.boards.find("other") is None
    as_admin = [replace(each, request=replace(each.request, as_admin=True)) for each in drafts]
    await publish(place, *as_admin)
    assert [each.name for each in (await cup(place)).boards] == ["other", "more"]
    assert (await cup(place)).creator == place.ada


async def test_a_board_cannot_close_before_it_opens(place: Place) -> None:
    drafts = [
        replace(each, request=replace(each.request, deadline=place.clock.now() + timedelta(1)))
        for each in await read(place)
    ]
    with pytest.raises(UserError, match="closes before it opens"):
        await publish(place, *drafts)


async def test_a_zip_that_is_no_competition_is_refused_in_the_parsers_process(
    place: Place,
) -> None:
    with pytest.raises(UserError, match=r"set\.yaml:1: the key 'problems' is missing"):
        await read(place, "name: x")


async def test_a_name_that_another_person_takes_in_the_same_moment_stays_theirs(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    bob, store = await place.person("bob"), place.store
    begun: list[bool] = []
    stored = store.competitions.find

    async def begin(_: object) -> None:
        begun.append(True)

    async def find(name: str) -> Competition | None:
        found = await stored(name)
        if begun and found is None:  # just after it was looked up in the transaction of Bob
            begun.clear()
            new = NewCompetition(
                name, place.ada, "Ada's", PointsRule(), place.clock.now(), (place.board.id,)
            )
            await store.competitions.put(new)
        return found

    monkeypatch.setattr(store.competitions, "find", find)
    pipeline = Pipeline(store, place.clock, [make_judge()], print, before_publish=begin)
    with pytest.raises(UserError, match="already a competition named 'Cup'"):
        await pipeline.check_and_publish(await read(place, person=bob), unchecked=True)
    assert await store.boards.find("double") is None
