"""A failed fabric manager means nothing here.

## What it checks
Whether nvidia-fabricmanager failed on a machine that has no NVSwitch.

## Why it matters
Images install the service everywhere; without NVSwitches it ends at once, and the red line in the log is taken for
the cause of something else.

## Example
```
nvidia-fabricmanager.service: Failed with result 'exit-code'.
```

## What to do
Ignore it, or disable the service.

## References
- NVIDIA Fabric Manager user guide
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.host import host_finding, known_machine, pci, smi
from bringup.facts import Facts, Known
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="HOST010",
    kind="fabric_manager_not_applicable",
    title="A failed fabric manager means nothing here",
    stage="device",
    needs=("machine.pci",),
)


def check(facts: Facts) -> Iterator[Finding]:
    machine = known_machine(facts)
    service = machine.fabric_manager.value if isinstance(machine.fabric_manager, Known) else ""
    fabric = any(one.fabric_state not in ("", "N/A") for one in smi(machine))
    if service != "failed" or fabric or any(one.is_switch for one in pci(machine)):
        return
    yield host_finding(
        RULE,
        "nvidia-fabricmanager",
        (
            Premise("nvidia-fabricmanager failed", "systemctl is-active"),
            Premise("the machine has no NVSwitch", "/sys/bus/pci/devices"),
        ),
        "its failure is without consequence",
        remedies=(Remedy("disable the service", ("systemctl disable --now nvidia-fabricmanager",), safe=True),),
        severity="info",
        order=90,
    )
