"""Secure Boot refuses the NVIDIA kernel module.

## What it checks
Whether Secure Boot is on, an NVIDIA GPU is there, no nvidia module is loaded, and the kernel log tells of a refused
key.

## Why it matters
A DKMS build signs with a key that the firmware does not know until it was enrolled at a boot with a screen.

## Example
```
modprobe: ERROR: could not insert 'nvidia': Key was rejected by service
```

## What to do
Enrol the signing key with mokutil, use the distribution's signed module, or turn Secure Boot off.

## References
- Debian and Ubuntu wiki, Secure Boot
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.host import host_finding, known_machine, log, module_release, pci
from bringup.facts import Facts, Known
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="HOST007",
    kind="secure_boot_blocks_module",
    title="Secure Boot refuses the NVIDIA kernel module",
    stage="device",
    needs=(
        "machine.pci",
        "machine.secure_boot",
    ),
)

SAYINGS = (
    "key was rejected",
    "unsigned module",
    "module verification failed",
    "loading of unsigned",
    "pkcs#7 signature not signed",
)


def check(facts: Facts) -> Iterator[Finding]:
    machine = known_machine(facts)
    on = isinstance(machine.secure_boot, Known) and machine.secure_boot.value
    if not on or module_release(machine) or not any(one.is_gpu for one in pci(machine)):
        return
    line = next((line for line in log(machine) if any(word in line.lower() for word in SAYINGS)), "")
    premises = [Premise("Secure Boot is on, and no nvidia module is loaded", "efivars, /proc/driver/nvidia")]
    if line:
        premises.append(Premise(f"the kernel says: {line.strip()}", "dmesg"))
    yield host_finding(
        RULE,
        "nvidia.ko",
        tuple(premises),
        "the module is not loaded until its key is enrolled"
        if line
        else "the module may have been refused for its signature",
        "modprobe: ERROR: could not insert 'nvidia': Key was rejected by service",
        (
            Remedy(
                "enrol the key that signed the module", ("mokutil --import /var/lib/shim-signed/mok/MOK.der", "reboot")
            ),
        ),
        severity="error" if line else "warning",
        order=11,
    )
