"""The code that evaluates submissions: an evaluation request in, one evaluation out."""
