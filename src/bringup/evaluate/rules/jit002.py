"""CUDA_HOME is set, and names no toolkit.

## What it checks
Whether CUDA_HOME, or CUDA_PATH where it is unset, is one folder that holds `bin/nvcc`, whenever a package that compiles
at run time would take it.

## Why it matters
None of these packages checks the variable: each pastes it into a command. The usual slip is a list in the manner of PATH
(`CUDA_HOME=$CUDA_HOME:/usr/local/cuda`), which gives a leading colon when the variable was empty before.

## Example
```
/bin/sh: 1: :/usr/local/cuda/bin/nvcc: not found
ninja: build stopped: subcommand failed.
```

## What to do
Set CUDA_HOME to one folder, the one above `bin/nvcc`, or unset it.

## References
- vllm-project/vllm#36077
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.jit import ORDER, by_home, compiles_premise, jit_finding, users
from bringup.evaluate.toolchain import compiler_kit, toolkits
from bringup.facts import Facts
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="JIT002",
    kind="cuda_home_malformed",
    title="CUDA_HOME is set, and names no toolkit",
    stage="jit",
    needs=("distributions", "toolkits", "tools", "variables"),
)


def check(facts: Facts) -> Iterator[Finding]:
    for choice, ones in by_home(facts, users(facts, "nvcc")):
        if choice.how not in ("CUDA_HOME", "CUDA_PATH"):
            continue
        kit = compiler_kit(facts, choice)
        if kit is not None and kit.component("nvcc") is not None:
            continue
        if ":" in choice.home:
            reason = f"{choice.how} holds a colon: it is read as one folder, {choice.home!r}"
            last = next((part for part in reversed(choice.home.split(":")) if part), "")
            right = last if any(one.home == last for one in toolkits(facts)) else ""
        else:
            reason = (
                f"{choice.home} holds no bin/nvcc"
                if choice.kit is not None
                else f"{choice.home} is no folder with a toolkit"
            )
            right = ""
        right = right or next((one.home for one in toolkits(facts) if one.component("nvcc") is not None), "")
        commands = (f"export {choice.how}={right}",) if right else (f"unset {choice.how}",)
        yield jit_finding(
            RULE,
            facts,
            ones,
            because=(
                compiles_premise(facts, ones, f"the folder that {choice.how} names"),
                Premise(reason, choice.source),
            ),
            therefore=f"every compile fails with {choice.home}/bin/nvcc",
            predicted_error=f"/bin/sh: 1: {choice.home}/bin/nvcc: not found",
            misread_as="a failed build of the package: the last line is only `ninja: build stopped: subcommand failed.`",
            remedies=(Remedy(f"set {choice.how} to one folder that holds bin/nvcc", commands),),
            order=ORDER["home malformed"],
            subject=choice.how,
        )
