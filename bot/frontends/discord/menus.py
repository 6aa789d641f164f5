"""Menus of GPU types, of which there may be more than one menu takes."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

import discord
from typing_extensions import override

from bot.domain.errors import UserError
from bot.frontends.discord.answers import Answer, answering
from bot.frontends.discord.options import in_menus, span

MENU_S = 840.0
"""A menu may be left unanswered; after 14 minutes Discord would refuse the answer anyway."""

Then: TypeAlias = Callable[[Answer, tuple[str, ...]], Awaitable[None]]


class GpuMenus(discord.ui.View):
    """As many menus as the GPU types need, 25 in each, and a button to go on."""

    def __init__(self, gpus: Sequence[str], then: Then, *, label: str = "Submit") -> None:
        super().__init__(timeout=MENU_S)
        self.then = then
        self.menus = [GpuMenu(part) for part in in_menus(gpus)]
        for menu in self.menus:
            self.add_item(menu)
        self.add_item(Go(label))

    async def go_on(self, interaction: discord.Interaction[Any]) -> None:
        """Go on with what is chosen by now, once."""
        async with answering(interaction) as answer:
            chosen = tuple(gpu for menu in self.menus for gpu in menu.values)
            if not chosen:
                raise UserError("choose-gpu", "choose at least one GPU type, then press the button")
            if self.is_finished():
                raise UserError("answered", "this menu was used already; give the command again")
            self.stop()
            await self.then(answer, chosen)


class GpuMenu(discord.ui.Select["GpuMenus"]):
    """Up to 25 GPU types, of which any number may be chosen."""

    def __init__(self, gpus: Sequence[str]) -> None:
        super().__init__(
            placeholder=span(gpus),
            min_values=0,
            max_values=len(gpus),
            options=[discord.SelectOption(label=gpu, value=gpu) for gpu in gpus],
        )

    @override
    async def callback(self, interaction: discord.Interaction[Any]) -> None:
        """Keep the choice until the button is pressed."""
        await interaction.response.defer()


class Go(discord.ui.Button["GpuMenus"]):
    """Goes on with the chosen GPU types."""

    def __init__(self, label: str) -> None:
        super().__init__(label=label, style=discord.ButtonStyle.primary)

    @override
    async def callback(self, interaction: discord.Interaction[Any]) -> None:
        """Hand over to the menus."""
        if self.view is not None:
            await self.view.go_on(interaction)
