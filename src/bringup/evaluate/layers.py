"""The stack as layers, bottom first, each with its state in a line: the short picture above the findings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from bringup.facts import Distribution, Facts, Known, Unknown, distribution
from bringup.findings import Finding, Stage
from bringup.report import Layer, Reported, Status


class Sketch(NamedTuple):
    """What the facts alone say of a layer: unknown, or ok as long as no finding says otherwise."""

    known: bool
    summary: str


ENGINES = ("sglang", "vllm", "tensorrt-llm", "lmdeploy")
"""Distributions that are inference engines."""

_BY_STAGE: dict[Stage, str] = {
    "install": "kernels",
    "import": "kernels",
    "device": "driver",
    "weights": "engine",
    "kernels": "kernels",
    "jit": "compiler",
    "graph": "engine",
    "collective": "driver",
    "serve": "engine",
}
"""The layer of a finding whose subject belongs to no distribution."""


def layers(facts: Facts, findings: Sequence[Reported]) -> tuple[Layer, ...]:
    """One entry a layer: driver, gpu, cuda, torch, kernels, compiler, engine."""
    by_layer: dict[str, list[Reported]] = {name: [] for name, _ in _LAYERS}
    owners = _owners(facts)
    for one in findings:
        by_layer[_layer_of(one.finding, owners)].append(one)
    return tuple(_layer(name, sketch(facts), by_layer[name]) for name, sketch in _LAYERS)


def _layer(name: str, sketch: Sketch, findings: Sequence[Reported]) -> Layer:
    worrying = [one for one in findings if one.finding.severity != "info"]
    status: Status = "ok" if sketch.known else "unknown"
    if worrying:
        status = "error" if any(one.finding.severity == "error" for one in worrying) else "warning"
    ids = [one.id for one in worrying]
    shown = ", ".join(ids[:6]) + (f" and {len(ids) - 6} more" if len(ids) > 6 else "")
    return Layer(name, status, f"{sketch.summary}; see {shown}" if ids else sketch.summary)


def _owners(facts: Facts) -> dict[str, str]:
    """Library path to the distribution that owns it, and each distribution's name to itself."""
    found: dict[str, str] = {}
    if isinstance(facts.libraries, Known):
        found.update((one.path, one.owner) for one in facts.libraries.value if one.owner)
    if isinstance(facts.distributions, Known):
        found.update((one.name, one.name) for one in facts.distributions.value)
    return found


def _layer_of(finding: Finding, owners: dict[str, str]) -> str:
    if finding.stage == "jit":
        return "compiler"
    owner = owners.get(finding.subject, "")
    if owner == "torch":
        return "torch"
    if owner in ENGINES:
        return "engine"
    if owner.startswith(("nvidia-", "cuda-")):
        return "cuda"
    return "kernels" if owner else _BY_STAGE[finding.stage]


def _driver(facts: Facts) -> Sketch:
    host = facts.host
    system = (
        ", ".join(filter(None, (host.value.os, host.value.machine, host.value.libc))) if isinstance(host, Known) else ""
    )
    driver = facts.driver
    if isinstance(driver, Unknown):
        return Sketch(False, "; ".join(filter(None, (system, driver.reason))))
    cuda = f" (CUDA {driver.value.cuda})" if driver.value.cuda else ""
    return Sketch(True, "; ".join(filter(None, (system, f"NVIDIA driver {driver.value.version}{cuda}"))))


def _gpu(facts: Facts) -> Sketch:
    gpus = facts.gpus
    if isinstance(gpus, Unknown):
        return Sketch(False, gpus.reason)
    if not gpus.value:
        return Sketch(True, "none on this machine")
    return Sketch(True, ", ".join(gpu_label(one.name, one.compute_capability, one.count) for one in gpus.value))


def gpu_label(name: str, capability: str, count: int) -> str:
    """``8 x RTX PRO 6000 Blackwell (12.0)``."""
    return f"{f'{count} x ' if count > 1 else ''}{name} (compute capability {capability})"


def _cuda(facts: Facts) -> Sketch:
    if isinstance(facts.distributions, Unknown):
        return Sketch(False, facts.distributions.reason)
    torch = distribution(facts, "torch")
    cuda = dict(torch.build).get("cuda", "") if torch is not None else ""
    parts = [
        f"{one.name} {one.version}"
        for one in facts.distributions.value
        if one.name.removesuffix("-cu12").removesuffix("-cu13")
        in ("nvidia-cuda-runtime", "nvidia-cudnn", "nvidia-nccl", "nvidia-cuda-nvrtc")
    ]
    head = f"CUDA {cuda}" if cuda and cuda != "None" else ""
    return Sketch(True, ", ".join(filter(None, (head, *sorted(parts)))) or "no CUDA library among the packages")


def _torch(facts: Facts) -> Sketch:
    if isinstance(facts.distributions, Unknown):
        return Sketch(False, facts.distributions.reason)
    torch = distribution(facts, "torch")
    if torch is None:
        return Sketch(True, "not in the stack")
    build = dict(torch.build)
    if "cuda" not in build:
        return Sketch(True, torch.version)
    cuda = build["cuda"]
    return Sketch(
        True, f"{torch.version}, " + (f"built for CUDA {cuda}" if cuda not in ("", "None") else "a CPU build")
    )


def _kernels(facts: Facts) -> Sketch:
    """Distributions that bring device code or link to torch, other than torch, CUDA's own and the engines."""
    if isinstance(facts.libraries, Unknown) or isinstance(facts.distributions, Unknown):
        value = facts.libraries if isinstance(facts.libraries, Unknown) else facts.distributions
        return Sketch(False, value.reason if isinstance(value, Unknown) else "")
    owners = {
        one.owner
        for one in facts.libraries.value
        if one.device_code or any(name.startswith(("libtorch", "libc10")) for name in one.needed)
    }
    found = [one for one in facts.distributions.value if one.name in owners and _is_kernel_package(one)]
    named = [f"{one.name} {one.version}" for one in sorted(found, key=lambda one: one.name)]
    more = f" and {len(named) - 6} more" if len(named) > 6 else ""
    return Sketch(True, ", ".join(named[:6]) + more if named else "none in the stack")


def _is_kernel_package(one: Distribution) -> bool:
    return one.name != "torch" and one.name not in ENGINES and not one.name.startswith(("nvidia-", "cuda-"))


def _compiler(facts: Facts) -> Sketch:
    if isinstance(facts.toolkits, Unknown):
        return Sketch(False, f"toolkits: {facts.toolkits.reason}")
    kits = [one for one in facts.toolkits.value if one.component("nvcc") is not None]
    if not kits:
        return Sketch(True, "no nvcc on this machine")
    return Sketch(True, ", ".join(f"nvcc {one.version('nvcc')} in {one.home}" for one in kits[:3]))


def _engine(facts: Facts) -> Sketch:
    if isinstance(facts.distributions, Unknown):
        return Sketch(bool(facts.goal.engine), facts.goal.engine or facts.distributions.reason)
    found = [f"{one.name} {one.version}" for one in facts.distributions.value if one.name in ENGINES]
    if found:
        return Sketch(True, ", ".join(found))
    if facts.goal.engine and facts.goal.engine != "torch":
        return Sketch(False, f"{facts.goal.engine} is not in the stack")
    return Sketch(True, "none in the stack")


_LAYERS: tuple[tuple[str, Callable[[Facts], Sketch]], ...] = (
    ("driver", _driver),
    ("gpu", _gpu),
    ("cuda", _cuda),
    ("torch", _torch),
    ("kernels", _kernels),
    ("compiler", _compiler),
    ("engine", _engine),
)
