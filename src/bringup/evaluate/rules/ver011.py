"""A package that was built for NumPy 1 beside NumPy 2.

## What it checks
Distributions that demand `numpy<2` and bring extension modules, while NumPy 2 is installed.

## Why it matters
NumPy 2 changed its binary interface. A module compiled against NumPy 1 cannot be initialised in NumPy 2; one compiled against
NumPy 2 runs in both.

## Example
```
A module that was compiled using NumPy 1.x cannot be run in
NumPy 2.1.0 as it may crash.
```

## What to do
A release of the package that takes NumPy 2, or NumPy 1.

## References
- vllm-project/vllm#5594, NVIDIA/TensorRT-Model-Optimizer#87
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.faults import install
from bringup.evaluate.requirements import is_numpy_abi, unmet_requirements
from bringup.facts import Facts, Known
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="VER011",
    kind="numpy_abi",
    title="A package for NumPy 1 beside NumPy 2",
    stage="import",
    needs=("distributions", "libraries"),
)


def check(facts: Facts) -> Iterator[Finding]:
    if not isinstance(facts.libraries, Known):
        return
    owners = {library.owner for library in facts.libraries.value}
    for one in unmet_requirements(facts):
        if not is_numpy_abi(one) or one.owner.name not in owners or one.found is None:
            continue
        asked = f"numpy{one.specifier}"
        yield Finding(
            rule=RULE.code,
            kind=RULE.kind,
            severity="warning",
            stage=RULE.stage,
            subject=one.owner.name,
            because=(
                Premise(
                    f"{one.owner.name} {one.owner.version} needs {asked}, and brings compiled modules", one.owner.source
                ),
                Premise(f"numpy {one.found.version} is installed", one.found.source),
            ),
            therefore=f"modules of {one.owner.name} that were compiled against NumPy 1 cannot be initialised",
            predicted_error=f"A module that was compiled using NumPy 1.x cannot be run in\nNumPy {one.found.version} as it may crash.",
            remedies=(
                Remedy(
                    f"install a release of {one.owner.name} that takes NumPy 2",
                    (install(facts, f"--upgrade {one.owner.name}"),),
                ),
                Remedy(f"install {asked}", (install(facts, f"'{asked}'"),)),
            ),
            order=55,
        )
