"""The layers between submitted code and the machine: each one probed, used and recorded."""
