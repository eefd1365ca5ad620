"""Which toolkit each JIT user would choose, and what that toolkit's compiler would say.

`choose` walks a user's search as its code does. `predict` is the compile itself, in the order in which nvcc works: find
the compiler, read the headers, run cicc, run ptxas, compile the host half. Its rules were found by compiling with every
mix of nvcc, crt, nvvm, runtime headers and CCCL of CUDA 13.0, 13.1, 13.2 and 13.5 (docs/benchmarks.md, "Toolchain").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bringup.evaluate.jit_users import JitUser
from bringup.facts import Facts, Gpu, Known, distribution, variable
from bringup.machine import Tool, Toolkit

# --- versions ---------------------------------------------------------------------------------------------------------

PTX_ISA: tuple[tuple[tuple[int, int], str], ...] = (
    ((12, 0), "8.0"), ((12, 1), "8.1"), ((12, 2), "8.2"), ((12, 3), "8.3"), ((12, 4), "8.4"), ((12, 5), "8.5"),
    ((12, 6), "8.5"), ((12, 7), "8.6"), ((12, 8), "8.7"), ((12, 9), "8.8"), ((13, 0), "9.0"), ((13, 1), "9.1"),
    ((13, 2), "9.2"), ((13, 3), "9.3"), ((13, 4), "9.4"), ((13, 5), "9.5"),
)  # fmt: skip
"""PTX ISA that a CUDA release's cicc writes and its ptxas takes: PTX ISA reference, "Release Notes"; 13.0-13.5 compiled."""

FIRST_TOOLKIT: tuple[tuple[int, str, tuple[int, int]], ...] = (
    (70, "", (9, 0)), (72, "", (9, 2)), (75, "", (10, 0)), (80, "", (11, 0)), (86, "", (11, 1)), (87, "", (11, 4)),
    (88, "", (13, 0)), (89, "", (11, 8)), (90, "", (11, 8)), (90, "a", (12, 0)), (100, "", (12, 8)), (100, "a", (12, 8)),
    (100, "f", (12, 9)), (101, "", (12, 8)), (103, "", (12, 9)), (103, "a", (12, 9)), (103, "f", (12, 9)),
    (107, "", (13, 3)), (110, "", (13, 0)), (110, "a", (13, 0)), (110, "f", (13, 0)), (120, "", (12, 8)),
    (120, "a", (12, 8)), (120, "f", (12, 9)), (121, "", (12, 9)), (121, "a", (12, 9)), (121, "f", (12, 9)),
)  # fmt: skip
"""First CUDA release that compiles for an architecture: CUDA release notes; 12.9, 13.0-13.5 read from ptxas's own table."""

LAST_TOOLKIT: tuple[tuple[int, tuple[int, int]], ...] = ((50, (12, 9)), (52, (12, 9)), (53, (12, 9)), (60, (12, 9)),
    (61, (12, 9)), (62, (12, 9)), (70, (12, 9)), (72, (12, 9)), (101, (12, 9)))  # fmt: skip
"""Last CUDA release that compiles for an architecture: CUDA 13.0 release notes, and ptxas 12.9 and 13.0's own tables."""


def release(version: str) -> tuple[int, int]:
    """Major and minor of ``13.0.88``; (0, 0) where the text is no version."""
    parts = version.split(".")
    if len(parts) < 2 or not (parts[0].isdigit() and parts[1].isdigit()):
        return (0, 0)
    return (int(parts[0]), int(parts[1]))


def short(version: str) -> str:
    """``13.0`` of ``13.0.88``."""
    return ".".join(version.split(".")[:2])


def ptx_isa(version: str) -> str:
    """The PTX ISA of a CUDA release, '' for one that the table does not hold."""
    return dict(PTX_ISA).get(release(version), "")


def knows(architectures: tuple[str, ...], version: str, arch: int, suffix: str) -> bool | None:
    """Whether a compiler can target an architecture: by its own table where it was read, else by its release."""
    if architectures:
        return f"compute_{arch}{suffix}" in architectures
    if release(version) == (0, 0):
        return None
    last = dict(LAST_TOOLKIT).get(arch)
    if last is not None and release(version) > last:
        return False
    first = next((row[2] for row in FIRST_TOOLKIT if row[:2] == (arch, suffix)), None)
    return None if first is None else release(version) >= first


def first_toolkit(arch: int, suffix: str = "") -> str:
    """The first CUDA release for an architecture, '' where the table does not hold it."""
    found = next((row[2] for row in FIRST_TOOLKIT if row[:2] == (arch, suffix)), None)
    return f"{found[0]}.{found[1]}" if found else ""


def suffix_for(gpu: Gpu) -> str:
    """The target suffix that JIT users of a GPU ask for: ``a`` from Hopper on (FlashInfer: ``f`` on 12.0 where nvcc has it)."""
    return "a" if gpu.major >= 9 else ""


# --- choosing ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Choice:
    """The CUDA_HOME that a user takes. ``kit`` is None where that folder is not there or holds no part of a toolkit.

    ``home`` '' means that nothing was found. ``how`` is the step of the search that found it.
    """

    home: str
    how: str
    kit: Toolkit | None
    source: str


def toolkits(facts: Facts) -> tuple[Toolkit, ...]:
    """Every toolkit, none where they are unknown."""
    return facts.toolkits.value if isinstance(facts.toolkits, Known) else ()


def at(facts: Facts, home: str) -> Toolkit | None:
    """The toolkit at a folder."""
    wanted = home.rstrip("/") or "/"
    return next((kit for kit in toolkits(facts) if kit.home == wanted), None)


def tool(facts: Facts, *names: str) -> Tool | None:
    """The first tool of one of these names that PATH finds, by the names' order."""
    if not isinstance(facts.tools, Known):
        return None
    for name in names:
        for one in facts.tools.value:
            if one.name == name and one.on_path == 0:
                return one
    return None


def off_path(facts: Facts, name: str) -> Tool | None:
    """A tool that lies in the environment's own bin folder, which PATH misses."""
    if not isinstance(facts.tools, Known):
        return None
    return next((one for one in facts.tools.value if one.name == name and one.on_path < 0), None)


def choose(facts: Facts, search: tuple[str, ...]) -> Choice:
    """Walk a search for CUDA_HOME as the user's code does."""
    for step in search:
        if step in ("CUDA_HOME", "CUDA_PATH"):
            value = variable(facts, step)
            if value:
                return Choice(value, step, at(facts, value), f"{step}={value}")
        elif step == "nvcc":
            found = tool(facts, "nvcc")
            if found is not None:
                home = found.path.rsplit("/", 2)[0] or "/"
                return Choice(home, "nvcc", at(facts, home), f"nvcc on PATH: {found.path}")
        elif step in ("default", "default-unchecked"):
            kit = at(facts, "/usr/local/cuda")
            if kit is not None or step == "default-unchecked":
                return Choice("/usr/local/cuda", "default", kit, "/usr/local/cuda")
        elif step == "wheels":
            kit = wheels_toolkit(facts)
            if kit is not None:
                return Choice(kit.home, "wheels", kit, kit.home)
        elif step == "conda":
            value = variable(facts, "CONDA_PREFIX")
            kit = at(facts, value) if value else None
            if kit is not None:
                return Choice(kit.home, "conda", kit, kit.home)
    return Choice("", "", None, "CUDA_HOME, CUDA_PATH, PATH, /usr/local/cuda")


def wheels_toolkit(facts: Facts) -> Toolkit | None:
    """The toolkit that the environment's own wheels lay, where it holds an nvcc."""
    return next((kit for kit in toolkits(facts) if "wheels" in kit.found and kit.component("nvcc")), None)


def compiler_kit(facts: Facts, choice: Choice) -> Toolkit | None:
    """The toolkit whose nvcc really runs: a script in bin/nvcc starts another one, with that one's own headers."""
    kit = choice.kit
    if kit is not None and kit.nvcc_is_script:
        return at(facts, kit.nvcc_is_script.rsplit("/", 2)[0])
    return kit


def candidate(facts: Facts, user: JitUser) -> tuple[Toolkit | None, bool]:
    """The toolkit that this user compiles with, and whether it finds it now.

    Where it finds none with an nvcc, the nvcc of the environment's wheels stands in: that is where CUDA_HOME would be
    pointed next, so that what is wrong there is the next thing that a start would meet.
    """
    kit = compiler_kit(facts, choose(facts, user.search))
    if kit is not None and kit.component("nvcc") is not None:
        return kit, True
    return wheels_toolkit(facts), False


# --- predicting -------------------------------------------------------------------------------------------------------

Fault = Literal["", "no nvcc", "no headers", "no crt", "no cccl", "headers", "no nvvm", "option", "isa", "arity"]


@dataclass(frozen=True, slots=True)
class Prediction:
    """What compiling ends with: ``fault`` '' means that it compiles. ``error`` is the compiler's own text."""

    fault: Fault
    error: str = ""


def launch_arguments_of_nvvm(version: str) -> int:
    """How many arguments cicc's stub passes to ``__cudaLaunch``: two in 13.0 only (compiled: 13.0, 13.1, 13.2, 13.5)."""
    return 2 if release(version) == (13, 0) else 1


def predict(kit: Toolkit, cccl: bool) -> Prediction:
    """Compile one trivial .cu with a toolkit; ``cccl`` says whether it includes ``<cuda/std/...>`` or ``<cub/...>``."""
    nvcc, nvvm, ptxas = kit.version("nvcc"), kit.version("nvvm"), kit.version("ptxas")
    if kit.component("nvcc") is None:
        return Prediction("no nvcc", f"/bin/sh: 1: {kit.home}/bin/nvcc: not found")
    if "cuda_runtime.h" not in kit.headers:
        return Prediction("no headers", "<command-line>: fatal error: cuda_runtime.h: No such file or directory")
    if kit.component("crt") is None:
        return Prediction("no crt", "cuda_runtime.h:82:10: fatal error: crt/host_config.h: No such file or directory")
    if cccl and "cuda/std/type_traits" not in kit.headers:
        return Prediction("no cccl", "fatal error: cuda/std/type_traits: No such file or directory")
    if cccl and nvcc and kit.cudart and release(nvcc) != release(kit.cudart):
        return Prediction(
            "headers",
            '#error "CUDA compiler and CUDA toolkit headers are incompatible, please check your include paths"',
        )
    if kit.component("nvvm") is None:
        return Prediction("no nvvm", f"sh: 1: {kit.home}/bin/../nvvm/bin/cicc: not found")
    if kit.nvcc_says_simt_only and not kit.nvvm_takes_simt_only:
        return Prediction("option", "error: invalid option: --simt-only")
    written, taken = ptx_isa(nvvm), ptx_isa(ptxas)
    if written and taken and release(written) > release(taken):
        return Prediction("isa", f"fatal   : Unsupported .version {written}; current version is '{taken}'")
    passed = launch_arguments_of_nvvm(nvvm)
    if nvvm and kit.launch_arguments and passed != kit.launch_arguments:
        if passed > kit.launch_arguments:
            return Prediction("arity", f'error: macro "__cudaLaunch" passed {passed} arguments, but takes just 1')
        return Prediction("arity", 'error: macro "__cudaLaunch" requires 2 arguments, but only 1 given')
    return Prediction("")


def toolkit_release(facts: Facts, kit: Toolkit) -> str:
    """What to pin cuda-toolkit to, so that a compiler of the same release joins these runtime headers: ``13.0.3``."""
    meta = distribution(facts, "cuda-toolkit")
    if meta is not None and short(meta.version) == kit.cudart:
        return ".".join(meta.version.split(".")[:3])
    return f"{kit.cudart}.*" if kit.cudart else ""
