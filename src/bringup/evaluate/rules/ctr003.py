"""The image asks for a newer CUDA than the driver has.

## What it checks
NVIDIA_REQUIRE_CUDA of the image (alternatives apart by spaces, conditions of one apart by commas) against the
driver's CUDA version, its release and the GPU's brand.

## Why it matters
The NVIDIA runtime refuses to start the container at all, before anything in it runs.

## Example
```
nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.8, please update your driver to a newer version
```

## What to do
A newer driver on the host or an older image; NVIDIA_DISABLE_REQUIRE=1 only where the stack inside is known to fit.

## References
- theroyallab/tabbyAPI#324
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.host import gpu_list, host_finding, known_machine, numbers
from bringup.facts import Facts, Known, variable
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="CTR003",
    kind="container_cuda_requirement_unmet",
    title="The image asks for a newer CUDA than the driver has",
    stage="device",
    needs=(
        "machine.cuda_requirement",
        "driver",
        "gpus",
    ),
)

BRANDS = {
    "geforce": ("geforce", "geforcertx", "titan"),
    "rtx-pro": ("nvidiartx", "quadrortx", "quadro"),
    "datacenter": ("tesla", "nvidia"),
    "unknown": ("unknown",),
}


def check(facts: Facts) -> Iterator[Finding]:
    machine = known_machine(facts)
    asked = machine.cuda_requirement.value if isinstance(machine.cuda_requirement, Known) else ""
    if not asked or not isinstance(facts.driver, Known) or variable(facts, "NVIDIA_DISABLE_REQUIRE") in ("1", "true"):
        return
    driver = facts.driver.value
    brands = {brand for gpu in gpu_list(facts) for brand in BRANDS.get(gpu.product_class, ())}
    if not driver.cuda or any(_met(alternative, driver.version, driver.cuda, brands) for alternative in asked.split()):
        return
    wanted = next((one for one in asked.split() if one.startswith("cuda")), asked.split()[0])
    yield host_finding(
        RULE,
        "NVIDIA_REQUIRE_CUDA",
        (
            Premise(f"the image asks for {wanted}", "NVIDIA_REQUIRE_CUDA"),
            Premise(f"driver {driver.version} has CUDA {driver.cuda}", facts.driver.source),
        ),
        "the NVIDIA runtime does not start this image here",
        f"nvidia-container-cli: requirement error: unsatisfied condition: {wanted}",
        (
            Remedy(f"install a driver of CUDA {wanted.partition('=')[2] or 'that release'} or newer on the host"),
            Remedy("use an image of an older CUDA"),
        ),
        order=5,
    )


def _met(alternative: str, release_: str, cuda: str, brands: set[str]) -> bool:
    for condition in alternative.split(","):
        for operator in (">=", "<=", "!=", "=", ">", "<"):
            name, found, value = condition.partition(operator)
            if found:
                break
        else:
            return False
        if name == "brand":
            if value not in brands:
                return False
        elif name in ("cuda", "driver"):
            have, want = numbers(cuda if name == "cuda" else release_), numbers(value)
            have = have[: len(want)] if operator in ("=", "<=") else have
            fits = {
                ">=": have >= want,
                "<=": have <= want,
                "<": have < want,
                ">": have > want,
                "=": have == want,
                "!=": have != want,
            }
            if not fits[operator]:
                return False
        else:
            return False
    return True
