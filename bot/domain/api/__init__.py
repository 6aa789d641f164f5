"""What our own HTTP interface and its clients tell each other, as JSON."""
