"""Slots with warm harnesses: the common part of runners over the operator's own machines."""
