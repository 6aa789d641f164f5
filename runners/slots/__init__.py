"""Slots with warm harnesses: what every runner over machines of one's own has in common."""
