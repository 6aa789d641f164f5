"""Which of our modules lie in the memory of a process that runs submitted code.

The list is frozen: a module that is added to it is one more that a submission can read and patch.
"""

from runners.contract.verdict import Verdict
from tests.doubles.judging import SORTED, make_judging, serving

LOADED = """
runners
runners.contract
runners.contract.comparison
runners.contract.evaluation
runners.contract.files
runners.contract.formula
runners.contract.gpus
runners.contract.io_contract
runners.contract.launch
runners.contract.parameters
runners.contract.runner
runners.contract.task
runners.contract.verdict
runners.contract.wire
runners.harness
runners.harness.build
runners.harness.build.c_signature
runners.harness.build.cuda_kernel
runners.harness.build.kernel_calls
runners.harness.build.kit
runners.harness.build.loading
runners.harness.build.python_kernels
runners.harness.candidate
runners.harness.candidate.failures
runners.harness.candidate.gpu_endpoint
runners.harness.deadline
runners.harness.evaluate
runners.harness.gpu
runners.harness.gpu.buffers
runners.harness.gpu.device_code
runners.harness.gpu.handover
runners.harness.gpu.health
runners.harness.gpu.host_input
runners.harness.gpu.memory
runners.harness.gpu.warm
runners.harness.graders
runners.harness.graders.native
runners.harness.graders.popcorn
runners.harness.io_contract
runners.harness.io_contract.arguments
runners.harness.io_contract.reference
runners.harness.io_contract.sources
runners.harness.judge
runners.harness.judge.answer
runners.harness.judge.capture_times
runners.harness.judge.checks
runners.harness.judge.cpu_caches
runners.harness.judge.device_candidate
runners.harness.judge.host_candidate
runners.harness.judge.kernelbench
runners.harness.judge.launches
runners.harness.judge.new_memory
runners.harness.judge.poison
runners.harness.judge.pool
runners.harness.judge.session
runners.harness.judge.task_code
runners.harness.kernelbot
runners.harness.kernelbot.executable
runners.harness.kernelbot.stream
runners.harness.profile
runners.harness.profile.kernel_profile
runners.harness.profile.profiler
runners.harness.protocol
runners.harness.protocol.arena
runners.harness.protocol.builds
runners.harness.protocol.channel
runners.harness.protocol.scalars
runners.harness.protocol.values
runners.harness.relay
runners.harness.sandbox
runners.harness.sandbox.charged_memory
runners.harness.sandbox.devices
runners.harness.sandbox.diagnostics
runners.harness.sandbox.filters
runners.harness.sandbox.isolate
runners.harness.sandbox.locks
runners.harness.sandbox.make
runners.harness.sandbox.outer
runners.harness.sandbox.process_limits
runners.harness.sandbox.program
runners.harness.sandbox.syscalls
runners.harness.sandbox.view
runners.harness.server
runners.harness.supervision
runners.harness.supervision.fork
runners.harness.supervision.handle
runners.harness.supervision.process
runners.harness.supervision.renew
runners.harness.supervision.spares
runners.harness.supervision.template
runners.harness.supervision.waiting
runners.harness.supervision.watched_program
runners.harness.timing
runners.harness.timing.calls
runners.harness.timing.clocks
runners.harness.timing.cpu_times
runners.harness.timing.intervals
runners.harness.timing.pairs
runners.harness.timing.rounds
runners.harness.timing.samples
runners.harness.timing.stop_rule
runners.harness.timing.stopwatch
runners.harness.timing.trains
runners.harness.toolchains
runners.harness.toolchains.ncu
runners.harness.toolchains.nvcc
runners.harness.toolchains.nvrtc
runners.harness.verdicts
runners.languages
runners.languages.cuda
runners.languages.python
runners.plugins
runners.process_tree
"""
PRINTS = (
    'import sys\nprint(*(name for name in sorted(sys.modules) if name.startswith("runners")))\n'
)


def test_a_candidate_loads_these_modules_of_ours_and_no_others() -> None:
    with serving() as harness:
        found = harness.evaluate(make_judging(PRINTS + SORTED))
    assert found.verdict is Verdict.PASSED
    assert found.log.split() == LOADED.split()
