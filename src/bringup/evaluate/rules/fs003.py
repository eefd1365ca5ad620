"""A lock was left in a JIT cache.

## What it checks
Lock files in the JIT caches of packages of the stack, older than ten minutes before the newest file that was seen there.

## Why it matters
A start that was killed while it compiled leaves its lock. torch's extension cache waits for it without end and without a word;
a file lock of FlashInfer's is released with its process, so that only the file is left, and is harmless.

## Example
```
(no message: the start stands still while it builds an extension)
```

## What to do
Remove the lock when no process compiles.

## References
- flashinfer-ai/flashinfer#972
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.jit import ORDER
from bringup.evaluate.rules.fs001 import used
from bringup.facts import Facts
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="FS003",
    kind="jit_cache_lock_left",
    title="A lock was left in a JIT cache",
    stage="jit",
    needs=("distributions", "caches"),
)


def check(facts: Facts) -> Iterator[Finding]:
    for folder, _ in used(facts):
        # torch's FileBaton is the existence of a file named "lock"; others lock an open file, which its process's end frees.
        left = [path for path, _ in folder.locks if folder.user == "torch-extensions" and path.endswith("/lock")]
        if not left:
            continue
        yield Finding(
            rule=RULE.code,
            kind=RULE.kind,
            severity="warning",
            stage=RULE.stage,
            subject=left[0],
            because=(
                Premise(f"{left[0]} is there", left[0]),
                Premise(
                    "torch takes the existence of that file for another process that compiles",
                    "torch/utils/file_baton.py",
                ),
            ),
            therefore="a start waits for it without end, unless another process compiles at this moment",
            remedies=(Remedy("remove the lock when nothing compiles", tuple(f"rm {path}" for path in left)),),
            detail=tuple(left),
            order=ORDER["cache"] - 2,
        )
