"""The judge: inputs, references, comparison of outputs, and candidate drivers for CPU and GPU."""
