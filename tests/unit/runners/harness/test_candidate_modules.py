"""Which of our modules lie in the memory of a process that runs submitted code.

The list is frozen: a module that is added to it is one more that a submission can read and patch.
"""

from runners.contract.verdict import Verdict
from tests.doubles.judging import SORTED, make_judging, serving

LOADED = """
runners
runners.contract
runners.contract.evaluation
runners.contract.files
runners.contract.formula
runners.contract.gpus
runners.contract.heading
runners.contract.io_contract
runners.contract.launch
runners.contract.parameters
runners.contract.peaks
runners.contract.profile
runners.contract.runner
runners.contract.syntax
runners.contract.task
runners.contract.verdict
runners.contract.wire
runners.harness
runners.harness.arena
runners.harness.builds
runners.harness.channel
runners.harness.clocks
runners.harness.correctness
runners.harness.cuda
runners.harness.cuda.answer
runners.harness.cuda.buffers
runners.harness.cuda.code
runners.harness.cuda.driver
runners.harness.cuda.gate
runners.harness.cuda.guards
runners.harness.cuda.guest
runners.harness.cuda.health
runners.harness.cuda.hosted
runners.harness.cuda.keeper
runners.harness.cuda.listing
runners.harness.cuda.nvrtc
runners.harness.cuda.pinned
runners.harness.cuda.pool
runners.harness.cuda.readings
runners.harness.cuda.seat
runners.harness.cuda.vmm
runners.harness.cuda.warm
runners.harness.cuda.withheld
runners.harness.deadline
runners.harness.difference
runners.harness.environment
runners.harness.evaluate
runners.harness.exchange
runners.harness.forks
runners.harness.forks.determinism
runners.harness.forks.evaluation
runners.harness.forks.nursery
runners.harness.forks.renewal
runners.harness.grade
runners.harness.graders
runners.harness.graders.native
runners.harness.graders.popcorn
runners.harness.guessing
runners.harness.handle
runners.harness.importing
runners.harness.integrity
runners.harness.io_contract
runners.harness.io_contract.asking
runners.harness.io_contract.build
runners.harness.io_contract.c_signature
runners.harness.io_contract.code
runners.harness.io_contract.comparison
runners.harness.io_contract.counting
runners.harness.io_contract.cuda_kernel
runners.harness.io_contract.kernels
runners.harness.io_contract.matching
runners.harness.io_contract.materialise
runners.harness.io_contract.outputs
runners.harness.io_contract.std_headers
runners.harness.io_contract.torch_kernel
runners.harness.io_contract.triton_kernel
runners.harness.kernel_profile
runners.harness.kit
runners.harness.launching
runners.harness.model
runners.harness.ncu
runners.harness.nvcc
runners.harness.phase
runners.harness.popcorn
runners.harness.popcorn.diagnostics
runners.harness.popcorn.ending
runners.harness.popcorn.executable
runners.harness.popcorn.stream
runners.harness.printed
runners.harness.problem
runners.harness.process
runners.harness.profiling
runners.harness.rounds
runners.harness.ruling
runners.harness.samples
runners.harness.sandbox
runners.harness.sandbox.bubblewrap
runners.harness.sandbox.cgroup
runners.harness.sandbox.isolate
runners.harness.sandbox.kernel
runners.harness.sandbox.landlock
runners.harness.sandbox.layers
runners.harness.sandbox.make
runners.harness.sandbox.outer
runners.harness.sandbox.program
runners.harness.sandbox.seccomp
runners.harness.sandbox.tree
runners.harness.sandbox.view
runners.harness.seat
runners.harness.seating
runners.harness.server
runners.harness.session
runners.harness.statistics
runners.harness.tables
runners.harness.template
runners.harness.timing
runners.harness.tool
runners.harness.values
runners.harness.verification
runners.harness.version
runners.harness.weights
runners.harness.workspace
runners.languages
runners.languages.cuda
runners.languages.python
runners.lineage
runners.plugins
"""
PRINTS = (
    'import sys\nprint(*(name for name in sorted(sys.modules) if name.startswith("runners")))\n'
)


def test_a_candidate_loads_these_modules_of_ours_and_no_others() -> None:
    with serving() as harness:
        found = harness.evaluate(make_judging(PRINTS + SORTED))
    assert found.verdict is Verdict.PASSED
    assert found.log.split() == LOADED.split()
