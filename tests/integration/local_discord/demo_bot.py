"""A small bot for leaderboards, as one would write it for Discord: it knows no other server."""

import asyncio
import io
import os
import re

import discord
from discord import app_commands
from typing_extensions import override

from tests.integration.local_discord import rule_breaker

Asked = discord.Interaction[discord.Client]
BOARDS = ["matmul", "matvec", "sort", *(f"board-{i:02}" for i in range(40))]
GPUS = ["A100", "H100", "H200", "B200", "MI300"]


class Bot(discord.Client):
    """Registers its commands everywhere at its start."""

    def __init__(self) -> None:
        intents = discord.Intents.default()
        intents.members = intents.message_content = True
        mentions = discord.AllowedMentions.none()
        super().__init__(intents=intents, allowed_mentions=mentions, max_messages=None)
        self.tree = app_commands.CommandTree(self)
        for command in (leaderboard, admin, rule_breaker.rules, count, points):
            self.tree.add_command(command)

    @override
    async def setup_hook(self) -> None:
        self.add_dynamic_items(Again)
        await self.tree.sync()

    async def on_message(self, message: discord.Message) -> None:
        if message.content == "!ping":
            members = message.guild.member_count if message.guild else 2
            await message.reply(f"pong {members}")


class Again(discord.ui.DynamicItem[discord.ui.Button[discord.ui.View]], template="again:([0-9]+)"):
    """A button that works after a restart: its custom id says everything."""

    def __init__(self, number: int) -> None:
        super().__init__(discord.ui.Button(label="Again", custom_id=f"again:{number}"))
        self.number = number

    @classmethod
    @override
    async def from_custom_id(
        cls, _interaction: Asked, _item: discord.ui.Item[discord.ui.View], match: re.Match[str], /
    ) -> "Again":
        return cls(int(match[1]))

    @override
    async def callback(self, interaction: Asked) -> None:
        await interaction.response.send_message(f"again {self.number}")


class GpuView(discord.ui.View):
    """Asks for GPUs, then works in a thread."""

    def __init__(self, script: bytes, name: str, board: str) -> None:
        super().__init__(timeout=300)
        self.script, self.name, self.board = script, name, board

    @discord.ui.select(
        placeholder="GPUs",
        max_values=len(GPUS),
        options=[discord.SelectOption(label=gpu, value=gpu.lower()) for gpu in GPUS],
    )
    async def pick(self, interaction: Asked, menu: discord.ui.Select["GpuView"]) -> None:
        chosen = ", ".join(menu.values)
        await interaction.response.edit_message(content=f"Submitting to {chosen}", view=None)
        thread = await self.thread(interaction)
        await thread.add_user(interaction.user)
        status = await thread.send("queued")
        for step in ("running", "checking"):
            await status.edit(content=step)
        embed = discord.Embed(title="Result", description=f"{self.name}: {len(self.script)} bytes")
        for gpu in menu.values:
            embed.add_field(name=gpu, value="1.23 ms")
        log = discord.File(io.BytesIO(b"log of " + self.script), "log.txt")
        await status.edit(content="done", embed=embed, attachments=[log])
        await interaction.followup.send(f"Results: {thread.mention}", ephemeral=True)
        await interaction.edit_original_response(content="Submitted")

    async def thread(self, interaction: Asked) -> discord.Thread:
        channel = interaction.channel
        assert isinstance(channel, discord.TextChannel)
        name = f"{self.board} - {interaction.user.display_name}"
        if channel.name == "public-lab":
            return await channel.create_thread(name=name, type=discord.ChannelType.public_thread)
        return await channel.create_thread(name=name)


class CreateModal(discord.ui.Modal, title="Create a leaderboard"):
    """Text, a menu and a file."""

    name: discord.ui.TextInput["CreateModal"] = discord.ui.TextInput(label="Name", max_length=20)
    text: discord.ui.TextInput["CreateModal"] = discord.ui.TextInput(
        label="Description", style=discord.TextStyle.paragraph, required=False
    )
    gpus: discord.ui.Label["CreateModal"] = discord.ui.Label(
        text="GPUs",
        component=discord.ui.Select(
            max_values=2, options=[discord.SelectOption(label=gpu) for gpu in GPUS]
        ),
    )
    task: discord.ui.Label["CreateModal"] = discord.ui.Label(
        text="Task", component=discord.ui.FileUpload(max_values=1)
    )

    @override
    async def on_submit(self, interaction: Asked) -> None:
        menu, upload = self.gpus.component, self.task.component
        assert isinstance(menu, discord.ui.Select)
        assert isinstance(upload, discord.ui.FileUpload)
        data = await upload.values[0].read()
        said = f"created {self.name.value!r} {self.text.value!r} {menu.values} {data!r}"
        await interaction.response.send_message(said)


class Pages(discord.ui.View):
    """Buttons that update, defer, ask, and one that is off."""

    page = 0

    @discord.ui.button(label="Next")
    async def turn(self, interaction: Asked, _button: discord.ui.Button["Pages"]) -> None:
        self.page += 1
        embed = discord.Embed(title="Ranking", description=f"page {self.page}")
        await interaction.response.edit_message(embed=embed, view=self)

    @discord.ui.button(label="Later")
    async def later(self, interaction: Asked, _button: discord.ui.Button["Pages"]) -> None:
        await interaction.response.defer()
        await asyncio.sleep(0.2)
        await interaction.edit_original_response(content="updated later")

    @discord.ui.button(label="Ask")
    async def ask(self, interaction: Asked, _button: discord.ui.Button["Pages"]) -> None:
        await interaction.response.send_modal(CreateModal())

    @discord.ui.button(label="Off", disabled=True)
    async def off(self, interaction: Asked, _button: discord.ui.Button["Pages"]) -> None:
        raise AssertionError


leaderboard = app_commands.Group(name="leaderboard", description="Leaderboards")
submit = app_commands.Group(name="submit", description="Submit code", parent=leaderboard)
admin = app_commands.Group(
    name="admin",
    description="Administration",
    default_permissions=discord.Permissions(manage_guild=True),
    guild_only=True,
)


async def boards(_interaction: Asked, current: str) -> list[app_commands.Choice[str]]:
    found = [board for board in BOARDS if current.lower() in board]
    return [app_commands.Choice(name=board, value=board) for board in found[:25]]


@submit.command(name="ranked", description="A ranked submission")
@app_commands.autocomplete(board=boards)
@app_commands.choices(
    mode=[app_commands.Choice(name="Fast", value=1), app_commands.Choice(name="Full", value=2)]
)
async def ranked(
    interaction: Asked,
    script: discord.Attachment,
    board: str,
    mode: int = 1,
    priority: app_commands.Range[int, 0, 10] = 0,
) -> None:
    code = await script.read()
    view = GpuView(code, script.filename, board)
    await interaction.response.send_message("Choose GPUs", view=view, ephemeral=True)


@leaderboard.command(name="show", description="Show a ranking")
async def show(interaction: Asked) -> None:
    embed = discord.Embed(title="Ranking", description="page 0")
    await interaction.response.send_message(embed=embed, view=Pages())


@leaderboard.command(name="slow", description="Deferred answer")
async def slow(interaction: Asked, *, private: bool = False) -> None:
    """The first follow-up fills what was deferred, and keeps its visibility."""
    await interaction.response.defer(ephemeral=private, thinking=True)
    await asyncio.sleep(0.3)
    await interaction.followup.send("first", ephemeral=not private)
    table = discord.File(io.BytesIO(b"x,y\n1,2\n"), "out.csv")
    await interaction.followup.send("second", ephemeral=True, file=table)


@leaderboard.command(name="who", description="People, roles, channels")
async def who(
    interaction: Asked,
    user: discord.Member,
    role: discord.Role,
    where: discord.TextChannel,
    factor: float,
) -> None:
    said = f"{user.display_name} {role.name} {where.name} {factor}"
    await interaction.response.send_message(said)


@leaderboard.command(name="last", description="A button that outlives the bot")
async def last(interaction: Asked, number: int) -> None:
    view = discord.ui.View(timeout=None)
    view.add_item(Again(number))
    await interaction.response.send_message("last", view=view)


@admin.command(name="create", description="Create a leaderboard")
async def create(interaction: Asked) -> None:
    await interaction.response.send_modal(CreateModal())


@admin.command(name="setup", description="Channels and roles")
async def setup(interaction: Asked) -> None:
    await interaction.response.defer()
    try:
        said = await rule_breaker.set_up(interaction)
    except discord.HTTPException as error:
        said = rule_breaker.brief(error)
    await interaction.edit_original_response(content=said)


@app_commands.context_menu(name="Count words")
async def count(interaction: Asked, message: discord.Message) -> None:
    said = f"{len(message.content.split())} words in {len(message.attachments)} files"
    await interaction.response.send_message(said, ephemeral=True)


@app_commands.context_menu(name="Points")
async def points(interaction: Asked, user: discord.Member) -> None:
    await interaction.response.send_message(f"{user.display_name}: 7", ephemeral=True)


if __name__ == "__main__":
    Bot().run(os.environ["DISCORD_TOKEN"])
