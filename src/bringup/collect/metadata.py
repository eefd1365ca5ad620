"""What a distribution says of itself: METADATA, WHEEL, RECORD, direct_url.json, and build facts in its files.

METADATA is read by its headers alone: a general mail parser takes longer for 200 distributions than reading all their
libraries does. Nothing is imported; version files are read by `ast`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
from packaging.utils import canonicalize_name

from bringup.errors import MalformedWheelError
from bringup.facts import Distribution

_MODULE_SUFFIXES = (".py", ".so", ".pyd")
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")


class _DirectUrl(msgspec.Struct):
    """direct_url.json, as far as it matters (PEP 610)."""

    url: str = ""
    dir_info: dict[str, bool] = {}


class BuildFile(msgspec.Struct, frozen=True):
    """A file of a distribution that holds build facts: its path below site-packages and how to read it."""

    path: str
    parse: Callable[[bytes], tuple[tuple[str, str], ...]]


def read_distribution(folder: str, record: bytes | None) -> Distribution:
    """An installed distribution from its .dist-info folder. ``record``: the content of its RECORD, None where it has none.

    Raises MalformedWheelError where METADATA is missing or names no distribution.
    """
    metadata = _read(f"{folder}/METADATA")
    if metadata is None:
        raise MalformedWheelError(f"{folder}/METADATA", "cannot be read")
    root = folder.rpartition("/")[0]
    return distribution_from(
        metadata,
        _read(f"{folder}/WHEEL"),
        record,
        direct_url=_read(f"{folder}/direct_url.json"),
        installer=_read(f"{folder}/INSTALLER"),
        read_file=lambda path: _read(f"{root}/{path}"),
        source=f"{folder}/METADATA",
    )


def _read(path: str) -> bytes | None:
    file = Path(path)
    try:
        return file.read_bytes() if file.is_file() else None  # a pipe of that name would be waited for
    except OSError:
        return None


def distribution_from(
    metadata: bytes,
    wheel: bytes | None,
    record: bytes | None,
    *,
    direct_url: bytes | None = None,
    installer: bytes | None = None,
    read_file: Callable[[str], bytes | None] = lambda path: None,
    paths: tuple[str, ...] | None = None,
    source: str,
) -> Distribution:
    """A distribution from the content of its files. ``read_file`` reads one more by its path below site-packages.

    ``paths``: its installed files where the caller knows them better than RECORD does (a wheel without one, say).
    Raises MalformedWheelError, naming ``source``, where METADATA is binary, or names no distribution or version.
    """
    if b"\0" in metadata:
        raise MalformedWheelError(source, "METADATA holds binary data instead of text")
    headers = parse_headers(metadata)
    name, version = _first(headers, "name"), _first(headers, "version")
    if not name or not version:
        raise MalformedWheelError(source, "METADATA names no distribution and version")
    if not _NAME.fullmatch(name):
        raise MalformedWheelError(source, f"METADATA names {name[:80]!r}, which is no distribution's name")
    if paths is None:
        paths = record_paths(record or b"")
    normalized = canonicalize_name(name)
    tags = parse_headers(wheel or b"").get("tag", ())
    url, editable = _direct_url(direct_url)
    return Distribution(
        name=normalized,
        version=version,
        requires=headers.get("requires-dist", ()),
        requires_python=_first(headers, "requires-python"),
        provides_extra=headers.get("provides-extra", ()),
        tags=tags,
        top_level=top_level_names(paths),
        direct_url=url,
        editable=editable,
        installer=(installer or b"").decode("utf-8", "replace").strip(),
        files=len(paths),
        build=_build_facts(normalized, read_file),
        source=source,
    )


def parse_headers(data: bytes) -> Mapping[str, tuple[str, ...]]:
    """Header fields by lower-case name, folded lines joined, up to the blank line that starts the description."""
    head = data.replace(b"\r\n", b"\n").partition(b"\n\n")[0]
    found: dict[str, list[str]] = {}
    last = ""
    for line in head.decode("utf-8", "replace").split("\n"):
        if line[:1] in (" ", "\t") and last:
            found[last][-1] += " " + line.strip()
            continue
        key, colon, value = line.partition(":")
        if colon:
            last = key.strip().lower()
            found.setdefault(last, []).append(value.strip())
    return {key: tuple(values) for key, values in found.items()}


def _first(headers: Mapping[str, tuple[str, ...]], name: str) -> str:
    return headers.get(name, ("",))[0]


_QUOTED = re.compile(rb'^"((?:[^"]|"")*)"', re.M)


def record_paths(record: bytes) -> tuple[str, ...]:
    """The paths in a RECORD file, as written: relative to site-packages, ``/`` between parts."""
    if b'"' in record:
        # Quoted where the path holds a comma or a quote.
        lines = []
        for line in record.splitlines():
            quoted = _QUOTED.match(line)
            lines.append(quoted.group(1).replace(b'""', b'"') if quoted else line.partition(b",")[0])
    else:
        lines = [line.partition(b",")[0] for line in record.splitlines()]
    return tuple(line.decode("utf-8", "replace") for line in lines if line)


def top_level_names(paths: tuple[str, ...]) -> tuple[str, ...]:
    """What can be imported of a distribution's files: their first folders, and modules that lie at the top."""
    found: set[str] = set()
    for path in paths:
        first, slash, _ = path.partition("/")
        if slash:
            if not first.endswith((".dist-info", ".data", ".libs")) and first != ".." and first.isidentifier():
                found.add(first)
        elif first.endswith(_MODULE_SUFFIXES):
            found.add(first.split(".", 1)[0])
    found.discard("__pycache__")
    return tuple(sorted(found))


def _direct_url(data: bytes | None) -> tuple[str, bool]:
    if not data:
        return "", False
    try:
        decoded = msgspec.json.decode(data, type=_DirectUrl)
    except msgspec.DecodeError:
        return "", False
    return decoded.url, decoded.dir_info.get("editable", False)


def assigned_constants(data: bytes, names: frozenset[str]) -> tuple[tuple[str, str], ...]:
    """Module-level assignments of constants to some names, as text: ``cuda = '13.0'`` as ``("cuda", "13.0")``, None as ""."""
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError):
        return ()
    found: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.AnnAssign):
            targets, value = [node.target], node.value or node.target
        else:
            continue
        for target in targets:
            if isinstance(target, ast.Name) and target.id in names and isinstance(value, ast.Constant):
                found[target.id] = "" if value.value is None else str(value.value)
    return tuple(found.items())


def _torch_version(data: bytes) -> tuple[tuple[str, str], ...]:
    return assigned_constants(data, frozenset({"cuda", "hip", "xpu", "git_version", "debug"}))


_ABI = re.compile(rb"_GLIBCXX_USE_CXX11_ABI=([01])")


def _torch_config(data: bytes) -> tuple[tuple[str, str], ...]:
    found = _ABI.search(data)
    return (("cxx11_abi", found.group(1).decode()),) if found else ()


class _XformersVersion(msgspec.Struct):
    cuda: int | None = None
    torch: str = ""
    python: str = ""


class _XformersBuild(msgspec.Struct):
    version: _XformersVersion
    env: dict[str, str | None] = {}


def _xformers_build(data: bytes) -> tuple[tuple[str, str], ...]:
    try:
        build = msgspec.json.decode(data, type=_XformersBuild)
    except msgspec.DecodeError:
        return ()
    cuda = build.version.cuda
    return (
        ("torch", build.version.torch),
        ("cuda", f"{cuda // 100}.{cuda % 100}" if cuda else ""),
        ("arch_list", build.env.get("TORCH_CUDA_ARCH_LIST") or ""),
    )


def _flashinfer_build(data: bytes) -> tuple[tuple[str, str], ...]:
    return assigned_constants(data, frozenset({"__version__", "__git_version__"}))


BUILD_FILES: Mapping[str, tuple[BuildFile, ...]] = {
    "torch": (
        BuildFile("torch/version.py", _torch_version),
        BuildFile("torch/share/cmake/Torch/TorchConfig.cmake", _torch_config),
    ),
    "xformers": (BuildFile("xformers/cpp_lib.json", _xformers_build),),
    "torchvision": (BuildFile("torchvision/version.py", _torch_version),),
    "torchaudio": (BuildFile("torchaudio/version.py", _torch_version),),
    "flashinfer-python": (BuildFile("flashinfer/_build_meta.py", _flashinfer_build),),
    "flashinfer-cubin": (BuildFile("flashinfer_cubin/_build_meta.py", _flashinfer_build),),
    "flashinfer-jit-cache": (BuildFile("flashinfer_jit_cache/_build_meta.py", _flashinfer_build),),
}
"""By normalized name, the files that hold build facts. From the distributions' own RECORD."""


def _build_facts(name: str, read_file: Callable[[str], bytes | None]) -> tuple[tuple[str, str], ...]:
    found: dict[str, str] = {}
    for file in BUILD_FILES.get(name, ()):
        data = read_file(file.path)
        if data is not None:
            found.update(file.parse(data))
    return tuple(sorted(found.items()))
