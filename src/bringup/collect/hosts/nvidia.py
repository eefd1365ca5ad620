"""Parsers of nvidia-smi, of the driver's /proc files and of its file names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from bringup.machine import DriverFile, KernelModule, PciGpu, SmiGpu, Topology, Xid

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_BYTES = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


def kernel_module(text: str) -> KernelModule | None:
    """/proc/driver/nvidia/version, as in ``NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04 ...``."""
    match = re.search(r"NVRM version:.*?Kernel Module.*?\s(\d+\.\d+(?:\.\d+)?)\s", text + "\n")
    if match is None:
        return None
    return KernelModule(match.group(1), "open" if "Open Kernel Module" in text else "proprietary")


def header_versions(text: str) -> tuple[str, str]:
    """Driver and CUDA version of nvidia-smi's table or of ``-q``; '' where it does not say."""
    driver = re.search(r"Driver Version\s*:\s*(\d[\d.]*)", text)
    cuda = re.search(r"CUDA (?:UMD )?Version\s*:\s*(\d[\d.]*)", text)
    return (driver.group(1) if driver else "", cuda.group(1) if cuda else "")


def _blocks(text: str) -> Iterable[tuple[str, dict[str, str]]]:
    """``nvidia-smi -q`` as one flat mapping a GPU: nested names are joined by `` > ``, by their indentation."""
    bus = ""
    pairs: dict[str, str] = {}
    path: list[tuple[int, str]] = []
    for line in text.splitlines():
        head = re.match(r"GPU ([0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])\s*$", line)
        if head:
            if bus:
                yield bus, pairs
            bus, pairs, path = head.group(1), {}, []
            continue
        if not bus or not line.strip():
            continue
        depth = len(line) - len(line.lstrip())
        name, colon, value = line.strip().partition(" : ")
        name = name.strip()
        while path and path[-1][0] >= depth:
            path.pop()
        if not colon:
            path.append((depth, name.rstrip(":").strip()))
            continue
        pairs[" > ".join([*(one for _, one in path), name])] = value.strip()
    if bus:
        yield bus, pairs


def amount(text: str) -> int:
    """``143771 MiB`` in bytes, 0 where it is none."""
    number, _, unit = text.strip().partition(" ")
    return int(number) * _BYTES.get(unit, 0) if number.isdigit() else 0


def _count(text: str) -> int:
    return int(text) if text.isdigit() else -1


def smi_query(text: str, capabilities: Mapping[int, str]) -> tuple[SmiGpu, ...]:
    """GPUs of ``nvidia-smi -q``. It names no compute capability: ``capabilities`` gives it by index."""
    found: list[SmiGpu] = []
    for index, (bus, pairs) in enumerate(_blocks(text)):
        uncorrectable = [
            _count(value)
            for name, value in pairs.items()
            if name.startswith("ECC Errors > ") and "Uncorrectable" in name.rpartition(" > ")[2]
        ]
        counted = [one for one in uncorrectable if one >= 0]
        found.append(
            SmiGpu(
                index=index,
                name=pairs.get("Product Name", ""),
                uuid=pairs.get("GPU UUID", ""),
                bus=bus.lower(),
                compute_capability=capabilities.get(index, ""),
                brand=pairs.get("Product Brand", ""),
                memory=amount(pairs.get("FB Memory Usage > Total", "")),
                memory_free=amount(pairs.get("FB Memory Usage > Free", ""))
                if "FB Memory Usage > Free" in pairs
                else -1,
                compute_mode=pairs.get("Compute Mode", ""),
                mig=pairs.get("MIG Mode > Current", ""),
                ecc=pairs.get("ECC Mode > Current", ""),
                ecc_uncorrectable=sum(counted) if counted else -1,
                remap_pending=pairs.get("Remapped Rows > Pending") == "Yes"
                or pairs.get("Retired Pages > Pending Page Blacklist") == "Yes",
                remap_failed=pairs.get("Remapped Rows > Remapping Failure Occurred") == "Yes",
                fabric_state=pairs.get("Fabric > State", ""),
                fabric_status=pairs.get("Fabric > Status", ""),
                bar1=amount(pairs.get("BAR1 Memory Usage > Total", "")),
            )
        )
    return tuple(found)


def capabilities(text: str) -> dict[int, str]:
    """``index, name, compute_cap, memory.total`` lines of ``--query-gpu`` in CSV without header: capability by index."""
    found: dict[int, str] = {}
    for line in text.splitlines():
        fields = [field.strip() for field in line.split(",")]
        if len(fields) >= 4 and fields[0].isdigit() and re.fullmatch(r"\d+\.\d+", fields[-2]):
            found[int(fields[0])] = fields[-2]
    return found


def topology(text: str) -> Topology | None:
    """``nvidia-smi topo -m``: the GPU rows and GPU columns; None where the text holds no matrix."""
    lines = [_COLOUR.sub("", line) for line in text.splitlines()]
    header = next((line for line in lines if re.search(r"\bGPU0\b", line) and not line.startswith("GPU0")), None)
    if header is None:
        return None
    columns = [name.strip() for name in header.split("\t") if name.strip()]
    gpus = tuple(name for name in columns if re.fullmatch(r"GPU\d+", name))
    rows: list[tuple[str, ...]] = []
    for line in lines:
        cells = [cell.strip() for cell in line.split("\t")]
        if cells and cells[0] in gpus:
            rows.append(tuple(cells[1 : 1 + len(gpus)]))
    if len(rows) != len(gpus) or any(len(row) != len(gpus) for row in rows):
        return None
    return Topology(gpus, tuple(rows))


def driver_files(raw: Iterable[Mapping[str, Any]]) -> tuple[DriverFile, ...]:
    """Files of the driver with the release in the name behind their links (``libcuda.so.580.159.04``), '' where none."""
    found: list[DriverFile] = []
    for one in raw:
        path, real = str(one["path"]), str(one.get("real", ""))
        match = re.search(r"\.so\.(\d{3,}\.\d+(?:\.\d+)?)$", real)
        soname = path.rpartition("/")[2]
        compat = "/compat/" in real or "/compat/" in path
        found.append(DriverFile(soname, path, real, match.group(1) if match else "", compat))
    return tuple(found)


def xids(lines: Iterable[str]) -> tuple[Xid, ...]:
    """``NVRM: Xid (PCI:0000:01:00): 79, pid=..., GPU has fallen off the bus.`` lines of the kernel log."""
    found: list[Xid] = []
    for line in lines:
        match = re.search(r"NVRM: Xid \((?:PCI:)?([^)]*)\): (\d+),?\s*(.*)", line)
        if match:
            found.append(Xid(int(match.group(2)), match.group(1).strip(), match.group(3).strip()))
    return tuple(found)


def pci_gpus(raw: Iterable[Mapping[str, Any]]) -> tuple[PciGpu, ...]:
    """NVIDIA's PCI functions from sysfs: ``resource`` lines are start, end, flags of each BAR."""
    found: list[PciGpu] = []
    for one in raw:
        largest = 0
        for line in str(one.get("resource", "")).splitlines():
            numbers = [int(word, 16) for word in line.split() if re.fullmatch(r"0x[0-9a-fA-F]+", word)]
            if len(numbers) == 3 and numbers[1] > numbers[0]:
                largest = max(largest, numbers[1] - numbers[0] + 1)
        node = str(one.get("numa_node", "-1"))
        found.append(
            PciGpu(
                address=str(one["address"]),
                device=str(one.get("device", "")),
                pci_class=str(one.get("class", "")),
                driver=str(one.get("driver", "")),
                numa_node=int(node) if re.fullmatch(r"-?\d+", node) else -1,
                largest_bar=largest,
            )
        )
    return tuple(found)
