"""Makes any text storable: Postgres refuses NUL, and UTF-8 refuses lone surrogates."""

_REPLACEMENTS = {0: "\u2400"} | dict.fromkeys(range(0xD800, 0xE000), "\ufffd")


def storable(text: str) -> str:
    """The text with each NUL shown as U+2400 and each lone surrogate as U+FFFD."""
    return text.translate(_REPLACEMENTS)
