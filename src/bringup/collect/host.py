"""The machine below a stack: run the probe here, and turn what any probe brought into facts.

`observe` reads this machine; `parse_machine` and `with_machine` are pure, so that a recorded answer, a target elsewhere
and this machine go the same way.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from bringup.collect import probe
from bringup.collect.hosts import linux, nvidia
from bringup.collect.toolchain import parse_caches, parse_toolkits, parse_tools
from bringup.errors import UnreadableError
from bringup.facts import Driver, Facts, Gpu, ProductClass, Variable
from bringup.known import Known, Maybe, Unknown
from bringup.machine import Limits, Machine

T = TypeVar("T")


def observe(
    prefix: str = "",
    roots: Sequence[str] = (),
    include: str = "",
    homes: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Look at this machine. ``variables`` are judged as if they were set; ``homes`` are further toolkits to look at."""
    request = {
        "prefix": prefix,
        "roots": list(roots),
        "include": include,
        "homes": list(homes),
        "variables": dict(variables or {}),
    }
    return probe.observe(request)


def parse_machine(observed: Mapping[str, Any]) -> Machine:
    """A probe's answer as facts. Raises UnreadableError where it is no answer of a probe."""
    if observed.get("schema") != probe.SCHEMA:
        raise UnreadableError("the probe's answer", f"is not {probe.SCHEMA}")
    read = _Reader(observed)
    variables: Mapping[str, str] = observed.get("variables", {})
    log = read.command("dmesg")
    lines: Maybe[tuple[str, ...]] = Known(tuple(log.value.splitlines()), log.source) if isinstance(log, Known) else log
    smi_text = read.command("nvidia-smi -q")
    listed = read.command("nvidia-smi --query-gpu")
    capability = nvidia.capabilities(listed.value) if isinstance(listed, Known) else {}
    memory = read.parsed("/proc/meminfo", linux.meminfo)
    texts = {path: one["text"] for path, one in observed.get("files", {}).items() if "text" in one}
    limits = observed.get("limits", {})
    shared = observed.get("space", {}).get("/dev/shm", {})
    bridges = observed.get("acs")
    groups = observed.get("folders", {}).get("/sys/kernel/iommu_groups")
    adapters = observed.get("folders", {}).get("/sys/class/infiniband")
    secure = observed.get("secure_boot", "")
    runtime = texts.get("/etc/nvidia-container-runtime/config.toml")
    no_cgroups = linux.toml_flag(runtime, "no-cgroups") if runtime is not None else None
    namespace = linux.user_namespace(texts.get("/proc/self/uid_map", ""))
    requirement = variables.get("NVIDIA_REQUIRE_CUDA")
    installed = observed.get("installed", {})
    return Machine(
        container=Known(
            linux.container(texts, observed.get("marks", ()), variables, observed.get("init", ())), "/proc, /run"
        ),
        user=_given(observed.get("user"), "getuid"),
        user_namespace=_given(namespace, "/proc/self/uid_map"),
        module=read.parsed("/proc/driver/nvidia/version", nvidia.kernel_module),
        driver_files=Known(
            nvidia.driver_files(observed.get("drivers", ())), "LD_LIBRARY_PATH, ldconfig -p, default folders"
        ),
        smi=Known(nvidia.smi_query(smi_text.value, capability), smi_text.source)
        if isinstance(smi_text, Known)
        else smi_text,
        smi_error=read.failure("nvidia-smi -q"),
        devices=_given(tuple(observed.get("devices", {}).get("nodes", ())), "/dev"),
        device_links=_given(tuple(observed.get("devices", {}).get("links", ())), "/dev/char"),
        pci=Known(nvidia.pci_gpus(observed.get("pci", ())), "/sys/bus/pci/devices"),
        topology=_found(read.command("nvidia-smi topo -m"), nvidia.topology),
        modules=read.parsed("/proc/modules", linux.modules),
        kernel_log=lines,
        xids=Known(nvidia.xids(lines.value), lines.source) if isinstance(lines, Known) else lines,
        secure_boot=Known(secure == "1", "efivars") if secure else Unknown("no EFI variable says so"),
        command_line=read.parsed("/proc/cmdline", str.strip),
        iommu_groups=_given(len(groups) if groups is not None else None, "/sys/kernel/iommu_groups"),
        acs_redirect=_given(tuple(bridges) if bridges is not None else None, "PCI configuration space"),
        fabric_manager=_fabric_manager(read.raw("systemctl is-active nvidia-fabricmanager")),
        fabric_manager_release=_found(read.command("nv-fabricmanager --version"), _version_in),
        limits=Known(_limits(limits), "getrlimit") if limits else Unknown("no limits were read"),
        shared_memory=_given(shared.get("total"), "/dev/shm"),
        memory=_given(_total(memory, "MemTotal"), "/proc/meminfo"),
        memory_available=_given(_total(memory, "MemAvailable"), "/proc/meminfo"),
        mounts=read.parsed("/proc/mounts", linux.mounts),
        infiniband=_given(tuple(adapters) if adapters is not None else (), "/sys/class/infiniband"),
        cuda_requirement=Known(requirement or "", "NVIDIA_REQUIRE_CUDA"),
        toolkit_no_cgroups=_given(no_cgroups, "/etc/nvidia-container-runtime/config.toml"),
        python_header=_given(observed.get("python_header"), observed.get("python_include", "") or "sysconfig"),
        installed=Known(tuple(sorted(installed.items())), "RECORD files"),
    )


class _Reader:
    def __init__(self, observed: Mapping[str, Any]) -> None:
        self.files: Mapping[str, Any] = observed.get("files", {})
        self.commands: Mapping[str, Any] = observed.get("commands", {})

    def parsed(self, path: str, parse: Any) -> Any:
        one = self.files.get(path)
        if one is None:
            return Unknown(f"{path} was not looked at")
        if "text" not in one:
            if path == "/proc/driver/nvidia/version":
                return Unknown("no NVIDIA kernel module is loaded")
            return Unknown(f"{path}: {one.get('error', 'could not be read')}")
        value = parse(one["text"])
        return Known(value, path) if value is not None else Unknown(f"{path} says something unexpected")

    def raw(self, key: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.commands.get(key, {"error": "was not asked"})
        return found

    def command(self, key: str) -> Maybe[str]:
        one = self.raw(key)
        if "error" in one:
            return Unknown(f"{key}: {one['error']}")
        if one.get("rc"):
            said = (one.get("out", "") + one.get("err", "")).strip().splitlines()
            return Unknown(f"{key}: {said[0] if said else 'ended with status ' + str(one['rc'])}")
        return Known(one.get("out", ""), key)

    def failure(self, key: str) -> Maybe[str]:
        """What a command printed where it ran and failed, '' where it answered; unknown where it could not run."""
        one = self.raw(key)
        if "error" in one:
            return Unknown(f"{key}: {one['error']}")
        return Known((one.get("out", "") + one.get("err", "")).strip() if one.get("rc") else "", key)


def _given(value: T | None, source: str) -> Maybe[T]:
    return Unknown(f"{source}: could not be read") if value is None else Known(value, source)


def _found(text: Maybe[str], parse: Any) -> Any:
    if isinstance(text, Unknown):
        return text
    value = parse(text.value)
    return Known(value, text.source) if value else Unknown(f"{text.source} says something unexpected")


def _version_in(text: str) -> str:
    match = re.search(r"\d{3}\.\d+(?:\.\d+)?", text)
    return match.group(0) if match else ""


def _fabric_manager(answer: Mapping[str, Any]) -> Maybe[str]:
    if "error" in answer:
        return Unknown(f"systemctl: {answer['error']}")
    said = answer.get("out", "").strip()
    if said in ("active", "inactive", "failed", "activating"):
        return Known(said, "systemctl is-active nvidia-fabricmanager")
    return Unknown("systemctl: " + (answer.get("err", "").strip().splitlines() or ["no answer"])[0])


def _limits(raw: Mapping[str, Sequence[int]]) -> Limits:
    return Limits(memlock=raw["MEMLOCK"][0], open_files=raw["NOFILE"][0], stack=raw.get("STACK", (-1,))[0])


def _total(memory: Maybe[dict[str, int]], name: str) -> int | None:
    return memory.value.get(name) if isinstance(memory, Known) else None


# --- into Facts -------------------------------------------------------------------------------------------------------


def product_class(name: str, brand: str = "") -> ProductClass:
    """A GPU's class by NVIDIA's product names: forward compatibility, P2P and ECC depend on it."""
    words = f"{name} {brand}".upper()
    if "GB10" in words:
        return "gb10"
    if any(word in words for word in ("ORIN", "XAVIER", "THOR", "TEGRA", "JETSON")):
        return "jetson"
    if "RTX PRO" in words or "QUADRO" in words or ("RTX" in words and (" ADA" in words or "RTX A" in words)):
        return "rtx-pro"
    if "GEFORCE" in words or "TITAN" in words or " GTX" in words:
        return "geforce"
    if any(mark in words.split() or f" {mark}" in words for mark in _DATACENTER):
        return "datacenter"
    return "unknown"


_DATACENTER = (
    "B300", "B200", "GB200", "GB300", "H200", "H100", "H800", "H20", "GH200", "A100", "A800", "A30", "A40", "A10", "A16",
    "A2", "L40S", "L40", "L20", "L4", "L2", "T4", "V100", "P100", "P40", "P4", "TESLA",
)  # fmt: skip


def gpus_of(machine: Machine) -> Maybe[tuple[Gpu, ...]]:
    """The GPUs that nvidia-smi lists, equal ones counted together."""
    if isinstance(machine.smi, Unknown):
        return machine.smi
    counted: dict[tuple[str, str, int, str], int] = {}
    for one in machine.smi.value:
        key = (one.name, one.compute_capability, one.memory, one.brand)
        counted[key] = counted.get(key, 0) + 1
    found: list[Gpu] = []
    for (name, capability, memory, brand), count in counted.items():
        if "." not in capability:
            return Unknown(f"nvidia-smi names {name} but not its compute capability")
        major, _, minor = capability.partition(".")
        found.append(Gpu(name, int(major), int(minor), count, memory, product_class(name, brand)))
    return Known(tuple(found), machine.smi.source) if found else Unknown("nvidia-smi lists no GPU")


def driver_of(machine: Machine, observed: Mapping[str, Any]) -> Maybe[Driver]:
    """The driver: its release from the kernel module, or else nvidia-smi; the CUDA version that nvidia-smi states."""
    text = str(observed.get("commands", {}).get("nvidia-smi -q", {}).get("out", ""))
    release, cuda = nvidia.header_versions(text)
    if isinstance(machine.module, Known):
        return Known(Driver(machine.module.value.release, cuda), machine.module.source)
    if release:
        return Known(Driver(release, cuda), "nvidia-smi -q")
    return Unknown("no NVIDIA kernel module is loaded and nvidia-smi does not answer")


def with_machine(facts: Facts, observed: Mapping[str, Any]) -> Facts:
    """The facts with everything that the probe brought; what an option or a file already said stays."""
    machine = parse_machine(observed)
    table = machine.mounts.value if isinstance(machine.mounts, Known) else ()
    rows = [(one.point, one.filesystem, one.options) for one in table]
    where = f"the probe on {os.uname().nodename}" if observed.get("pid") == os.getpid() else "the probe"
    variables = tuple(Variable(name, value) for name, value in observed.get("variables", {}).items())
    return replace(
        facts,
        machine=Known(machine, where),
        toolkits=Known(parse_toolkits(observed), where),
        tools=Known(parse_tools(observed), where),
        caches=Known(parse_caches(observed, rows), where),
        gpus=facts.gpus if isinstance(facts.gpus, Known) else gpus_of(machine),
        driver=facts.driver if isinstance(facts.driver, Known) else driver_of(machine, observed),
        variables=facts.variables if isinstance(facts.variables, Known) else Known(variables, where),
    )


def with_this_machine(facts: Facts, variables: Mapping[str, str] | None = None) -> Facts:
    """The facts of an environment of this machine with those of the machine below it."""
    python = facts.python.value if isinstance(facts.python, Known) else None
    prefix = python.prefix if python is not None else ""
    include = python.include if python is not None else ""
    return with_machine(facts, observe(prefix, facts.roots, include, variables=variables))
