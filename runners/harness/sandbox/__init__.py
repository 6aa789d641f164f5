"""The sandbox: layers that isolate submitted code from the machine; each is tried and recorded."""
