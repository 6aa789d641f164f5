"""The program that executes: an evaluation request in, one evaluation out."""
