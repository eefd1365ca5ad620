"""Facts out of pasted text: what a report says of GPU, driver, torch, packages, compilers, container.

The result is the same partial `bringup.facts.Facts` that a machine gives, with ``line N`` as the source of each value: whatever
the text does not say stays Unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from bringup.collect.reports.lines import Line
from bringup.errors import UsageError
from bringup.evaluate.drivers import BRANCHES
from bringup.facts import (
    Distribution,
    Driver,
    Facts,
    Gpu,
    Host,
    Interpreter,
    Known,
    Maybe,
    Unknown,
    Variable,
)
from bringup.gpus import PRODUCTS, match_product, parse_gpu
from bringup.machine import Machine

NOT_SAID = Unknown("the text does not say")


class Reported(Struct, frozen=True):
    """What a text says. ``cuda`` is the CUDA version of torch, '' where it does not say or torch is a CPU build.

    A compiler's version is no `Toolkit`: that would claim to know its parts. So ``nvcc`` is kept here.
    """

    facts: Facts
    cuda: str = ""
    torch: str = ""
    nvcc: str = ""
    container: bool = False
    wsl: bool = False


_VERSION = r"\d+(?:\.\d+)+(?:(?:a|b|rc|\.post|\.dev)\d+)*(?:\+[\w.]+)?"
_GAP = r"\s{0,60}[:=]?\s{0,60}['\"]?"
_DRIVER = re.compile(
    r"(?:driver[ _]?(?:version)?|nvidia-smi|nvidia-driver|nvidia driver|nvrm version[^\n]{0,60}|kernel module)"
    r"[^\n\d]{0,60}(\d{3}\.\d{2,3}(?:\.\d{2})?)",
    re.I,
)
_DRIVER_CUDA = re.compile(
    r"(?:driver_cuda|cuda version|cuda driver version)\s{0,60}[:=]\s{0,20}['\"]?(\d{1,2}\.\d)\b", re.I
)
_CAPABILITY = re.compile(
    r"(?:\bsm[_ ]?|compute[_ ])(\d{2,3})[af]?\b"
    r"|(?:compute[_ ]cap(?:ability)?|\bcc|cuda capability|capability)\b[^\n\d]{0,12}\(?(\d{1,2})[.,]\s?(\d)\b",
    re.I,
)
_PAIR = re.compile(r"\((\d{1,2}), ?(\d)\)")
_TORCH = re.compile(
    r"(?:^|[\s,;`'\"(/\]-])(?:py)?torch(?: version)?(?:\s{0,60}[:=]{1,2}\s{0,60}|\s{1,60}|==|-)v?(" + _VERSION + r")",
    re.I,
)
_TORCH_CUDA = re.compile(
    r"(?:cuda used to build pytorch|torch\.version\.cuda|torch cuda|built (?:for|with) cuda|cuda[ _-]?(?=1[0-9]\.[0-9] build))"
    + _GAP
    + r"(\d{1,2}\.\d)",
    re.I,
)
_LOCAL = re.compile(r"\bcu(\d{2})(\d)\b|\bcuda ?(1[0-9])(?:\.(\d))?\b|\bcu ?(1[1-9])\b", re.I)
_NVCC = re.compile(r"(?:\bnvcc|cuda compilation tools)[^\n\d]{0,60}(\d{2}\.\d)(?:\.\d+)?", re.I)
_TOOLKIT = re.compile(
    r"^(?:cuda|cuda toolkit|cuda_toolkit|cuda runtime version)\s{0,60}[:=]\s{0,20}['\"]?(\d{2}\.\d)", re.I
)
_PYTHON = re.compile(r"\bpython(?: version)?" + _GAP + r"(3\.\d{1,2}(?:\.\d{1,2})?)\b", re.I)
_GLIBC = re.compile(r"(?:g?libc|glibc)(?: version)?[^\n\d]{0,40}(2\.\d\d)\b", re.I)
_PINNED = re.compile(
    r"(?<![\w./-])([A-Za-z][\w.-]{1,48}?)\s{0,60}(?:==|[=: ]\s{0,60}v?)(" + _VERSION + r")(?![\w.]{0,40}/)"
)
_VARIABLE = re.compile(
    r"\b((?:CUDA|NCCL|TORCH|TRITON|FLASHINFER|VLLM|SGLANG|SGL|HF|LD|NVIDIA|MAX|CC|CXX)_[A-Z0-9_]{2,40})"
    r"\s?[=:]\s?['\"]?([^\s'\",;]{1,200})"
)
_LISTED = re.compile(
    r"^\s{0,8}(?:gpu (\d{1,2}): |\|\s{1,6}(\d{1,2})\s{1,6}(?=nvidia|tesla|a\d|h\d|quadro|geforce))([^|(\n]{2,60})", re.I
)
_CONTAINER = re.compile(
    r"^container: |\bdocker|\bpodman|kubernetes|\bk8s\b|nvidia-container|containerd|\bkubectl|\bhelm\b", re.I
)
_COUNT = re.compile(r"\b(\d{1,3}) ?(?:x|×)\s|\b(?:x|×) ?(\d{1,2})\b|^(?:gpu|gpus)\s{0,8}: ?(\d{1,2}) ", re.I)

_PACKAGES = frozenset(
    [
        "torch",
        "torchvision",
        "torchaudio",
        "torchcodec",
        "triton",
        "vllm",
        "sglang",
        "sgl-kernel",
        "sglang-kernel",
        "flashinfer-python",
        "flashinfer-cubin",
        "flashinfer-jit-cache",
        "flash-attn",
        "xformers",
        "bitsandbytes",
        "transformers",
        "numpy",
        "apache-tvm-ffi",
        "xgrammar",
        "deepspeed",
        "apex",
        "tilelang",
        "nvidia-nccl-cu12",
        "nvidia-nccl-cu13",
        "nvidia-nvshmem-cu12",
        "nvidia-nvshmem-cu13",
        "deep-ep",
        "deep-gemm",
        "mamba-ssm",
        "causal-conv1d",
        "cupy-cuda12x",
        "cupy-cuda13x",
        "ninja",
        "tensorrt-llm",
        "ctranslate2",
        "auto-gptq",
        "autoawq",
        "sgl-deep-gemm",
        "nvidia-cutlass-dsl",
    ]
)
_ALIASES = {
    "flashinfer": "flashinfer-python",
    "pytorch": "torch",
    "nccl": "nccl",
    "flash-attention": "flash-attn",
    "tvm-ffi": "apache-tvm-ffi",
}


def read_report(lines: Sequence[Line], target: str = "a text") -> Reported:
    """Facts of a text. Later mentions do not overrule earlier ones: reports state their environment first."""
    gpus = _gpus(lines)
    driver = _driver(lines)
    torch, torch_source = _first(lines, _TORCH)
    cuda = _torch_cuda(lines, torch)
    distributions = _distributions(lines, torch, torch_source, cuda)
    nvcc = _first(lines, _NVCC)[0] or _first(lines, _TOOLKIT)[0]
    python, python_source = _first(lines, _PYTHON)
    glibc, glibc_source = _first(lines, _GLIBC)
    container = next((line.number for line in lines if _CONTAINER.search(line.text)), 0)
    wsl = any(re.search(r"\bwsl2?\b|microsoft-standard", line.text, re.I) for line in lines)
    variables = tuple(
        Variable(match.group(1), match.group(2), f"line {line.number}")
        for line in lines
        for match in _VARIABLE.finditer(line.text)
    )[:200]
    facts = Facts(
        target=target,
        host=Known(Host(machine="x86_64", libc=f"glibc {glibc}"), glibc_source) if glibc else NOT_SAID,
        gpus=gpus,
        driver=driver,
        python=Known(Interpreter(version=python), python_source) if python else NOT_SAID,
        distributions=distributions,
        variables=Known(variables, variables[0].source) if variables else NOT_SAID,
        machine=Known(Machine(container=Known("wsl" if wsl else "container", f"line {container}")), f"line {container}")
        if container or wsl
        else NOT_SAID,
    )
    return Reported(facts, cuda, torch, nvcc, bool(container), wsl)


def _first(lines: Sequence[Line], pattern: re.Pattern[str]) -> tuple[str, str]:
    for line in lines:
        match = pattern.search(line.text)
        if match:
            return match.group(1), f"line {line.number}"
    return "", ""


def _gpus(lines: Sequence[Line]) -> Maybe[tuple[Gpu, ...]]:
    listed = _listed(lines)
    if listed is not None:
        return listed
    # A line that is about the GPU first, then any product's name, then any bare architecture.
    for pattern in (
        re.compile(r"^\W{0,4}(?:gpus?|device|target|hardware|graphics)\b[^\n:]{0,30}:", re.I),
        re.compile(""),
    ):
        for line in lines:
            if pattern.search(line.text):
                found = tuple(_products(line.text))
                if found:
                    return Known(found, f"line {line.number}")
    for line in lines:
        match = _CAPABILITY.search(line.text) or (_PAIR.search(line.text) if "gpu" in line.text.lower() else None)
        gpu = _of_match(match) if match else None
        if gpu is not None:
            return Known((gpu,), f"line {line.number}")
    return Unknown("the text names no GPU")


def _listed(lines: Sequence[Line]) -> Maybe[tuple[Gpu, ...]] | None:
    """The GPUs of an nvidia-smi table, of ``nvidia-smi -L`` or of a collect_env, each counted once."""
    found: dict[str, tuple[Gpu, set[str]]] = {}
    source = ""
    for line in lines:
        match = _LISTED.match(line.text)
        gpu = next(_products(match.group(3)), None) if match else None
        if match is not None and gpu is not None:
            source = source or f"line {line.number}"
            found.setdefault(gpu.name, (gpu, set()))[1].add(match.group(1) or match.group(2))
    if not found:
        return None
    return Known(tuple(replace(gpu, count=len(numbers)) for gpu, numbers in found.values()), source)


def _of_match(match: re.Match[str]) -> Gpu | None:
    groups = [group for group in match.groups() if group]
    text = groups[0] if len(groups) == 1 else f"{groups[0]}.{groups[1]}"
    try:
        gpu = parse_gpu(text if "." in text else f"sm_{text}")
    except UsageError:
        return None
    return gpu if 3 <= gpu.major <= 12 else None


_NAMES = re.compile(
    "|".join(
        sorted(
            {
                re.escape(name).replace(r"\ ", r"[ _-]{0,2}").replace(r"\-", r"[ _-]?")
                for product in PRODUCTS
                for full in (product.name, *product.aliases)
                for name in (
                    full,
                    full.removeprefix("GeForce "),
                    full.removeprefix("Tesla "),
                    full.removeprefix("Jetson AGX "),
                )
                if len(name) > 2 and name != "Spark"
            }
            | {
                r"rtx[ _-]?\d{4}(?:[ _-]?ti)?",
                r"gtx[ _-]?\d{3,4}(?:[ _-]?ti)?",
                r"rtx (?:pro )?6000",
                "L4",
                "A2",
                "T4",
                r"\b[2345]0[5-9]0(?: ti)?\b",
            },
            key=len,
            reverse=True,
        )
    ),
    re.I,
)


def _products(text: str) -> Iterator[Gpu]:
    seen: set[str] = set()
    count = _COUNT.search(text)
    number = int(next((group for group in count.groups() if group), "1")) if count else 1
    for match in _NAMES.finditer(text):
        before, after = text[: match.start()][-1:], text[match.end() : match.end() + 1]
        if (
            (before.isalnum() and before.lower() != "x")
            or (before and before in "/._")
            or after.isalnum()
            or after == "/"
        ):
            continue
        if after == "." and text[match.end() + 1 : match.end() + 2].isalpha():  # a file's name
            continue
        product = match_product(match.group()) or match_product(match.group() + " blackwell")
        if product is None or product.name in seen:
            continue
        seen.add(product.name)
        major, minor = product.capability.split(".")
        yield Gpu(product.name, int(major), int(minor), max(1, min(number, 64)), product_class=product.product_class)


def _driver(lines: Sequence[Line]) -> Maybe[Driver]:
    version, source = _first(lines, _DRIVER)
    cuda, cuda_source = _first(lines, _DRIVER_CUDA)
    if version and not cuda:
        major = int(version.split(".")[0])
        cuda = next(
            (branch.cuda for branch in sorted(BRANCHES, key=lambda one: -one.major) if branch.major <= major), ""
        )
    if not version and not cuda:
        return Unknown("the text names no driver")
    return Known(Driver(version, cuda), source or cuda_source)


def _torch_cuda(lines: Sequence[Line], torch: str) -> str:
    local = re.search(r"\+cu(\d{2})(\d)", torch)
    if local:
        return f"{local.group(1)}.{local.group(2)}"
    said, _ = _first(lines, _TORCH_CUDA)
    if said:
        return said
    for line in lines:
        if re.search(r"torch(?![_\w])", line.text, re.I):
            match = _LOCAL.search(line.text)
            if match:
                parts = [group for group in match.groups() if group]
                return f"{parts[0]}.{parts[1] if len(parts) > 1 else 0}"
    return _usual_cuda(lines, torch)


_USUAL = (
    # Of the wheels that the default index serves, from their metadata: package, first version, CUDA.
    ("torch", "2.11", "13.0"),
    ("torch", "2.1", "12.1"),
    ("torch", "1.13", "11.7"),
    ("sglang", "0.5.11", "13.0"),
    ("sglang", "0.2", "12.1"),
    ("vllm", "0.20", "13.0"),
    ("vllm", "0.2.2", "12.1"),
)


def _usual_cuda(lines: Sequence[Line], torch: str) -> str:
    """The CUDA version of the default index's torch of that version, or of the torch that an engine's version pins."""
    known = {"torch": torch}
    for line in lines:
        for match in _PINNED.finditer(line.text):
            known.setdefault(canonicalize_name(match.group(1)), match.group(2))
    for package, first, cuda in _USUAL:
        version = known.get(package, "")
        try:
            if version and Version(version.partition("+")[0]) >= Version(first):
                return cuda
        except InvalidVersion:
            continue
    return ""


def _distributions(lines: Sequence[Line], torch: str, source: str, cuda: str) -> Maybe[tuple[Distribution, ...]]:
    found: dict[str, Distribution] = {}
    if torch:
        build = (("cuda", cuda),) if cuda else ()
        found["torch"] = Distribution("torch", torch, build=build, source=source)
    for line in lines:
        for match in _PINNED.finditer(line.text):
            name = canonicalize_name(match.group(1))
            name = canonicalize_name(_ALIASES.get(name, name))
            if (name in _PACKAGES or name.startswith("nvidia-")) and name not in found:
                found[name] = Distribution(name, match.group(2), source=f"line {line.number}")
    if not found:
        return Unknown("the text names no package's version")
    return Known(tuple(found.values()), next(iter(found.values())).source)
