"""The program beside the GPU: request on standard input, evaluation on standard output."""
