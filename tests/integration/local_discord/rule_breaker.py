"""Commands which break one rule each and report what discord.py raised."""

import asyncio
import io
from collections.abc import Awaitable, Callable

import discord
from discord import app_commands

Asked = discord.Interaction[discord.Client]
Broken = Callable[[Asked], Awaitable[object]]
rules = app_commands.Group(name="rules", description="Break Discord's rules")


def brief(error: BaseException) -> str:
    status, code = getattr(error, "status", ""), getattr(error, "code", "")
    return f"{type(error).__name__} {status} {code} {error}"[:1900]


def _channel(interaction: Asked) -> discord.TextChannel:
    assert isinstance(interaction.channel, discord.TextChannel)
    return interaction.channel


async def report(interaction: Asked, attempt: Awaitable[object]) -> None:
    """Say in the channel how an attempt ended."""
    try:
        await attempt
        said = "no error"
    except discord.HTTPException as error:
        said = brief(error)
    await _channel(interaction).send(said)


def _view(custom_id: str) -> discord.ui.View:
    view = discord.ui.View()
    view.add_item(discord.ui.Button(label="x", custom_id=custom_id))
    return view


def _files(count: int) -> list[discord.File]:
    return [discord.File(io.BytesIO(b"0"), f"{number}.txt") for number in range(count)]


def _big() -> discord.File:
    return discord.File(io.BytesIO(b"0" * (10 * 2**20 + 1)), "big.bin")


def _embeds(*lengths: int) -> list[discord.Embed]:
    return [discord.Embed(description="x" * length) for length in lengths]


BROKEN: dict[str, Broken] = {
    "long": lambda i: i.response.send_message("x" * 2001),
    "empty": lambda i: i.response.send_message(""),
    "embed": lambda i: i.response.send_message(embeds=_embeds(4097)),
    "embed total": lambda i: i.response.send_message(embeds=_embeds(3100, 3100)),
    "custom id": lambda i: i.response.send_message("x", view=_view("c" * 101)),
    "big file": lambda i: i.response.send_message(file=_big()),
    "many files": lambda i: i.response.send_message(files=_files(11)),
    "thread name": lambda i: _channel(i).create_thread(name="t" * 101),
    "early": lambda i: i.followup.send("before any response"),
}


@rules.command(name="break", description="Break one rule")
async def break_one(interaction: Asked, rule: str) -> None:
    await report(interaction, BROKEN[rule](interaction))


@rules.command(name="late", description="Answer late")
async def late(interaction: Asked, seconds: float) -> None:
    await asyncio.sleep(seconds)
    await report(interaction, interaction.response.send_message("late"))


@rules.command(name="twice", description="Answer twice, as two paths of a bot may")
async def twice(interaction: Asked) -> None:
    await interaction.response.send_message("one")
    interaction.response._response_type = None
    await report(interaction, interaction.response.send_message("two"))


@rules.command(name="expire", description="Edit when told to")
async def expire(interaction: Asked) -> None:
    await interaction.response.defer()
    await interaction.client.wait_for("message", check=lambda message: message.content == "go")
    await report(interaction, interaction.edit_original_response(content="too late?"))


@rules.command(name="burst", description="Many messages at once")
async def burst(interaction: Asked, count: int) -> None:
    await interaction.response.send_message("bursting")
    channel = _channel(interaction)
    await asyncio.gather(*(channel.send(f"burst {number}") for number in range(count)))
    await interaction.edit_original_response(content="burst over")


@rules.command(name="write", description="Write into a channel")
async def write(interaction: Asked, channel: str) -> None:
    await interaction.response.send_message("trying")
    target = interaction.client.get_partial_messageable(int(channel))
    await report(interaction, target.send("hi"))


@rules.command(name="whisper", description="Write to you alone")
async def whisper(interaction: Asked) -> None:
    await interaction.response.send_message("trying")
    await report(interaction, interaction.user.send("psst"))


@rules.command(name="choices", description="Too many choices")
async def choices(interaction: Asked, what: str) -> None:
    await interaction.response.send_message(what)


@choices.autocomplete("what")
async def too_many(_interaction: Asked, current: str) -> list[app_commands.Choice[str]]:
    """26 choices, or one after a second."""
    if current == "slow":
        await asyncio.sleep(1)
        return [app_commands.Choice(name="slow", value="slow")]
    return [app_commands.Choice(name=f"{i}", value=f"{i}") for i in range(26)]


async def set_up(interaction: Asked) -> str:
    """Channels, a role and a forum post, as a bot makes them in an empty guild."""
    guild, user = interaction.guild, interaction.user
    assert guild is not None
    assert isinstance(user, discord.Member)
    category = await guild.create_category("Leaderboards")
    forum = await category.create_forum("central", available_tags=[discord.ForumTag(name="open")])
    rights = discord.Permissions(manage_threads=True)
    role = await guild.create_role(name="Leaderboard Admin", permissions=rights)
    await user.add_roles(role)
    tag = forum.available_tags[0]
    post = await forum.create_thread(name="matmul", content="Task: multiply", applied_tags=[tag])
    await post.message.edit(content="Task: multiply fast")
    await post.thread.send("welcome")
    await post.thread.edit(archived=True)
    await guild.me.edit(nick="Judge")
    return f"ok {forum.mention} {role.mention}"
