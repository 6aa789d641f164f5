"""Slices: the APIs of other systems, one folder each. Only `bot/web/slices.py` loads them."""
