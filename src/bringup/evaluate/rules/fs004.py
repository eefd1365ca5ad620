"""A JIT cache lies on a network file system.

## What it checks
The file system below the JIT caches of packages of the stack: nfs, cifs, lustre, beegfs, gpfs, fuse and the like.

## Why it matters
Several ranks and several machines compile into one folder; locks and renames of network file systems are not what those
packages count on, and loading thousands of small files is slow.

## Example
```
FileNotFoundError: [Errno 2] No such file or directory: '.../triton/cache/.../x.json'
OSError: [Errno 116] Stale file handle
```

## What to do
Let the caches lie on a local disk of each machine.

## References
- pytorch/pytorch#173679
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.jit import ORDER
from bringup.evaluate.rules.fs001 import VARIABLES, used
from bringup.facts import Facts
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="FS004",
    kind="jit_cache_on_network_fs",
    title="A JIT cache lies on a network file system",
    stage="jit",
    needs=("distributions", "caches"),
)

NETWORK = (
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "lustre",
    "beegfs",
    "gpfs",
    "ceph",
    "glusterfs",
    "9p",
    "afs",
    "wekafs",
    "fuse.sshfs",
    "fuse.glusterfs",
    "fuse.s3fs",
    "fuse.gcsfuse",
    "fuse.juicefs",
    "virtiofs",
)


def check(facts: Facts) -> Iterator[Finding]:
    by_mount: dict[tuple[str, str], list[str]] = {}
    for folder, _ in used(facts):
        if folder.filesystem in NETWORK:
            by_mount.setdefault((folder.base, folder.filesystem), []).append(folder.user)
    for (base, filesystem), names in by_mount.items():
        yield Finding(
            rule=RULE.code,
            kind=RULE.kind,
            severity="warning",
            stage=RULE.stage,
            subject=base,
            because=(
                Premise(f"{base}, where {', '.join(names)} keep what they compile, is on {filesystem}", "/proc/mounts"),
            ),
            therefore="ranks that compile at the same time may meet half-written files",
            predicted_error="OSError: [Errno 116] Stale file handle",
            remedies=(
                Remedy(
                    "let the caches lie on a local disk",
                    tuple(f"export {VARIABLES[name]}=/var/tmp/{name}" for name in names),
                ),
            ),
            order=ORDER["cache"] - 1,
        )
