"""The compilers and tools of this machine: how they are found, called and parsed."""
