"""Which Python an environment has, and where its packages lie: read from the folders, never by starting it."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from msgspec import Struct

from bringup.errors import UnreadableError
from bringup.facts import Interpreter

_FOLDER = re.compile(r"(?:python|pypy)(\d+\.\d+)(t?)$")


class Environment(Struct, frozen=True):
    """An environment's folders. ``roots`` in sys.path order, absolute; ``interpreter`` None for a bare site-packages."""

    prefix: str
    roots: tuple[str, ...]
    interpreter: Interpreter | None


def active_prefix() -> Path:
    """The environment that a user has activated, else the one that bringup itself runs in."""
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        value = os.environ.get(name)
        if value and Path(value).is_dir():
            return Path(value)
    return Path(sys.prefix)


def find_environment(path: Path) -> Environment:
    """Recognise a virtual environment, a conda environment, a system prefix, or a bare site-packages folder.

    Raises UnreadableError where the folder does not exist, may not be read, or holds no packages.
    """
    path = Path(os.path.abspath(path))  # noqa: PTH100 - keep symlinks: $ORIGIN and RECORD paths are as the user has them
    if not path.is_dir():
        raise UnreadableError(str(path), "is no folder" if path.exists() else "does not exist")
    if not os.access(path, os.R_OK | os.X_OK):
        raise UnreadableError(str(path), "permission denied")
    config = _configuration(path)
    roots, version, threaded = _roots(path)
    if config or roots:
        roots = (*roots, *_linked_roots(roots))
        if config.get("include-system-site-packages") == "true" and config.get("home"):
            roots = (*roots, *_roots(Path(config["home"]).parent)[0])
        interpreter = _interpreter(path, config, version, threaded)
        return Environment(str(path), roots or (str(path),), interpreter)
    if path.name in ("site-packages", "dist-packages") or any(path.glob("*.dist-info")) or any(path.glob("*.egg-info")):
        folder = _FOLDER.search(path.parent.name)
        if folder and path.parent.parent.name in ("lib", "lib64"):
            prefix = path.parent.parent.parent
            known = _interpreter(prefix, _configuration(prefix), folder.group(1), folder.group(2))
        else:
            known = None
        return Environment(str(path), (str(path), *_linked_roots((str(path),))), known)
    raise UnreadableError(str(path), "holds no Python environment, no site-packages and no wheels")


def _configuration(prefix: Path) -> dict[str, str]:
    try:
        text = (prefix / "pyvenv.cfg").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {key.strip().lower(): value.strip() for key, _, value in pairs}


def _roots(prefix: Path) -> tuple[tuple[str, ...], str, str]:
    """The site folders below a prefix, the Python version in their names, and its ``t`` for a free-threaded build."""
    found: list[str] = []
    version, threaded = "", ""
    seen: set[str] = set()
    for library_folder in ("lib", "lib64", "local/lib"):
        for python in sorted((prefix / library_folder).glob("python3.*")):
            match = _FOLDER.search(python.name)
            if match is None:
                continue
            for name in ("site-packages", "dist-packages"):
                site = python / name
                if site.is_dir() and (real := os.path.realpath(site)) not in seen:
                    seen.add(real)
                    found.append(str(site))
                    version, threaded = match.group(1), match.group(2)
    debian = prefix / "lib/python3/dist-packages"
    if debian.is_dir():
        found.append(str(debian))
    return tuple(found), version, threaded


def _linked_roots(roots: tuple[str, ...]) -> tuple[str, ...]:
    """Folders that .pth files add (editable installs, nested package folders), where not below a root already."""
    found: list[str] = []
    for root in roots:
        for file in sorted(Path(root).glob("*.pth")):
            if not file.is_file():
                continue
            try:
                lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
            except OSError:
                continue
            for line in lines:
                if not line.strip() or line.startswith(("#", "import ", "import\t")):
                    continue
                folder = os.path.normpath(os.path.join(root, line.strip()))  # noqa: PTH118 - as site.py does
                inside = any(folder == known or folder.startswith(known + "/") for known in (*roots, *found))
                if not inside and os.path.isdir(folder):  # noqa: PTH112
                    found.append(folder)
    return tuple(found)


def _interpreter(prefix: Path, config: dict[str, str], folder_version: str, threaded: str) -> Interpreter:
    executable = ""
    for name in ("bin/python3", "bin/python"):
        if (prefix / name).exists():
            executable = os.path.realpath(prefix / name)
            break
    version = config.get("version") or config.get("version_info") or folder_version
    version = ".".join(version.split(".")[:3])
    short = "".join(version.split(".")[:2])
    machine = os.uname().machine
    base = Path(executable).parent.parent if executable else Path(config.get("home", str(prefix))).parent
    major_minor = ".".join(version.split(".")[:2])
    include = base / f"include/python{major_minor}{threaded}"
    return Interpreter(
        version=version,
        soabi=f"cpython-{short}{threaded}-{machine}-linux-gnu",
        free_threaded=bool(threaded),
        executable=executable,
        prefix=str(prefix),
        include=str(include),
    )
