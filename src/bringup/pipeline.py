"""From a target to complete facts: collect, see what would not open, then read the code that opens it."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from bringup.collect.host import with_this_machine
from bringup.collect.load_sites import Package, find_load_sites
from bringup.collect.parallel import map_on_cores
from bringup.collect.stack import environment_facts, python_sources
from bringup.evaluate.openings import asked_about
from bringup.facts import Facts, Known, LoadSite, distribution


def read_environment(path: Path | None) -> Facts:
    """Facts of an installed environment and of the machine below it, with the load sites of what would not open."""
    return with_load_sites(with_this_machine(environment_facts(path)))


def with_load_sites(facts: Facts) -> Facts:
    """Add the places that open those libraries which would not open. Others' are not looked for: they tell nothing."""
    by_owner: dict[str, list[str]] = {}
    for library in asked_about(facts):
        by_owner.setdefault(library.owner, []).append(library.path)
    requests = [_Request(owner, tuple(paths)) for owner, paths in by_owner.items()]
    found = map_on_cores(lambda one: _read_sites(facts, one), requests, lambda one: len(one.paths), _Sites, worth=2)
    sites = tuple(site for one in found for site in one.sites)
    return replace(facts, load_sites=Known(sites, "Python sources of the distributions"))


class _Request(Struct, frozen=True):
    owner: str
    paths: tuple[str, ...]


class _Sites(Struct, frozen=True):
    sites: tuple[LoadSite, ...]


def _read_sites(facts: Facts, request: _Request) -> _Sites:
    package = Package(python_sources(facts, request.owner))
    known = distribution(facts, request.owner)
    roots = frozenset(known.top_level) if known is not None else frozenset()
    return _Sites(find_load_sites(package, request.paths, roots))
