"""WSL's libcuda is outside of the loader's cache.

## What it checks
Under WSL, whether ld.so.cache knows libcuda.so.1 and the plain name libcuda.so of /usr/lib/wsl/lib.

## Why it matters
WSL lays copies instead of links into a folder of its own, so that ldconfig does not cache the plain name; where
ldconfig was not run with the folder, neither name is known. nvidia-smi works all the same.

## Example
```
OSError: libcuda.so: cannot open shared object file: No such file or directory
```

## What to do
Put the folder on LD_LIBRARY_PATH.

## References
- microsoft/WSL#8587
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.host import host_finding, known_machine
from bringup.facts import Facts, Known, variable
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="DRV105",
    kind="wsl_libcuda_not_linked",
    title="WSL's libcuda is outside of the loader's cache",
    stage="device",
    needs=(
        "machine.container",
        "machine.driver_files",
        "host",
    ),
)

FOLDER = "/usr/lib/wsl/lib"


def check(facts: Facts) -> Iterator[Finding]:
    machine = known_machine(facts)
    if (
        not isinstance(machine.container, Known)
        or machine.container.value != "wsl"
        or not isinstance(facts.host, Known)
    ):
        return
    files = machine.driver_files.value if isinstance(machine.driver_files, Known) else ()
    cached = {soname for soname, _ in facts.host.value.loader_cache}
    missing = [name for name in ("libcuda.so.1", "libcuda.so") if name not in cached]
    if not any(one.path.startswith(f"{FOLDER}/libcuda") for one in files) or not missing:
        return
    if FOLDER in (variable(facts, "LD_LIBRARY_PATH") or "").split(":"):
        return
    yield host_finding(
        RULE,
        f"{FOLDER}/{missing[0]}",
        (Premise(f"WSL's libcuda lies in {FOLDER}, and ld.so.cache does not know {missing[0]}", FOLDER),),
        "no CUDA program finds the driver"
        if "libcuda.so.1" in missing
        else "programs that open libcuda.so do not find the driver",
        f"OSError: {missing[0]}: cannot open shared object file: No such file or directory",
        (
            Remedy(
                "put the folder on the loader's path", (f"export LD_LIBRARY_PATH={FOLDER}:$LD_LIBRARY_PATH",), safe=True
            ),
        ),
        severity="error" if "libcuda.so.1" in missing else "warning",
        order=19,
        misread_as="a missing driver",
    )
