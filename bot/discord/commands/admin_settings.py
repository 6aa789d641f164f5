"""`/admin limit|unlimit|limits|channel-allow|channel-forbid|roles|notices`: settings."""

from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import Literal

import discord
from discord import app_commands
from typing_extensions import override

from bot.discord import notifications, options, roles
from bot.discord.alerts import ALERTS
from bot.discord.context import Interaction, Tree, add_commands, context_of
from bot.discord.escaping import discord_time, line
from bot.discord.interaction_claims import replying
from bot.domain.costs import Quota, QuotaKey, Unit
from bot.domain.errors import UserError
from bot.domain.ids import BoardId
from bot.domain.notifications import NotificationKind
from bot.domain.submission import RateLimit
from bot.ports import Store
from bot.reports.admin import submission_rules_report
from bot.services import audit, lookup, moderation
from bot.services.notify import set_notifications
from bot.services.rules import submission_rules
from runners.contract.task import Mode


async def setup(tree: Tree) -> None:
    """Add this file's commands."""
    add_commands(
        tree, "admin", limit, unlimit, limits, allow, forbid, choose_roles, alerts, notices
    )


_Reason = app_commands.Range[str, 0, 300]


@app_commands.command(description="Limit submissions, or the GPU time or money of a day")
@app_commands.describe(
    most="Maximum number of submissions of each person; needs minutes",
    minutes="Length of the time window in minutes",
    gpu_seconds="Instead: GPU seconds a day (UTC)",
    dollars="Instead: dollars a day (UTC)",
    leaderboard_name="Board (default: all boards)",
    mode="Mode of the submissions (default: all modes)",
    gpu="GPU type of the GPU time (default: all together)",
    together="Whether all people share the GPU time (default: each person has it)",
    who="Limit only this person, who can read the reason",
    days="For how many days (default: until an admin removes the limit)",
    reason="Reason, kept in the audit log",
)
@app_commands.autocomplete(leaderboard_name=options.boards, gpu=options.gpus)
async def limit(  # noqa: PLR0913  an argument for each option
    interaction: Interaction,
    *,
    most: app_commands.Range[int, 1, 100_000] | None = None,
    minutes: app_commands.Range[int, 1, 525_600] | None = None,
    gpu_seconds: app_commands.Range[int, 1, 1_000_000_000] | None = None,
    dollars: app_commands.Range[float, 0.01, 1_000_000.0] | None = None,
    leaderboard_name: str | None = None,
    mode: Mode | None = None,
    gpu: str | None = None,
    together: bool = False,
    who: discord.User | None = None,
    days: app_commands.Range[int, 1, 365] | None = None,
    reason: _Reason = "",
) -> None:
    """Replace the limit of the same board, mode and person, or the quota of the same GPU time."""
    async with replying(interaction) as answer:
        roles.require(interaction, roles.ADMIN)
        board = await _board(interaction, leaderboard_name)
        match most, minutes, gpu_seconds, dollars:
            case int(), int(), None, None:
                _require_count(gpu, together=together)
                now = context_of(interaction).clock.now()
                end = None if days is None else now + timedelta(days=days)
                wanted = RateLimit(most, timedelta(minutes=minutes), board, mode, until=end)
                words = await _set_limit(interaction, wanted, reason, who)
            case _ if days is not None:
                raise UserError("usage", "'days' is only for a limit of submissions")
            case _ if together and who is not None:
                raise UserError("usage", "'together' is for all people; leave out 'who'")
            case (None, None, int(amount), None) | (None, None, None, float(amount)):
                unit = Unit.DOLLARS if gpu_seconds is None else Unit.SECONDS
                key = _quota_key(unit, board, mode, gpu, together=together)
                words = await _set_limit(interaction, Quota(key, amount), reason, who)
            case _:
                how = "give most and minutes for submissions, or GPU seconds, or dollars"
                raise UserError("usage", how)
        await answer.conclude(words)


async def _set_limit(
    interaction: Interaction, wanted: RateLimit | Quota, reason: str, who: discord.User | None
) -> str:
    """Set a limit of everyone's submissions or GPU time, or of one person's; return the reply."""
    decision = await roles.admin_decision(interaction, reason)
    if who is not None and not reason:
        raise UserError("usage", "give a reason, which this person can read")
    context = context_of(interaction)
    identity = None if who is None else (await context.person(who)).identity
    if isinstance(wanted, Quota):
        quota = await moderation.set_quota(context.store, decision, wanted, identity)
        whom = "" if who is None else f" of {line(who.name)}"
        return f"GPU time{whom} is limited: {line(quota.words, 600)}."
    end = f", until {discord_time(wanted.until)}" if wanted.until else ""
    await moderation.set_limit(context.store, decision, wanted, identity)
    whom = "Each person" if who is None else line(who.name)
    return f"{whom} may submit at most {wanted.most} in {wanted.window_words}{end}."


_What = Literal["submissions", "GPU seconds", "dollars"]


@app_commands.command(description="Remove the limit of this board and mode, or this GPU quota")
@app_commands.describe(
    what="What is limited (default: submissions)",
    leaderboard_name="Board of the limit; leave empty for a limit on all boards",
    mode="Mode of the limit; leave empty for a limit on all modes",
    gpu="GPU type of the GPU time; leave empty for all together",
    together="Whether all people share the GPU time (default: each person has it)",
    who="The person, if the limit is for only one",
    reason="Reason, kept in the audit log",
)
@app_commands.autocomplete(leaderboard_name=options.boards, gpu=options.gpus)
async def unlimit(  # noqa: PLR0913  an argument for each option
    interaction: Interaction,
    *,
    what: _What = "submissions",
    leaderboard_name: str | None = None,
    mode: Mode | None = None,
    gpu: str | None = None,
    together: bool = False,
    who: discord.User | None = None,
    reason: _Reason = "",
) -> None:
    """Remove the limit of exactly this board and mode, or exactly this quota."""
    async with replying(interaction) as answer:
        decision = await roles.admin_decision(interaction, reason)
        context = context_of(interaction)
        board = await _board(interaction, leaderboard_name)
        identity = None if who is None else roles.user_credential(who.id)
        if what == "submissions":
            _require_count(gpu, together=together)
            await moderation.drop_limit(context.store, decision, board, mode, identity=identity)
        else:
            unit = Unit.DOLLARS if what == "dollars" else Unit.SECONDS
            key = _quota_key(unit, board, mode, gpu, together=together)
            await moderation.drop_quota(context.store, decision, key, identity)
        await answer.conclude("The limit is removed.")


def _require_count(gpu: str | None, *, together: bool) -> None:
    if gpu is not None or together:
        raise UserError("usage", "leave out 'gpu' and 'together': they are only for GPU time")


def _quota_key(
    unit: Unit, board: BoardId | None, mode: Mode | None, gpu: str | None, *, together: bool
) -> QuotaKey:
    if mode is not None:
        raise UserError("usage", "GPU time counts all modes together; leave out the mode")
    return QuotaKey(unit, not together, board, gpu)


@app_commands.command(description="Active limits, quotas, pauses and bans")
async def limits(interaction: Interaction) -> None:
    """Show a table of each kind."""
    async with replying(interaction) as answer:
        roles.require(interaction, roles.ADMIN)
        rules = await submission_rules(context_of(interaction).store)
        await answer.show(submission_rules_report(rules))


async def _board(interaction: Interaction, name: str | None) -> BoardId | None:
    if name is None:
        return None
    viewer = await roles.viewer_of(interaction)
    return (await lookup.find_board(context_of(interaction).store, viewer, name)).id


class _TextChannel(app_commands.Transformer):
    """A text channel that is not for announcements: those have no private threads."""

    @property
    @override
    def type(self) -> discord.AppCommandOptionType:
        return discord.AppCommandOptionType.channel

    @property
    @override
    def channel_types(self) -> list[discord.ChannelType]:
        return [discord.ChannelType.text]

    @override
    async def transform(
        self, interaction: Interaction, value: app_commands.AppCommandChannel
    ) -> discord.TextChannel:
        del interaction
        found = value.resolve()
        if not isinstance(found, discord.TextChannel) or found.is_news():
            raise UserError("wrong-channel", "choose a text channel that I can see")
        return found


@app_commands.command(name="channel-allow", description="Allow submissions in a channel")
@app_commands.describe(channel="Text channel; the first one you allow replaces #submissions")
async def allow(
    interaction: Interaction,
    channel: app_commands.Transform[discord.TextChannel, _TextChannel],
) -> None:
    """Add to the channels that are already allowed."""
    async with replying(interaction) as answer:
        store = context_of(interaction).store
        decision = await roles.admin_decision(interaction, channel.name)
        async with _audited(store, decision, "channel-allow", channel) as tx:
            await tx.moderation.open_channel(roles.guild_key(channel.guild.id), str(channel.id))
        await answer.conclude(f"Submissions are allowed in {channel.mention}.")


@app_commands.command(name="channel-forbid", description="Stop submissions in a channel")
@app_commands.describe(channel="The channel")
async def forbid(interaction: Interaction, channel: discord.TextChannel) -> None:
    """Forbid an allowed channel; after the last one, #submissions is allowed again."""
    async with replying(interaction) as answer:
        store = context_of(interaction).store
        decision = await roles.admin_decision(interaction, channel.name)
        async with _audited(store, decision, "channel-forbid", channel) as tx:
            if not await tx.moderation.close_channel(
                roles.guild_key(channel.guild.id), str(channel.id)
            ):
                raise UserError("wrong-channel", f"{channel.mention} was not an allowed channel")
        await answer.conclude(f"Submissions are no longer allowed in {channel.mention}.")


@app_commands.command(name="roles", description="Choose which roles give rights in this server")
@app_commands.describe(
    admin="Whose members are admins, in place of Leaderboard Admin",
    creator="Whose members may create boards, in place of Leaderboard Creator",
)
async def choose_roles(
    interaction: Interaction,
    admin: discord.Role | None = None,
    creator: discord.Role | None = None,
) -> None:
    """Replace the roles that the bot made; without options, show the present ones."""
    async with replying(interaction) as answer:
        decision = await roles.admin_decision(interaction, "")
        context, chosen = context_of(interaction), {roles.ADMIN: admin, roles.CREATOR: creator}
        for name, role in chosen.items():
            if role is not None:
                roles.require_choosable(interaction, name, role)
        async with context.store.transaction() as tx:
            for name, role in chosen.items():
                if role is not None:
                    key, purpose = roles.guild_key(role.guild.id), roles.PURPOSES[name]
                    await tx.moderation.keep_part(key, purpose, str(role.id))
                    subject = f"role {role.id} of guild {role.guild.id}"
                    await tx.audit.record(decision.actor, f"{purpose}-role", subject, role.name)
        await context.snapshot.refresh(context.store)
        admins, creators = (roles.role_words(interaction, name) for name in roles.PURPOSES)
        await answer.conclude(f"Admins have {admins}. Creators of boards have {creators}.")


def _audited(
    store: Store, decision: moderation.Decision, action: str, channel: discord.TextChannel
) -> AbstractAsyncContextManager[Store]:
    return audit.audited(store, decision.actor, action, _subject(channel), reason=decision.reason)


def _subject(channel: discord.TextChannel) -> str:
    """Return a channel as the subject of an audit entry."""
    return f"channel {channel.id} of guild {channel.guild.id}"


@app_commands.command(description="Choose the channel that gets alerts when something is wrong")
@app_commands.describe(
    channel="The channel, which only admins should see (default: show the present one)",
    off="Stop the alerts",
)
async def alerts(
    interaction: Interaction, *, channel: discord.TextChannel | None = None, off: bool = False
) -> None:
    """Choose or show the channel for alerts, or stop them."""
    async with replying(interaction) as answer:
        decision = await roles.admin_decision(interaction, "")
        context, guild = context_of(interaction), interaction.guild_id or 0
        if channel is not None:
            _require_writable(channel)
        if channel is not None or off:
            part = "" if channel is None else str(channel.id)
            subject = f"guild {guild}" if channel is None else _subject(channel)
            async with context.store.transaction() as tx:
                await tx.moderation.keep_part(roles.guild_key(guild), ALERTS, part)
                await tx.audit.record(decision.actor, "alerts", subject, "")
            await context.snapshot.refresh(context.store)
        parts = await context.store.moderation.parts()
        part = parts.get((roles.guild_key(guild), ALERTS), "")
        words = f"<#{part}> gets the alerts." if part else "No channel gets alerts."
        if channel and channel.permissions_for(channel.guild.default_role).view_channel:
            words += " Every member of this server can read it."
        await answer.conclude(words)


def _require_writable(channel: discord.TextChannel) -> None:
    if not channel.permissions_for(channel.guild.me).send_messages:
        raise UserError("wrong-channel", f"I cannot write in {channel.mention}: allow me to")


@app_commands.command(description="Choose notifications for this channel")
@app_commands.describe(
    channel="The channel",
    competition="A competition opens or closes",
    deadline="A board closes within 24 hours",
    record="A board has a new best time",
)
async def notices(
    interaction: Interaction,
    *,
    channel: discord.TextChannel,
    competition: bool | None = None,
    deadline: bool | None = None,
    record: bool | None = None,
) -> None:
    """Set what the channel is notified of; never of boards that some members may not see."""
    async with replying(interaction) as answer:
        roles.require(interaction, roles.ADMIN)
        _require_writable(channel)
        context = context_of(interaction)
        choices = {
            NotificationKind.COMPETITION: competition,
            NotificationKind.DEADLINE: deadline,
            NotificationKind.RECORD: record,
        }
        actor = await context.person(interaction.user)
        async with context.store.transaction() as tx:
            kinds = notifications.describe_kinds(
                await set_notifications(tx, roles.channel_address(channel.id), choices)
            )
            await tx.audit.record(actor.id, "notices", _subject(channel), kinds)
        await answer.conclude(f"{channel.mention} gets notifications about: {kinds}.")
