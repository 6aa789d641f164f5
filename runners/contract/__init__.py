"""Wire types between `bot/` and `runners/`: frozen, strict, versioned."""
