"""From a target to complete facts: collect, see what would not open, then read the code that opens it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from bringup.collect.cache import Cache
from bringup.collect.environment import fingerprint_of
from bringup.collect.host import with_this_machine
from bringup.collect.load_sites import Package, find_load_sites
from bringup.collect.metadata_asks import with_metadata_asks
from bringup.collect.parallel import Beside, collector_paused, map_on_cores
from bringup.collect.stack import environment_outline, python_sources, with_packages
from bringup.collect.targets import ReadOptions, Target
from bringup.evaluate.openings import asked_about
from bringup.facts import Facts, Known, LoadSite, distribution

if TYPE_CHECKING:
    from bringup.collect.index import PinnedWheel


class Begun:
    """An environment of this machine that is being read: the machine below it is looked at beside the folders.

    ``bare`` knows neither; options may be laid over it, and hold against what the machine says.
    """

    def __init__(self, path: Path | None) -> None:
        self.bare = environment_outline(path)
        bare = self.bare
        self._below = Beside(lambda: with_this_machine(bare), Facts)

    def fingerprint(self, cache: Cache) -> str | None:
        """The folders' fingerprint where nothing has changed since they were last read; None where it has, or never were."""
        return fingerprint_of(self.bare.roots, cache)

    def with_machine(self, facts: Facts) -> Facts:
        """``bare`` with options laid over it, or with more, and the machine below."""
        below = self._below.result()
        return replace(
            facts,
            machine=below.machine,
            toolkits=below.toolkits,
            tools=below.tools,
            caches=below.caches,
            gpus=facts.gpus if isinstance(facts.gpus, Known) else below.gpus,
            driver=facts.driver if isinstance(facts.driver, Known) else below.driver,
        )

    def complete(self, facts: Facts, cache: Cache) -> tuple[str, Facts]:
        """``bare`` with options, the machine, what lies in its folders, and the load sites of what would not open; its fingerprint."""
        with collector_paused():
            fingerprint, read = with_packages(facts, cache)
            read = with_load_sites(with_metadata_asks(read), lambda owner: python_sources(read, owner))
        return fingerprint, self.with_machine(read)


def read_environment(path: Path | None) -> Facts:
    """Facts of an installed environment and of the machine below it."""
    begun = Begun(path)
    return begun.complete(begun.bare, Cache.open())[1]


def read_target(target: Target, options: ReadOptions, note: Callable[[str], None]) -> Facts:
    """Facts of wheels and requirements, which say nothing about a host. ``note`` is told what is done, a line at a time.

    Raises UnreadableError and its kin where something cannot be read, fetched or resolved.
    """
    if target.kind in ("active", "environment"):
        return read_environment(Path(target.path) if target.path else None)
    if target.kind == "elsewhere":
        return _read_elsewhere(target)
    from bringup.collect import wheel_stack

    python, python_source = wheel_stack.interpreter_for(options.python)
    if target.kind == "wheels":
        wheels = wheel_stack.local_wheels([Path(path) for path in target.wheels])
    elif target.kind == "wheel_folder":
        wheels = wheel_stack.newest_of_each(sorted(Path(target.path).glob("*.whl")), python.version)
    else:
        wheels = _resolved(target, options, python.version, note)
    stack = wheel_stack.read_stack_of_wheels(
        wheels, target=target.label, python=python, python_source=python_source, note=note, cache=Cache.open()
    )
    read = f"read {stack.bytes_read / 1e6:.0f} MB of" if stack.bytes_read else "had read before"
    note(f"{read} {len(wheels)} wheels; installed nothing, ran nothing")
    return with_load_sites(stack.facts, lambda owner: wheel_stack.wheel_sources(stack, owner))


def _resolved(
    target: Target, options: ReadOptions, python: str, note: Callable[[str], None]
) -> tuple[PinnedWheel, ...]:
    """The wheels that an installer would take for requirements; wheels that are named themselves come first."""
    from bringup.collect import wheel_stack
    from bringup.collect.index import resolve
    from bringup.collect.platforms import platform_for
    from bringup.collect.requirements import read_requirements_file

    named = wheel_stack.local_wheels([Path(path) for path in target.wheels])
    requirements = [*target.requirements, *(f"{one.name} @ {one.url}" for one in named)]
    files = [read_requirements_file(Path(file.path)) for file in target.files]
    for file in files:
        requirements += [one.text for one in file.requirements]
        for text in file.notes:
            note(text)
    found = resolve(
        requirements,
        python=python,
        platform=platform_for(wheel_stack.machine(), wheel_stack.libc()),
        find_links=[Path(one) for one in (*options.find_links, *(one for file in files for one in file.find_links))],
        offline=options.offline,
        constraints=[one.text for file in files for one in file.constraints],
        prerelease=any(file.prerelease for file in files),
        index_url=options.index_url or next((file.index_url for file in files if file.index_url), None),
        # A lock names everything; beside other requirements it is one list among others.
        no_deps=bool(files) and not target.requirements and not named and all(file.no_deps for file in files),
    )
    for text in (*found.notes, *found.conflicts):
        note(text)
    for source in found.sources:
        note(f"{source.name} {source.version} has no wheel for Python {python}; what a build would give is not known")
    return found.wheels


def with_load_sites(facts: Facts, sources: Callable[[str], Mapping[str, Callable[[], bytes]]]) -> Facts:
    """Add the places that open those libraries which would not open. Others' are not looked for: they tell nothing.

    ``sources`` gives the Python files of a distribution: dotted module name to a reader of its text.
    """
    by_owner: dict[str, list[str]] = {}
    for library in asked_about(facts):
        by_owner.setdefault(library.owner, []).append(library.path)
    requests = [_Request(owner, tuple(paths)) for owner, paths in by_owner.items()]
    found = map_on_cores(
        lambda one: _read_sites(facts, one, sources), requests, lambda one: len(one.paths), _Sites, worth=2
    )
    sites = tuple(site for one in found for site in one.sites)
    return replace(facts, load_sites=Known(sites, "Python sources of the distributions"))


def _read_elsewhere(target: Target) -> Facts:
    from bringup.collect.elsewhere import elsewhere_facts

    def extend(facts: Facts) -> Facts:
        return with_load_sites(facts, lambda owner: python_sources(facts, owner))

    return elsewhere_facts(target.place, environment=target.environment, label=target.label, extend=extend)


class _Request(Struct, frozen=True):
    owner: str
    paths: tuple[str, ...]


class _Sites(Struct, frozen=True):
    sites: tuple[LoadSite, ...]


def _read_sites(facts: Facts, request: _Request, sources: Callable[[str], Mapping[str, Callable[[], bytes]]]) -> _Sites:
    package = Package(sources(request.owner))
    known = distribution(facts, request.owner)
    roots = frozenset(known.top_level) if known is not None else frozenset()
    return _Sites(find_load_sites(package, request.paths, roots))
