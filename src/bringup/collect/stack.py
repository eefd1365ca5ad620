"""Facts of whole stacks, whatever form they come in: an environment, wheels, requirements."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from bringup.collect.cache import Cache
from bringup.collect.dynamic_loader import read_host
from bringup.collect.environment import read_roots
from bringup.collect.interpreter import active_prefix, find_environment
from bringup.collect.system import read_system_libraries
from bringup.facts import Facts, Known, Unknown, Variable, variable

_VARIABLES = frozenset(
    {
        "CC",
        "CXX",
        "CUDACXX",
        "CPATH",
        "HOME",
        "LD_LIBRARY_PATH",
        "LD_PRELOAD",
        "LIBRARY_PATH",
        "PATH",
        "PYTHONPATH",
        "TMPDIR",
    }
)
_PREFIXES = (
    "CONDA_", "CUDA", "CUDNN_", "DG_", "FLASHINFER_", "HF_", "NCCL_", "NVCC_", "NVIDIA_", "NVSHMEM_", "OMP_", "PYTORCH_",
    "SGLANG_", "SGL_", "TILELANG_", "TORCH", "TRITON_", "TRANSFORMERS_", "VIRTUAL_ENV", "VLLM_", "XDG_CACHE_HOME",
)  # fmt: skip
_SECRET = ("TOKEN", "KEY", "SECRET", "PASSWORD")


def environment_outline(path: Path | None) -> Facts:
    """What is known of an environment of this machine before its folders are read; None means the active one.

    Raises UnreadableError where there is none.
    """
    environment = find_environment(path if path is not None else active_prefix())
    return Facts(
        target=environment.prefix,
        roots=environment.roots,
        host=Known(read_host(), "this machine"),
        python=Known(environment.interpreter, environment.prefix)
        if environment.interpreter is not None
        else Unknown(f"{environment.prefix} is a bare folder of packages, with no interpreter"),
        variables=Known(read_variables(os.environ), "environment of this process"),
    )


def with_packages(facts: Facts, cache: Cache) -> tuple[str, Facts]:
    """An outline with what lies in its folders, and the folders' fingerprint (see `environment.read_roots`)."""
    fingerprint, found = read_roots(facts.roots, cache)
    assert isinstance(facts.host, Known), "an outline knows its host"
    executable = facts.python.value.executable if isinstance(facts.python, Known) else ""
    system = read_system_libraries(found.libraries, facts.host.value, library_path(facts), executable)
    source = facts.target
    return fingerprint, replace(
        facts,
        distributions=Known(found.distributions, source),
        shared_paths=Known(found.shared_paths, source),
        libraries=Known(found.libraries, source),
        system_libraries=Known(system, "this machine"),
        device_files=Known(found.device_files, source),
        unreadable=Known(found.unreadable, source),
    )


def environment_facts(path: Path | None) -> Facts:
    """Facts of an installed environment, or site-packages folder, of this machine. See `environment_outline`."""
    return with_packages(environment_outline(path), Cache.open())[1]


def library_path(facts: Facts) -> list[str]:
    """The folders of LD_LIBRARY_PATH."""
    return [os.path.normpath(folder) for folder in (variable(facts, "LD_LIBRARY_PATH") or "").split(":") if folder]


def read_variables(environ: Mapping[str, str]) -> tuple[Variable, ...]:
    """The variables that matter to a start, sorted by name. Those that hold secrets are left out."""
    return tuple(
        Variable(name, value.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace"))
        for name, value in sorted(environ.items())
        if (name in _VARIABLES or name.startswith(_PREFIXES)) and not any(word in name for word in _SECRET)
    )


def python_sources(facts: Facts, owner: str) -> dict[str, Callable[[], bytes]]:
    """The Python files of one distribution of an installed environment: dotted module name to a reader of its text."""
    found: dict[str, Callable[[], bytes]] = {}
    for root in facts.roots:
        for folder in _info_folders(root, owner):
            try:
                record = (Path(root) / folder / "RECORD").read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue
            for line in record.splitlines():
                path = line.partition(",")[0]
                if path.endswith(".py") and not path.startswith(("..", "/")):
                    found[module_name(path)] = (Path(root) / path).read_bytes
    return found


def module_name(path: str) -> str:
    """``pkg/sub/__init__.py`` as ``pkg.sub.__init__``: the suffix tells packages, whose relative imports differ."""
    return path.removesuffix(".py").replace("/", ".")


def _info_folders(root: str, owner: str) -> Sequence[str]:
    from packaging.utils import canonicalize_name

    return [
        entry.name
        for entry in os.scandir(root)
        if entry.name.endswith(".dist-info") and canonicalize_name(entry.name.split("-", 1)[0]) == owner
    ]
