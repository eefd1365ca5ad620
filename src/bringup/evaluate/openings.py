"""Every library of a stack, opened in thought, and which of the failures matter.

A library that would not open is not yet an error. `Role` says what it is: a part that only its siblings open, one of
several variants, a plugin for something that is not installed, a module whose package first loads what it needs, a module
that is imported inside of ``try``, or a real fault.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from bringup.evaluate.loading import Opening, Process, World
from bringup.evaluate.symbols import exports_of
from bringup.evaluate.torch_import import TorchImport, import_torch
from bringup.evaluate.torch_symbols import is_torch_symbol
from bringup.facts import Facts, Known, Library, LoadSite, distribution

Role = Literal["fault", "lazy", "guarded", "variant", "plugin", "part", "preloaded", "foreign", "unasked"]


@dataclass(frozen=True, slots=True)
class Judgement:
    """One library that would not open: what it is for, and why that matters or does not."""

    library: Library
    opening: Opening
    role: Role
    reason: str
    site: LoadSite | None = None


@dataclass(frozen=True, slots=True)
class Openings:
    """The whole stack: ``torch`` is what importing it does, ``openings`` one entry a library, in the facts' order."""

    torch: TorchImport
    openings: tuple[tuple[Library, Opening], ...]
    loaded_by_torch: tuple[str, ...]

    @property
    def failures(self) -> tuple[tuple[Library, Opening], ...]:
        """Those that would not open."""
        return tuple((library, opening) for library, opening in self.openings if not opening.loads)


class _Question:
    """The part of the facts that decides how libraries open, compared by identity.

    Facts that differ elsewhere (another GPU, load sites read later) share the answer.
    """

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.parts = (
            facts.libraries,
            facts.system_libraries,
            facts.host,
            facts.python,
            facts.variables,
            facts.distributions,
        )

    def __hash__(self) -> int:
        return hash(tuple(map(id, self.parts)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Question) and all(a is b for a, b in zip(self.parts, other.parts, strict=True))


def open_all(facts: Facts) -> Openings:
    """Predict, for each library by itself, opening it after ``import torch``. Remembered by identity of the facts."""
    return _open_all(_Question(facts))


@lru_cache(maxsize=8)
def _open_all(question: _Question) -> Openings:
    facts = question.facts
    world = World(facts)
    process = Process(world)
    torch = import_torch(process, facts)
    openings = tuple((library, process.open(library)) for library in world.libraries)
    return Openings(torch, openings, tuple(one.path for one in process.objects if one.library is not None))


def asked_about(facts: Facts) -> tuple[Library, ...]:
    """The libraries that would not open and of which the code that opens them would tell whether that matters."""
    found = open_all(facts)
    needed = {name for library, _ in found.openings for name in library.needed}
    return tuple(
        library
        for library, opening in found.failures
        if library.owner and not opening.foreign and not _is_part(library, needed)
    )


def _is_part(library: Library, needed: set[str]) -> bool:
    """Whether only other libraries open it, as something that they need."""
    return (library.soname in needed or library.file_name in needed) and not is_extension_module(library)


def is_extension_module(library: Library) -> bool:
    """Whether Python could import it: it defines a PyInit function of its own name."""
    stem = library.file_name.split(".", 1)[0]
    return f"PyInit_{stem}" in exports_of(library).plain


@lru_cache(maxsize=8)
def judge_all(facts: Facts) -> tuple[Judgement, ...]:
    """Every library that would not open, with its role."""
    found = open_all(facts)
    failures = {library.full_path: opening for library, opening in found.failures}
    needed = {name for library, _ in found.openings for name in library.needed}
    sites: dict[str, list[LoadSite]] = {}
    if isinstance(facts.load_sites, Known):
        for site in facts.load_sites.value:
            sites.setdefault(site.opens, []).append(site)
    groups = _variant_groups([library for library, _ in found.openings])
    judgements = []
    for library, opening in found.failures:
        own = sites.get(library.path, [])
        judgements.append(_judge(facts, library, opening, own, needed, groups, failures))
    return tuple(judgements)


def _judge(
    facts: Facts,
    library: Library,
    opening: Opening,
    sites: list[LoadSite],
    needed: set[str],
    groups: dict[str, list[Library]],
    failures: dict[str, Opening],
) -> Judgement:
    if opening.foreign:
        return Judgement(library, opening, "foreign", f"it is built for {opening.foreign}, and no code opens it here")
    site = _strongest(sites)
    if _preloaded(facts, library, opening, sites):
        return Judgement(
            library, opening, "preloaded", "the package's code first loads the library that it needs", site
        )
    siblings = groups.get(_skeleton(library), [])
    picks = f"the package picks one of {len(siblings)} variants"
    if site is not None and site.choice and len(siblings) > 1:
        return Judgement(library, opening, "variant", picks, site)
    sure = site is not None and site.how != "text" and site.when == "import" and not site.guarded
    if len(siblings) > 1 and not sure and any(one.full_path not in failures for one in siblings):
        return Judgement(library, opening, "variant", picks, site)
    if site is not None and site.guarded:
        return Judgement(library, opening, "guarded", "the code that opens it goes on where that fails", site)
    if site is not None and site.when == "call":
        return Judgement(library, opening, "lazy", "it is opened when a function of the package is called", site)
    if site is not None:
        return Judgement(library, opening, "fault", f"importing {site.module.split('.')[0]} opens it", site)
    if _is_part(library, needed):
        return Judgement(library, opening, "part", "only libraries of its own package open it", None)
    if len(siblings) > 1:
        return Judgement(library, opening, "variant", picks, None)
    if is_extension_module(library) or any(is_torch_symbol(one.symbol) for one in opening.undefined):
        return Judgement(library, opening, "unasked", "no code was found that imports it", None)
    return Judgement(library, opening, "plugin", "no Python code opens it", None)


def _strongest(sites: list[LoadSite]) -> LoadSite | None:
    return min(sites, key=lambda site: (site.when != "import", site.guarded, site.how == "text"), default=None)


_VARIANT_TOKEN = re.compile(
    r"[-_]?(?:cu|cuda|rocm|xpu|sm|torch|core|ops|v)?\d+(?:[._]\d+)*[af]?|-(?:cpu|cuda|rocm|hip)\b"
)


def _skeleton(library: Library) -> str:
    """A name without what tells variants apart: ``libbitsandbytes_cuda118.so`` and ``..._cuda130.so`` share one."""
    name = library.file_name.split(".so")[0].split(".", 1)[0]
    folder = library.path.rpartition("/")[0]
    return f"{library.owner}:{_VARIANT_TOKEN.sub('', folder)}/{_VARIANT_TOKEN.sub('', name)}"


def _variant_groups(libraries: list[Library]) -> dict[str, list[Library]]:
    groups: dict[str, list[Library]] = {}
    for library in libraries:
        groups.setdefault(_skeleton(library), []).append(library)
    return groups


def _preloaded(facts: Facts, library: Library, opening: Opening, sites: list[LoadSite]) -> bool:
    """Whether every missing soname belongs to a distribution whose modules the opening code imports first."""
    if not opening.missing or opening.versions or opening.undefined or not isinstance(facts.libraries, Known):
        return False
    imported = {top for site in sites for top in site.preloads}
    for entry in opening.missing:
        providers = [one for one in facts.libraries.value if entry.soname in (one.soname, one.file_name)]
        owners = [distribution(facts, one.owner) for one in providers if one.owner]
        if not any(owner is not None and imported & set(owner.top_level) for owner in owners):
            return False
    return True
