"""The kinds of rows that engine tables are made of."""

from __future__ import annotations

from dataclasses import dataclass

from packaging.version import InvalidVersion, Version

from bringup.facts import Gpu
from bringup.findings import Stage

Capability = tuple[int, int]
ANY: tuple[tuple[Capability, Capability], ...] = (((0, 0), (99, 9)),)


@dataclass(frozen=True, slots=True)
class Touch:
    """One step of a start: ``modules`` are imported, or ``what`` is run, in the order of ``place`` within the stage."""

    engine: str
    stage: Stage
    place: int
    what: str
    modules: tuple[str, ...]
    source: str
    since: str = "0"
    until: str = ""


@dataclass(frozen=True, slots=True)
class Backend:
    """An attention backend that can be asked for by name, and the compute capabilities (ranges, ends included) it takes."""

    engine: str
    name: str
    runs_on: tuple[tuple[Capability, Capability], ...]
    error: str
    source: str
    since: str = "0"
    until: str = ""


@dataclass(frozen=True, slots=True)
class DefaultBackend:
    """The backend that an engine takes by itself on a range of compute capabilities; ``latent`` for MLA models."""

    engine: str
    name: str
    least: Capability
    most: Capability
    source: str
    latent: bool = False
    since: str = "0"
    until: str = ""


@dataclass(frozen=True, slots=True)
class Quantization:
    """The least compute capability that an engine asks for a quantisation method."""

    engine: str
    method: str
    least: Capability
    source: str
    since: str = "0"
    until: str = ""


def within(version: str, since: str, until: str) -> bool:
    """Whether a version is in ``[since, until)``; '' has no end, and an unreadable version is in."""
    try:
        value = Version(version)
        return value >= Version(since) and (not until or value < Version(until))
    except InvalidVersion:
        return True


def covers(ranges: tuple[tuple[Capability, Capability], ...], gpu: Gpu) -> bool:
    """Whether a GPU's compute capability lies in one of the ranges."""
    return any(least <= (gpu.major, gpu.minor) <= most for least, most in ranges)
