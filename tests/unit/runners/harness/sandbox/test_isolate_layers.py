"""The record of layers."""

from runners.harness.sandbox.isolate import Layers


def _refuse() -> None:
    raise PermissionError(1, "not here")


def test_a_step_that_works_is_active() -> None:
    layers = Layers()
    assert layers.attempt("seccomp", lambda: None)
    assert (layers.active, layers.missing) == (["seccomp"], {})


def test_a_step_that_the_kernel_refuses_is_missing_with_its_reason() -> None:
    layers = Layers()
    assert not layers.attempt("seccomp", _refuse)
    assert (layers.active, layers.missing) == ([], {"seccomp": "[Errno 1] not here"})
