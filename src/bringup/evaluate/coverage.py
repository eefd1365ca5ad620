"""Which device code runs on which GPU and driver.

SASS runs on its own major architecture at the same or a later minor one; on Tegra parts only exactly. Code for an
architecture-specific target (``a``) runs exactly there; for a family target (``f``) within the family. PTX is compiled by
the driver for any later architecture, where its ISA is not newer than the driver's compiler.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from bringup.evaluate.drivers import newest_ptx_isa, version_pair
from bringup.facts import DeviceCode, Driver, Gpu

CoverageKind = Literal["native", "same_major", "family", "ptx", "ptx_unknown_driver", "ptx_too_new", "none"]

ORDER: tuple[CoverageKind, ...] = ("native", "same_major", "family", "ptx", "ptx_unknown_driver", "ptx_too_new", "none")
"""Best first. The last two do not run; ``ptx_unknown_driver`` runs where the driver is new enough."""

TEGRA = frozenset({(5, 3), (6, 2), (7, 2), (8, 7), (11, 0)})
"""Compute capabilities of Jetson parts, whose SASS is their own."""

FAMILIES = (frozenset({(10, 0), (10, 3), (10, 7)}), frozenset({(11, 0)}), frozenset({(12, 0), (12, 1)}))
"""Compute capabilities of one family. Source: ptxas of CUDA 13.5, which compiles ``.target sm_100f`` for sm_100, 103 and 107,
``sm_110f`` for sm_110, ``sm_120f`` for sm_120 and 121, and refuses every other."""


class Coverage(Struct, frozen=True):
    """How a binary's device code runs on a GPU, and the code that does, or comes nearest."""

    kind: CoverageKind
    code: DeviceCode | None = None

    @property
    def runs(self) -> bool | None:
        """Whether it runs; None where that depends on a driver that is not known."""
        if self.kind == "ptx_unknown_driver":
            return None
        return self.kind not in ("none", "ptx_too_new")


def verdict(code: tuple[DeviceCode, ...], gpu: Gpu, driver: Driver | None) -> Coverage:
    """The best way in which any of ``code`` runs on the GPU."""
    found = [Coverage(_one(entry, gpu, driver), entry) for entry in code]
    best = min(found, key=lambda one: (ORDER.index(one.kind), -(one.code.arch if one.code else 0)), default=None)
    if best is None or best.kind == "none":
        return Coverage("none")
    return best


def _one(code: DeviceCode, gpu: Gpu, driver: Driver | None) -> CoverageKind:
    target = (code.arch // 10, code.arch % 10)
    own = (gpu.major, gpu.minor)
    if code.suffix == "a":
        fits = target == own
    elif code.suffix == "f":
        fits = target <= own and any(target in family and own in family for family in FAMILIES)
    elif code.kind == "ptx":
        fits = target <= own
    elif own in TEGRA or target in TEGRA:
        fits = target == own
    else:
        fits = target[0] == own[0] and target <= own
    if not fits:
        return "none"
    if code.kind == "ptx":
        return _ptx(code, driver)
    if target == own:
        return "native"
    return "family" if code.suffix == "f" else "same_major"


def _ptx(code: DeviceCode, driver: Driver | None) -> CoverageKind:
    limit = newest_ptx_isa(driver) if driver is not None else None
    if limit is None:
        return "ptx_unknown_driver"
    return "ptx" if not code.ptx_isa or version_pair(code.ptx_isa) <= limit else "ptx_too_new"


def architectures(code: tuple[DeviceCode, ...]) -> str:
    """``sm_80, sm_90a, compute_90``: each once, SASS first."""
    ordered = sorted(code, key=lambda one: (one.kind == "ptx", one.arch, one.suffix))
    return ", ".join(dict.fromkeys(one.name for one in ordered))
