"""Slices: the APIs of other systems, a folder for each. Only `slices.py` of the door finds them."""
