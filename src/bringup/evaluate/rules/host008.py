"""NVSwitches are there, and their fabric manager has not finished.

## What it checks
The fabric state of each GPU, and where the machine has NVSwitches, the state of the nvidia-fabricmanager service.

## Why it matters
GPUs on NVSwitches (HGX boards) refuse CUDA until the fabric manager has set the switches up. nvidia-smi lists them as
healthy.

## Example
```
RuntimeError: Unexpected error from cudaGetDeviceCount(). ... Error 802: system not yet initialized
```

## What to do
Install and start the fabric manager of the driver's own release.

## References
- NVIDIA Fabric Manager user guide
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.host import host_finding, known_machine, pci, smi
from bringup.facts import Facts, Known
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="HOST008",
    kind="fabric_manager_not_running",
    title="NVSwitches are there, and their fabric manager has not finished",
    stage="device",
    needs=("machine.smi",),
)


def check(facts: Facts) -> Iterator[Finding]:
    machine = known_machine(facts)
    waiting = [one for one in smi(machine) if one.fabric_state and one.fabric_state not in ("N/A", "Completed")]
    switches = [one for one in pci(machine) if one.is_switch]
    service = machine.fabric_manager.value if isinstance(machine.fabric_manager, Known) else ""
    if not waiting and not (switches and service in ("inactive", "failed")):
        return
    premises = [
        Premise(f"GPU {one.index} is in fabric state {one.fabric_state}", "nvidia-smi -q") for one in waiting[:1]
    ]
    if switches:
        premises.append(Premise(f"the machine has {len(switches)} NVSwitches", "/sys/bus/pci/devices"))
    if service:
        premises.append(Premise(f"nvidia-fabricmanager is {service}", "systemctl is-active"))
    yield host_finding(
        RULE,
        "nvidia-fabricmanager",
        tuple(premises),
        "CUDA does not start on these GPUs",
        "Error 802: system not yet initialized",
        (Remedy("start the fabric manager", ("systemctl enable --now nvidia-fabricmanager",)),),
        order=25,
    )
