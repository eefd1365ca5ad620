"""Parsers of /proc, /sys and of what tells a container from a machine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from bringup.machine import Mount

_ESCAPE = re.compile(r"\\([0-7]{3})")


def mounts(text: str) -> tuple[Mount, ...]:
    """/proc/mounts, the later of two on one point last, as the kernel has it."""
    found: list[Mount] = []
    for line in text.splitlines():
        fields = line.split()
        if len(fields) >= 4:
            source, point = (_ESCAPE.sub(lambda match: chr(int(match.group(1), 8)), field) for field in fields[:2])
            found.append(Mount(point, fields[2], tuple(fields[3].split(",")), source))
    return tuple(found)


def mount_of(path: str, table: Iterable[Mount]) -> Mount | None:
    """The mount that a path lies on: the longest point above it, the last of equals."""
    best: Mount | None = None
    for one in table:
        inside = one.point == "/" or path == one.point or path.startswith(one.point + "/")
        if inside and (best is None or len(one.point) >= len(best.point)):
            best = one
    return best


def meminfo(text: str) -> dict[str, int]:
    """/proc/meminfo in bytes."""
    return {
        match.group(1): int(match.group(2)) * 1024 for match in re.finditer(r"^(\w+):\s+(\d+) kB", text, re.MULTILINE)
    }


def modules(text: str) -> tuple[str, ...]:
    """Names in /proc/modules."""
    return tuple(line.split()[0] for line in text.splitlines() if line.strip())


def user_namespace(uid_map: str) -> bool | None:
    """Whether /proc/self/uid_map maps less than all ids: so it is in an unprivileged container. None where unreadable."""
    fields = uid_map.split()
    if len(fields) < 3 or not all(field.isdigit() for field in fields[:3]):
        return None
    return not (fields[0] == "0" and fields[1] == "0" and int(fields[2]) >= 4294967295)


def container(files: Mapping[str, str], marks: Iterable[str], variables: Mapping[str, str], init: Iterable[str]) -> str:
    """Which kind of container this is: ``kubernetes``, ``docker``, ``podman``, ``lxc``, ``wsl``, ``container``, ``none``.

    ``files``: text by path; ``marks``: those of the well-known marker files that exist; ``init``: the environment of
    process 1 where it may be read (LXC and systemd-nspawn put ``container=`` there).
    """
    marks = set(marks)
    groups = files.get("/proc/self/cgroup", "") + files.get("/proc/1/cgroup", "")
    kernel = files.get("/proc/version", "") + files.get("/proc/sys/kernel/osrelease", "")
    if "KUBERNETES_SERVICE_HOST" in variables or "/var/run/secrets/kubernetes.io" in marks or "kubepods" in groups:
        return "kubernetes"
    if "/.dockerenv" in marks or "/docker/" in groups or "/docker-" in groups:
        return "docker"
    named = variables.get("container", "") or next((one[10:] for one in init if one.startswith("container=")), "")
    named = named or files.get("/run/systemd/container", "").strip()
    if named in ("podman", "oci") or "/run/.containerenv" in marks or "libpod" in groups:
        return "podman"
    if named == "lxc" or "/lxc/" in groups or "/lxc.payload" in groups:
        return "lxc"
    if "microsoft" in kernel.lower():
        return "wsl"
    return "container" if named else "none"


def toml_flag(text: str, name: str) -> bool | None:
    """A boolean of a TOML file, comments left out; None where it is not set."""
    match = re.search(rf"^\s*{re.escape(name)}\s*=\s*(true|false)", text, re.MULTILINE)
    return None if match is None else match.group(1) == "true"
