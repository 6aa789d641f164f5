from pathlib import Path

from runners.harness.build.cuda_kernel import write_headers


def test_headers_of_habit_are_there_however_often_they_are_laid_out(tmp_path: Path) -> None:
    place = write_headers(tmp_path)
    assert write_headers(tmp_path) == place
    assert "uint32_t" in (place / "cstdint").read_text()
    assert (place / "stdio.h").read_text().startswith("#pragma once")
    assert "#if __has_include(<cuda/std/limits>)" in (place / "limits").read_text()
