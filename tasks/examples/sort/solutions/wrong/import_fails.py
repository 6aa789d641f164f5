#!PODIUM expect build_failed
import a_module_that_nobody_has
import torch
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    return a_module_that_nobody_has.sort(data)
