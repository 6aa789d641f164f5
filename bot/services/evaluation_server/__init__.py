"""The evaluation server's requests: taken in, followed to their end, counted and forgotten.

Each is a submission to one board of the house, judged by a task version made for it: queue, judge,
sandbox and restarts are everybody's.
"""
