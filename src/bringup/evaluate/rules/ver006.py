"""FlashInfer's companions are of another release.

## What it checks
The releases of flashinfer-cubin and flashinfer-jit-cache, and of its parts for single architectures, against flashinfer-python. A
jit-cache wheel may carry its CUDA version behind a plus (`0.6.3+cu130`); anything else must be equal.

## Why it matters
Up to 0.6 FlashInfer compares them when it is imported, and refuses to go on where they differ. From 0.7 on it ignores the companion
with a warning: kernels are then fetched or compiled when they are first needed, on the GPUs' time, or not at all where there is no
network or no compiler. FLASHINFER_DISABLE_VERSION_CHECK switches the comparison off.

## Example
```
RuntimeError: flashinfer-cubin version (0.6.1) does not match flashinfer version (0.6.3). Please install the same version of both packages.
```

## What to do
Install the same release of all, or uninstall the companion.

## References
- vllm-project/vllm#49804, flashinfer-ai/flashinfer#4781
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.version import InvalidVersion, Version

from bringup.evaluate.faults import install, uninstall
from bringup.facts import Distribution, Facts, Known, distribution, variable
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="VER006",
    kind="flashinfer_companion_version",
    title="FlashInfer's companions are of another release",
    stage="import",
    needs=("distributions",),
)

_COMPANION = re.compile(r"flashinfer-(?:cubin|jit-cache)(?:-sm\d+[af]?)?$")

TOLERANT_SINCE = Version("0.7.0")
"""The first release that ignores a companion instead of failing its own import. Source: flashinfer/jit/env.py of 0.6.18 and 0.7.0."""

HINT = "Please install the same version of both packages."


def check(facts: Facts) -> Iterator[Finding]:
    flashinfer = distribution(facts, "flashinfer-python")
    if (
        flashinfer is None
        or variable(facts, "FLASHINFER_DISABLE_VERSION_CHECK")
        or not isinstance(facts.distributions, Known)
    ):
        return
    tolerant = _tolerant(flashinfer)
    for companion in facts.distributions.value:
        if not _COMPANION.match(companion.name) or _equal(companion, flashinfer):
            continue
        manner = "ignores another release" if tolerant else "refuses another release when it is imported"
        mismatch = (
            f"{companion.name} version ({companion.version}) does not match flashinfer version ({flashinfer.version})."
        )
        right = flashinfer.version
        yield Finding(
            rule=RULE.code,
            kind=RULE.kind,
            severity="warning" if tolerant else "error",
            stage="jit" if tolerant else RULE.stage,
            subject=companion.name,
            because=(
                Premise(f"{companion.name} {companion.version} is installed", companion.source),
                Premise(f"flashinfer-python {right} is installed, and {manner}", flashinfer.source),
            ),
            therefore="FlashInfer fetches or compiles what the companion holds ready"
            if tolerant
            else "importing flashinfer fails",
            predicted_error=f"Ignoring incompatible {companion.name} package"
            if tolerant
            else f"RuntimeError: {mismatch} {HINT}",
            hints=("FLASHINFER_DISABLE_VERSION_CHECK=1 uses the companion as it is",),
            remedies=(
                Remedy(f"install {companion.name} {right}", (install(facts, f"{companion.name}=={right}"),)),
                Remedy(f"uninstall {companion.name}", (uninstall(facts, companion.name),)),
            ),
            order=60,
            fatal=not tolerant,
        )


def _equal(companion: Distribution, flashinfer: Distribution) -> bool:
    local = companion.name.startswith("flashinfer-jit-cache") and companion.version.startswith(f"{flashinfer.version}+")
    return companion.version == flashinfer.version or local


def _tolerant(flashinfer: Distribution) -> bool:
    try:
        return Version(flashinfer.version) >= TOLERANT_SINCE
    except InvalidVersion:
        return False
