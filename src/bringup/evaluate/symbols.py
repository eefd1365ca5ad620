"""How a reference finds its definition: the matching of versioned and unversioned names, as glibc does it.

Names are in the notation of `bringup.facts.Library`: ``name``, ``name@VERSION`` and ``name@@VERSION``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from bringup.facts import Library, names


@dataclass(frozen=True, slots=True)
class Exports:
    """What one library offers. ``plain``: found by an unversioned reference; ``versioned``: ``name@VERSION``, all of them.

    ``base``: definitions without a version, which satisfy a reference of any version; None where the library has no
    version definitions at all, since then every definition does.
    """

    plain: frozenset[str]
    versioned: frozenset[str]
    base: frozenset[str] | None


@lru_cache(maxsize=4096)
def exports_of(library: Library) -> Exports:
    """Index a library's exported symbols. Remembered by identity."""
    if "@" not in library.exports:
        plain = frozenset(names(library.exports))
        return Exports(plain, frozenset(), plain if library.version_definitions else None)
    base: set[str] = set()
    default: set[str] = set()
    versioned: set[str] = set()
    for symbol in names(library.exports):
        name, at, version = symbol.partition("@")
        if not at:
            base.add(name)
        elif version.startswith("@"):
            default.add(name)
            versioned.add(f"{name}{version}")
        else:
            versioned.add(symbol)
    return Exports(frozenset(base | default), frozenset(versioned), frozenset(base))


@dataclass(frozen=True, slots=True)
class References:
    """Names that something refers to: ``plain`` without, ``versioned`` with a version."""

    plain: frozenset[str]
    versioned: frozenset[str]

    def __bool__(self) -> bool:
        return bool(self.plain or self.versioned)

    @property
    def names(self) -> frozenset[str]:
        """Both kinds, in the notation of `Library.imports`."""
        return self.plain | self.versioned


@lru_cache(maxsize=4096)
def imports_of(library: Library) -> References:
    """The strong references of a library. Remembered by identity."""
    if "@" not in library.imports:
        return References(frozenset(names(library.imports)), frozenset())
    every = names(library.imports)
    versioned = frozenset(symbol for symbol in every if "@" in symbol)
    return References(frozenset(every) - versioned, versioned)


@dataclass(frozen=True, slots=True)
class Offer:
    """What several libraries offer together; ``base``: the names by which they satisfy a reference of any version."""

    plain: frozenset[str]
    versioned: frozenset[str]
    base: frozenset[str]


def offer_of(libraries: Iterable[Library]) -> Offer:
    """The union of what the libraries export, for a scope that many references are looked up in."""
    parts = [(library, exports_of(library)) for library in libraries if library.exports]
    return Offer(
        frozenset().union(*(one.plain for _, one in parts)),
        frozenset().union(*(one.versioned for library, one in parts if library.version_definitions)),
        frozenset().union(*(_base(one) for _, one in parts)),
    )


NOTHING = Offer(frozenset(), frozenset(), frozenset())


def _base(offered: Exports) -> frozenset[str]:
    # A library without version definitions satisfies any version; one with them does so by its unversioned names.
    return offered.plain if offered.base is None else offered.base


def unresolved(wanted: References, scope: Iterable[Library], offer: Offer = NOTHING) -> References:
    """What of ``wanted`` neither ``offer`` nor anything in ``scope`` defines.

    Order plays no part: any definition satisfies the loader.
    """
    plain = wanted.plain - offer.plain if offer.plain else wanted.plain
    versioned = wanted.versioned - offer.versioned if offer.versioned else wanted.versioned
    if versioned and offer.base:
        versioned = _without(versioned, offer.base)
    if not plain and not versioned:
        return References(plain, versioned)
    # Who exports most leaves least to be looked up in the others.
    libraries = sorted((library for library in scope if library.exports), key=lambda one: -len(one.exports))
    for library in libraries:
        if plain:
            plain -= exports_of(library).plain
        if versioned and library.version_definitions:
            versioned -= exports_of(library).versioned
        if not plain and not versioned:
            break
    for library in libraries:
        if not versioned:
            break
        versioned = _without(versioned, _base(exports_of(library)))
    return References(plain, versioned)


def _without(versioned: frozenset[str], base: frozenset[str]) -> frozenset[str]:
    return frozenset(symbol for symbol in versioned if symbol.partition("@")[0] not in base)


_MANGLED = re.compile(r"_Z(?:T[VISCTvhcW]|GV|GR|GT|L|St)*N?[rVKRO]*(\d+)")
_C_PREFIX = re.compile(r"_*([a-z][a-z0-9]*)")


def family(symbol: str) -> str:
    """The namespace that a name belongs to: ``c10`` for ``_ZN3c10...``, ``nvrtc`` for ``nvrtcCompileProgram``.

    A mangled name's first component, a C name's leading lower-case letters. '' where there is none. It serves to
    attribute an unresolved name to the library that would have brought it, where that library is absent.
    """
    if symbol.startswith("_Z"):
        found = _MANGLED.match(symbol)
        if not found:
            return "std" if symbol.startswith(("_ZNSt", "_ZNKSt", "_ZSt")) else ""
        length = int(found.group(1)[:4])
        return symbol[found.end() : found.end() + length]
    found = _C_PREFIX.match(symbol)
    return found.group(1) if found else ""


@lru_cache(maxsize=65536)
def defines_in_family(library: Library, kin: str) -> bool:
    """Whether a library exports anything of that namespace or prefix (see `family`)."""
    text = library.exports
    heads = (f"_ZN{len(kin)}{kin}", f"_ZNK{len(kin)}{kin}", kin)
    return text.startswith(heads) or any(f"\n{head}" in text for head in heads)
