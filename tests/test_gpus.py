"""GPU names as people and nvidia-smi write them."""

from __future__ import annotations

import pytest

from bringup.errors import UsageError
from bringup.gpu_products import PRODUCTS, SERIES
from bringup.gpus import GIB, match_product, nearest, others, parse_gpu


@pytest.mark.parametrize(
    ("text", "name", "capability", "count", "gib"),
    [
        ("rtx-pro-6000", "RTX PRO 6000 Blackwell", "12.0", 1, 96),
        ("RTX PRO 6000 Blackwell", "RTX PRO 6000 Blackwell", "12.0", 1, 96),
        ("rtxpro6000", "RTX PRO 6000 Blackwell", "12.0", 1, 96),
        ("RTX PRO 6000 x 8", "RTX PRO 6000 Blackwell", "12.0", 8, 96),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "RTX PRO 6000 Blackwell", "12.0", 1, 96),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "RTX PRO 6000 Blackwell", "12.0", 1, 96),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX PRO 6000 Blackwell", "12.0", 1, 96),
        ("NVIDIA RTX PRO 5000 Blackwell Generation Laptop GPU", "RTX PRO 5000 Blackwell Laptop", "12.0", 1, 24),
        ("5090", "GeForce RTX 5090", "12.0", 1, 32),
        ("NVIDIA GeForce RTX 5090 Laptop GPU", "GeForce RTX 5090 Laptop", "12.0", 1, 24),
        ("rtx4090", "GeForce RTX 4090", "8.9", 1, 24),
        ("RTX 4060 Ti 16GB x2", "GeForce RTX 4060 Ti", "8.9", 2, 16),
        ("GeForce RTX 3070 with Max-Q Design", "GeForce RTX 3070", "8.6", 1, 8),
        ("gtx1080ti", "GeForce GTX 1080 Ti", "6.1", 1, 11),
        ("H200", "H200", "9.0", 1, 141),
        ("h100x8", "H100", "9.0", 8, 80),
        ("8x H200", "H200", "9.0", 8, 141),
        ("B200*4", "B200", "10.0", 4, 180),
        ("NVIDIA H100 80GB HBM3", "H100", "9.0", 1, 80),
        ("NVIDIA A100-SXM4-40GB", "A100", "8.0", 1, 40),
        ("NVIDIA A100-SXM4-80GB MIG 1g.10gb", "A100", "8.0", 1, 10),
        ("Tesla V100-SXM2-32GB", "Tesla V100", "7.0", 1, 32),
        ("NVIDIA GH200 480GB", "GH200", "9.0", 1, 96),
        ("Tesla T4", "Tesla T4", "7.5", 1, 16),
        ("NVIDIA A10G", "A10", "8.6", 1, 24),
        ("NVIDIA B300 SXM6 AC", "B300", "10.3", 1, 288),
        ("gb10", "GB10", "12.1", 1, 128),
        ("dgx-spark", "GB10", "12.1", 1, 128),
        ("NVIDIA Thor", "Jetson AGX Thor", "11.0", 1, 128),
        ("Orin (nvgpu)", "Jetson AGX Orin", "8.7", 1, 64),
        ("Quadro RTX 6000", "Quadro RTX 6000", "7.5", 1, 24),
        ("rubin", "Rubin", "10.7", 1, 288),
        ("sm_121", "sm_121", "12.1", 1, 0),
        ("sm_120a", "sm_120", "12.0", 1, 0),
        ("12.0 x4", "sm_120", "12.0", 4, 0),
        ("compute_90", "sm_90", "9.0", 1, 0),
        ("sm_52", "sm_52", "5.2", 1, 0),
        ("sm_130", "sm_130", "13.0", 1, 0),
    ],
)
def test_parse_gpu(text: str, name: str, capability: str, count: int, gib: int) -> None:
    gpu = parse_gpu(text)
    assert (gpu.name, gpu.compute_capability, gpu.count, gpu.memory) == (name, capability, count, gib * GIB)


@pytest.mark.parametrize(("text", "among"), [
    ("5091", "GeForce RTX 5090"), ("rtx 409", "GeForce RTX 4090"), ("rtx-pro-7000", "RTX PRO 6000 Blackwell"),
    ("hopper", "H200"), ("", "H200"),
])  # fmt: skip
def test_an_unknown_name_lists_the_nearest(text: str, among: str) -> None:
    assert match_product(text) is None
    with (
        pytest.raises(UsageError, match=f"nearest known: .*{among}")
        if among in nearest(text)
        else pytest.raises(UsageError, match="nearest known: ")
    ):
        parse_gpu(text)


def test_the_nearest_of_a_slip_holds_what_was_meant() -> None:
    assert "GeForce RTX 5090" in nearest("5091")
    assert "GeForce RTX 4090" in nearest("rtx 409")


@pytest.mark.parametrize("text", ["sm_12", "9.9", "compute_65"])
def test_a_capability_that_no_gpu_has(text: str) -> None:
    with pytest.raises(UsageError, match=r"no known GPU has compute capability .*8\.9, 9\.0"):
        parse_gpu(text)


def test_no_gpus_at_all() -> None:
    with pytest.raises(UsageError, match="asks for 0 GPUs"):
        parse_gpu("H200 x0")


def test_an_ambiguous_name_is_told() -> None:
    assert parse_gpu("rtx 6000").name == "RTX 6000 Ada"
    assert "Quadro RTX 6000" in others("rtx 6000")
    assert "A100 with 40 GiB" in others("A100 x8")
    assert others("NVIDIA A100-SXM4-80GB") == ()
    assert others("rtx-pro-6000") == ()


def test_the_table() -> None:
    names = [product.name for product in PRODUCTS]
    assert len(names) == len(set(names))
    for series in SERIES:
        assert series.source, series.name
        for product in series.products:
            assert (5, 0) <= product.pair <= (12, 1), product
            assert 2 <= product.memory <= 288, product
            assert match_product(product.name) is product
            assert match_product(f"NVIDIA {product.name}".upper()) is product
            for alias in product.aliases:
                assert match_product(alias) is product, alias


def test_every_product_keeps_its_count() -> None:
    for product in PRODUCTS:
        for text in (f"{product.name} x8", f"8x {product.name}", f"{product.name}*8"):
            gpu = parse_gpu(text)
            assert (gpu.name, gpu.count) == (product.name, 8), text
