"""What is compiled lies on a file system that forbids execution.

## What it checks
Whether a cache folder of a package of the stack, or TMPDIR's, is mounted `noexec`: a shared library there cannot be mapped.

## Why it matters
The compile succeeds, and opening its result fails. Hardened images mount /tmp and /home so.

## Example
```
ImportError: .../cached_ops/page/page.so: failed to map segment from shared object
```

## What to do
Let the package's variable name a folder on another mount, or mount it with exec.

## References
- pytorch/pytorch#123054
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.jit import ORDER, severity
from bringup.evaluate.rules.fs001 import VARIABLES, used
from bringup.facts import Facts
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="FS002",
    kind="noexec_or_map_failure",
    title="What is compiled lies on a file system that forbids execution",
    stage="jit",
    needs=("distributions", "caches"),
)


def check(facts: Facts) -> Iterator[Finding]:
    for folder, ones in used(facts):
        if "noexec" not in folder.options:
            continue
        level = severity(ones)
        yield Finding(
            rule=RULE.code,
            kind=RULE.kind,
            severity=level,
            stage=RULE.stage,
            subject=folder.path,
            because=(
                Premise(f"{folder.user} opens what it compiled in {folder.path}", folder.decided_by),
                Premise(f"{folder.base} lies on a {folder.filesystem} mounted noexec", "/proc/mounts"),
            ),
            therefore="what is compiled there cannot be opened",
            predicted_error="failed to map segment from shared object",
            misread_as="a damaged library",
            remedies=(
                Remedy("name a folder on another mount", (f"export {VARIABLES[folder.user]}=/var/tmp/{folder.user}",)),
            ),
            order=ORDER["cache"] - 4,
            fatal=level == "error",
        )
