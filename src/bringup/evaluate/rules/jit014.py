"""FlashInfer compiles, and cannot link.

## What it checks
Whether the names that FlashInfer's link step is given exist: `-lcudart` and `-lcuda` with `-L$CUDA_HOME/lib64` and
`-L$CUDA_HOME/lib64/stubs`.

## Why it matters
The CUDA wheels lay `lib`, not `lib64`, `libcudart.so.13` without the unversioned name, and no stub of libcuda. A
CUDA_HOME that points at them compiles for 16 seconds and then fails. An nvcc that is a script in /usr/local/bin makes
/usr/local the CUDA_HOME, with the same end.

## Example
```
/usr/bin/ld: cannot find -lcudart: No such file or directory
/usr/bin/ld: cannot find -lcuda: No such file or directory
```

## What to do
Make the three names, or use a toolkit that has them.

## References
- flashinfer-python 0.7.2, flashinfer/jit/cpp_ext.py generate_ninja_build_for_op
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.jit import ORDER, compiles_premise, jit_finding, listed, users
from bringup.evaluate.toolchain import candidate, choose
from bringup.facts import Facts, Known, variable
from bringup.findings import Finding, Premise, Remedy, Rule
from bringup.machine import Toolkit

RULE = Rule(
    code="JIT014",
    kind="toolkit_link_names_missing",
    title="FlashInfer compiles, and cannot link",
    stage="jit",
    needs=("distributions", "toolkits", "tools", "variables", "host"),
)


def check(facts: Facts) -> Iterator[Finding]:
    for one in users(facts, "link"):
        choice = choose(facts, one.user.search)
        _, now = candidate(facts, one.user)
        # The folder that is pasted into -L is the one that was found, not the one that a script leads to.
        kit = choice.kit if now else candidate(facts, one.user)[0]
        if kit is None:
            continue
        missing = [name for name, places in _WANTED if not _linkable(facts, kit, name, places)]
        if not missing:
            continue
        yield jit_finding(
            RULE,
            facts,
            (one,),
            because=(
                compiles_premise(facts, (one,), "link names in CUDA_HOME"),
                Premise(
                    f"{kit.home} holds no {listed(_NAMES[name] for name in missing)}",
                    f"{kit.home}/lib64",
                ),
            ),
            therefore="every module compiles and then fails to link",
            predicted_error=f"/usr/bin/ld: cannot find {missing[0]}",
            misread_as="a missing driver or a missing CUDA runtime; both are there under other names",
            remedies=(_remedy(facts, kit, missing, choice.home),),
            order=ORDER["link"],
            subject=kit.home,
        )


_WANTED = (
    ("-lcudart", ("lib64/libcudart.so", "lib64/libcudart_static.a")),
    ("-lcuda", ("lib64/stubs/libcuda.so", "lib64/libcuda.so")),
)
_NAMES = {"-lcudart": "lib64/libcudart.so", "-lcuda": "lib64/stubs/libcuda.so"}


def _linkable(facts: Facts, kit: Toolkit, name: str, places: tuple[str, ...]) -> bool:
    if places[0] in kit.link_names or (name == "-lcuda" and places[1] in kit.link_names):
        return True
    wanted = f"lib{name[2:]}.so"
    if not isinstance(facts.host, Known):
        return True
    folders = {*facts.host.value.default_dirs, "/usr/local/lib", *(variable(facts, "LIBRARY_PATH") or "").split(":")}
    return any(
        soname == wanted and path.rpartition("/")[0] in folders for soname, path in facts.host.value.loader_cache
    )


def _remedy(facts: Facts, kit: Toolkit, missing: list[str], home: str) -> Remedy:
    whole = next(
        (
            other.home
            for other in (facts.toolkits.value if isinstance(facts.toolkits, Known) else ())
            if "lib64/libcudart.so" in other.link_names
            and "lib64/stubs/libcuda.so" in other.link_names
            and other.component("nvcc")
        ),
        "",
    )
    if whole and whole != home:
        return Remedy("let CUDA_HOME name a toolkit that has them", (f"export CUDA_HOME={whole}",), safe=True)
    commands = []
    if not any(name.startswith("lib64/") for name in kit.link_names):
        commands.append(f"ln -s lib {kit.home}/lib64")
    if "-lcudart" in missing:
        real = next((name.rpartition("/")[2] for name in kit.link_names if "libcudart.so." in name), "libcudart.so.13")
        commands.append(f"ln -s {real} {kit.home}/lib64/libcudart.so")
    if "-lcuda" in missing:
        commands += [
            f"mkdir -p {kit.home}/lib64/stubs",
            f"ln -s \"$(ldconfig -p | awk '/libcuda.so.1/ {{print $NF; exit}}')\" {kit.home}/lib64/stubs/libcuda.so",
        ]
    return Remedy("make the names that the linker is given", tuple(commands))
