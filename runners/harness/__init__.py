"""The program next to the GPU: reads requests from stdin and writes evaluations to stdout."""

HARNESS_VERSION = "1.0.0"
