"""A person exports their data, and deletes it."""

import io
import json
import zipfile

import pytest

from tests.e2e.discord.scene import Scene

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.postgres, pytest.mark.slow]


async def test_a_person_exports_their_data_and_deletes_the_account_by_typing_a_word(
    stage: Scene,
) -> None:
    stored = (await (await stage.submit(stage.alice, "time_us=4", name="mine.py")).final()).text
    number = int(stored.split("#")[1].split()[0])
    await stage.bob.sees(f"submission #{number}", stage.submissions, within=30)
    sent = await (await stage.alice.slash("profile export")).final()
    with zipfile.ZipFile(io.BytesIO(sent.file("podium.zip").data)) as archive:
        account = json.loads(archive.read("account.json"))
        assert b"custom_kernel" in archive.read(f"submissions/{number}-mine.py")
    assert account["identity"] == f"discord:{stage.alice.id}"
    asked = await stage.alice.slash("profile delete")
    kept = await stage.alice.modal(asked, {"Type delete": "no"})
    assert "it is unchanged" in (await kept.final()).text
    thread = await stage.alice.sees_thread("identity: ", within=30)
    asked = await stage.alice.slash("profile delete")
    gone = await stage.alice.modal(asked, {"Type delete": "delete"})
    assert "Your account is deleted" in (await gone.final()).text
    shown = await (await stage.bob.slash("leaderboard show", leaderboard_name="identity")).final()
    assert "deleted account" in shown.text
    assert "Alice" not in shown.text
    await stage.server.wait_for(lambda: thread not in stage.guild.channels, 10)
    hidden = await (await stage.alice.slash("submission show", id=number)).final()
    assert "belongs to another person" in hidden.text
    stage.server.assert_clean()
