"""The judge's side of tasks of format `io_contract`."""
