"""Task folders: what is in one, and how it is read, checked and packed."""
