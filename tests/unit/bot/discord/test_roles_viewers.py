from bot.discord.roles import member, mention, person, role, room


def test_credentials_of_different_kinds_are_never_the_same() -> None:
    kinds = {person(7), role(7), member(7), room(7)}
    assert len(kinds) == 4
    assert person(7) == "discord:7"


def test_people_and_roles_can_be_clicked_on_and_other_words_are_words() -> None:
    assert mention(person(7)) == "<@7>"
    assert mention(role(7)) == "<@&7>"
    assert mention("local:<@7> **x**") == "local:\\<@7> \\*\\*x\\*\\*"
