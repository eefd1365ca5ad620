"""A report put together by hand: the first step of the cascade that the project began with, and what else reports hold."""

from __future__ import annotations

from msgspec.structs import replace

from bringup.evaluate.layers import layers
from bringup.facts import Distribution, Driver, Facts, Gpu, Known, Library
from bringup.findings import Finding, Premise, Remedy, UnknownVerdict
from bringup.report import Evaluation, Report, build, mask

SYMBOL = "_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_ib"
OPS = "sgl_kernel/sm100/common_ops.abi3.so"

FACTS = Facts(
    target="sgl-kernel==0.3.21 torch==2.11.0",
    roots=("/wheels",),
    gpus=Known((Gpu("RTX PRO 6000 Blackwell", 12, 0, 8),), "--gpu"),
    driver=Known(Driver("580.95.05", "13.0"), "--driver"),
    distributions=Known(
        (
            Distribution("torch", "2.11.0", build=(("cuda", "13.0"),), source="torch/version.py"),
            Distribution("sgl-kernel", "0.3.21", source="METADATA"),
            Distribution("nvidia-cuda-nvrtc", "13.0.88"),
        ),
        "wheels",
    ),
    libraries=Known((Library(OPS, root="/wheels", owner="sgl-kernel", needed=("libtorch.so",)),), "wheels"),
)

TORCH = Premise("torch 2.11.0 is built for CUDA 13.0", "torch/version.py")
MISREAD = "a missing GPU architecture: it prints “Could not load any common_ops library”"
WAY = Remedy("install a sgl-kernel that was built for torch 2.11.0", ("uv pip install --upgrade sgl-kernel",))

SONAME = Finding(
    rule="LIB001",
    kind="soname_missing_cuda_major_mismatch",
    severity="error",
    stage="import",
    subject=OPS,
    because=(
        Premise("sgl-kernel 0.3.21 needs libnvrtc.so.12", OPS),
        Premise("the stack holds libnvrtc.so.13 and no libnvrtc.so.12", "nvidia/cu13/lib/libnvrtc.so.13"),
        TORCH,
    ),
    therefore=f"{OPS} is built for another CUDA major and cannot be loaded",
    predicted_error="ImportError: libnvrtc.so.12: cannot open shared object file: No such file or directory",
    misread_as=MISREAD,
    hints=("supplying the library alone uncovers the next fault: symbols of torch are missing, too",),
    remedies=(WAY,),
    detail=(f"libnvrtc.so.12 needed by {OPS}",),
    order=50,
    fatal=True,
)
SYMBOLS = Finding(
    rule="ABI001",
    kind="extension_built_for_other_torch",
    severity="error",
    stage="import",
    subject=OPS,
    because=(Premise(f"sgl-kernel 0.3.21 needs torch's {SYMBOL}", OPS), TORCH),
    therefore=f"{OPS} was built for another torch and cannot be loaded",
    predicted_error=f"ImportError: {OPS}: undefined symbol: {SYMBOL}",
    misread_as=MISREAD,
    remedies=(WAY,),
    detail=(f"undefined symbol: {SYMBOL}",),
    order=51,
    fatal=True,
)
NINJA = Finding(
    rule="JIT003",
    kind="ninja_missing",
    severity="error",
    stage="jit",
    subject="flashinfer-python",
    because=(Premise("FlashInfer starts ninja", "flashinfer/jit/cpp_ext.py"), Premise("PATH holds none", "PATH")),
    therefore="the first kernel that is compiled ends the start",
    predicted_error="FileNotFoundError: [Errno 2] No such file or directory: 'ninja'",
    remedies=(Remedy("install ninja", ("uv pip install ninja",), safe=True),),
    order=30,
    fatal=True,
)
HEADERS = Finding(
    rule="JIT008",
    kind="python_headers_missing",
    severity="warning",
    stage="jit",
    subject="triton",
    because=(Premise("Python.h is in no include folder", "/usr/include"),),
    therefore="Triton cannot build its launcher",
    predicted_error="fatal error: Python.h: No such file or directory",
)
NOTE = Finding(
    rule="GPU003",
    kind="variant_without_code_for_gpu",
    severity="info",
    stage="kernels",
    subject="sgl_kernel/flash_ops.abi3.so",
    because=(Premise("it holds 80, 86 and 90a only", "sgl_kernel/flash_ops.abi3.so"),),
    therefore="FA3 cannot be chosen here",
)
UNKNOWN = (
    UnknownVerdict("HOST001", ("machine.module",), "module: was not looked at"),
    UnknownVerdict("HOST002", ("machine.module",), "module: was not looked at"),
    UnknownVerdict("PY001", ("python",), "python: was not looked at"),
)


def report(*findings: Finding, unknown: tuple[UnknownVerdict, ...] = (), facts: Facts = FACTS) -> Report:
    """A report of these findings, in this order."""
    reported = mask(findings)
    return build(facts, Evaluation(reported, unknown), layers(facts, reported), "0.1.0")


CASCADE = report(SONAME, SYMBOLS, NOTE, NINJA, HEADERS, unknown=UNKNOWN)
CLEAN = report()
HOSTILE = report(
    replace(
        SONAME,
        subject="<script>alert(1)</script>/x.so",
        therefore="<img src=x onerror=alert(1)> & \x1b[31mred\x07",
    )
)
