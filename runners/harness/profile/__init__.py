"""Profile mode: measures where a kernel spends its time, with torch's profiler and `ncu`."""
