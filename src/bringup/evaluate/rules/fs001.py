"""A cache folder cannot be written.

## What it checks
For each package of the stack that keeps what it compiles: whether its folder (by its own variable, XDG_CACHE_HOME or HOME)
can be written, or can be made where it is missing. Read-only mounts count, for root too.

## Why it matters
Containers run under a user id without a home, with HOME=/ or with a read-only root. The packages fail at their first compile
with a bare permission error, often in a worker process whose text is cut.

## Example
```
PermissionError: [Errno 13] Permission denied: '/.cache'
OSError: [Errno 30] Read-only file system: '/home/user/.triton'
```

## What to do
Set HOME, or the package's own variable, to a folder that the process may write.

## References
- vllm-project/vllm#10185
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.jit import ORDER, severity
from bringup.evaluate.jit_users import InStack, in_stack
from bringup.facts import Facts, Known
from bringup.findings import Finding, Premise, Remedy, Rule
from bringup.machine import CacheFolder

RULE = Rule(
    code="FS001",
    kind="home_or_cache_not_writable",
    title="A cache folder cannot be written",
    stage="jit",
    needs=("distributions", "caches"),
)

USERS = {
    "flashinfer": ("flashinfer-python",),
    "triton": ("triton",),
    "torch-extensions": ("torch",),
    "deep-gemm": ("sgl-deep-gemm",),
    "tilelang": ("tilelang",),
    "sglang": ("sglang",),
    "cupy": ("cupy-cuda13x", "cupy-cuda12x"),
}
VARIABLES = {
    "flashinfer": "FLASHINFER_WORKSPACE_BASE",
    "triton": "TRITON_CACHE_DIR",
    "torch-extensions": "TORCH_EXTENSIONS_DIR",
    "deep-gemm": "DG_JIT_CACHE_DIR",
    "tilelang": "TILELANG_CACHE_DIR",
    "sglang": "SGLANG_JIT_CACHE_DIR",
    "cupy": "CUPY_CACHE_DIR",
}


def used(facts: Facts) -> list[tuple[CacheFolder, tuple[InStack, ...]]]:
    """The cache folders of packages of this stack, with those packages."""
    if not isinstance(facts.caches, Known):
        return []
    stack = in_stack(facts)
    found = []
    for folder in facts.caches.value:
        ones = tuple(one for one in stack if one.user.distribution in USERS.get(folder.user, ()))
        if ones:
            found.append((folder, ones))
    return found


def check(facts: Facts) -> Iterator[Finding]:
    by_base: dict[tuple[str, str], list[tuple[CacheFolder, tuple[InStack, ...]]]] = {}
    for folder, ones in used(facts):
        if not folder.writable:
            by_base.setdefault((folder.base, folder.decided_by), []).append((folder, ones))
    for (base, decided_by), group in by_base.items():
        ones = tuple(one for _, some in group for one in some)
        folder = group[0][0]
        read_only = "ro" in folder.options
        reason = f"{base} is on a read-only file system" if read_only else f"this user may not write to {base}"
        error = (
            f"OSError: [Errno 30] Read-only file system: '{folder.path}'"
            if read_only
            else f"PermissionError: [Errno 13] Permission denied: '{folder.path}'"
        )
        names = [VARIABLES[one.user] for one, _ in group]
        level = severity(ones)
        yield Finding(
            rule=RULE.code,
            kind=RULE.kind,
            severity=level,
            stage=RULE.stage,
            subject=base,
            because=(
                Premise(f"{folder.user} keeps what it compiles in {folder.path}", decided_by),
                Premise(reason, base),
            ),
            therefore="nothing that is compiled can be kept, and the first compile fails",
            predicted_error=error,
            remedies=(
                Remedy(
                    "name a folder that can be written",
                    ("export HOME=/tmp/home && mkdir -p $HOME",)
                    if decided_by == "HOME"
                    else tuple(f"export {name}=/tmp/{name.lower()}" for name in names),
                ),
            ),
            detail=tuple(one.path for one, _ in group),
            order=ORDER["home"] + 1,
            fatal=level == "error",
        )
