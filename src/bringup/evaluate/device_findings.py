"""A device-code gap as a finding: the common words of the rules about device code."""

from __future__ import annotations

from bringup.evaluate.coverage import architectures
from bringup.evaluate.device import DeviceGap
from bringup.evaluate.drivers import PTX_ISA, branch_for, newest_ptx_isa, version_pair
from bringup.evaluate.faults import install, owner_label
from bringup.facts import Facts, Known, distribution
from bringup.findings import Finding, Premise, Remedy, Rule

NO_KERNEL = "CUDA error: no kernel image is available for execution on the device"
UNSUPPORTED_PTX = "CUDA error: the provided PTX was compiled with an unsupported toolchain."

_LAST_WITH_OLD_ARCHITECTURES = "cu126"
"""The newest CUDA variant of torch that still holds code for compute capability 5.0 to 7.0. Source: pytorch/pytorch#172352."""


def device_finding(rule: Rule, facts: Facts, gap: DeviceGap, message: str) -> Finding:
    """The finding for one library on one GPU."""
    library, gpu = gap.library, gap.gpu
    runs_not = f"nothing in {library.path} runs on {gpu.name}"
    matters = gap.severity != "info"
    return Finding(
        rule=rule.code,
        kind=rule.kind,
        severity=gap.severity,
        stage=rule.stage,
        subject=library.path,
        because=(
            Premise(
                f"{owner_label(facts, library)} holds {architectures(library.device_code)} in {library.path}",
                library.source,
            ),
            _reason(facts, gap),
            Premise(gap.why, gap.source),
        ),
        therefore=runs_not if matters else f"{runs_not}, which matters only where it is used",
        predicted_error=message if matters else "",
        remedies=_remedies(facts, gap) if matters else (),
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
        known = f" up to ISA {limit[0]}.{limit[1]}" if limit is not None else ""
        return Premise(
            f"{capability}, for which there is only PTX of ISA {_needed_isa(gap)}, and driver {facts.driver.value.version} "
            f"takes PTX{known}",
            facts.driver.source,
        )
    return Premise(f"{capability}, for which none of these can run", source)


def _needed_isa(gap: DeviceGap) -> str:
    """The ISA of the PTX that would have run on the GPU, had the driver been newer."""
    return gap.coverage.code.ptx_isa if gap.coverage.code is not None else ""


def _remedies(facts: Facts, gap: DeviceGap) -> tuple[Remedy, ...]:
    library, gpu = gap.library, gap.gpu
    owner = library.owner or "it"
    target = f"sm_{gpu.major}{gpu.minor}"
    if gap.kind == "ptx_too_new":
        isa = _needed_isa(gap)
        cuda = next(
            (cuda for cuda, newest in reversed(PTX_ISA) if isa and version_pair(newest) >= version_pair(isa)), ""
        )
        branch = branch_for(cuda) if cuda else None
        wanted = f"driver {branch.major} or later" if branch is not None else f"a driver that takes PTX ISA {isa}"
        return (
            Remedy(f"install {wanted}, which implements CUDA {cuda}" if cuda else f"install {wanted}"),
            Remedy(f"install {owner} with SASS for {target}", _newer(facts, gap)),
        )
    if gap.kind == "too_old" and owner == "torch":
        command = install(facts, f"--reinstall-package torch --torch-backend {_LAST_WITH_OLD_ARCHITECTURES} torch")
        return (
            Remedy(
                "install torch for CUDA 12.6, the last variant with code for compute capability 5.0 to 7.0", (command,)
            ),
        )
    build = Remedy(f"build {owner} for {target}, where its sources support that", _build(facts, gap))
    if gap.kind == "too_old":
        return (
            Remedy(f"take an older release of {owner}, where one holds code for {target}", _older(facts, gap)),
            build,
        )
    return (Remedy(f"install a release of {owner} with code for {target}", _newer(facts, gap)), build)


def _newer(facts: Facts, gap: DeviceGap) -> tuple[str, ...]:
    return (install(facts, f"--upgrade {gap.library.owner}"),) if gap.library.owner else ()


def _older(facts: Facts, gap: DeviceGap) -> tuple[str, ...]:
    found = distribution(facts, gap.library.owner) if gap.library.owner else None
    return (install(facts, f"'{found.name}<{found.version}'"),) if found is not None else ()


def _build(facts: Facts, gap: DeviceGap) -> tuple[str, ...]:
    found = distribution(facts, gap.library.owner) if gap.library.owner else None
    if found is None or found.name.startswith(("nvidia-", "torch")):
        return ()
    from_source = f"--no-build-isolation --no-binary {found.name} --reinstall-package {found.name}"
    command = install(facts, f"{from_source} {found.name}=={found.version}")
    return (f"TORCH_CUDA_ARCH_LIST={gap.gpu.compute_capability} {command}",)
