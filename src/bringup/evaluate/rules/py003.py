"""A wheel is for another platform.

## What it checks
The platform in the tags of every distribution (`manylinux_2_28_x86_64`, `musllinux_1_2_aarch64`) against the host's processor and
its C library.

## Why it matters
Installers refuse such a wheel; copied environments, images for another processor and `--platform` let it in. What is for another
processor or another C library never loads. What asks for a newer glibc than the host's may load, where its symbols happen to be
old: LIB006 says so by the symbols themselves.

## Example
```
ImportError: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.32' not found
```

## What to do
Install the package anew on this host, an older release with an older tag, or move to a newer system.

## References
- Dao-AILab/flash-attention#1708, Dao-AILab/flash-attention#1762, vllm-project/vllm#6562
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.faults import install
from bringup.evaluate.tags import platform_gap
from bringup.facts import Facts, Known
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="PY003",
    kind="wheel_for_other_platform",
    title="A wheel is for another platform",
    stage="install",
    needs=("distributions", "host"),
)


def check(facts: Facts) -> Iterator[Finding]:
    if not isinstance(facts.distributions, Known) or not isinstance(facts.host, Known):
        return
    host = facts.host.value
    for one in facts.distributions.value:
        gaps = [platform_gap(tag, host) for tag in one.tags]
        if not gaps or "" in gaps:
            continue
        old_libc = "or later" in gaps[0]
        have = host.libc if old_libc or gaps[0] in ("for musl", "for glibc") else f"{host.machine} on Linux"
        yield Finding(
            rule=RULE.code,
            kind="glibc_too_old" if old_libc else RULE.kind,
            severity="warning" if old_libc else "error",
            stage=RULE.stage,
            subject=one.name,
            because=(
                Premise(f"{one.name} {one.version} is built {gaps[0]}", one.source),
                Premise(f"this host has {have}", facts.host.source),
            ),
            therefore=f"{one.name} may not load here" if old_libc else f"no library of {one.name} loads here",
            remedies=(
                Remedy(
                    f"reinstall {one.name} on this host, or an older release of it",
                    (install(facts, f"--reinstall-package {one.name} {one.name}"),),
                ),
            ),
        )
