"""One of NVIDIA's libraries is installed for two CUDA majors.

## What it checks
Pairs such as nvidia-cudnn-cu12 and nvidia-cudnn-cu13 in one environment, and whether both lay their files into the same folder.

## Why it matters
cuDNN, NCCL, cuSPARSELt and NVSHMEM use one folder and one soname for both majors: the package that was installed last has overwritten
the other, and torch then opens a library that was built for the other CUDA. Where the folders differ, both copies only take space,
and may meet in one process.

## Example
```
ImportError: libcublasLt.so.12: cannot open shared object file: No such file or directory
```

## What to do
Uninstall both, then install the one that torch pins.

## References
- pytorch/pytorch#186591, rwth-i6/returnn#1802
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.cuda_majors import twins
from bringup.evaluate.faults import install, uninstall
from bringup.evaluate.sonames import torch_cuda
from bringup.facts import Facts, Known
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="VER009",
    kind="two_cuda_majors_in_env",
    title="A CUDA library is installed for two CUDA majors",
    stage="install",
    needs=("distributions", "shared_paths"),
)


def check(facts: Facts) -> Iterator[Finding]:
    if not isinstance(facts.shared_paths, Known):
        return
    cuda = torch_cuda(facts)
    for twin in twins(facts):
        names = {twin.cuda12.name, twin.cuda13.name}
        paths = [one.path for one in facts.shared_paths.value if names <= set(one.owners)]
        keep, drop = (twin.cuda12, twin.cuda13) if cuda and cuda.startswith("12.") else (twin.cuda13, twin.cuda12)
        because = [
            Premise(f"{twin.cuda12.name} {twin.cuda12.version} is installed", twin.cuda12.source),
            Premise(f"{twin.cuda13.name} {twin.cuda13.version} is installed", twin.cuda13.source),
        ]
        if paths:
            because.append(Premise(f"both own {paths[0]}, with different content", "RECORD of each"))
        if cuda:
            because.append(Premise(f"torch is built for CUDA {cuda}", "torch/version.py"))
        yield Finding(
            rule=RULE.code,
            kind=RULE.kind,
            severity="warning" if paths else "info",
            stage=RULE.stage,
            subject=drop.name,
            because=tuple(because),
            therefore="whichever was installed last has overwritten the other"
            if paths
            else "both copies may meet in one process",
            remedies=(
                Remedy(
                    f"uninstall {drop.name}, then reinstall {keep.name}",
                    (
                        uninstall(facts, drop.name),
                        install(facts, f"--reinstall-package {keep.name} {keep.name}=={keep.version}"),
                    ),
                ),
            ),
            detail=tuple(paths),
        )
