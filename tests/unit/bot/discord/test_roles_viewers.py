from bot.discord.roles import (
    channel_address,
    guild_credential,
    mention,
    role_credential,
    user_credential,
)


def test_credentials_of_different_kinds_are_never_the_same() -> None:
    kinds = {user_credential(7), role_credential(7), guild_credential(7), channel_address(7)}
    assert len(kinds) == 4
    assert user_credential(7) == "discord:7"


def test_people_and_roles_can_be_clicked_on_and_other_words_are_words() -> None:
    assert mention(user_credential(7)) == "<@7>"
    assert mention(role_credential(7)) == "<@&7>"
    assert mention("local:<@7> **x**") == "local:\\<@7> \\*\\*x\\*\\*"
