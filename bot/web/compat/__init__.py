"""Slices: the APIs of other systems, one folder each. Only `bot/web/app.py` loads them."""
