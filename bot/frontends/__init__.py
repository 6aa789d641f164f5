"""Doors: parse, make one service call, draw."""
