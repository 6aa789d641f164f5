"""Kernels that are called by an IOContract."""
