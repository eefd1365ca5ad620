"""Another kernel driver holds the GPU.

## What it checks
Which kernel driver is bound to each NVIDIA GPU on the PCI bus.

## Why it matters
nouveau is loaded early on desktop systems and keeps nvidia.ko from binding; vfio-pci holds a GPU that is meant for a
virtual machine.

## Example
```
NVRM: GPU 0000:01:00.0 is already bound to nouveau.
NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.
```

## What to do
Blacklist nouveau and rebuild the initramfs; unbind vfio-pci.

## References
- NVIDIA driver README, chapter on nouveau
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.host import host_finding, known_machine, pci
from bringup.facts import Facts
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="HOST006",
    kind="nouveau_holds_gpu",
    title="Another kernel driver holds the GPU",
    stage="device",
    needs=("machine.pci",),
)


def check(facts: Facts) -> Iterator[Finding]:
    for one in pci(known_machine(facts)):
        if not one.is_gpu or one.driver not in ("nouveau", "vfio-pci", "nova_core", "novacore"):
            continue
        free = (
            ("echo 'blacklist nouveau' > /etc/modprobe.d/nouveau.conf", "update-initramfs -u", "reboot")
            if one.driver == "nouveau"
            else (f"echo {one.address} > /sys/bus/pci/drivers/{one.driver}/unbind",)
        )
        yield host_finding(
            RULE,
            f"GPU at {one.address}",
            (Premise(f"the GPU at {one.address} is bound to {one.driver}", "/sys/bus/pci/devices"),),
            "the NVIDIA driver does not get this GPU",
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
            (Remedy(f"free it from {one.driver}", free),),
            order=12,
        )
