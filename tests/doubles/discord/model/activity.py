"""Which threads are active: a guild may have only so many, and inactive ones are archived."""

from tests.doubles.discord.errors import refusal
from tests.doubles.discord.model.channels import Channel
from tests.doubles.discord.model.guilds import Guild
from tests.doubles.discord.model.world import World


def require_free_thread(guild: Guild) -> None:
    """Raise 160006 if the guild has as many active threads as it may have."""
    active = [x for x in guild.channels if x.is_thread and not x.archived]
    if len(active) >= guild.world.limits.active_threads:
        raise refusal(160006)


def unarchive(thread: Channel) -> None:
    """Make an archived thread active again; 160006 if the guild has too many active threads."""
    state = thread.state
    assert state is not None
    assert thread.guild is not None
    if state.archived:
        require_free_thread(thread.guild)
    state.archived, state.active_at = False, thread.world.clock.now()


def archive_inactive(world: World) -> None:
    """Archive the threads that were inactive for longer than their setting allows."""
    now = world.clock.now()
    for thread in list(world.channels.values()):
        state = thread.state
        if state and not state.archived and now >= state.active_at + 60 * state.auto_archive:
            state.archived = True
            world.dispatch("THREAD_UPDATE", thread.to_api(), thread)
