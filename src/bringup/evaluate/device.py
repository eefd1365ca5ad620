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


@lru_cache(maxsize=8)
def device_gaps(facts: Facts) -> tuple[DeviceGap, ...]:
    """All gaps, in the libraries' order. Remembered by identity of the facts.

    The libraries of NVIDIA's own packages are not judged by their entries: they carry intermediate code for their own
    run-time compilers, and what a GPU's age means for them shows in torch, which is built on them.
    """
    if not isinstance(facts.libraries, Known) or not isinstance(facts.gpus, Known):
        return ()
    driver = facts.driver.value if isinstance(facts.driver, Known) else None
    by_owner: dict[str, list[Library]] = {}
    for library in facts.libraries.value:
        if library.device_code and not library.owner.startswith("nvidia-"):
            by_owner.setdefault(library.owner, []).append(library)
    found: list[DeviceGap] = []
    for gpu in facts.gpus.value:
        for owner, libraries in by_owner.items():
            found += _gaps(facts, owner, libraries, gpu, driver)
    return tuple(found)


def _gaps(facts: Facts, owner: str, libraries: list[Library], gpu: Gpu, driver: Driver | None) -> list[DeviceGap]:
    covered = {library.path: verdict(library.device_code, gpu, driver) for library in libraries}
    relevant = [library for library in libraries if not _passed_over(facts, library, gpu)]
    whole = bool(relevant) and all(covered[library.path].runs is False for library in relevant)
    # Where the table names the library that is loaded, that one speaks for the package.
    certain = any((chosen := choice(facts, library, gpu)) is not None and chosen.loads for library in libraries)
    found: list[DeviceGap] = []
    for library in libraries:
        coverage = covered[library.path]
        if coverage.runs is not False:
            continue
        chosen = choice(facts, library, gpu)
        severity: Severity
        if chosen is not None and chosen.loads is False:
            severity, why, source = "info", f"it is loaded only {chosen.when}, not on this GPU", chosen.source
        elif chosen is not None and chosen.loads:
            severity, why, source = "error", f"{owner} loads it {chosen.when}", chosen.source
        elif owner == "torch":
            main = library.file_name == "libtorch_cuda.so"
            severity = "error" if main else "warning"
            why = "torch runs every operation from it" if main else "torch opens it when one of its operations is used"
            source = library.source
        elif whole and not certain and library is relevant[0]:
            severity, why, source = "error", f"no library of {owner or 'its package'} has any", library.source
        else:
            severity, why, source = "info", "only the operations of this file are unavailable", library.source
        found.append(
            DeviceGap(library, gpu, coverage, _kind(library.device_code, gpu, coverage), severity, why, source)
        )
    return found


def _passed_over(facts: Facts, library: Library, gpu: Gpu) -> bool:
    chosen = choice(facts, library, gpu)
    return chosen is not None and chosen.loads is False


def _kind(code: tuple[DeviceCode, ...], gpu: Gpu, coverage: Coverage) -> GapKind:
    if coverage.kind == "ptx_too_new":
        return "ptx_too_new"
    own = gpu.major * 10 + gpu.minor
    if all(entry.arch > own for entry in code):
        return "too_old"
    specific = [entry for entry in code if entry.suffix and entry.arch // 10 == gpu.major and entry.arch <= own]
    return "arch_specific" if specific else "absent"
