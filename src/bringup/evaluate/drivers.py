"""Driver releases, the CUDA version that each implements, and the newest PTX ISA that its compiler takes."""

from __future__ import annotations

from typing import NamedTuple

from bringup.facts import Driver


class Branch(NamedTuple):
    """A driver branch on Linux. ``cuda``: what ``nvidia-smi`` shows; ``ptx_isa``: the newest that its JIT compiles."""

    major: int
    cuda: str
    ptx_isa: str


BRANCHES: tuple[Branch, ...] = (
    Branch(615, "13.5", "9.5"),
    Branch(610, "13.4", "9.4"),
    Branch(605, "13.3", "9.3"),
    Branch(595, "13.2", "9.2"),
    Branch(590, "13.1", "9.1"),
    Branch(580, "13.0", "9.0"),
    Branch(575, "12.9", "8.8"),
    Branch(570, "12.8", "8.7"),
    Branch(565, "12.7", "8.6"),
    Branch(560, "12.6", "8.5"),
    Branch(555, "12.5", "8.5"),
    Branch(550, "12.4", "8.4"),
    Branch(545, "12.3", "8.3"),
    Branch(535, "12.2", "8.2"),
    Branch(530, "12.1", "8.1"),
    Branch(525, "12.0", "8.0"),
    Branch(520, "11.8", "7.8"),
    Branch(515, "11.7", "7.7"),
    Branch(510, "11.6", "7.6"),
    Branch(495, "11.5", "7.5"),
    Branch(470, "11.4", "7.4"),
    Branch(465, "11.3", "7.3"),
    Branch(460, "11.2", "7.2"),
    Branch(455, "11.1", "7.1"),
    Branch(450, "11.0", "7.0"),
    Branch(440, "10.2", "6.5"),
    Branch(418, "10.1", "6.4"),
)
"""Newest first. Source: CUDA release notes, "CUDA Driver", and the PTX ISA document, "Release Notes", as far as published;
585 and 600 branches do not exist. 605 to 615 follow the toolkits' own PTX ISA (13.5's ptxas says 9.5)."""


def branch_of(version: str) -> Branch | None:
    """The branch that a driver release belongs to: the newest that is not newer. None below the table, or for no number."""
    head = version.split(".", 1)[0]
    if not head.isdigit():
        return None
    return next((branch for branch in BRANCHES if branch.major <= int(head)), None)


def driver_from(version: str, cuda: str = "") -> Driver:
    """A driver from its release. ``cuda`` overrides what the table says."""
    branch = branch_of(version)
    return Driver(version, cuda or (branch.cuda if branch is not None else ""))


def newest_ptx_isa(driver: Driver) -> tuple[int, int] | None:
    """The newest PTX ISA that the driver's compiler takes; None where that is not known."""
    rows = [branch for branch in BRANCHES if branch.cuda == driver.cuda]
    branch = rows[0] if rows else branch_of(driver.version)
    return version_pair(branch.ptx_isa) if branch is not None else None


def version_pair(text: str) -> tuple[int, int]:
    """``13.0`` as (13, 0); a missing minor is 0. Raises ValueError for anything else."""
    major, _, minor = text.partition(".")
    return int(major), int(minor.split(".")[0] or 0) if minor else 0
