"""A device-code gap as a finding: the common words of the rules about device code."""

from __future__ import annotations

from bringup.evaluate.coverage import architectures
from bringup.evaluate.device import DeviceGap
from bringup.evaluate.drivers import newest_ptx_isa
from bringup.evaluate.faults import other_release, owner_label
from bringup.facts import Facts, Known
from bringup.findings import Finding, Premise, Remedy, Rule


def device_finding(rule: Rule, facts: Facts, gap: DeviceGap, message: str) -> Finding:
    """The finding for one library on one GPU."""
    library, gpu = gap.library, gap.gpu
    because = [
        Premise(
            f"{owner_label(facts, library)} holds {architectures(library.device_code)} in {library.path}",
            library.source,
        ),
        _reason(facts, gap),
        Premise(gap.why, gap.source),
    ]
    runs_not = f"nothing in {library.path} runs on {gpu.name}"
    return Finding(
        rule=rule.code,
        kind=rule.kind,
        severity=gap.severity,
        stage=rule.stage,
        subject=library.path,
        because=tuple(because),
        therefore=runs_not if gap.severity != "info" else f"{runs_not}, which matters only where it is used",
        predicted_error=message if gap.severity != "info" else "",
        remedies=(
            Remedy(
                f"install a release of {library.owner or 'it'} with code for sm_{gpu.major}{gpu.minor}, or build it for that",
                other_release(facts, library),
            ),
        )
        if gap.severity != "info"
        else (),
        detail=tuple(f"{entry.name} x{entry.count}" for entry in library.device_code),
        order=50 if library.owner == "torch" else 60,
        fatal=gap.severity == "error",
    )


def _reason(facts: Facts, gap: DeviceGap) -> Premise:
    source = facts.gpus.source if isinstance(facts.gpus, Known) else ""
    capability = f"{gap.gpu.name} has compute capability {gap.gpu.compute_capability}"
    if gap.kind == "too_old":
        return Premise(f"{capability}, older than all of these", source)
    if gap.kind == "arch_specific":
        return Premise(f"{capability}, and these targets run only on their own architecture or family", source)
    if gap.kind == "ptx_too_new" and isinstance(facts.driver, Known):
        limit = newest_ptx_isa(facts.driver.value)
        newest = max((entry.ptx_isa for entry in gap.library.device_code if entry.ptx_isa), key=_number, default="")
        known = f"up to PTX ISA {limit[0]}.{limit[1]}" if limit is not None else ""
        return Premise(
            f"{capability}, for which there is only PTX of ISA {newest}, and driver {facts.driver.value.version} "
            f"takes PTX {known}",
            facts.driver.source,
        )
    return Premise(f"{capability}, for which none of these can run", source)


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
