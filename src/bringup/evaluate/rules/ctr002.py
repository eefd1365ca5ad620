"""A container inside of a container may not set device cgroups.

## What it checks
Whether nvidia-container-runtime's config.toml has no-cgroups = true, in an LXC container or another user namespace.

## Why it matters
Docker inside of LXC: the NVIDIA runtime tries to allow devices in a cgroup that the outer container owns.

## Example
```
nvidia-container-cli: mount error: failed to add device rules: ... bpf_prog_query(BPF_CGROUP_DEVICE) failed: operation not permitted
```

## What to do
Set no-cgroups = true; the device nodes must then be passed by the outer container.

## References
- NVIDIA/libnvidia-container#154
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.host import host_finding, known_machine
from bringup.facts import Facts, Known
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="CTR002",
    kind="lxc_nested_cgroup_denied",
    title="A container inside of a container may not set device cgroups",
    stage="device",
    needs=("machine.container",),
)


def check(facts: Facts) -> Iterator[Finding]:
    machine = known_machine(facts)
    kind = machine.container.value if isinstance(machine.container, Known) else "none"
    nested = kind == "lxc" or (isinstance(machine.user_namespace, Known) and machine.user_namespace.value)
    if not nested or not isinstance(machine.toolkit_no_cgroups, Known) or machine.toolkit_no_cgroups.value:
        return
    file = "/etc/nvidia-container-runtime/config.toml"
    yield host_finding(
        RULE,
        file,
        (
            Premise("this is an LXC container or another user namespace", "/proc/self/uid_map, /proc/self/cgroup"),
            Premise("no-cgroups is false in the NVIDIA runtime's configuration", file),
        ),
        "containers that are started in it get no GPU",
        "nvidia-container-cli: mount error: failed to add device rules: operation not permitted",
        (
            Remedy(
                "leave cgroups to the outer container", (f"sed -i 's/^#*no-cgroups = .*/no-cgroups = true/' {file}",)
            ),
        ),
        severity="warning",
        order=9,
    )
