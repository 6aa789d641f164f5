"""NVIDIA GPU support: device memory shared between processes, handover, monitoring."""
