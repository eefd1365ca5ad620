"""Which device code runs where: DESIGN's table, row by row."""

from __future__ import annotations

import pytest

from bringup.evaluate.coverage import FAMILIES, TEGRA, architectures, verdict
from bringup.evaluate.drivers import (
    BRANCHES,
    PTX_ISA,
    branch_for,
    branch_of,
    driver_from,
    newest_ptx_isa,
    runs_runtime,
    version_pair,
)
from bringup.facts import DeviceCode, Driver
from bringup.gpu_products import PRODUCTS
from bringup.gpus import parse_gpu


def code(name: str, isa: str = "9.0") -> DeviceCode:
    kind, _, arch = name.partition("_")
    suffix = arch[-1] if arch[-1] in "af" else ""
    ptx = kind == "compute"
    return DeviceCode("ptx" if ptx else "sass", int(arch.rstrip("af")), suffix, isa if ptx else "")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "gpu", "kind"),
    [
        ("sm_120", "12.0", "native"),
        ("sm_86", "8.9", "same_major"),
        ("sm_80", "8.6", "same_major"),
        ("sm_100", "10.3", "same_major"),
        ("sm_120", "12.1", "same_major"),
        ("sm_89", "8.6", "none"),
        ("sm_90", "10.0", "none"),
        ("sm_100", "12.0", "none"),
        ("sm_121", "12.0", "none"),
        # Tegra parts run their own SASS alone, and theirs runs nowhere else.
        ("sm_87", "8.7", "native"),
        ("sm_80", "8.7", "none"),
        ("sm_86", "8.7", "none"),
        ("sm_87", "8.9", "none"),
        ("sm_70", "7.2", "none"),
        ("sm_72", "7.5", "none"),
        ("sm_50", "5.3", "none"),
        ("sm_110", "11.0", "native"),
        # Architecture-specific
        ("sm_90a", "9.0", "native"),
        ("sm_100a", "10.3", "none"),
        ("sm_120a", "12.0", "native"),
        ("sm_120a", "12.1", "none"),
        ("sm_121a", "12.0", "none"),
        # Families
        ("sm_100f", "10.0", "native"),
        ("sm_100f", "10.3", "family"),
        ("sm_100f", "10.7", "family"),
        ("sm_103f", "10.0", "none"),
        ("sm_100f", "11.0", "none"),
        ("sm_100f", "12.0", "none"),
        ("sm_120f", "12.0", "native"),
        ("sm_120f", "12.1", "family"),
        ("sm_121f", "12.0", "none"),
        # PTX, with a driver that takes ISA 9.0
        ("compute_52", "12.1", "ptx"),
        ("compute_90", "12.0", "ptx"),
        ("compute_80", "8.7", "ptx"),
        ("compute_120", "10.3", "none"),
        ("compute_90a", "10.0", "none"),
        ("compute_90a", "9.0", "ptx"),
        ("compute_100f", "10.3", "ptx"),
        ("compute_100f", "12.0", "none"),
    ],
)
def test_one_entry(name: str, gpu: str, kind: str) -> None:
    found = verdict((code(name),), parse_gpu(gpu), driver_from("580.95.05"))
    assert found.kind == kind
    assert found.runs is (kind != "none")


@pytest.mark.parametrize(
    ("isa", "driver", "kind"),
    [("9.0", "580.95.05", "ptx"), ("9.1", "580.95.05", "ptx_too_new"), ("8.8", "575.51.03", "ptx"), ("9.0", "575.51.03", "ptx_too_new"),
     ("9.1", "590.44.01", "ptx"), ("8.5", "560.35.03", "ptx"), ("8.10", "570.86", "ptx_too_new"), ("", "470.57", "ptx")],
)  # fmt: skip
def test_ptx_and_the_drivers_compiler(isa: str, driver: str, kind: str) -> None:
    assert verdict((code("compute_80", isa),), parse_gpu("12.0"), driver_from(driver)).kind == kind


def test_ptx_with_no_driver_known_is_neither_fine_nor_broken() -> None:
    found = verdict((code("compute_80"),), parse_gpu("12.0"), None)
    assert (found.kind, found.runs) == ("ptx_unknown_driver", None)


def test_ptx_with_a_driver_newer_than_the_table() -> None:
    assert verdict((code("compute_80", "9.9"),), parse_gpu("12.0"), Driver("640.10", "")).runs is None


def test_the_best_of_several_entries_is_told() -> None:
    entries = (code("compute_80", "9.9"), code("sm_80"), code("compute_90"), code("sm_120a"))
    driver = driver_from("580.95.05")
    found = verdict(entries, parse_gpu("12.0"), driver)
    assert (found.kind, found.code) == ("native", code("sm_120a"))
    found = verdict(entries, parse_gpu("12.1"), driver)
    assert (found.kind, found.code) == ("ptx", code("compute_90"))
    assert verdict((), parse_gpu("12.0"), driver).kind == "none"


def test_torch_2_9_1_runs_where_its_list_of_architectures_does_not_name_the_gpu() -> None:
    entries = tuple(code(name) for name in ["sm_70", "sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"])
    for gpu in ("8.9", "10.3", "12.1"):
        assert verdict(entries, parse_gpu(gpu), None).kind == "same_major"


def test_architectures() -> None:
    entries = tuple(code(name) for name in ["compute_120", "sm_120a", "sm_80", "sm_120", "sm_80"])
    assert architectures(entries) == "sm_80, sm_120, sm_120a, compute_120"


def test_tables() -> None:
    majors = [branch.major for branch in BRANCHES]
    assert majors == sorted(majors, reverse=True)
    cudas = [version_pair(branch.cuda) for branch in BRANCHES]
    assert cudas == sorted(cudas, reverse=True)
    isas = dict(PTX_ISA)
    assert {branch.cuda for branch in BRANCHES} <= set(isas)
    assert [version_pair(isa) for isa in isas.values()] == sorted(map(version_pair, isas.values()), reverse=True)
    pairs = {product.pair for product in PRODUCTS}
    assert {product.pair for product in PRODUCTS if product.product_class == "jetson"} == TEGRA
    assert all(family <= pairs for family in FAMILIES)
    assert len(set().union(*FAMILIES)) == sum(map(len, FAMILIES))


@pytest.mark.parametrize(
    ("version", "cuda"),
    [("580.95.05", "13.0"), ("575.57.08", "12.9"), ("570.133.20", "12.8"), ("560.35.03", "12.6"), ("550.54.15", "12.4"),
     ("535.183.01", "12.2"), ("525.60.13", "12.0"), ("595.10", "13.2"), ("610.43.02", "13.3"), ("615.71.09", "13.4"), ("585.1", "13.0"),
     ("640.1", ""), ("390.1", ""), ("unknown", "")],
)  # fmt: skip
def test_driver_from(version: str, cuda: str) -> None:
    assert driver_from(version).cuda == cuda
    assert driver_from(version, "13.9").cuda == "13.9"


def test_what_nvidia_smi_says_goes_before_the_table() -> None:
    assert newest_ptx_isa(Driver("570.1", "13.0")) == (9, 0)
    assert newest_ptx_isa(Driver("640.1", "13.5")) == (9, 5)
    assert newest_ptx_isa(Driver("640.1", "")) is None
    assert branch_of("580") is not None


def test_branch_for() -> None:
    found = branch_for("13.0")
    assert found is not None
    assert found.major == 580
    assert branch_for("99.0") is None


@pytest.mark.parametrize(
    ("driver", "runtime", "runs"),
    [("13.0", "13.0", True), ("13.0", "13.4", True), ("13.0", "12.8", True), ("12.0", "12.9", True), ("12.8", "13.0", False),
     ("11.4", "12.0", False), ("10.1", "10.2", False), ("10.2", "10.1", True)],
)  # fmt: skip
def test_minor_version_compatibility(driver: str, runtime: str, runs: bool) -> None:
    assert runs_runtime(driver, runtime) is runs
