"""What the rules about run-time compilation share: who compiles here, and the words for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby

from bringup.evaluate.jit_users import InStack, compiles, engine_of, in_stack
from bringup.evaluate.toolchain import Choice, candidate, choose, predict, short, toolkit_release, toolkits
from bringup.facts import Facts, Interpreter, Known
from bringup.findings import Finding, Premise, Remedy, Rule, Severity
from bringup.machine import Machine, Toolkit

ORDER = {
    "home": 10,
    "home malformed": 12,
    "arch": 14,
    "compiler": 20,
    "python.h": 22,
    "libcuda": 24,
    "ninja": 30,
    "host compiler": 40,
    "parts": 44,
    "headers": 46,
    "ptxas": 48,
    "link": 60,
    "cache": 70,
}
"""Places within a stage, in the order of FlashInfer's own code: CUDA_HOME, ninja, compile, link, cache (ground runs)."""


def users(facts: Facts, need: str) -> tuple[InStack, ...]:
    """The JIT users of the stack that need something and that would compile, in the order of a start."""
    return tuple(one for one in in_stack(facts) if need in one.user.needs and compiles(facts, one))


def severity(ones: Iterable[InStack]) -> Severity:
    """An error where a default start of the engine would meet it, a warning where only some use of it would."""
    return "error" if any(one.default for one in ones) else "warning"


def label(one: InStack) -> str:
    """``FlashInfer 0.7.2``."""
    return f"{one.user.name} ({one.user.distribution} {one.version})"


def listed(words: Iterable[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    words = list(dict.fromkeys(words))
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def compiles_premise(facts: Facts, ones: tuple[InStack, ...], what: str) -> Premise:
    """Who compiles, and whether the engine makes it do so in every start."""
    engine = engine_of(facts)
    starting = [one for one in ones if one.default]
    if starting and engine:
        who = listed(one.user.name for one in starting)
        text = (
            f"a start of {engine} compiles kernels through {who}, which need{'s' if len(starting) == 1 else ''} {what}"
        )
        return Premise(text, starting[0].why)
    verb = "compiles" if len(ones) == 1 else "compile"
    need = "needs" if len(ones) == 1 else "need"
    return Premise(
        f"{listed(label(one) for one in ones)} {verb} kernels at run time and {need} {what}", ones[0].user.source
    )


def by_home(facts: Facts, ones: Iterable[InStack]) -> list[tuple[Choice, tuple[InStack, ...]]]:
    """Users grouped by the CUDA_HOME that each takes, in order."""
    return _grouped(ones, lambda one: choose(facts, one.user.search))


def by_kit(facts: Facts, ones: Iterable[InStack]) -> list[tuple[Toolkit, bool, tuple[InStack, ...]]]:
    """Users grouped by the toolkit that they compile with, with whether they find it now; see `candidate`."""
    pairs = [((candidate(facts, one.user)), one) for one in ones]
    found: list[tuple[Toolkit, bool, tuple[InStack, ...]]] = []
    for (kit, now), group in groupby(sorted(pairs, key=lambda pair: _kit_key(pair[0])), key=lambda pair: pair[0]):
        if kit is not None:
            found.append((kit, now, tuple(one for _, one in group)))
    return found


def _kit_key(pair: tuple[Toolkit | None, bool]) -> tuple[str, bool]:
    return (pair[0].home if pair[0] is not None else "", pair[1])


def _grouped(ones: Iterable[InStack], key: Callable[[InStack], Choice]) -> list[tuple[Choice, tuple[InStack, ...]]]:
    found: dict[Choice, list[InStack]] = {}
    for one in ones:
        found.setdefault(key(one), []).append(one)
    return [(choice, tuple(group)) for choice, group in found.items()]


def kit_label(kit: Toolkit, now: bool) -> str:
    """Which toolkit is meant, and why it counts although nothing finds it."""
    return kit.home if now else f"{kit.home}, the only nvcc here, to which CUDA_HOME would be set"


def jit_finding(
    rule: Rule,
    facts: Facts,
    ones: tuple[InStack, ...],
    because: tuple[Premise, ...],
    therefore: str,
    predicted_error: str,
    remedies: tuple[Remedy, ...],
    order: int,
    subject: str = "",
    misread_as: str = "",
    detail: tuple[str, ...] = (),
) -> Finding:
    """A finding about the users ``ones``, the first of which names it where ``subject`` does not."""
    level = severity(ones)
    return Finding(
        rule=rule.code,
        kind=rule.kind,
        severity=level,
        stage=rule.stage,
        subject=subject or ones[0].user.distribution,
        because=because,
        therefore=therefore,
        predicted_error=predicted_error,
        misread_as=misread_as,
        remedies=remedies,
        detail=detail or tuple(f"{label(one)}: {one.user.source}" for one in ones),
        order=order,
        fatal=level == "error",
    )


def parts_remedy(facts: Facts, kit: Toolkit, parts: tuple[str, ...]) -> Remedy:
    """How to bring parts of a toolkit to one release: by wheels where wheels laid it, else by its packages or another one."""
    if "wheels" in kit.found:
        wanted = toolkit_release(facts, kit) or f"{short(kit.version('nvcc'))}.*"
        return Remedy("install the parts in one release", (f'pip install "cuda-toolkit[{",".join(parts)}]=={wanted}"',))
    whole = next(
        (
            one.home
            for one in toolkits(facts)
            if one is not kit and not predict(one, cccl=True).fault and {"cublasLt.h", "curand.h"} <= set(one.headers)
        ),
        "",
    )
    if whole:
        return Remedy("let CUDA_HOME name a toolkit that is whole", (f"export CUDA_HOME={whole}",), safe=True)
    dashed = (kit.cudart or short(kit.version("nvcc"))).replace(".", "-")
    return Remedy(f"complete the toolkit at {kit.home} in its own release", (f"apt-get install cuda-toolkit-{dashed}",))


def machine(facts: Facts) -> Machine | None:
    """The machine's facts, None where they are unknown."""
    return facts.machine.value if isinstance(facts.machine, Known) else None


def interpreter(facts: Facts) -> Interpreter | None:
    """The interpreter, None where it is unknown."""
    return facts.python.value if isinstance(facts.python, Known) else None
