"""Which torch release a wheel was built for, and which release of it goes with a torch: what metadata, build files and
measurement say.

Most kernel wheels declare no torch requirement. Where neither metadata nor a build file says it, the table does: each row was
found by opening the published wheels against torch's (tests/truth), newest first.
"""

from __future__ import annotations

from typing import NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from bringup.facts import Distribution


class Built(NamedTuple):
    """Releases of a distribution from ``since`` on were built for that torch release, until a newer row."""

    name: str
    since: str
    torch: str
    source: str


_PINS = "the engine releases that pin both: sglang's Requires-Dist"
_OPENED = "opened against torch 2.9.1 to 2.14.1; every other release lacks symbols"

TABLE: tuple[Built, ...] = (
    Built("sglang-kernel", "0.4.9", "2.14.1", _OPENED),
    Built("sglang-kernel", "0.4.6.post1", "2.13.0", _PINS),
    Built("sglang-kernel", "0.4.2", "2.11.0", _OPENED),
    Built("sglang-kernel", "0.4.0", "2.9.1", _PINS),
    Built("sgl-kernel", "0.3.17", "2.9.1", _OPENED),
)

LAST = {("sglang-kernel", "2.11.0"): "0.4.5", ("sglang-kernel", "2.13.0"): "0.4.8", ("sgl-kernel", "2.9.1"): "0.3.21"}
"""The last release of a distribution that was built for a torch release, where a later one was built for another."""

RENAMED = {"sgl-kernel": "sglang-kernel", "sglang-kernel": "sgl-kernel"}
"""One project under two names: releases before 0.4.0 are published as sgl-kernel."""


def torch_of(one: Distribution) -> tuple[str, str] | None:
    """The torch release that a distribution was built for, and where that is said; None where nothing says it."""
    built = dict(one.build).get("torch")
    if built:
        return built.partition("+")[0], f"{one.source}, its build file"
    for text in one.requires:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        pins = [spec.version for spec in requirement.specifier if spec.operator == "=="]
        if canonicalize_name(requirement.name) == "torch" and pins and requirement.marker is None:
            return pins[0], one.source
    row = _row(one.name, one.version)
    return (row.torch, row.source) if row is not None else None


def release_for(name: str, torch: str) -> str | None:
    """A release of the project that was built for that torch: ``sglang-kernel==0.4.5``; None where none is known."""
    for project in (name, RENAMED.get(name, name)):
        for row in TABLE:
            if row.name == project and row.torch == torch.partition("+")[0]:
                last = LAST.get((project, row.torch))
                return f"{project}=={last}" if last else f"{project}>={row.since}"
    return None


def _row(name: str, version: str) -> Built | None:
    try:
        own = Version(version)
    except InvalidVersion:
        return None
    return next((row for row in TABLE if row.name == name and own >= Version(row.since)), None)
