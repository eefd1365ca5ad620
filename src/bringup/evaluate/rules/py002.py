"""An extension module is named for another Python than its wheel is for.

## What it checks
Files such as `x.cpython-310-x86_64-linux-gnu.so` in the stack, against the interpreter's own version and build.

## Why it matters
An import looks only for names that fit the interpreter, so that such a file does not exist for it, even inside of a wheel whose
tag (`abi3`) promises every later Python. A loader that goes by path finds it, and its module then refuses the interpreter.

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

from bringup.evaluate.tags import module_python, own_python
from bringup.evaluate.variants import choice
from bringup.facts import Facts, Known, Library, LoadSite
from bringup.findings import Finding, Premise, Remedy, Rule, Severity

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
    if python.implementation != "cpython":
        return
    own = own_python(python)
    fitting = {_module(one) for one in facts.libraries.value if module_python(one.file_name) in ("", own)}
    for library in facts.libraries.value:
        named = module_python(library.file_name)
        # Packages that bring one file a Python version are well: the interpreter finds its own.
        if named in ("", own) or _module(library) in fitting:
            continue
        severity, relevance = _relevance(facts, library)
        yield Finding(
            rule=RULE.code,
            kind=RULE.kind,
            severity=severity,
            stage=RULE.stage,
            subject=library.path,
            because=(
                Premise(f"{library.path} is named for Python {named}", library.source),
                Premise(f"the interpreter is Python {own}", facts.python.source),
                relevance,
            ),
            therefore=f"Python {own} cannot import {_module(library)}",
            predicted_error=f"ModuleNotFoundError: No module named '{_module(library)}'",
            remedies=(
                Remedy(
                    f"where {_module(library)} is needed, take Python {named}",
                    (f"uv venv --python {named}",),
                    safe=True,
                ),
            ),
            fatal=severity == "error",
        )


def _relevance(facts: Facts, library: Library) -> tuple[Severity, Premise]:
    """How much it matters: an error only where importing the package surely runs the import."""
    sites = facts.load_sites.value if isinstance(facts.load_sites, Known) else ()
    own = [site for site in sites if site.opens == library.path and site.how != "text"]
    if not own:
        chosen = choice(facts, library, None)
        if chosen is not None and chosen.loads is False:
            return "info", Premise(f"it is loaded only {chosen.when}", chosen.source)
        if chosen is not None and chosen.asked:
            return "warning", Premise(f"{library.owner} loads it {chosen.when}", chosen.source)
        return "warning", Premise("it matters only where something imports it", library.source)
    site = min(own, key=lambda one: (one.when != "import", one.guarded))
    where = f"{site.module} line {site.line}"
    if _ends_the_import(site):
        return "error", Premise(f"importing {site.module.split('.')[0]} imports it", where)
    how = "inside of try" if site.guarded else "when a function is called"
    return "warning", Premise(f"{site.module} imports it {how}", where)


def _ends_the_import(site: LoadSite) -> bool:
    return site.when == "import" and not site.guarded and bool(site.chain) and site.how == "import" and not site.choice


def _module(library: Library) -> str:
    folder, _, name = library.path.rpartition("/")
    return ".".join([*filter(None, folder.split("/")), name.split(".", 1)[0]])
