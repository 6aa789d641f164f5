"""Device code is compiled by the real NVRTC here; only loading and launching it need a GPU."""

from pathlib import Path

import pytest
import torch

from runners.contract.launch import Compiled, LaunchPlan, Signature
from runners.contract.task import BuildConfig, Launch, Workload
from runners.harness.build import kit
from runners.harness.build.kit import KIT
from runners.harness.toolchains import nvrtc
from runners.languages import BuildFailedError, InvalidSubmissionError, Recipe, cuda

TARGET = "sm_90a"
CASE = Workload(args={"size": 5})
ADD = "__global__ void add(const float* a, float* out, int n) { if (n) out[0] = a[0]; }\n"


def signature(*params: str) -> Signature:
    wanted = params or ("in0", "out0", "size")
    launch = Launch(kernel="add", params=wanted, grid=(1,), block=(1,))
    return LaunchPlan.of(launch).signature([CASE])


def recipe(wanted: Signature | None = None, **config: object) -> Recipe:
    return Recipe(
        language="cu",
        submission_file="submission.cu",
        config=BuildConfig.model_validate(config),
        signature=wanted or signature(),
    )


def compiled(
    folder: Path, source: str, how: Recipe | None = None
) -> tuple[cuda.CachedKernel, bytes]:
    (folder / "submission.cu").write_text(source)
    return cuda.compile_kernel(folder, how or recipe(), KIT, TARGET)


def resources(listing: cuda.CachedKernel) -> Compiled:
    assert listing.compiled is not None
    return listing.compiled


def failure(folder: Path, source: str, how: Recipe | None = None) -> BuildFailedError:
    with pytest.raises(BuildFailedError) as caught:
        compiled(folder, source, how)
    return caught.value


def invalid(folder: Path, source: str, how: Recipe | None = None) -> str:
    with pytest.raises(InvalidSubmissionError) as caught:
        compiled(folder, source, how)
    return str(caught.value)


def test_a_kernel_is_compiled_to_machine_code_and_its_resources_are_told(tmp_path: Path) -> None:
    source = (
        "__global__ void other(int* x) { __shared__ int y[999]; y[threadIdx.x] = *x; }\n"
        "__global__ void add(const float* a, float* out, int n) {\n"
        "    __shared__ float mine[64];\n"
        "    mine[threadIdx.x] = a[n];\n    __syncthreads();\n    out[n] = mine[n];\n}\n"
    )

    listing, cubin = compiled(tmp_path, source)

    assert listing.entry.startswith("_Z3addPKf")
    assert cubin.startswith(b"\x7fELF")
    used = resources(listing)
    assert (used.shared, used.spill_stores) == (256, 0)
    assert 0 < used.registers < 64


def test_spilled_registers_are_told(tmp_path: Path) -> None:
    source = (
        "__global__ void add(const float* a, float* out, int n) {\n"
        "    float x[96];\n#pragma unroll\n    for (int i = 0; i < 96; i++) x[i] = a[i * n];\n"
        "    __syncthreads();\n"
        "#pragma unroll\n    for (int i = 0; i < 96; i++) out[i * n] = x[i] * x[i * 7 % 96];\n}\n"
    )

    listing, _ = compiled(tmp_path, source, recipe(compile_flags=("--maxrregcount=24",)))

    used = resources(listing)
    assert used.registers == 24
    assert min(used.spill_stores, used.spill_loads, used.stack) > 0


@pytest.mark.parametrize("prefix", ['extern "C" ', "template <int N = 1> struct S {};\n"])
def test_a_name_may_be_mangled_or_not(tmp_path: Path, prefix: str) -> None:
    assert "add" in compiled(tmp_path, prefix + ADD)[0].entry


def test_an_error_is_told_with_its_line_and_caret(tmp_path: Path) -> None:
    error = failure(tmp_path, ADD.replace("a[0]", "wrong + 1") + "int second() { return x; }\n")

    first, line, caret = str(error).splitlines()
    assert first == 'submission.cu(1): error: identifier "wrong" is undefined'
    assert line[caret.index("^") :].startswith("wrong")
    assert 'identifier "x" is undefined' in error.log
    assert "name_map" not in error.log


def test_an_error_in_a_shared_header_names_the_header_alone(tmp_path: Path) -> None:
    (tmp_path / "shared.h").write_text("__device__ int wrong = x;\n")

    error = failure(tmp_path, '#include "shared.h"\n' + ADD)

    assert str(error).startswith("shared.h(")
    assert str(tmp_path) not in str(error) + error.log


def test_what_the_assembler_refuses_is_a_failed_build(tmp_path: Path) -> None:
    big = ADD.replace("{", "{ __shared__ float big[90000]; big[n] = a[1]; __syncthreads();", 1)

    error = failure(tmp_path, big.replace("a[0]", "big[n / 2]"))

    assert "too much shared data" in str(error)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("__device__ int unrelated;\n", "there is no kernel `add`; define"),
        ("void add(int n) {}\n", "there is no kernel `add`"),
        ("__device__ void add(int n) {}\n", "there is no kernel `add`; define `__global__ void"),
    ],
)
def test_a_missing_kernel_is_said_to_be_missing(tmp_path: Path, source: str, words: str) -> None:
    said = invalid(tmp_path, source)
    assert words in said
    assert said.endswith("called as add(in0, out0, size)")


@pytest.mark.parametrize(
    ("params", "has"),
    [
        ("const float* a, float* out", "2 parameters of 8, 8 bytes"),
        ("const float* a, float* out, long long n", "3 parameters of 8, 8, 8 bytes"),
        ("const float* a, float* out, int n, int m", "4 parameters of 8, 8, 4, 4 bytes"),
        ("", "no parameters"),
    ],
)
def test_other_parameters_than_the_task_gives_are_refused(
    tmp_path: Path, params: str, has: str
) -> None:
    said = invalid(tmp_path, f"__global__ void add({params}) {{}}\n")

    assert f"`add` takes {has}; the task calls it with 3 parameters of 8, 8, 4 bytes" in said
    assert said.endswith("add(in0, out0, size)")


def test_parameters_of_every_type_fit(tmp_path: Path) -> None:
    wanted = signature("out0", "bool 1", "int64 size", "double 1", "float 1", "uint size", "in0")
    source = (
        "__global__ void add(float* o, bool b, long long n, double d, float f, unsigned u,"
        " const int* i) {}\n"
    )

    assert compiled(tmp_path, source, recipe(wanted))[0].entry


def test_the_tasks_defines_flags_and_headers_are_used(tmp_path: Path) -> None:
    (tmp_path / "task.cuh").write_text("#define OFFSET N\n")
    source = (
        '#include "task.cuh"\n#ifndef FAST\n#error no FAST\n#endif\n'
        "#if !ON\n#error not on\n#endif\n"
        '#if __cplusplus > 201703L\n#error "too new"\n#endif\n'
        + ADD.replace("a[0]", "__sinf(a[OFFSET])")
    )
    how = recipe(
        defines={"N": 4, "FAST": None, "ON": True},
        compile_flags=("-std=c++17", "--use_fast_math", "-ftz=true"),
    )

    assert compiled(tmp_path, source, how)[0].entry
    assert "FAST" in str(failure(tmp_path, source))


def test_cudas_own_headers_are_found(tmp_path: Path) -> None:
    source = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n#include <cuda_fp8.h>\n"

    listing, _ = compiled(
        tmp_path, source + ADD.replace("a[0]", "__half2float(__float2half(a[0]))")
    )

    assert listing.entry


def test_warnings_are_printed_and_what_the_assembler_counts_is_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compiled(tmp_path, ADD.replace("if (n)", "int unused; if (n)"))

    said = capsys.readouterr().out
    assert 'variable "unused" was declared but never referenced' in said
    assert "ptxas" not in said


def test_what_says_nothing_of_where_it_runs_runs_on_the_device(tmp_path: Path) -> None:
    source = "constexpr int twice(int n) { return 2 * n; }\n" + ADD.replace("a[0]", "a[twice(n)]")

    assert compiled(tmp_path, source)[0].entry


def test_printf_needs_no_header(tmp_path: Path) -> None:
    assert compiled(tmp_path, ADD.replace("if (n)", 'printf("%d", n); if (n)'))[0].entry


class Loaded:
    """Stands in for the code in a context: there is no GPU."""

    def __init__(self, cubin: bytes, entry: str) -> None:
        self.cubin, self.entry = cubin, entry


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kit, "DeviceCode", Loaded)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (9, 0))


@pytest.mark.usefixtures("gpu")
def test_a_later_candidate_loads_what_the_first_one_has_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "submission.cu").write_text(ADD)
    first = cuda.build(tmp_path, recipe(), KIT)
    monkeypatch.setattr(cuda, "compile_kernel", lambda *_: pytest.fail("compiled again"))

    second = cuda.build(tmp_path, recipe(), KIT)

    assert isinstance(first.compiled, Compiled)
    assert second.compiled == first.compiled
    assert vars(second.kernel) == vars(first.kernel)
    assert {path.parent.name for path in (tmp_path / ".builds").rglob("kernel.*")} == {"device"}


@pytest.mark.usefixtures("gpu")
def test_what_was_kept_and_is_broken_is_compiled_anew(tmp_path: Path) -> None:
    (tmp_path / "submission.cu").write_text(ADD)
    cuda.build(tmp_path, recipe(), KIT)
    (KIT.cache_folder(tmp_path, cuda.CACHE) / "kernel.json").write_text("{}")

    assert cuda.build(tmp_path, recipe(), KIT).compiled is not None


def test_a_machine_without_a_gpu_does_not_offer_the_language(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kit, "GPU_DEVICE", tmp_path / "nvidiactl")
    assert cuda.toolchain(KIT) is None

    (tmp_path / "nvidiactl").touch()
    assert str(cuda.toolchain(KIT)).startswith("NVRTC 13")

    monkeypatch.setattr(nvrtc, "find", lambda: None)
    assert cuda.toolchain(KIT) is None
