"""Kernels called by an IOContract: how each kind is built."""
