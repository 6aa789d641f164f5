"""Who may do what: roles count where the installation trusts the server, and nowhere else."""

import pytest

from tests.doubles.discord.model.people import Role
from tests.doubles.discord.permissions import Permission
from tests.e2e.discord.scene import Scene

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.postgres, pytest.mark.slow]


async def test_without_the_role_nothing_is_moderated(stage: Scene) -> None:
    assert "admin" not in stage.alice.commands()  # a participant is not even offered it
    for command, options in (
        ("admin pause", {"reason": "mine"}),
        ("admin audit", {}),
        ("admin disqualify", {"id": 1, "reason": "mine"}),
    ):
        run = await stage.dana.slash(command, **options)
        assert "This needs the role Leaderboard Admin" in (await run.final()).text
    stage.server.assert_clean()


async def test_a_stranger_who_invites_the_bot_is_nobody_s_admin(stage: Scene) -> None:
    theirs = stage.server.guild("strangers")
    role = theirs.create_role("Leaderboard Admin", Permission.MANAGE_THREADS)
    mallory = stage.server.user("mallory", theirs, roles=[role])
    mallory.goes_to(theirs.create_channel("submissions"))
    await stage.server.wait_for(mallory.commands, 10)
    run = await mallory.slash("admin pause", reason="mine now")
    assert "give no rights" in (await run.final()).text
    deleted = await mallory.slash("leaderboard delete", leaderboard_name="identity")
    assert "belongs to another person" in deleted.message.text
    stage.server.assert_clean()


async def test_a_disqualified_submission_leaves_the_board_and_can_come_back(stage: Scene) -> None:
    stored = (await (await stage.submit(stage.alice, "time_us=1")).final()).text
    number = int(stored.split("#")[1].split()[0])
    await stage.bob.sees(f"submission #{number}", stage.submissions, within=30)
    await (
        await stage.carol.slash("admin disqualify", id=number, reason="reads the answer")
    ).final()
    shown = await (await stage.bob.slash("leaderboard show", leaderboard_name="identity")).final()
    assert "Alice" not in shown.text
    await (await stage.carol.slash("admin requalify", id=number, reason="it does not")).final()
    shown = await (await stage.bob.slash("leaderboard show", leaderboard_name="identity")).final()
    assert "Alice" in shown.text
    stage.server.assert_clean()


async def test_one_s_own_submissions_are_rerun_compared_and_withdrawn(stage: Scene) -> None:
    texts = [
        (await (await stage.submit(stage.alice, f"time_us={time}")).final()).text for time in (9, 7)
    ]
    first, second = (int(text.split("#")[1].split()[0]) for text in texts)
    await stage.alice.sees(f"submission #{second}", stage.submissions, within=30)
    compared = await stage.alice.slash("submission compare", first=first, second=second)
    text = (await compared.final()).text
    assert "1.29x (1.26 to 1.31) as fast" in text
    assert "+# fake: time_us=7" in text
    again = await stage.alice.slash("submission rerun", id=first, mode="test")
    assert f"Submission #{first} runs again as #" in (await again.final()).text
    gone = await stage.alice.slash("submission withdraw", id=second)
    assert "removed from its board" in (await gone.final()).text
    other = await stage.bob.slash("submission withdraw", id=first)
    assert "another person" in (await other.final()).text
    linked = await stage.alice.slash("profile link", label="laptop")
    assert "podium_" in (await linked.final()).text
    stage.server.assert_clean()


async def test_who_is_an_admin_here_is_one_over_http_by_a_token_for_it(stage: Scene) -> None:
    refused = await stage.alice.slash("profile link", label="ci", scope="admin")
    assert "Only admins" in (await refused.final()).text
    linked = await stage.carol.slash("profile link", label="ci", scope="admin")
    assert "podium_" in (await linked.final()).text
    listed = await stage.carol.slash("profile tokens")
    assert "admin" in (await listed.final()).text
    stage.server.assert_clean()


def _rename_role(stage: Scene, role: Role, name: str) -> None:
    role.name = name
    data = {"guild_id": str(stage.guild.id), "role": role.to_api()}
    stage.server.world.dispatch("GUILD_ROLE_UPDATE", data)


async def test_a_renamed_role_keeps_its_rights_and_a_new_one_of_its_name_has_none(
    stage: Scene,
) -> None:
    admins = stage.guild.role("Leaderboard Admin")
    _rename_role(stage, admins, "Kernel crew")
    copied = stage.guild.create_role("Leaderboard Admin")
    stage.guild.members[stage.dana.id].roles.add(copied.id)
    refused = await (await stage.dana.slash("admin limits")).final()
    assert "This needs the role Kernel crew" in refused.text
    assert "no limits" in (await (await stage.carol.slash("admin limits")).final()).text
    own = await (await stage.carol.slash("admin roles", admin=copied)).final()
    assert "You do not have this role" in own.text
    everyone = await (await stage.carol.slash("admin roles", creator=stage.guild.everyone)).final()
    assert "Every member has this role" in everyone.text
    stage.guild.members[stage.carol.id].roles.add(copied.id)
    told = await (await stage.carol.slash("admin roles", admin=copied)).final()
    assert f"Admins have <@&{copied.id}>" in told.text
    assert "no limits" in (await (await stage.dana.slash("admin limits")).final()).text
    back = await (await stage.carol.slash("admin roles", admin=admins)).final()
    assert f"Admins have <@&{admins.id}>" in back.text
    stage.guild.members[stage.dana.id].roles.discard(copied.id)
    _rename_role(stage, copied, "unused")
    _rename_role(stage, admins, "Leaderboard Admin")
    stage.server.assert_clean()


async def test_the_channel_may_be_renamed_and_is_never_made_again(stage: Scene) -> None:
    stage.submissions.name = "kernels"
    stored = await (await stage.submit(stage.alice, "time_us=9", mode="test")).final()
    assert "is stored" in stored.text
    gym = stage.guild.create_channel("gym")
    stage.alice.goes_to(gym)
    refused = await (await stage.submit(stage.alice)).final()
    assert f"Submit in <#{stage.submissions.id}>" in refused.text
    world, gone = stage.server.world, stage.submissions.to_api()
    del world.channels[stage.submissions.id]
    world.dispatch("CHANNEL_DELETE", gone)
    await stage.bot.stop()
    await stage.bot.start()
    refused = await (await stage.submit(stage.alice)).final()
    assert "Submit in a direct message to the bot" in refused.text
    assert "submissions" not in [each.name for each in stage.guild.channels]
    stage.server.assert_clean()
