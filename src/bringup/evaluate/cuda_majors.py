"""NVIDIA's library packages by CUDA major."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from bringup.evaluate.cuda_libraries import PROVIDERS
from bringup.facts import Distribution, Facts, distribution

_MAJORS: dict[str, tuple[str, int]] = {
    name: (row.cuda13, major) for row in PROVIDERS for name, major in ((row.cuda12, 12), (row.cuda13, 13))
}


class Twin(NamedTuple):
    """One of NVIDIA's libraries, installed for CUDA 12 and for CUDA 13."""

    cuda12: Distribution
    cuda13: Distribution


def twins(facts: Facts) -> Iterator[Twin]:
    """All such pairs, each once."""
    for first, second in dict.fromkeys((row.cuda12, row.cuda13) for row in PROVIDERS):
        cuda12, cuda13 = distribution(facts, first), distribution(facts, second)
        if cuda12 is not None and cuda13 is not None:
            yield Twin(cuda12, cuda13)


def majors_of(names: Iterable[str]) -> tuple[int, ...]:
    """The CUDA majors of distributions that are one library for several majors; empty where they are anything else."""
    found = [_MAJORS.get(name) for name in names]
    known = [one for one in found if one is not None]
    if len(known) != len(found) or len({base for base, _ in known}) != 1 or len(known) < 2:
        return ()
    return tuple(sorted(major for _, major in known))
