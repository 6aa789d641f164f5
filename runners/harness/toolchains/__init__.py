"""The compilers and tools of this machine: where they are and how to call them."""
