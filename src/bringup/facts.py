"""What is known about a stack: frozen values, each with the place where it was read.

Facts may be partial: a bug report, or a list of requirements, says nothing about the host. `Unknown` is then the value,
with its reason, and no rule may take it for fine or for broken. These types cross every border between stages and are
the facts file (``bringup facts -o FILE``); msgspec structs are frozen and slotted like dataclasses, start faster, and
decode tagged unions.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from msgspec import Struct

from bringup.known import Known as Known
from bringup.known import Maybe as Maybe
from bringup.known import Unknown as Unknown
from bringup.machine import CacheFolder, Machine, Model, Tool, Toolkit

SCHEMA = "bringup.facts/1"

# --- the GPU and its driver -------------------------------------------------------------------------------------------

ProductClass = Literal["geforce", "rtx-pro", "datacenter", "jetson", "gb10", "unknown"]


class Gpu(Struct, frozen=True):
    """One kind of GPU that the stack shall run on, ``count`` times. ``memory`` in bytes, 0 where not known."""

    name: str
    major: int
    minor: int
    count: int = 1
    memory: int = 0
    product_class: ProductClass = "unknown"

    @property
    def compute_capability(self) -> str:
        """As NVIDIA writes it: ``12.0``."""
        return f"{self.major}.{self.minor}"


class Driver(Struct, frozen=True):
    """The NVIDIA driver: its release (``580.95.05``) and the CUDA version that it implements (``13.0``)."""

    version: str
    cuda: str


# --- device code ------------------------------------------------------------------------------------------------------


class DeviceCode(Struct, frozen=True, order=True):
    """Entries of one kind in a binary. ``arch`` as in sm_120: 120; ``ptx_isa`` as in ``9.0``, '' for SASS."""

    kind: Literal["sass", "ptx"]
    arch: int
    suffix: Literal["", "a", "f"] = ""
    ptx_isa: str = ""
    count: int = 1

    @property
    def name(self) -> str:
        """``sm_120a`` for SASS, ``compute_120`` for PTX."""
        return f"{'sm' if self.kind == 'sass' else 'compute'}_{self.arch}{self.suffix}"


class DeviceFiles(Struct, frozen=True):
    """Standalone .cubin/.fatbin/.ptx files of one folder, summed: packages ship thousands of them as data."""

    owner: str
    folder: str
    files: int
    code: tuple[DeviceCode, ...]


# --- shared libraries -------------------------------------------------------------------------------------------------


class Library(Struct, frozen=True, eq=False):
    """The dynamic-linking facts and device code of one ELF shared object.

    Symbol fields are newline-joined names in the notation of ``nm -D``: ``name`` where unversioned, ``name@VERSION``
    for a reference or a non-default definition, ``name@@VERSION`` for a default definition. One string a library, not
    400,000 objects: reading a whole stack must cost no more than reading its headers. Use `names()` to split one.

    ``path`` is relative to ``root`` (a site-packages folder, or its stand-in where wheels are judged uninstalled);
    ``root`` is '' for a library of the system, whose path is absolute.
    """

    path: str
    root: str = ""
    owner: str = ""
    """Normalized distribution name, '' where no distribution owns the file."""
    machine: str = "x86_64"
    """``x86_64``, ``aarch64``, or ``em_N`` for any other e_machine."""
    soname: str = ""
    needed: tuple[str, ...] = ()
    rpath: tuple[str, ...] = ()
    runpath: tuple[str, ...] = ()
    version_needs: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Per needed soname the symbol versions that are asked of it: ``(("libc.so.6", ("GLIBC_2.34",)),)``."""
    version_definitions: tuple[str, ...] = ()
    imports: str = ""
    weak_imports: str = ""
    exports: str = ""
    flags: tuple[str, ...] = ()
    """Of DT_FLAGS and DT_FLAGS_1 what matters: ``nodelete``, ``global``, ``deepbind``, ``symbolic``, ``now``, ``pie``."""
    device_code: tuple[DeviceCode, ...] = ()
    aliases: tuple[str, ...] = ()
    """Other full paths (symlinks) under which the same file is found."""
    size: int = 0
    source: str = ""

    @property
    def full_path(self) -> str:
        """Where the dynamic loader sees the file."""
        return f"{self.root}/{self.path}" if self.root else self.path

    @property
    def file_name(self) -> str:
        """The last component of the path."""
        return self.path.rpartition("/")[2]


def names(symbols: str) -> list[str]:
    """Split one of Library's symbol fields."""
    return symbols.split("\n") if symbols else []


class UnreadableFile(Struct, frozen=True):
    """A file that looks like a library or package data and cannot be read as such."""

    path: str
    owner: str
    reason: str


class LoadSite(Struct, frozen=True):
    """A place in a package's Python code that opens a library, or imports it as an extension module.

    ``opens`` is the library's path below its root. ``when``: ``import`` runs as soon as ``module`` is imported,
    ``call`` only inside of a function. ``guarded``: an except clause around it catches the failure. ``chain`` are the modules
    through which importing the top-level package reaches it, outermost first; empty where it does not.
    """

    opens: str
    module: str
    line: int
    how: Literal["import", "ctypes", "torch", "tvm_ffi", "text"]
    when: Literal["import", "call"]
    guarded: bool
    chain: tuple[str, ...] = ()
    preloads: tuple[str, ...] = ()
    """Top-level modules of other distributions that are imported before this point."""
    choice: bool = False
    """The name is put together at run time: the library is one of several, of which the package picks one."""


class MetadataAsk(Struct, frozen=True):
    """A place in a distribution's code that asks for the metadata of the distribution named ``asks``.

    ``guarded``: an except clause around it catches the absence.
    """

    distribution: str
    asks: str
    module: str
    line: int
    guarded: bool


# --- distributions ----------------------------------------------------------------------------------------------------


class Distribution(Struct, frozen=True):
    """An installed distribution, or a wheel that would be installed. ``name`` is normalized (``sgl-kernel``)."""

    name: str
    version: str
    requires: tuple[str, ...] = ()
    """Requires-Dist as written, markers included."""
    requires_python: str = ""
    provides_extra: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    """Wheel tags, ``cp310-abi3-manylinux2014_x86_64``."""
    top_level: tuple[str, ...] = ()
    """Importable top-level names that its files provide."""
    direct_url: str = ""
    editable: bool = False
    installer: str = ""
    files: int = 0
    build: tuple[tuple[str, str], ...] = ()
    """Build facts read from its files by ``ast``: torch's ``cuda``, ``git_version``, ``debug``, ``cxx11_abi``."""
    source: str = ""


class SharedPath(Struct, frozen=True):
    """One file path that more than one distribution claims in its RECORD. The last one installed wins."""

    path: str
    owners: tuple[str, ...]


class Interpreter(Struct, frozen=True):
    """The Python that runs the stack. ``soabi`` as in extension file names: ``cpython-311-x86_64-linux-gnu``."""

    version: str
    implementation: str = "cpython"
    soabi: str = ""
    free_threaded: bool = False
    executable: str = ""
    prefix: str = ""
    include: str = ""
    """The folder where Python.h would lie; '' where not known."""


# --- the host ---------------------------------------------------------------------------------------------------------


class Host(Struct, frozen=True):
    """The machine below the stack: what the dynamic loader and the wheels' tags depend on."""

    machine: str
    libc: str = ""
    """``glibc 2.36`` or ``musl 1.2``."""
    loader_cache: tuple[tuple[str, str], ...] = ()
    """ld.so.cache of this machine's class: (soname, path)."""
    default_dirs: tuple[str, ...] = ()
    kernel: str = ""
    os: str = ""


class Variable(Struct, frozen=True):
    """An environment variable that matters to a start."""

    name: str
    value: str
    source: str = "environment"


class Goal(Struct, frozen=True):
    """What the stack is for: ``engine`` sglang, vllm, torch or '' ; ``options`` as they would be passed to it."""

    engine: str = ""
    model: str = ""
    options: tuple[str, ...] = ()


class Facts(Struct, frozen=True, eq=False, kw_only=True):
    """Everything that the rules may read. Compared and hashed by identity, so that analyses can be remembered."""

    schema: str = SCHEMA
    target: str
    roots: tuple[str, ...] = ()
    """The site-packages folders that are judged, in sys.path order."""
    host: Maybe[Host] = Unknown("was not looked at")
    gpus: Maybe[tuple[Gpu, ...]] = Unknown("no GPU was named or found")
    driver: Maybe[Driver] = Unknown("no driver was named or found")
    python: Maybe[Interpreter] = Unknown("was not looked at")
    distributions: Maybe[tuple[Distribution, ...]] = Unknown("was not looked at")
    shared_paths: Maybe[tuple[SharedPath, ...]] = Unknown("was not looked at")
    libraries: Maybe[tuple[Library, ...]] = Unknown("was not looked at")
    system_libraries: Maybe[tuple[Library, ...]] = Unknown("was not looked at")
    """Libraries outside of the judged folders that those inside need, found as the loader would find them."""
    device_files: Maybe[tuple[DeviceFiles, ...]] = Unknown("was not looked at")
    unreadable: Maybe[tuple[UnreadableFile, ...]] = Unknown("was not looked at")
    load_sites: Maybe[tuple[LoadSite, ...]] = Unknown("was not looked at")
    variables: Maybe[tuple[Variable, ...]] = Unknown("was not looked at")
    machine: Maybe[Machine] = Unknown("was not looked at")
    toolkits: Maybe[tuple[Toolkit, ...]] = Unknown("was not looked at")
    tools: Maybe[tuple[Tool, ...]] = Unknown("was not looked at")
    caches: Maybe[tuple[CacheFolder, ...]] = Unknown("was not looked at")
    metadata_asks: Maybe[tuple[MetadataAsk, ...]] = Unknown("was not looked at")
    model: Maybe[Model] = Unknown("no model was named")
    goal: Goal = Goal()


@lru_cache(maxsize=64)
def _by_name(distributions: tuple[Distribution, ...]) -> dict[str, Distribution]:
    return {distribution.name: distribution for distribution in distributions}


def distribution(facts: Facts, name: str) -> Distribution | None:
    """The distribution of that normalized name, None where it is absent or where distributions are unknown."""
    found = facts.distributions
    return _by_name(found.value).get(name) if isinstance(found, Known) else None


def variable(facts: Facts, name: str) -> str | None:
    """An environment variable's value, None where it is unset or unknown."""
    found = facts.variables
    if isinstance(found, Unknown):
        return None
    return next((one.value for one in found.value if one.name == name), None)


def fact(facts: Facts, name: str) -> object:
    """The value of a field by its name; a dotted name (``machine.shm_size``) leads into what is known.

    The first Unknown on the way is the answer: nothing behind it is known.
    """
    value: object = facts
    for part in name.split("."):
        if isinstance(value, Known):
            value = value.value
        value = getattr(value, part)
        if isinstance(value, Unknown):
            return value
    return value
