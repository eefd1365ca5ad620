"""Libraries whose device code does not run on a GPU of the stack, and whether that matters."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from msgspec import Struct

from bringup.evaluate.coverage import Coverage, verdict
from bringup.evaluate.variants import choice
from bringup.facts import DeviceCode, Driver, Facts, Gpu, Known, Library
from bringup.findings import Severity

GapKind = Literal["too_old", "arch_specific", "absent", "ptx_too_new"]


class DeviceGap(Struct, frozen=True):
    """One library, one GPU on which it has nothing to run. ``why``: what makes it matter, or not."""

    library: Library
    gpu: Gpu
    coverage: Coverage
    kind: GapKind
    severity: Severity
    why: str
    source: str


SELF_COMPILING = ("nvidia-cufft", "nvidia-cufile", "nvidia-cudnn")
"""NVIDIA's packages whose entries say little: cuFFT carries link-time code for its own compiler, cuFile none for computing, and
cuDNN opens those of its sub-libraries that hold code for the GPU."""


_CENTRAL = "libtorch_cuda.so"


@lru_cache(maxsize=8)
def device_gaps(facts: Facts) -> tuple[DeviceGap, ...]:
    """All gaps, in the libraries' order. Remembered by identity of the facts.

    The libraries of one of NVIDIA's own packages are judged together: they share the work, and one without code for a GPU
    is no fault while another has some.
    """
    if not isinstance(facts.libraries, Known) or not isinstance(facts.gpus, Known):
        return ()
    driver = facts.driver.value if isinstance(facts.driver, Known) else None
    by_owner: dict[str, list[Library]] = {}
    for library in facts.libraries.value:
        if library.device_code and not library.owner.startswith(SELF_COMPILING):
            by_owner.setdefault(library.owner, []).append(library)
    found: list[DeviceGap] = []
    for gpu in facts.gpus.value:
        torch = [library for library in by_owner.get("torch", []) if library.file_name == _CENTRAL]
        lost = any(verdict(library.device_code, gpu, driver).runs is False for library in torch)
        for owner, libraries in by_owner.items():
            if not owner.startswith("nvidia-"):
                found += _gaps(facts, owner, libraries, gpu, driver)
            elif not lost:  # where torch itself cannot run, what it calls tells nothing more
                found += _together(owner, libraries, gpu, driver)
    return tuple(found)


def _together(owner: str, libraries: list[Library], gpu: Gpu, driver: Driver | None) -> list[DeviceGap]:
    coverage = verdict(tuple(entry for library in libraries for entry in library.device_code), gpu, driver)
    if coverage.runs is not False:
        return []
    main = max(libraries, key=lambda library: library.size)
    kind = _kind(main.device_code, gpu, coverage)
    why = f"no library of {owner} has any, and packages that call it fail where they do"
    return [DeviceGap(main, gpu, coverage, kind, "warning", why, main.source)]


def _gaps(facts: Facts, owner: str, libraries: list[Library], gpu: Gpu, driver: Driver | None) -> list[DeviceGap]:
    covered = {library.path: verdict(library.device_code, gpu, driver) for library in libraries}
    choices = {library.path: choice(facts, library, gpu) for library in libraries}
    # Where the table names a library that every start loads, that one speaks for the package; else the largest of those
    # that may be loaded does, where none of them has any code for the GPU. Bundled libraries (x.libs/) are not the package.
    certain = any(one is not None and one.loads and not one.asked for one in choices.values())
    relevant = [
        library
        for library in libraries
        if ((one := choices[library.path]) is None or not (one.asked or one.loads is False))
        and ".libs/" not in library.path
    ]
    whole = not certain and bool(relevant) and all(covered[library.path].runs is False for library in relevant)
    main = max(relevant, key=lambda one: one.size) if whole else None
    lost = any(library.file_name == _CENTRAL and covered[library.path].runs is False for library in libraries)
    found: list[DeviceGap] = []
    for library in libraries:
        coverage, chosen = covered[library.path], choices[library.path]
        if coverage.runs is not False:
            continue
        severity: Severity
        if chosen is not None and chosen.loads is False:
            where = (
                "" if "only where" in chosen.when or chosen.when.startswith(("where", "when")) else ", not on this GPU"
            )
            severity, why, source = "info", f"it is loaded only {chosen.when}{where}", chosen.source
        elif chosen is not None and chosen.asked:
            severity = "warning" if chosen.loads else "info"
            why, source = f"{owner} loads it {chosen.when}", chosen.source
        elif chosen is not None and chosen.loads:
            severity, why, source = "error", f"{owner} loads it {chosen.when}", chosen.source
        elif owner == "torch":
            central = library.file_name == _CENTRAL
            severity = "error" if central else "info" if lost else "warning"
            why = (
                "torch runs every operation from it" if central else "torch opens it when one of its operations is used"
            )
            source = library.source
        elif library is main:
            severity, why, source = "error", f"no library of {owner or 'its package'} has any", library.source
        else:
            severity, why, source = "info", "only the operations of this file are unavailable", library.source
        kind = _kind(library.device_code, gpu, coverage)
        found.append(DeviceGap(library, gpu, coverage, kind, severity, why, source))
    return found


def _kind(code: tuple[DeviceCode, ...], gpu: Gpu, coverage: Coverage) -> GapKind:
    if coverage.kind == "ptx_too_new":
        return "ptx_too_new"
    own = gpu.major * 10 + gpu.minor
    if all(entry.arch > own for entry in code):
        return "too_old"
    specific = [entry for entry in code if entry.suffix and entry.arch // 10 == gpu.major and entry.arch <= own]
    return "arch_specific" if specific else "absent"
