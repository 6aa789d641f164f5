"""Timing: rounds of calls, the clocks of judge and candidate, confidence intervals."""
