"""What ld.so would do: search order, loaded sonames, symbol versions and symbol resolution, without opening anything.

The model (glibc's `elf/dl-load.c`, `dl-deps.c`, `dl-version.c`, `dl-lookup.c`):

- opening a library brings its DT_NEEDED closure, breadth first;
- a needed soname is satisfied by a library of that name that the process has already loaded; else by DT_RPATH of the
  loading object and of those that loaded it (an object with DT_RUNPATH contributes none, and where the loading object
  has one, DT_RPATH is not looked at), LD_LIBRARY_PATH, DT_RUNPATH of the loading object, ld.so.cache, default folders;
- every version that an object asks of a needed library must be defined there, unless that library defines none;
- with RTLD_NOW every strong reference of the newly loaded objects must be found, in the global scope, then in the
  closure of the opened library. Libraries opened earlier without RTLD_GLOBAL do not count, loaded or not.

`Process` is one such process: `open()` predicts, and `keep=True` leaves the libraries loaded for what follows.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field

from bringup.evaluate.cuda_libraries import provider_of
from bringup.evaluate.symbols import NOTHING, Offer, defines_in_family, family, imports_of, offer_of, unresolved
from bringup.facts import Facts, Known, Library, variable

DRIVER_LIBRARIES = (
    "libcuda.so",
    "libnvidia-ml.so",
    "libnvidia-ptxjitcompiler.so",
    "libnvidia-nvvm.so",
    "libnvidia-fatbinaryloader.so",
    "libnvcuvid.so",
    "libnvidia-encode.so",
    "libnvidia-opticalflow.so",
    "libnvidia-opencl.so",
    "libnvidia-cfg.so",
    "libnvoptix.so",
)
"""Sonames that the driver package brings, not any wheel or toolkit."""

DRIVER_PREFIXES = (
    *(("libcuda.so", f"cu{letter}") for letter in "ACDEFGIKLMOPSTUW"),
    ("libnvidia-ml.so", "nvml"),
    ("libnvcuvid.so", "cuvid"),
    ("libnvidia-encode.so", "NvEnc"),
)
"""What the names start with that a driver library defines, none of them versioned."""

TORCH_LIBRARIES = ("libtorch", "libc10")

POLICY_LIBRARIES = frozenset(
    """
    libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1 libutil.so.1 libnsl.so.1 libresolv.so.2 libmvec.so.1
    libgcc_s.so.1 libstdc++.so.6 ld-linux-x86-64.so.2 ld-linux-aarch64.so.1 libanl.so.1 libX11.so.6 libXext.so.6
    libXrender.so.1 libICE.so.6 libSM.so.6 libGL.so.1 libgobject-2.0.so.0 libgthread-2.0.so.0 libglib-2.0.so.0 libz.so.1
    libexpat.so.1 libatomic.so.1
    """.split()  # noqa: SIM905 - a list a person can read
)
"""What a manylinux wheel may take from any host (PEP 600 policy, as auditwheel keeps it)."""


@dataclass(frozen=True, slots=True)
class MissingSoname:
    """A needed library that no search step finds. ``chain`` leads from the opened library to the one that needs it."""

    soname: str
    needed_by: str
    chain: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MissingVersion:
    """A symbol version that the library found does not define."""

    version: str
    library: str
    needed_by: str


@dataclass(frozen=True, slots=True)
class UndefinedSymbol:
    """A strong reference that nothing in scope defines. ``symbol`` as in `Library.imports`, mangled."""

    symbol: str
    needed_by: str


@dataclass(frozen=True, slots=True)
class Opening:
    """The prediction for one dlopen with RTLD_NOW.

    ``loaded``: full paths that it adds to the process. ``assumed``: sonames taken as present because the host is not
    known, or because the driver brings them. ``searched``: per missing soname the folders that were looked into.
    """

    path: str
    loaded: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    missing: tuple[MissingSoname, ...] = ()
    versions: tuple[MissingVersion, ...] = ()
    undefined: tuple[UndefinedSymbol, ...] = ()
    foreign: str = ""
    """The library's machine, where that is not the process's: it cannot be opened at all."""

    @property
    def loads(self) -> bool:
        """Whether the call would succeed, as far as it can be known."""
        return not (self.missing or self.versions or self.undefined or self.foreign)


@dataclass(slots=True, eq=False)
class _Object:
    library: Library | None  # None: assumed present, content not known
    path: str
    names: set[str]
    loader: _Object | None
    needed: list[_Object] = field(default_factory=list)

    @property
    def origin(self) -> str:
        return posixpath.dirname(self.path)


class World:
    """All files that the loader could find, and the folders that it would look into."""

    def __init__(self, facts: Facts) -> None:
        libraries = facts.libraries.value if isinstance(facts.libraries, Known) else ()
        system = facts.system_libraries.value if isinstance(facts.system_libraries, Known) else ()
        self.host_known = isinstance(facts.system_libraries, Known)
        self.by_path: dict[str, Library] = {}
        for library in (*system, *libraries):
            self.by_path[library.full_path] = library
            for alias in library.aliases:
                self.by_path.setdefault(alias, library)
        self.libraries = libraries
        self.library_path = _split(variable(facts, "LD_LIBRARY_PATH") or "")
        host = facts.host
        if isinstance(host, Known):
            self.machine = host.value.machine
            self.cache = dict(reversed(host.value.loader_cache))
            self.default_dirs = host.value.default_dirs
        else:
            machines = [library.machine for library in libraries]
            self.machine = max(set(machines), key=machines.count) if machines else "x86_64"
            self.cache, self.default_dirs = {}, ()
        python = facts.python
        self.executable = self.by_path.get(python.value.executable) if isinstance(python, Known) else None
        # The C API is the interpreter's own, or a libpython's; where neither was read, nothing can be said of its names.
        self.python_api_known = self.executable is not None and (
            "PyObject_Call" in self.executable.exports or any("libpython" in one.soname for one in system)
        )
        self._stems = {_stem(library.soname or library.file_name) for library in libraries}

    def may_be_on_host(self, name: str) -> bool:
        """Whether a host that is not known may well hold the library: it is none of CUDA's, and none of the stack's."""
        if self.host_known:
            return False
        return provider_of(name) is None and _stem(name) not in self._stems and not name.startswith(TORCH_LIBRARIES)

    def find(self, name: str, loader: _Object) -> tuple[str, Library] | None:
        """Search for a needed name on behalf of ``loader``."""
        if "/" in name:
            library = self.by_path.get(name)
            return (name, library) if library and self._fits(library) else None
        for folder in self.folders(loader):
            path = f"{folder}/{name}"
            library = self.by_path.get(path)
            # A library of another machine is passed over, and the search goes on.
            if library is not None and self._fits(library):
                return path, library
        path = self.cache.get(name, "")
        library = self.by_path.get(path)
        if library is not None and self._fits(library):
            return path, library
        for folder in self.default_dirs:
            path = f"{folder}/{name}"
            library = self.by_path.get(path)
            if library is not None and self._fits(library):
                return path, library
        return None

    def folders(self, loader: _Object) -> list[str]:
        """The folders that are looked into before ld.so.cache."""
        found: list[str] = []
        own = loader.library
        if own is not None and not own.runpath:
            link: _Object | None = loader
            while link is not None:
                if link.library is not None and not link.library.runpath:
                    found += _expand(link.library.rpath, link.origin)
                link = link.loader
        found += self.library_path
        if own is not None:
            found += _expand(own.runpath, loader.origin)
        return found

    def _fits(self, library: Library) -> bool:
        return library.machine == self.machine


def _stem(name: str) -> str:
    return name.split(".so", 1)[0]


def _split(value: str) -> list[str]:
    # An empty element means the current folder, which nothing of a stack lies in.
    return [posixpath.normpath(part) for part in value.replace(";", ":").split(":") if part]


def _expand(folders: tuple[str, ...], origin: str) -> list[str]:
    return [
        posixpath.normpath(folder.replace("${ORIGIN}", origin).replace("$ORIGIN", origin))
        for folder in folders
        if folder
    ]


class Process:
    """A process with the libraries that it has loaded so far."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.objects: list[_Object] = []
        self.global_scope: list[_Object] = []
        self._offered: tuple[int, Offer] = (0, NOTHING)
        self.by_name: dict[str, _Object] = {}
        if world.executable is not None:
            self.open(world.executable, keep=True, everywhere=True)

    def open(self, library: Library, *, keep: bool = False, everywhere: bool = False) -> Opening:
        """Predict opening ``library`` by its path. ``everywhere``: RTLD_GLOBAL. ``keep``: it stays loaded, faults or not."""
        if library.machine != self.world.machine:
            return Opening(library.full_path, foreign=library.machine)
        known = self.by_name.get(library.full_path) or (self.by_name.get(library.soname) if library.soname else None)
        if known is not None and known.library is library:
            if everywhere:
                self._publish(known)
            return Opening(library.full_path)
        overlay: dict[str, _Object] = {}
        missing: list[MissingSoname] = []
        assumed: list[str] = []
        root = _Object(library, library.full_path, _names_of(library, library.full_path), None)
        new = [root]
        overlay.update(dict.fromkeys(root.names, root))
        for current in new:  # grows while it is walked: breadth first, as ld.so maps
            for name in current.library.needed if current.library else ():
                found = self.by_name.get(name) or overlay.get(name)
                if found is None:
                    found = self._map(name, current, overlay, new, assumed, missing)
                if found is not None:
                    current.needed.append(found)
        opening = Opening(
            path=library.full_path,
            loaded=tuple(one.path for one in new if one.library is not None),
            assumed=tuple(assumed),
            missing=tuple(missing),
            versions=tuple(self._versions(new, overlay)),
            undefined=tuple(self._undefined(root, new, missing)),
        )
        if keep:
            self.objects += new
            for name, one in overlay.items():
                self.by_name.setdefault(name, one)
            if everywhere:
                self._publish(root)
        return opening

    def is_loaded(self, soname: str) -> bool:
        """Whether a library of that soname is in the process."""
        return soname in self.by_name

    def _map(
        self,
        name: str,
        loader: _Object,
        overlay: dict[str, _Object],
        new: list[_Object],
        assumed: list[str],
        missing: list[MissingSoname],
    ) -> _Object | None:
        world = self.world
        found = world.find(name, loader)
        if found is not None:
            path, library = found
            # The same file under another name is the same object (ld.so compares device and inode), and so is another
            # file whose own soname is already there.
            same = next((one for one in (*self.objects, *new) if one.library is library), None)
            if same is None:
                same = _Object(library, path, _names_of(library, path), loader)
                new.append(same)
                for alias in same.names:
                    overlay.setdefault(alias, same)
            same.names.add(name)
            overlay.setdefault(name, same)
            return same
        if name.startswith(DRIVER_LIBRARIES) or world.may_be_on_host(name):
            one = _Object(None, name, {name}, loader)
            overlay[name] = one
            new.append(one)
            assumed.append(name)
            return one
        chain: list[str] = []
        link: _Object | None = loader
        while link is not None:
            chain.append(link.path)
            link = link.loader
        if all(known.soname != name or known.needed_by != loader.path for known in missing):
            missing.append(MissingSoname(name, loader.path, tuple(reversed(chain))))
        return None

    def _versions(self, new: list[_Object], overlay: dict[str, _Object]) -> list[MissingVersion]:
        found: list[MissingVersion] = []
        for one in new:
            for soname, versions in one.library.version_needs if one.library else ():
                provider = self.by_name.get(soname) or overlay.get(soname)
                if provider is None or provider.library is None or not provider.library.version_definitions:
                    continue
                defined = provider.library.version_definitions
                found += [MissingVersion(v, provider.path, one.path) for v in versions if v not in defined]
        return found

    def _undefined(self, root: _Object, new: list[_Object], missing: list[MissingSoname]) -> list[UndefinedSymbol]:
        closure = _closure(root)
        scope = [*self.global_scope, *closure]
        everywhere = set(map(id, self.global_scope))
        own = [one.library for one in closure if one.library is not None and id(one) not in everywhere]
        offer = self._global_offer()
        unknown = [one for one in scope if one.library is None]
        found: list[UndefinedSymbol] = []
        known = [one.library for one in scope if one.library is not None]
        gone = {entry.soname for entry in missing} | {one.path for one in unknown}
        for one in new:
            if one.library is None:
                continue
            wanted = imports_of(one.library)
            left = unresolved(wanted, own, offer) if wanted else wanted
            if not left:
                continue
            symbols = left.names
            if not self.world.python_api_known:
                # The interpreter is not known, and brings the C API.
                symbols = frozenset(symbol for symbol in symbols if not symbol.startswith(("Py", "_Py")))
            if symbols and gone:
                symbols = _without_what_is_gone(symbols, one.library, known, gone)
            found += [UndefinedSymbol(symbol, one.path) for symbol in sorted(symbols)]
        return found

    def _global_offer(self) -> Offer:
        """What the global scope defines; put together once, since every opening asks for it."""
        if self._offered[0] != len(self.global_scope):  # it only grows
            libraries = [one.library for one in self.global_scope if one.library is not None]
            self._offered = (len(self.global_scope), offer_of(libraries))
        return self._offered[1]

    def _publish(self, root: _Object) -> None:
        present = set(map(id, self.global_scope))
        self.global_scope += [one for one in _closure(root) if id(one) not in present]


def _without_what_is_gone(
    symbols: frozenset[str], library: Library, scope: list[Library], gone: set[str]
) -> frozenset[str]:
    """Drop what a library that is absent, or whose content is not known, would have brought.

    What stays is certain: names of a namespace in which a library that is there defines others.
    """
    versions = {version for soname, asked in library.version_needs if soname in gone for version in asked}
    # libc and libm would claim every name that starts with their letter.
    names = {soname.removeprefix("lib").split(".so")[0].split("-")[0].lower() for soname in gone - POLICY_LIBRARIES}
    stems = tuple(name for name in names if len(name) > 2)
    driver = tuple(prefix for soname, prefix in DRIVER_PREFIXES if any(one.startswith(soname) for one in gone))
    return frozenset(
        symbol
        for symbol in symbols
        if symbol.partition("@")[2] not in versions
        and not symbol.startswith(driver)
        and (kin := family(symbol)) not in ("", "std")
        and not kin.startswith(stems)
        and any(defines_in_family(one, kin) for one in scope)
    )


def _names_of(library: Library, path: str) -> set[str]:
    return {path, library.soname} if library.soname else {path}


def _closure(root: _Object) -> list[_Object]:
    order = [root]
    seen = {id(root)}
    for one in order:
        for needed in one.needed:
            if id(needed) not in seen:
                seen.add(id(needed))
                order.append(needed)
    return order
