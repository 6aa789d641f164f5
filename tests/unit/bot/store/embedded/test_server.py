"""How often a server that ends is started again."""

from bot.store.embedded.server import FIRST_RESTART_S, LAST_RESTART_S


def test_there_is_a_pause_before_each_restart() -> None:
    assert 0 < FIRST_RESTART_S < LAST_RESTART_S
