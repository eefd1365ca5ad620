"""What the rules about the machine share."""

from __future__ import annotations

from bringup.evaluate.toolchain import release
from bringup.facts import Facts, Gpu, Known
from bringup.findings import Finding, Premise, Remedy, Rule, Severity, Stage
from bringup.machine import DriverFile, Machine, PciGpu, SmiGpu


def known_machine(facts: Facts) -> Machine:
    """The machine's facts; all of its fields unknown where nothing was looked at."""
    return facts.machine.value if isinstance(facts.machine, Known) else Machine()


def driver_library(machine: Machine, soname: str) -> DriverFile | None:
    """The file that the loader meets first for a soname of the driver, None where there is none or it is unknown."""
    files = machine.driver_files.value if isinstance(machine.driver_files, Known) else ()
    return next((one for one in files if one.soname == soname), None)


def module_release(machine: Machine) -> str:
    """The release of the loaded kernel module, '' where none is loaded or it is unknown."""
    return machine.module.value.release if isinstance(machine.module, Known) else ""


def module_source(machine: Machine) -> str:
    """Where the module's release was read."""
    return machine.module.source if isinstance(machine.module, Known) else ""


def smi(machine: Machine) -> tuple[SmiGpu, ...]:
    """What nvidia-smi lists, nothing where it does not answer."""
    return machine.smi.value if isinstance(machine.smi, Known) else ()


def pci(machine: Machine) -> tuple[PciGpu, ...]:
    """NVIDIA's functions on the PCI bus."""
    return machine.pci.value if isinstance(machine.pci, Known) else ()


def log(machine: Machine) -> tuple[str, ...]:
    """Lines of the kernel log."""
    return machine.kernel_log.value if isinstance(machine.kernel_log, Known) else ()


def devices(machine: Machine) -> tuple[str, ...]:
    """NVIDIA's device nodes."""
    return machine.devices.value if isinstance(machine.devices, Known) else ()


def has_gpu(machine: Machine) -> bool:
    """Whether this very machine shows a GPU, apart from what options say of another one."""
    return bool(smi(machine) or any(one.is_gpu for one in pci(machine)) or "/dev/nvidia0" in devices(machine))


def gpu_count(facts: Facts) -> int:
    """How many GPUs the stack shall run on, 0 where they are unknown."""
    return sum(gpu.count for gpu in gpu_list(facts))


def gpu_list(facts: Facts) -> tuple[Gpu, ...]:
    """The GPUs, none where they are unknown."""
    return facts.gpus.value if isinstance(facts.gpus, Known) else ()


def newer(left: str, right: str) -> bool:
    """Whether a driver release is newer than another one: 580.95.05 > 570.195.03."""
    return numbers(left) > numbers(right)


def numbers(version: str) -> tuple[int, ...]:
    """``580.95.05`` as (580, 95, 5)."""
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def cuda_at_least(driver_cuda: str, wanted: str) -> bool:
    """Whether a driver's CUDA version satisfies one that is asked for."""
    return release(driver_cuda) >= release(wanted)


def host_finding(
    rule: Rule,
    subject: str,
    because: tuple[Premise, ...],
    therefore: str,
    predicted_error: str = "",
    remedies: tuple[Remedy, ...] = (),
    severity: Severity = "error",
    order: int = 50,
    misread_as: str = "",
    hints: tuple[str, ...] = (),
    detail: tuple[str, ...] = (),
    stage: Stage | None = None,
) -> Finding:
    """A finding about the machine; an error of these ends a start."""
    return Finding(
        rule=rule.code,
        kind=rule.kind,
        severity=severity,
        stage=stage or rule.stage,
        subject=subject,
        because=because,
        therefore=therefore,
        predicted_error=predicted_error,
        misread_as=misread_as,
        hints=hints,
        remedies=remedies,
        detail=detail,
        order=order,
        fatal=severity == "error",
    )
