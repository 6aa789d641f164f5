#!PODIUM expect timed_out
import threading

from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    threading.Event().wait()
