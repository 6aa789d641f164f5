"""The harness's version: a changed clock, tolerance or check is a changed result."""

HARNESS_VERSION = "1.0.0"
