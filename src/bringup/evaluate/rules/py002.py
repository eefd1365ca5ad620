"""An extension module is named for another Python than its wheel is for.

## What it checks
Files such as `x.cpython-310-x86_64-linux-gnu.so` in the stack, against the interpreter's own version.

## Why it matters
An import looks only for names that fit the interpreter, so that such a file does not exist for it, even inside of a wheel whose
tag (`abi3`) promises every later Python.

## Example
```
ModuleNotFoundError: No module named 'sgl_kernel.infllm_ops'
```

## What to do
A release that names the file rightly, or the Python that it is named for. Where nothing imports it, nothing.

## References
- sgl-project/sglang, kernel wheels 0.4.x
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.tags import module_python
from bringup.facts import Facts, Known, Library
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="PY002",
    kind="extension_module_named_for_other_python",
    title="An extension module is named for another Python",
    stage="import",
    needs=("libraries", "python"),
)


def check(facts: Facts) -> Iterator[Finding]:
    if not isinstance(facts.libraries, Known) or not isinstance(facts.python, Known):
        return
    python = facts.python.value
    own = tuple(int(part) for part in python.version.split(".")[:2])
    fitting = {_module(one) for one in facts.libraries.value if module_python(one.file_name) in (None, own)}
    for library in facts.libraries.value:
        named = module_python(library.file_name)
        # Packages that bring one file a Python version are well: the interpreter finds its own.
        if named is None or named == own or _module(library) in fitting:
            continue
        yield Finding(
            rule=RULE.code,
            kind=RULE.kind,
            severity="warning",
            stage=RULE.stage,
            subject=library.path,
            because=(
                Premise(f"{library.path} is named for Python {named[0]}.{named[1]}", library.source),
                Premise(f"the interpreter is Python {python.version}", facts.python.source),
            ),
            therefore=f"Python {own[0]}.{own[1]} cannot import {_module(library)}",
            predicted_error=f"ModuleNotFoundError: No module named '{_module(library)}'",
            remedies=(Remedy(f"where {_module(library)} is needed, take Python {named[0]}.{named[1]}"),),
        )


def _module(library: Library) -> str:
    folder, _, name = library.path.rpartition("/")
    return ".".join([*filter(None, folder.split("/")), name.split(".", 1)[0]])
