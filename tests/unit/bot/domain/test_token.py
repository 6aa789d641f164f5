from bot.domain.token import digest_of


def test_a_digest_is_the_same_each_time_and_tells_nothing() -> None:
    assert digest_of("podium_x") == digest_of("podium_x") != digest_of("podium_y")
    assert len(digest_of("podium_x")) == 64
    assert "podium" not in digest_of("podium_x")
