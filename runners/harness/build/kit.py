"""Builds a submission by its language or its IOContract, and gives languages the `BuildKit`."""

from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import torch
from typing_extensions import override

from runners import languages
from runners.contract.io_contract import CALL, KernelCall, KernelKind
from runners.contract.task import TaskFormat
from runners.harness.build import cuda_kernel
from runners.harness.build.loading import FUNCTION, ModelKernel, import_file
from runners.harness.build.python_kernels import TorchKernel, TritonKernel
from runners.harness.gpu.device_code import DeviceCode
from runners.harness.protocol import builds
from runners.harness.toolchains import nvrtc

GPU_DEVICE = Path("/dev/nvidiactl")
WSL_GPU_DEVICE = Path("/dev/dxg")


def build(folder: Path, recipe: languages.Recipe) -> languages.Built:
    """Build the submission in `folder` by its IOContract, if it has one, or by its language."""
    if recipe.format is TaskFormat.IO_CONTRACT:
        return _build_by_contract(folder, recipe)
    built: languages.Built = languages.language(recipe.language).build(folder, recipe, KIT)
    return built


@dataclass(frozen=True, slots=True)
class Nvrtc(languages.CudaCompiler):
    """The NVRTC of this machine."""

    toolchain: nvrtc.Toolchain

    @property
    @override
    def title(self) -> str:
        return f"NVRTC {self.toolchain.version}"

    @property
    @override
    def includes(self) -> tuple[Path, ...]:
        return self.toolchain.includes

    @override
    def compile(
        self, source: str, file_name: str, *, kernel: str, options: list[str]
    ) -> languages.DeviceBinary:
        code = nvrtc.compile_source(
            self.toolchain.library, source, file_name, kernel=kernel, options=options
        )
        return languages.DeviceBinary(
            entry=code.entry,
            cubin=code.cubin,
            parameter_sizes=nvrtc.parameter_sizes(code.ptx, code.entry),
            resources=nvrtc.resources(code.log, code.entry),
            remarks=nvrtc.remarks(code.log),
        )


class HarnessKit(languages.BuildKit):
    """The `BuildKit` of this machine."""

    @override
    def import_file(self, folder: Path, file_name: str) -> ModuleType:
        return import_file(folder, file_name)

    @override
    def model_kernel(self, module: ModuleType) -> languages.Kernel | None:
        model_class = getattr(module, "ModelNew", None)
        function = getattr(module, FUNCTION, None)
        if model_class is None and callable(function):
            return ModelKernel(lambda *_: function)
        return ModelKernel(model_class) if callable(model_class) else None

    @override
    def cache_folder(self, folder: Path, name: str) -> Path:
        return folder / builds.FOLDER / name

    @override
    def has_gpu(self) -> bool:
        return GPU_DEVICE.exists() or WSL_GPU_DEVICE.exists()

    @override
    def gpu_architecture(self) -> str:
        return nvrtc.architecture(torch.cuda.get_device_capability())

    @override
    def nvrtc(self) -> languages.CudaCompiler | None:
        toolchain = nvrtc.find()
        return None if toolchain is None else Nvrtc(toolchain)

    @override
    def device_kernel(self, cubin: bytes, entry: str) -> languages.Kernel:
        return DeviceCode(cubin, entry)


KIT = HarnessKit()


def read_call(folder: Path) -> KernelCall:
    """The call of the kernel in a candidate's folder, from `call.json`."""
    return KernelCall.model_validate_json((folder / CALL).read_bytes())


def build_cuda(folder: Path, file_name: str, call: KernelCall) -> languages.Built:
    """Build a CUDA kernel; InvalidSubmissionError on a machine without a GPU."""
    _require_gpu(call.kind)
    return cuda_kernel.build(folder, file_name, call)


def build_python(module: ModuleType, call: KernelCall) -> languages.Built:
    """Build the kernel that a Python module defines, by its kind."""
    if call.kind is KernelKind.TRITON:
        _require_gpu(call.kind)
        return languages.Built(TritonKernel(module, call))
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return languages.Built(TorchKernel(module, call, device))


def _require_gpu(kind: KernelKind) -> None:
    if not torch.cuda.is_available():
        raise languages.InvalidSubmissionError(
            f"a {kind.value} kernel needs a GPU, and there is none here"
        )


def _build_by_contract(folder: Path, recipe: languages.Recipe) -> languages.Built:
    """Build the source in `folder` for the call in the same folder's `call.json`.

    `torch` and `nn` are predefined in a Python module, because the evaluation server's examples use
    them without an import.
    """
    call = read_call(folder)
    if call.kind is KernelKind.CUDA:
        return build_cuda(folder, recipe.submission_file, call)
    module = import_file(folder, recipe.submission_file, torch=torch, nn=torch.nn)
    return build_python(module, call)
