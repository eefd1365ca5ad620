"""What kind of gap a missing soname is, and who could fill it."""

from __future__ import annotations

import re
from typing import Literal

from bringup.evaluate.cuda_libraries import provider_of
from bringup.evaluate.loading import MissingSoname
from bringup.facts import Facts, Known, Library, distribution

Gap = Literal["torch", "cuda_major", "cuda_absent", "unreachable", "system"]

_TORCH = re.compile(
    r"lib(?:torch|torch_cpu|torch_cuda|torch_hip|torch_python|torch_global_deps|c10|c10_cuda|c10_hip|caffe2\w*|shm)\.so"
)


def same_stem(facts: Facts, soname: str) -> list[Library]:
    """Libraries of the stack with that soname's stem, whatever version."""
    stem = soname.split(".so", 1)[0]
    if not isinstance(facts.libraries, Known):
        return []
    return [one for one in facts.libraries.value if (one.soname or one.file_name).split(".so", 1)[0] == stem]


def gap(facts: Facts, entry: MissingSoname) -> Gap:
    """What kind of gap a missing soname is."""
    if _TORCH.match(entry.soname):
        return "torch"
    present = same_stem(facts, entry.soname)
    if any(entry.soname in (one.soname, one.file_name) for one in present):
        return "unreachable"
    if provider_of(entry.soname) is not None:
        return "cuda_major" if present else "cuda_absent"
    return "system"


def torch_cuda(facts: Facts) -> str | None:
    """The CUDA version that the installed torch was built for: ``13.0``; '' for a CPU build; None where not known."""
    torch = distribution(facts, "torch")
    if torch is None:
        return None
    for name, value in torch.build:
        if name == "cuda":
            return "" if value in ("", "None") else value
    return None


def listed(entries: list[MissingSoname]) -> str:
    """``libnvrtc.so.12 and libcudart.so.12``: each missing soname once, in the loader's order."""
    unique = list(dict.fromkeys(entry.soname for entry in entries))
    return " and ".join(filter(None, (", ".join(unique[:-1]), unique[-1])))


DEBIAN_PACKAGES = (
    ("libnuma.so.1", "libnuma1"),
    ("libmpi.so.40", "libopenmpi3"),
    ("libmpi_cxx.so.40", "libopenmpi3"),
    ("libibverbs.so.1", "libibverbs1"),
    ("libmlx5.so.1", "ibverbs-providers"),
    ("librdmacm.so.1", "librdmacm1"),
    ("libgomp.so.1", "libgomp1"),
    ("libgl.so.1", "libgl1"),
    ("libGL.so.1", "libgl1"),
    ("libglib-2.0.so.0", "libglib2.0-0"),
    ("libgthread-2.0.so.0", "libglib2.0-0"),
    ("libsndfile.so.1", "libsndfile1"),
    ("libtbb.so.12", "libtbb12"),
    ("libaio.so.1", "libaio1"),
    ("libcurl.so.4", "libcurl4"),
    ("libunwind.so.8", "libunwind8"),
    ("libfabric.so.1", "libfabric1"),
    ("libucs.so.0", "libucx0"),
    ("libjsoncpp.so.25", "libjsoncpp25"),
    ("libgflags.so.2.2", "libgflags2.2"),
    ("libglog.so.1", "libgoogle-glog0v6"),
    ("libgrpc++.so.1.51", "libgrpc++1.51"),
)
"""Soname and the Debian 12 package that carries it, from the packages' file lists."""

_PYTHON = re.compile(r"libpython(3\.\d+)\.so")


def debian_package(soname: str) -> str:
    """The Debian package that carries a library of the host, '' where the table has none."""
    python = _PYTHON.match(soname)
    if python:
        return f"libpython{python.group(1)}"
    return dict(DEBIAN_PACKAGES).get(soname, "")
