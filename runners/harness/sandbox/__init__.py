"""The sandbox: layers between submitted code and the machine; each is tried and recorded."""
