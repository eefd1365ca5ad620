"""From a target to complete facts: collect, see what would not open, then read the code that opens it."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from bringup.collect.host import with_this_machine
from bringup.collect.load_sites import Package, find_load_sites
from bringup.collect.stack import environment_facts, python_sources
from bringup.evaluate.openings import open_all
from bringup.facts import Facts, Known, Library, LoadSite, distribution


def read_environment(path: Path | None) -> Facts:
    """Facts of an installed environment and of the machine below it, with the load sites of what would not open."""
    return with_load_sites(with_this_machine(environment_facts(path)))


def with_load_sites(facts: Facts) -> Facts:
    """Add the places that open those libraries which would not open. Others' are not looked for: they tell nothing."""
    by_owner: dict[str, list[Library]] = {}
    for library, _ in open_all(facts).failures:
        if library.owner:
            by_owner.setdefault(library.owner, []).append(library)
    sites: list[LoadSite] = []
    for owner, libraries in by_owner.items():
        package = Package(python_sources(facts, owner))
        known = distribution(facts, owner)
        roots = frozenset(known.top_level) if known is not None else frozenset()
        sites += find_load_sites(package, [library.path for library in libraries], roots)
    return replace(facts, load_sites=Known(tuple(sites), "Python sources of the distributions"))
