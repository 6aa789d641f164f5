"""The compilers and tools on the machine: where they are, how they are called."""
