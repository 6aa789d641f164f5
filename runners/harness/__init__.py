"""The program next to the GPU: request on standard input, evaluation on standard output."""

HARNESS_VERSION = "1.0.0"
