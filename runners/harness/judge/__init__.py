"""The judge: inputs, references, comparison, and candidate drivers for CPU and GPU."""
