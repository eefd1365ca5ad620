"""What the distributions of a stack declare of each other, and what of it does not hold."""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct
from packaging.markers import UndefinedComparison, UndefinedEnvironmentName, default_environment
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from bringup.facts import Distribution, Facts, Known, distribution


class Unmet(Struct, frozen=True):
    """A declared requirement that the stack does not meet. ``found`` None: the distribution is absent."""

    owner: Distribution
    name: str
    specifier: str
    found: Distribution | None

    @property
    def specifiers(self) -> SpecifierSet:
        """The same, to ask questions of."""
        return SpecifierSet(self.specifier)


@lru_cache(maxsize=8)
def unmet_requirements(facts: Facts) -> tuple[Unmet, ...]:
    """All of them, in the distributions' order. Requirements of extras do not count: nothing says that one was asked for."""
    if not isinstance(facts.distributions, Known):
        return ()
    environment = _environment(facts)
    found: list[Unmet] = []
    for owner in facts.distributions.value:
        for text in owner.requires:
            one = _judge(facts, owner, text, environment)
            if one is not None:
                found.append(one)
    return tuple(found)


_EXTRA = re.compile(r";.*\bextra\s*==")


def _judge(facts: Facts, owner: Distribution, text: str, environment: dict[str, str]) -> Unmet | None:
    if "extra" in text and " or " not in text and _EXTRA.search(text):
        return None  # of an extra: most are, and parsing them all would take longer than reading the libraries does
    requirement = _parse(text)
    if requirement is None:
        return None
    if requirement.marker is not None:
        try:
            if not requirement.marker.evaluate({**environment, "extra": ""}):
                return None
        except (UndefinedEnvironmentName, UndefinedComparison):
            return None
    name = canonicalize_name(requirement.name)
    there = distribution(facts, name)
    if there is None:
        return Unmet(owner, name, str(requirement.specifier), None)
    try:
        version = Version(there.version)
    except InvalidVersion:
        return None
    if requirement.specifier.contains(version, prereleases=True):
        return None
    return Unmet(owner, name, str(requirement.specifier), there)


@lru_cache(maxsize=16384)
def _parse(text: str) -> Requirement | None:
    try:
        return Requirement(text)
    except InvalidRequirement:
        return None


def _environment(facts: Facts) -> dict[str, str]:
    environment: dict[str, str] = {**default_environment()}  # type: ignore[dict-item]
    environment.update(sys_platform="linux", platform_system="Linux", os_name="posix")
    if isinstance(facts.python, Known):
        version = facts.python.value.version
        environment["python_version"] = ".".join(version.split(".")[:2])
        environment["python_full_version"] = version if version.count(".") == 2 else f"{version}.0"
    if isinstance(facts.host, Known):
        environment["platform_machine"] = facts.host.value.machine
    return environment


def is_numpy_abi(one: Unmet) -> bool:
    """Whether a requirement asks for NumPy 1 while NumPy 2 is there."""
    if one.name != "numpy" or one.found is None:
        return False
    try:
        version = Version(one.found.version)
    except InvalidVersion:
        return False
    return version.major >= 2 and any(spec.operator in ("<", "<=", "==", "~=") for spec in one.specifiers)
