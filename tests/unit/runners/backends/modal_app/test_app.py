from runners.backends.modal_app import app
from tests.architecture.tree import ROOT

DOCKERFILE = (ROOT / "docker" / "gpu.Dockerfile").read_text(encoding="utf-8")


def test_the_image_at_modal_is_that_of_docker() -> None:
    assert f"FROM {app._BASE} AS harness" in DOCKERFILE
    assert app._CUTLASS in DOCKERFILE
    for package in app._PACKAGES:
        assert package in DOCKERFILE
