"""Task folders: their contents, and how they are read, checked and packed."""
