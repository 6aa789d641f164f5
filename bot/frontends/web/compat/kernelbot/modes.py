"""What a submission asks for, in KernelBot's words and in ours."""

from bot.domain.errors import UserError
from runners.contract.task import Mode

WORDS = {
    Mode.TEST: "test",
    Mode.BENCHMARK: "benchmark",
    Mode.PROFILE: "profile",
    Mode.RANKED: "leaderboard",
}
_MODES = {word: mode for mode, word in WORDS.items()}


def mode_of(word: str) -> Mode:
    """The mode of this word, in any case; UserError lists those there are."""
    found = _MODES.get(word.lower())
    if found is None:
        words = f"no mode {word[:30]!r}; there are: {', '.join(_MODES)}"
        raise UserError("bad-mode", words)
    return found
