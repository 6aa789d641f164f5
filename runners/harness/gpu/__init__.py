"""What only a machine with an NVIDIA GPU needs: device memory between processes, and readings."""
