"""A JIT cache holds modules of another stack.

## What it checks
Compiled modules in the JIT caches that are older than the torch, the FlashInfer or the nvcc that is installed now, that
were built with a CUDA_HOME that is gone, or that refer to symbols of torch which the installed torch does not export.

## Why it matters
FlashInfer's cache is keyed by its own version and the GPU's architecture, not by torch nor by the nvcc behind the same path,
so an upgrade of either reuses what was compiled before. torch's extension cache is keyed by the Python and CUDA version only.

## Example
```
ImportError: .../torch_extensions/.../x.so: undefined symbol: _ZN3c10...
```

## What to do
Remove the cache folder; it is filled again at the next start.

## References
- pytorch/pytorch#108868
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.jit import ORDER, machine
from bringup.evaluate.jit_users import in_stack
from bringup.facts import Facts, Known
from bringup.findings import Finding, Premise, Remedy, Rule
from bringup.machine import CachedLibrary, CacheFolder

RULE = Rule(
    code="JIT018",
    kind="stale_jit_cache",
    title="A JIT cache holds modules of another stack",
    stage="jit",
    needs=("distributions", "caches", "machine.installed"),
)

_USER = {"flashinfer": "flashinfer-python", "torch-extensions": "torch"}
"""Caches whose key leaves out what they are compiled against. Triton's and SGLang's own keys hold it."""


def check(facts: Facts) -> Iterator[Finding]:
    below = machine(facts)
    if below is None or not isinstance(facts.caches, Known):
        return
    installed = {one.user.distribution for one in in_stack(facts)}
    times = below.installed.value if isinstance(below.installed, Known) else ()
    torch = max((when for name, when in times if name.startswith("torch-")), default=0.0)
    for folder in facts.caches.value:
        if _USER.get(folder.user) not in installed:
            continue
        broken = [one for one in folder.libraries if one.unresolved]
        older = [one for one in folder.libraries if torch and one.modified < torch and not one.unresolved]
        if broken:
            yield _finding(
                folder,
                broken,
                f"{broken[0].path} refers to {broken[0].unresolved[0]}, which the installed torch does not export",
                True,
            )
        elif older:
            yield _finding(folder, older, f"{older[0].path} was compiled before the installed torch was", False)


def _finding(folder: CacheFolder, modules: list[CachedLibrary], reason: str, certain: bool) -> Finding:
    several = f", and {len(modules) - 1} more" if len(modules) > 1 else ""
    return Finding(
        rule=RULE.code,
        kind=RULE.kind,
        severity="error" if certain else "warning",
        stage=RULE.stage,
        subject=folder.path,
        because=(
            Premise(f"{reason}{several}", modules[0].path),
            Premise(
                f"the {folder.user} cache is not keyed by torch nor by the compiler behind the same path", folder.path
            ),
        ),
        therefore="a start reuses what was compiled for another stack",
        predicted_error=f"ImportError: {modules[0].path}: undefined symbol: {modules[0].unresolved[0]}"
        if certain
        else "",
        remedies=(
            Remedy("remove the cache; it is filled again at the next start", (f"rm -r {folder.path}",), safe=True),
        ),
        detail=tuple(one.path for one in modules),
        order=ORDER["cache"],
        fatal=certain,
    )
