"""Driver releases, the CUDA version that each implements, and the newest PTX ISA that its compiler takes."""

from __future__ import annotations

from typing import NamedTuple

from bringup.facts import Driver


class Branch(NamedTuple):
    """A driver branch on Linux, and the CUDA version that ``nvidia-smi`` shows for it."""

    major: int
    cuda: str


BRANCHES: tuple[Branch, ...] = (
    Branch(615, "13.4"),
    Branch(610, "13.3"),
    Branch(595, "13.2"),
    Branch(590, "13.1"),
    Branch(580, "13.0"),
    Branch(575, "12.9"),
    Branch(570, "12.8"),
    Branch(565, "12.7"),
    Branch(560, "12.6"),
    Branch(555, "12.5"),
    Branch(550, "12.4"),
    Branch(545, "12.3"),
    Branch(535, "12.2"),
    Branch(530, "12.1"),
    Branch(525, "12.0"),
    Branch(520, "11.8"),
    Branch(515, "11.7"),
    Branch(510, "11.6"),
    Branch(495, "11.5"),
    Branch(470, "11.4"),
    Branch(465, "11.3"),
    Branch(460, "11.2"),
    Branch(455, "11.1"),
    Branch(450, "11.0"),
    Branch(440, "10.2"),
    Branch(418, "10.1"),
    Branch(410, "10.0"),
)
"""Newest first. Source: CUDA release notes, table "CUDA Toolkit and Corresponding Driver Versions"; 610.43.02 and
615.71.09 as nvidia-smi prints them. The branch that implements 13.5 is not known yet."""

PTX_ISA: tuple[tuple[str, str], ...] = (
    ("13.5", "9.5"),
    ("13.4", "9.4"),
    ("13.3", "9.3"),
    ("13.2", "9.2"),
    ("13.1", "9.1"),
    ("13.0", "9.0"),
    ("12.9", "8.8"),
    ("12.8", "8.7"),
    ("12.7", "8.6"),
    ("12.6", "8.5"),
    ("12.5", "8.5"),
    ("12.4", "8.4"),
    ("12.3", "8.3"),
    ("12.2", "8.2"),
    ("12.1", "8.1"),
    ("12.0", "8.0"),
    ("11.8", "7.8"),
    ("11.7", "7.7"),
    ("11.6", "7.6"),
    ("11.5", "7.5"),
    ("11.4", "7.4"),
    ("11.3", "7.3"),
    ("11.2", "7.2"),
    ("11.1", "7.1"),
    ("11.0", "7.0"),
    ("10.2", "6.5"),
    ("10.1", "6.4"),
    ("10.0", "6.3"),
)
"""CUDA version and the newest PTX ISA of its compilers, newest first. Source: PTX ISA document, "Release Notes"; 13.0, 13.3 and
13.5 as their ptxas say ("Unsupported .version 9.6; current version is '9.5'")."""


def branch_of(version: str) -> Branch | None:
    """The branch that a driver release belongs to: the newest that is not newer.

    None below the table, for no number, and for branches so new that the table does not know what they implement.
    """
    head = version.split(".", 1)[0]
    if not head.isdigit() or int(head) >= BRANCHES[0].major + 5:
        return None
    return next((branch for branch in BRANCHES if branch.major <= int(head)), None)


def driver_from(version: str, cuda: str = "") -> Driver:
    """A driver from its release. ``cuda`` overrides what the table says."""
    branch = branch_of(version)
    return Driver(version, cuda or (branch.cuda if branch is not None else ""))


def newest_ptx_isa(driver: Driver) -> tuple[int, int] | None:
    """The newest PTX ISA that the driver's compiler takes; None where that is not known."""
    branch = branch_of(driver.version)
    cuda = driver.cuda or (branch.cuda if branch is not None else "")
    isa = dict(PTX_ISA).get(cuda)
    return version_pair(isa) if isa is not None else None


def branch_for(cuda: str) -> Branch | None:
    """The oldest driver branch that implements a CUDA version, or a later one; None where the table ends before."""
    wanted = version_pair(cuda)
    return next((branch for branch in reversed(BRANCHES) if version_pair(branch.cuda) >= wanted), None)


def runs_runtime(driver_cuda: str, runtime: str) -> bool:
    """Whether a driver that implements ``driver_cuda`` runs programs of CUDA ``runtime``.

    From CUDA 11 on any minor version of the driver's own major or an older one (minor-version compatibility); before,
    only versions that are not newer. PTX is not covered by this: see `newest_ptx_isa`.
    Source: CUDA Compatibility, "Minor Version Compatibility". Raises ValueError for what is no version.
    """
    have, need = version_pair(driver_cuda), version_pair(runtime)
    return have >= need or (have[0] == need[0] and need[0] >= 11)


def version_pair(text: str) -> tuple[int, int]:
    """``13.0`` as (13, 0); a missing minor is 0. Raises ValueError for anything else."""
    major, _, minor = text.partition(".")
    return int(major), int(minor.split(".")[0] or 0) if minor else 0
