"""libcuda is there, and Triton does not find it.

## What it checks
Whether `ldconfig -p` lists `libcuda.so.1` when the machine has one: Triton asks that list first, and LD_LIBRARY_PATH only
where the list knows no libcuda. Triton before 3.0 also links with `-lcuda`, which needs the name `libcuda.so`.

## Why it matters
A driver that a container runtime mounts, or one in a folder of its own, is loaded through LD_LIBRARY_PATH without trouble,
so torch works and Triton alone fails.

## Example
```
AssertionError: libcuda.so cannot found!
Please make sure GPU is set up and then run "/sbin/ldconfig" (requires sudo) to refresh the linker cache.
/usr/bin/ld: cannot find -lcuda
```

## What to do
Run ldconfig with the driver's folder, or set TRITON_LIBCUDA_PATH to that folder.

## References
- vllm-project/vllm#12505, triton-lang/triton#1981
"""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import InvalidVersion, Version

from bringup.evaluate.jit import ORDER, jit_finding, machine, users
from bringup.facts import Facts, Host, Known, variable
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="JIT013",
    kind="libcuda_link_name_missing",
    title="libcuda is there, and Triton does not find it",
    stage="jit",
    needs=("distributions", "machine.driver_files", "host"),
)


def check(facts: Facts) -> Iterator[Finding]:
    below, ones = machine(facts), users(facts, "libcuda")
    if below is None or not isinstance(below.driver_files, Known) or not ones or variable(facts, "TRITON_LIBCUDA_PATH"):
        return
    here = [one for one in below.driver_files.value if one.soname == "libcuda.so.1"]
    if not here or not isinstance(facts.host, Known):
        return  # no libcuda at all is another matter
    listed = [path for soname, path in facts.host.value.loader_cache if soname == "libcuda.so.1"]
    searched = (variable(facts, "LD_LIBRARY_PATH") or "").split(":")
    folder = here[0].path.rpartition("/")[0]
    if not listed and folder not in searched:
        reason = f"{here[0].path} is neither in ld.so.cache nor in a folder of LD_LIBRARY_PATH"
        error = "AssertionError: libcuda.so cannot found!"
        command = f"ldconfig {folder}"
    elif _links(ones[0].version) and not _has_link_name(facts.host.value, folder):
        reason = f"{folder} holds libcuda.so.1 and no libcuda.so, which this Triton links with"
        error = "/usr/bin/ld: cannot find -lcuda"
        command = f"ln -s libcuda.so.1 {folder}/libcuda.so"
    else:
        return
    yield jit_finding(
        RULE,
        facts,
        ones,
        because=(
            Premise(f"{ones[0].user.name} {ones[0].version} links its launcher with libcuda", ones[0].user.source),
            Premise(reason, here[0].path),
        ),
        therefore="no Triton kernel can be launched, although torch finds the GPU",
        predicted_error=error,
        misread_as="a missing driver",
        remedies=(Remedy("let the linker know libcuda", (command,)),),
        order=ORDER["libcuda"],
        subject="libcuda.so",
    )


def _links(version: str) -> bool:
    try:
        return Version(version) < Version("3.0")
    except InvalidVersion:
        return False


def _has_link_name(host: Host, folder: str) -> bool:
    return any(soname == "libcuda.so" or path == f"{folder}/libcuda.so" for soname, path in host.loader_cache)
