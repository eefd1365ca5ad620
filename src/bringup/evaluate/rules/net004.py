"""PCI access control sends peer traffic through the root complex.

## What it checks
Bridges whose ACS control redirects peer requests, on a machine with several GPUs that have no NVLink between them.

## Why it matters
With ACS on (it is what virtualisation wants) a GPU's write to another one goes up to the root complex and the IOMMU,
and may arrive nowhere: the first collective hangs without a message.

## Example
```
(no message: the first all-reduce hangs; NCCL_P2P_DISABLE=1 ends the hang)
```

## What to do
Turn ACS redirect off on those bridges, boot with iommu=pt, or set NCCL_P2P_DISABLE=1.

## References
- NVIDIA/nccl#2079
- vllm-project/vllm#51513
- NCCL user guide, troubleshooting
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.host import gpu_count, host_finding, known_machine
from bringup.facts import Facts, Known, variable
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="NET004",
    kind="p2p_hang_acs_iommu",
    title="PCI access control sends peer traffic through the root complex",
    stage="collective",
    needs=(
        "machine.acs_redirect",
        "gpus",
    ),
)


def check(facts: Facts) -> Iterator[Finding]:
    machine = known_machine(facts)
    bridges = machine.acs_redirect.value if isinstance(machine.acs_redirect, Known) else ()
    if not bridges or gpu_count(facts) < 2 or variable(facts, "NCCL_P2P_DISABLE") == "1":
        return
    links = (
        [link for row in machine.topology.value.links for link in row if link != "X"]
        if isinstance(machine.topology, Known)
        else []
    )
    if links and all(link.startswith("NV") for link in links):
        return  # NVLink carries the peer traffic
    command = machine.command_line.value if isinstance(machine.command_line, Known) else ""
    premises = [
        Premise(
            f"ACS redirects peer requests on {len(bridges)} PCI bridges, {bridges[0]} among them",
            "PCI configuration space",
        ),
        Premise(f"{gpu_count(facts)} GPUs talk over PCI", "nvidia-smi topo -m" if links else "gpus"),
    ]
    if isinstance(machine.iommu_groups, Known) and machine.iommu_groups.value and "iommu=pt" not in command:
        premises.append(Premise("the IOMMU translates, since the kernel runs without iommu=pt", "/proc/cmdline"))
    yield host_finding(
        RULE,
        "PCI bridges",
        tuple(premises),
        "peer transfers between GPUs may be lost, and the first collective hang",
        "",
        (
            Remedy("go without peer transfers", ("export NCCL_P2P_DISABLE=1",), safe=True),
            Remedy("turn ACS redirect off", tuple(f"setpci -s {one} ECAP_ACS+0x6.w=0000" for one in bridges[:16])),
        ),
        severity="warning",
        order=30,
        misread_as="a slow start",
        hints=("cannot be known before a start: watch whether the first all-reduce returns",),
        detail=bridges,
    )
