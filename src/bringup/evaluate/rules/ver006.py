"""FlashInfer's companions are of another release.

## What it checks
The releases of flashinfer-python, flashinfer-cubin and flashinfer-jit-cache, where they are installed, against each other.

## Why it matters
FlashInfer compares them when it is imported, and refuses to go on where they differ.

## Example
```
RuntimeError: flashinfer-cubin version (0.6.1) does not match flashinfer version (0.6.3). Please install the same version of both packages.
```

## What to do
Install the same release of all, or uninstall the companion: kernels are then compiled or fetched when they are needed.

## References
- vllm-project/vllm#49804, flashinfer-ai/flashinfer#4781
"""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import InvalidVersion, Version

from bringup.evaluate.faults import install, uninstall
from bringup.facts import Distribution, Facts, distribution
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="VER006",
    kind="flashinfer_companion_version",
    title="FlashInfer's companions are of another release",
    stage="import",
    needs=("distributions",),
)


def check(facts: Facts) -> Iterator[Finding]:
    flashinfer = distribution(facts, "flashinfer-python")
    if flashinfer is None:
        return
    for name in ("flashinfer-cubin", "flashinfer-jit-cache"):
        companion = distribution(facts, name)
        if companion is None or _public(companion) == _public(flashinfer):
            continue
        yield Finding(
            rule=RULE.code,
            kind=RULE.kind,
            severity="error",
            stage=RULE.stage,
            subject=name,
            because=(
                Premise(f"{name} {companion.version} is installed", companion.source),
                Premise(
                    f"flashinfer-python {flashinfer.version} is installed, and refuses another release",
                    flashinfer.source,
                ),
            ),
            therefore="importing flashinfer fails",
            predicted_error=f"RuntimeError: {name} version ({companion.version}) does not match flashinfer version "
            f"({flashinfer.version}). Please install the same version of both packages.",
            remedies=(
                Remedy(f"install {name} {_public(flashinfer)}", (install(facts, f"{name}=={_public(flashinfer)}"),)),
                Remedy(f"or uninstall {name}", (uninstall(facts, name),)),
            ),
            order=60,
            fatal=True,
        )


def _public(one: Distribution) -> str:
    """A version without its local part: a jit-cache wheel is ``0.6.3+cu130``."""
    try:
        return Version(one.version).public
    except InvalidVersion:
        return one.version
