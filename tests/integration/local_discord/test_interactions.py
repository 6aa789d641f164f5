"""Every kind of interaction, with an unmodified discord.py in a process of its own."""

import pytest

from tests.doubles.discord.errors import DriverError
from tests.doubles.discord.kinds import ChannelKind, MessageKind
from tests.doubles.discord.model.files import File
from tests.integration.local_discord.stage import Played

pytestmark = pytest.mark.asyncio(loop_scope="module")
CODE = b"import torch\n"
RANKED = "leaderboard submit ranked"


async def test_a_bot_registers_its_commands_once(play: Played) -> None:
    names = {command["name"] for command in play.server.commands}
    assert {"leaderboard", "admin", "rules", "Count words", "Points"} == names
    assert len(play.server.syncs) == 1


async def test_a_submission_goes_through_a_menu_into_a_private_thread(play: Played) -> None:
    stage, alice, bob = play.stage, play.stage.alice, play.stage.bob
    script = File("my kernel.py", CODE)
    run = await alice.slash(RANKED, script=script, board="matmul", mode="Full", priority=3)
    assert run.latency < 3
    assert run.message.ephemeral
    assert alice.can_see(run.message)
    assert not bob.can_see(run.message)
    menu = run.message.select("GPUs")
    assert [option["label"] for option in menu.options] == ["A100", "H100", "H200", "B200", "MI300"]
    done = await alice.select(menu, ["H200", "B200"])
    assert "Submitting to h200, b200" in run.message.edits
    thread = await alice.sees_thread("matmul - Alice", stage.lab)
    status = await alice.sees("done", thread)
    assert thread.private
    assert not bob.can_see(thread)
    assert status.edits == ["queued", "running", "checking", "done"]
    assert status.embeds[0]["description"] == "my_kernel.py: 13 bytes"
    assert [field["name"] for field in status.embeds[0]["fields"]] == ["h200", "b200"]
    assert status.file("log.txt").data == b"log of " + CODE
    told = await done.followup()
    assert told.ephemeral
    assert thread.mention in told.content
    await alice.sees("Submitted")
    with pytest.raises(DriverError, match="disabled or gone"):
        await alice.select(menu, ["H100"])
    play.server.assert_clean()


async def test_a_public_thread_is_announced_in_its_channel(play: Played) -> None:
    stage = play.stage
    run = await stage.bob.slash(RANKED, stage.public, script=File("b.py", CODE), board="sort")
    await stage.bob.select(run.message, ["a100"])
    await stage.bob.sees("Submitted", stage.public)
    (thread,) = stage.public.threads
    assert thread.kind is ChannelKind.PUBLIC_THREAD
    assert stage.carol.can_see(thread)
    assert [message.kind for message in stage.public.messages] == [MessageKind.THREAD_CREATED]
    play.server.assert_clean()


async def test_the_client_refuses_what_a_client_refuses(play: Played) -> None:
    alice, script = play.stage.alice, File("a", b"")
    with pytest.raises(DriverError, match="required options missing"):
        await alice.slash(RANKED, board="sort")
    with pytest.raises(DriverError, match="not accepted"):
        await alice.slash(RANKED, script=script, board="sort", priority=11)
    with pytest.raises(DriverError, match="not accepted"):
        await alice.slash(RANKED, script=File("big", b"0" * (10 * 2**20 + 1)), board="sort")
    with pytest.raises(DriverError, match="no subcommand"):
        await alice.slash("leaderboard nope")
    with pytest.raises(DriverError, match="is a group"):
        await alice.slash("leaderboard submit")
    run = await alice.slash(RANKED, script=script, board="sort")
    with pytest.raises(DriverError, match="does not see"):
        await play.stage.bob.select(run.message, ["A100"])
    with pytest.raises(DriverError, match="not offered"):
        await alice.select(run.message, ["T4"])


async def test_choices_are_offered_while_typing(play: Played) -> None:
    alice = play.stage.alice
    offered = await alice.autocomplete(RANKED, "board", "mat")
    assert [choice["value"] for choice in offered] == ["matmul", "matvec"]
    assert len(await alice.autocomplete(RANKED, "board")) == 25
    play.server.assert_clean()


async def test_buttons_update_now_and_later(play: Played) -> None:
    alice, bob = play.stage.alice, play.stage.bob
    run = await alice.slash("leaderboard show")
    await bob.click(run.message.button("Next"))
    await bob.click(run.message, "Next")
    assert run.message.embeds[0]["description"] == "page 2"
    await alice.click(run.message, "Later")
    assert await alice.sees("updated later") is run.message
    with pytest.raises(DriverError, match="disabled"):
        await alice.click(run.message, "Off")
    play.server.assert_clean()


async def test_a_modal_takes_text_a_choice_and_a_file(play: Played) -> None:
    carol, task = play.stage.carol, File("t.yml", b"a: 1")
    run = await carol.slash("admin create")
    with pytest.raises(DriverError, match="characters not accepted"):
        await carol.modal(run, name="n" * 21, GPUs=["H100"], Task=task)
    fields = {"Name": "conv2d", "Description": "two\nlines", "GPUs": ["H100", "B200"], "Task": task}
    done = await carol.modal(run, fields)
    assert done.message.content == "created 'conv2d' 'two\\nlines' ['H100', 'B200'] b'a: 1'"
    play.server.assert_clean()


async def test_a_button_may_open_a_modal(play: Played) -> None:
    alice = play.stage.alice
    run = await alice.slash("leaderboard show")
    asked = await alice.click(run.message, "Ask")
    done = await alice.modal(asked, Name="x", GPUs=["A100"], Task=File("t", b"!"))
    assert "created 'x' ''" in done.message.content
    play.server.assert_clean()


async def test_the_deferral_decides_who_sees_the_first_follow_up(play: Played) -> None:
    alice = play.stage.alice
    run = await alice.slash("leaderboard slow")
    assert run.message.loading
    assert (await run.final()).content == "first"
    assert not run.message.ephemeral
    second = await run.followup()
    assert second.ephemeral
    assert second.file("out.csv").text == "x,y\n1,2\n"
    run = await alice.slash("leaderboard slow", private=True)
    assert (await run.final()).ephemeral
    await run.followup()
    play.server.assert_clean()


async def test_options_take_people_roles_channels_and_numbers(play: Played) -> None:
    stage = play.stage
    run = await stage.alice.slash(
        "leaderboard who", user=stage.bob, role=stage.staff, where=stage.public, factor=1.5
    )
    assert run.message.content == "Bob Staff public-lab 1.5"


async def test_menus_of_messages_and_people_have_commands(play: Played) -> None:
    alice, bob = play.stage.alice, play.stage.bob
    message = await bob.send("three little words", File("a.py", b""))
    run = await alice.message_command("Count words", message)
    assert run.message.content == "3 words in 1 files"
    assert run.message.kind is MessageKind.CONTEXT_MENU_COMMAND
    assert (await alice.user_command("Points", bob)).message.content == "Bob: 7"
    ping = await bob.send("!ping")
    pong = await alice.sees(lambda said: said.reference is ping)
    assert pong.content == "pong 5"
    play.server.assert_clean()


async def test_permissions_decide_who_is_offered_a_command(play: Played) -> None:
    assert "admin" in play.stage.carol.commands()
    assert "admin" not in play.stage.alice.commands()
    with pytest.raises(DriverError, match="not offered"):
        await play.stage.alice.slash("admin create")


async def test_a_bot_sets_up_a_guild(play: Played) -> None:
    stage = play.stage
    run = await stage.carol.slash("admin setup")
    done = await run.final()
    assert done.content.startswith("ok <#")
    forum = stage.guild.channel("central")
    (thread,) = forum.threads
    assert thread.archived
    assert thread.messages[0].edits == ["Task: multiply", "Task: multiply fast"]
    role = stage.guild.role("Leaderboard Admin")
    assert role.id in stage.guild.members[stage.carol.id].roles
    assert stage.guild.me.nick == "Judge"
    assert role.mention in done.content
    assert not done.pings
    play.server.assert_clean()


async def test_commands_work_in_direct_messages_and_in_another_guild(play: Played) -> None:
    other = play.server.guild("another")
    dora = play.server.user("dora", other)
    assert "admin" not in dora.commands(dora.dm)
    for place in (dora.dm, other.channel("general")):
        run = await dora.slash("leaderboard show", place)
        await dora.click(run.message, "Next")
        assert run.message in dora.messages(place)
        assert not play.stage.alice.can_see(run.message)
    play.server.assert_clean()


async def test_a_bot_that_left_a_guild_hears_nothing_of_it(play: Played) -> None:
    server, gone = play.server, play.server.guild("gone")
    emil = server.user("emil", gone)
    assert (await emil.slash("leaderboard show")).message.embeds
    gone.leave(server.world.bot)
    await emil.send("!ping")
    ping = await play.stage.alice.send("!ping")
    await play.stage.alice.sees(lambda said: said.reference is ping)
    assert [message.author for message in gone.channel("general").messages[1:]] == [emil]
    server.assert_clean()
