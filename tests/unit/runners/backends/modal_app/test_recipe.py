from runners.backends.modal_app import recipe
from tests.architecture.tree import ROOT

DOCKERFILE = (ROOT / "docker" / "gpu.Dockerfile").read_text(encoding="utf-8")


def test_the_image_at_modal_is_that_of_docker() -> None:
    assert f"FROM {recipe._BASE} AS harness" in DOCKERFILE
    assert recipe._CUTLASS in DOCKERFILE
    for package in recipe._PACKAGES:
        assert package in DOCKERFILE
