"""Builds kernels whose call an IOContract describes, by their kind."""
