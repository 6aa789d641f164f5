"""A check is shown in one thread; what Discord refuses goes elsewhere, and a command shows it."""

from collections.abc import AsyncIterator

import pytest

from bot.discord import channels
from bot.discord.context import FRONT_END
from bot.discord.publication_thread import PublicationPoster, PublicationThread
from bot.domain.ids import PublicationId
from bot.domain.publication import NewPublication, PublishRequest
from bot.domain.records import InteractionRequest
from bot.domain.tasks.lint import CheckStep
from bot.services.publishing.publish import REQUEST
from bot.services.publishing.state import HeldPublication, PublicationOutcome, PublicationState
from tests.doubles.discord.kinds import ChannelKind
from tests.doubles.discord.limits import THREADS
from tests.doubles.discord.model.channels import Channel
from tests.doubles.discord.model.interactions import Interaction
from tests.doubles.discord.rest.faults import Fault
from tests.doubles.discord_displays import (
    TOO_MANY_THREADS,
    UNKNOWN_CHANNEL,
    Lost,
    conversing,
    judged,
    to_the_end,
)
from tests.doubles.discord_room import LEASE, OWNER, Room
from tests.doubles.discord_room import room as a_room

STEPS = PublicationState(steps=(CheckStep("CPU", "a.py", "test", 1, 2),))
ENDED = STEPS.model_copy(
    update={"outcome": PublicationOutcome(title="Leaderboard double", message="It is published.")}
)
TEXT = "It is published."


@pytest.fixture(name="room")
async def _room(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Room]:
    monkeypatch.setattr(channels, "EDIT_INTERVAL_S", 0.0)
    async with a_room(commands=True) as found:
        yield found


async def asked(room: Room) -> Interaction:
    """A command of Alice's, whose token is kept for the outcome."""
    run = await room.alice.slash("leaderboard list")
    await run.final()
    store, key = room.place.store.interactions, f"kept:{run.id}"
    request = InteractionRequest(key, FRONT_END, "{}", run.token, room.place.clock.now())
    assert await store.claim(request, OWNER, LEASE)
    assert await store.finish(key, OWNER, keep_token=True)
    return run


async def poster_of(
    room: Room, channel: Channel | None = None, run: Interaction | None = None
) -> PublicationPoster:
    """A check of Alice's, held by this process."""
    thread = PublicationThread(
        channel=(channel or room.channel).id,
        user=room.alice.id,
        answer="" if run is None else f"kept:{run.id}",
    )
    wish = PublishRequest(room.place.ada, "double", ("CPU",))
    new = NewPublication(
        FRONT_END,
        room.place.ada,
        b"",
        REQUEST.dump_json(wish).decode(),
        thread.model_dump_json(),
    )
    store = room.place.store.publications
    await store.add(new)
    (held,) = await store.claim(FRONT_END, OWNER, LEASE)
    publication = HeldPublication(room.place.store, OWNER, held, wish)
    return PublicationPoster.of(room.client, room.context, publication)


def checks(channel: Channel) -> list[Channel]:
    return [each for each in channel.threads if each.name.startswith("Check ")]


def outcomes(channel: Channel) -> int:
    return sum(TEXT in each.text for each in channel.messages)


@pytest.mark.parametrize("status", [502, 503])
async def test_a_lost_answer_of_the_creation_leaves_one_thread(room: Room, status: int) -> None:
    poster = await poster_of(room)
    lost = Lost("POST", THREADS, 1, status)
    with room.server.faults.during(lost):
        await poster.changed(STEPS)
    await poster.finished(ENDED)
    assert lost.hits == 1
    (thread,) = checks(room.channel)
    assert outcomes(thread) == 1
    assert room.alice.can_see(thread)


async def test_an_archived_thread_is_unarchived_before_its_message_is_edited(room: Room) -> None:
    poster = await poster_of(room)
    await poster.changed(STEPS)
    room.server.clock.advance(2 * 3600)
    await room.client.http.get_channel(room.channel.id)  # Discord looks at its clock
    (thread,) = checks(room.channel)
    guild = room.client.guilds[0]
    await room.server.wait_for(lambda: guild.get_thread(thread.id) is None)
    assert [each.archived for each in checks(room.channel)] == [True]
    await poster.changed(PublicationState(steps=(CheckStep("CPU", "b.py"),)))
    assert [each.archived for each in checks(room.channel)] == [False]
    await poster.finished(ENDED)
    assert outcomes(thread) == 1
    room.server.assert_clean()


async def test_in_a_full_guild_an_old_thread_is_archived_for_the_check(room: Room) -> None:
    _, show = await judged(room)
    await to_the_end(room, show)
    room.place.clock.advance(60)
    room.server.world.limits.active_threads = 2
    poster = await poster_of(room)
    await poster.changed(STEPS)
    assert [each.archived for each in room.channel.threads if each.private] == [True, False]
    await poster.finished(ENDED)
    assert outcomes(checks(room.channel)[0]) == 1
    room.server.assert_clean(allowing=[TOO_MANY_THREADS])


@pytest.mark.parametrize("code", [TOO_MANY_THREADS, 50013, 50024, 160005])
async def test_without_a_thread_the_outcome_is_in_the_conversation(room: Room, code: int) -> None:
    await conversing(room)
    poster = await poster_of(room)
    with room.server.faults.during(Fault("POST", THREADS, 400, code=code)):
        await poster.changed(STEPS)
        await poster.finished(ENDED)
    assert outcomes(room.alice.dm) == 1
    assert checks(room.channel) == []


@pytest.mark.parametrize("is_quick", [False, True])
async def test_without_thread_and_conversation_the_outcome_is_added_to_the_answer(
    room: Room, *, is_quick: bool
) -> None:
    run = await asked(room)
    room.server.world.limits.active_threads = 0
    poster = await poster_of(room, run=run)
    if not is_quick:
        await poster.changed(STEPS)
    await poster.finished(ENDED)
    await poster.finished(ENDED)  # as after a kill
    (told,) = run.followups
    assert TEXT in told.text
    assert told.ephemeral
    kept = await room.place.store.interactions.answer_of(f"kept:{run.id}")
    assert kept.token is None
    assert room.alice.dms == []
    room.server.assert_clean(allowing=[TOO_MANY_THREADS])


async def test_a_deleted_thread_is_replaced_by_the_answer(room: Room) -> None:
    run = await asked(room)
    poster = await poster_of(room, run=run)
    await poster.changed(STEPS)
    (thread,) = checks(room.channel)
    room.server.world.channels.pop(thread.id).deleted = True
    guild = room.client.guilds[0]
    cached = guild.get_thread(thread.id)
    assert cached is not None
    guild._remove_thread(cached)
    await poster.finished(ENDED)
    assert [TEXT in each.text for each in run.followups] == [True]
    room.server.assert_clean(allowing=[UNKNOWN_CHANNEL])


async def test_when_everything_has_failed_the_command_shows_the_outcome(room: Room) -> None:
    room.server.world.limits.active_threads = 0
    poster = await poster_of(room)
    await poster.changed(STEPS)
    number = poster.held.publication.id
    running = await (await room.alice.slash("leaderboard check show", id=number)).final()
    assert "Checking the task of double" in running.text
    assert [each.label for each in running.buttons] == ["Cancel"]
    await poster.finished(ENDED)
    await end(room, number)
    told = await (await room.alice.slash("leaderboard check show", id=number)).final()
    assert TEXT in told.text
    assert room.alice.dms == []
    room.server.assert_clean(allowing=[TOO_MANY_THREADS])


async def end(room: Room, number: PublicationId) -> None:
    store = room.place.store.publications
    assert await store.save_state(number, OWNER, state=ENDED.model_dump_json())
    assert await store.end(number, OWNER)


async def test_an_announcement_channel_has_no_thread_for_a_check(room: Room) -> None:
    news = room.guild.create_channel("news", ChannelKind.NEWS)
    await room.server.wait_for(lambda: room.client.get_channel(news.id))
    run = await asked(room)
    poster = await poster_of(room, news, run)
    await poster.changed(STEPS)
    await poster.finished(ENDED)
    assert news.threads == []
    assert [TEXT in each.text for each in run.followups] == [True]
    room.server.assert_clean()


async def test_a_check_is_shown_and_cancelled_by_number_only_by_its_creator_and_admins(
    room: Room,
) -> None:
    number = (await poster_of(room)).held.publication.id
    for command in ("show", "cancel"):
        run = await room.bob.slash(f"leaderboard check {command}", id=number)
        assert f"Check {number} does not exist" in (await run.final()).text
    admin = await room.admin_role()
    room.guild.members[room.bob.id].roles.add(admin.id)
    run = await room.bob.slash("leaderboard check cancel", id=number)
    assert f"Stopping check {number}" in (await run.final()).text
    why = await room.place.store.publications.cancellation(number)
    assert why == "by an admin"
    again = await room.alice.slash("leaderboard check cancel", id=number)
    assert "has ended or is cancelled already" in (await again.final()).text


async def test_an_admin_cancels_a_check_that_did_not_come_from_discord(room: Room) -> None:
    new = NewPublication("command-line-1", room.place.ada, b"", "{}")
    number = await room.place.store.publications.add(new)
    refused = await room.alice.slash("leaderboard check cancel", id=number)
    assert "does not exist" in (await refused.final()).text
    admin = await room.admin_role()
    room.guild.members[room.bob.id].roles.add(admin.id)
    run = await room.bob.slash("leaderboard check cancel", id=number)
    assert f"Stopping check {number}" in (await run.final()).text


async def test_an_admin_finds_a_running_check_in_the_menu_of_its_message(room: Room) -> None:
    poster = await poster_of(room)
    await poster.changed(STEPS)
    (thread,) = checks(room.channel)
    admin = await room.admin_role()
    room.guild.members[room.bob.id].roles.add(admin.id)
    run = await room.bob.message_command("Moderate", thread.messages[-1])
    found = await run.final()
    assert "Checking the task of double" in found.text
    stopped = await room.bob.click(found, "Cancel")
    assert "Stopping check" in (await stopped.final()).text
    assert await room.place.store.publications.cancellation(poster.held.publication.id)


async def test_the_number_of_a_check_is_completed_from_the_persons_checks(room: Room) -> None:
    number = (await poster_of(room)).held.publication.id
    offered = await room.alice.autocomplete("leaderboard check show", "id", "")
    assert [each["name"] for each in offered] == [f"{number}: double"]
    assert await room.bob.autocomplete("leaderboard check show", "id", "") == []
