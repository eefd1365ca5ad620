"""What compiles on a machine: toolkits, tools on PATH and JIT caches, parsed from what the probe brings.

Pure: text in, facts out. The versions are those that the files themselves say; a distribution's name and version is
kept beside them, and stands in only for crt, whose headers carry no release.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from bringup.machine import CachedLibrary, CacheFolder, Component, Tool, Toolkit

_RELEASE = re.compile(r"release (\d+\.\d+), V(\d+(?:\.\d+)+)")
_OWNERS = {
    "nvcc": ("nvidia_cuda_nvcc",),
    "ptxas": ("nvidia_cuda_nvcc",),
    "crt": ("nvidia_cuda_crt",),
    "nvvm": ("nvidia_nvvm",),
    "runtime": ("nvidia_cuda_runtime",),
    "cccl": ("nvidia_cuda_cccl", "cuda_cccl"),
    "nvrtc": ("nvidia_cuda_nvrtc",),
}


def compiler_release(text: str) -> str:
    """``13.0.88`` out of ``Cuda compilation tools, release 13.0, V13.0.88``; '' where the text does not say."""
    match = _RELEASE.search(text)
    return match.group(2) if match else ""


def cudart_version(number: str) -> str:
    """CUDART_VERSION as major.minor: ``13000`` is ``13.0``, ``12080`` is ``12.8``; '' for anything else."""
    if not number.isdigit() or len(number) < 4:
        return ""
    return f"{int(number) // 1000}.{int(number) % 1000 // 10}"


def cccl_version(number: str) -> str:
    """CCCL_VERSION (MMMmmmppp) as major.minor.patch: ``3000001`` is ``3.0.1``."""
    if not number.isdigit():
        return ""
    return f"{int(number) // 1_000_000}.{int(number) // 1000 % 1000}.{int(number) % 1000}"


def program_version(text: str) -> str:
    """The first dotted number of a ``--version`` answer after what a packager put into parentheses."""
    first = text.strip().splitlines()[0] if text.strip() else ""
    first = re.sub(r"^\S+ \([^)]*\)", "", first)  # gcc (Debian 12.2.0-14+deb12u1) 12.2.0
    match = re.search(r"\d+(?:\.\d+)+", first)
    return match.group(0) if match else ""


def parse_toolkits(observed: Mapping[str, Any]) -> tuple[Toolkit, ...]:
    """The probe's ``toolkits``, those that hold at least one part. The order is that in which they were found."""
    found = (_toolkit(raw) for raw in observed.get("toolkits", ()))
    return tuple(kit for kit in found if kit.components or kit.nvcc_is_script)


def _toolkit(raw: Mapping[str, Any]) -> Toolkit:
    home: str = raw["home"]
    include: str = raw.get("include", "")
    owners = dict(_split_record(name) for name in raw.get("records", ()))
    binaries: Mapping[str, Mapping[str, Any]] = raw.get("binaries", {})
    components: list[Component] = []

    def add(name: Any, version: str, path: str, modified: float = 0.0) -> None:
        owner = next((one for one in _OWNERS[name] if one in owners), "")
        said = f"{owner.replace('_', '-')} {owners[owner]}" if owner else ""
        components.append(Component(name, version, path, said, modified))

    script = ""
    for name, binary, path in (
        ("nvcc", "nvcc", "bin/nvcc"),
        ("nvvm", "cicc", "nvvm/bin/cicc"),
        ("ptxas", "ptxas", "bin/ptxas"),
    ):
        facts = binaries.get(binary)
        if facts is None or "error" in facts:
            continue
        if "script" in facts:
            if name == "nvcc":
                match = re.search(r"(/[^\s\"']*/nvcc)\b", facts["script"])
                script = match.group(1) if match else ""
            continue
        add(name, compiler_release(facts.get("release", "")), f"{home}/{path}", facts.get("modified", 0.0))
    headers = tuple(raw.get("headers", ()))
    if "crt/host_config.h" in headers:
        owner = next((one for one in _OWNERS["crt"] if one in owners), "")
        add("crt", owners.get(owner, ""), f"{include}/crt")
    if raw.get("cudart"):
        owner = next((one for one in _OWNERS["runtime"] if one in owners), "")
        add("runtime", owners.get(owner, ""), f"{include}/cuda_runtime_api.h")
    if raw.get("cccl"):
        add("cccl", cccl_version(raw["cccl"]), f"{include}/cccl")
    nvrtc: Mapping[str, Any] = raw.get("nvrtc", {})
    if nvrtc.get("path"):
        add("nvrtc", compiler_release(nvrtc.get("release", "")), nvrtc["path"])
    launch: str = raw.get("launch", "")
    return Toolkit(
        home=home,
        found=tuple(raw.get("found", ())),
        real_home=raw.get("real", ""),
        components=tuple(components),
        cudart=cudart_version(raw.get("cudart", "")),
        launch_arguments=launch.count(",") + 1 if launch.strip() else 0,
        nvcc_says_simt_only=bool(binaries.get("nvcc", {}).get("simt_only")),
        nvvm_takes_simt_only=bool(binaries.get("cicc", {}).get("simt_only")),
        host_gcc_maximum=int(raw.get("gcc") or 0),
        host_clang_maximum=int(raw.get("clang") or 0),
        nvcc_knows=tuple(binaries.get("nvcc", {}).get("knows", ())),
        ptxas_knows=tuple(binaries.get("ptxas", {}).get("knows", ())),
        headers=headers,
        link_names=tuple(raw.get("links", ())),
        nvcc_is_script=script,
    )


def _split_record(name: str) -> tuple[str, str]:
    distribution, _, version = name.removesuffix(".dist-info").partition("-")
    for suffix in ("_cu11", "_cu12", "_cu13"):
        distribution = distribution.removesuffix(suffix)
    return distribution, version


def parse_tools(observed: Mapping[str, Any]) -> tuple[Tool, ...]:
    """The probe's ``tools``. CC, CXX and NVCC_CCBIN are tools of those names: the program that the variable names."""
    found: list[Tool] = []
    for raw in observed.get("tools", ()):
        binary: Mapping[str, Any] = raw.get("binary", {})
        version = compiler_release(binary.get("release", "")) or program_version(raw.get("version", ""))
        found.append(Tool(raw["name"], raw["path"], version, raw.get("on_path", -1), tuple(binary.get("knows", ()))))
    return tuple(found)


def parse_caches(
    observed: Mapping[str, Any], mounts: Iterable[tuple[str, str, tuple[str, ...]]]
) -> tuple[CacheFolder, ...]:
    """The probe's ``caches``; ``mounts`` are (point, file system, options) and say where each folder's files would lie."""
    table = sorted(mounts, key=lambda row: -len(row[0]))
    found: list[CacheFolder] = []
    for raw in observed.get("caches", ()):
        base: str = raw.get("real") or raw.get("base", "/")
        mount = next((row for row in table if base == row[0] or base.startswith(row[0].rstrip("/") + "/")), None)
        found.append(
            CacheFolder(
                user=raw["user"],
                path=raw["path"],
                decided_by=raw.get("decided_by", "HOME"),
                exists=bool(raw.get("exists")),
                base=raw.get("base", ""),
                writable=bool(raw.get("writable")),
                filesystem=mount[1] if mount else "",
                options=mount[2] if mount else (),
                free=int(raw.get("free", -1)),
                locks=tuple((path, float(modified)) for path, modified in raw.get("locks", ())),
                libraries=tuple(
                    CachedLibrary(one["path"], float(one["modified"]), cuda_home=one.get("home", ""))
                    for one in raw.get("modules", ())
                ),
            )
        )
    return tuple(found)
