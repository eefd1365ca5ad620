"""The engine may not take the UUIDs of CUDA_VISIBLE_DEVICES.

## What it checks
Whether CUDA_VISIBLE_DEVICES holds UUIDs (MIG-..., GPU-...) beside a vLLM older than 0.33, the oldest release whose
code was read and looks a device up by its UUID.

## Why it matters
CUDA takes UUIDs, and cluster schedulers set them. Older engines pass each entry to int().

## Example
```
ValueError: invalid literal for int() with base 10: 'MIG-4ffa2e26-0f2b-55e5-a0b3-5d8e2f3c0c21'
```

## What to do
Use numbers, or a newer engine.

## References
- vllm-project/vllm#41848
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.host import host_finding, numbers
from bringup.facts import Facts, distribution, variable
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="CTR005",
    kind="mig_uuid_not_parsed_by_engine",
    title="The engine may not take the UUIDs of CUDA_VISIBLE_DEVICES",
    stage="device",
    needs=(
        "variables",
        "distributions",
    ),
)


def check(facts: Facts) -> Iterator[Finding]:
    visible = variable(facts, "CUDA_VISIBLE_DEVICES") or ""
    named = next((one for one in visible.split(",") if one.strip().startswith(("MIG-", "GPU-"))), "")
    engine = distribution(facts, "vllm")
    if not named or engine is None or numbers(engine.version)[:2] >= (0, 33):
        return
    yield host_finding(
        RULE,
        "CUDA_VISIBLE_DEVICES",
        (
            Premise(f"CUDA_VISIBLE_DEVICES holds the UUID {named}", "environment"),
            Premise(
                f"vllm {engine.version} is older than the release that is known to look UUIDs up",
                "vllm 0.33.0, vllm/platforms/cuda.py",
            ),
        ),
        "the engine may fail when it asks for the device",
        f"ValueError: invalid literal for int() with base 10: '{named}'",
        (Remedy("name the devices by number", ("export CUDA_VISIBLE_DEVICES=0",)),),
        severity="warning",
        order=35,
        hints=("cannot be known before a start: watch for the message",),
    )
