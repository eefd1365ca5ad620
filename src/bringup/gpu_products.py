"""NVIDIA's products with compute capability, memory and class: a table, and nothing else."""

from __future__ import annotations

from typing import NamedTuple

from bringup.facts import ProductClass

GIB = 1024**3


class Product(NamedTuple):
    """A GPU product. ``memory`` in GiB as marketed, ``also`` are further sizes under the same name.

    ``aliases`` are further names, lower case, some of them of products that differ in nothing that matters here.
    """

    name: str
    capability: str
    memory: float
    product_class: ProductClass
    aliases: tuple[str, ...] = ()
    also: tuple[float, ...] = ()

    @property
    def pair(self) -> tuple[int, int]:
        """The compute capability as numbers: (12, 0)."""
        major, _, minor = self.capability.partition(".")
        return int(major), int(minor)


class Series(NamedTuple):
    """Products of one series with the place that their numbers come from."""

    name: str
    source: str
    products: tuple[Product, ...]


_LEGACY = "NVIDIA, Legacy CUDA GPU Compute Capability, and the products' specification pages"
_CURRENT = "NVIDIA, CUDA GPU Compute Capability, and the products' specification pages"

SERIES: tuple[Series, ...] = (
    Series("GeForce 10", _LEGACY, (
        Product("GeForce GTX 1050", "6.1", 2, "geforce"),
        Product("GeForce GTX 1050 Ti", "6.1", 4, "geforce"),
        Product("GeForce GTX 1060", "6.1", 6, "geforce", also=(3,)),
        Product("GeForce GTX 1070", "6.1", 8, "geforce"),
        Product("GeForce GTX 1070 Ti", "6.1", 8, "geforce"),
        Product("GeForce GTX 1080", "6.1", 8, "geforce"),
        Product("GeForce GTX 1080 Ti", "6.1", 11, "geforce"),
        Product("TITAN Xp", "6.1", 12, "geforce", ("titan x pascal",)),
    )),
    Series("Pascal, professional", _LEGACY, (
        Product("Quadro P4000", "6.1", 8, "rtx-pro"),
        Product("Quadro P5000", "6.1", 16, "rtx-pro"),
        Product("Quadro P6000", "6.1", 24, "rtx-pro"),
        Product("Tesla P4", "6.1", 8, "datacenter"),
        Product("Tesla P40", "6.1", 24, "datacenter"),
        Product("Tesla P100", "6.0", 16, "datacenter", also=(12,)),
        Product("Quadro GP100", "6.0", 16, "rtx-pro"),
    )),
    Series("Volta", _LEGACY, (
        Product("Tesla V100", "7.0", 16, "datacenter", ("v100s", "v100-dgxs", "v100-fhhl"), also=(32,)),
        Product("Quadro GV100", "7.0", 32, "rtx-pro"),
        Product("TITAN V", "7.0", 12, "geforce"),
    )),
    Series("Turing", _CURRENT, (
        Product("GeForce GTX 1630", "7.5", 4, "geforce"),
        Product("GeForce GTX 1650", "7.5", 4, "geforce", ("gtx 1650 super", "gtx 1650 ti")),
        Product("GeForce GTX 1660", "7.5", 6, "geforce", ("gtx 1660 ti", "gtx 1660 super")),
        Product("GeForce RTX 2060", "7.5", 6, "geforce", also=(12,)),
        Product("GeForce RTX 2060 SUPER", "7.5", 8, "geforce"),
        Product("GeForce RTX 2070", "7.5", 8, "geforce", ("rtx 2070 super",)),
        Product("GeForce RTX 2080", "7.5", 8, "geforce", ("rtx 2080 super",)),
        Product("GeForce RTX 2080 Ti", "7.5", 11, "geforce"),
        Product("TITAN RTX", "7.5", 24, "geforce"),
        Product("T1000", "7.5", 4, "rtx-pro", ("quadro t1000",), also=(8,)),
        Product("Quadro RTX 4000", "7.5", 8, "rtx-pro"),
        Product("Quadro RTX 5000", "7.5", 16, "rtx-pro"),
        Product("Quadro RTX 6000", "7.5", 24, "rtx-pro"),
        Product("Quadro RTX 8000", "7.5", 48, "rtx-pro"),
        Product("Tesla T4", "7.5", 16, "datacenter", ("t4g",)),
    )),
    Series("Ampere, data center", _CURRENT, (
        Product("A100", "8.0", 80, "datacenter", ("a800", "a100x"), also=(40,)),
        Product("A30", "8.0", 24, "datacenter"),
        Product("A2", "8.6", 16, "datacenter"),
        Product("A10", "8.6", 24, "datacenter", ("a10g", "a10m")),
        Product("A16", "8.6", 16, "datacenter"),
        Product("A40", "8.6", 48, "datacenter"),
    )),
    Series("GeForce 30", _CURRENT, (
        Product("GeForce RTX 3050", "8.6", 8, "geforce", also=(6,)),
        Product("GeForce RTX 3050 Laptop", "8.6", 4, "geforce", ("rtx 3050 ti laptop",), also=(6,)),
        Product("GeForce RTX 3060", "8.6", 12, "geforce", also=(8,)),
        Product("GeForce RTX 3060 Laptop", "8.6", 6, "geforce"),
        Product("GeForce RTX 3060 Ti", "8.6", 8, "geforce"),
        Product("GeForce RTX 3070", "8.6", 8, "geforce", ("rtx 3070 ti", "rtx 3070 laptop", "rtx 3070 ti laptop")),
        Product("GeForce RTX 3080", "8.6", 10, "geforce", also=(12,)),
        Product("GeForce RTX 3080 Laptop", "8.6", 8, "geforce", also=(16,)),
        Product("GeForce RTX 3080 Ti", "8.6", 12, "geforce"),
        Product("GeForce RTX 3080 Ti Laptop", "8.6", 16, "geforce"),
        Product("GeForce RTX 3090", "8.6", 24, "geforce", ("rtx 3090 ti",)),
    )),
    Series("RTX A", _CURRENT, (
        Product("RTX A400", "8.6", 4, "rtx-pro"),
        Product("RTX A1000", "8.6", 8, "rtx-pro"),
        Product("RTX A2000", "8.6", 12, "rtx-pro", also=(6,)),
        Product("RTX A4000", "8.6", 16, "rtx-pro"),
        Product("RTX A4500", "8.6", 20, "rtx-pro"),
        Product("RTX A5000", "8.6", 24, "rtx-pro", ("rtx a5500",)),
        Product("RTX A6000", "8.6", 48, "rtx-pro"),
    )),
    Series("GeForce 40", _CURRENT, (
        Product("GeForce RTX 4050 Laptop", "8.9", 6, "geforce", ("rtx 4050",)),
        Product("GeForce RTX 4060", "8.9", 8, "geforce", ("rtx 4060 laptop",)),
        Product("GeForce RTX 4060 Ti", "8.9", 8, "geforce", also=(16,)),
        Product("GeForce RTX 4070", "8.9", 12, "geforce", ("rtx 4070 super", "rtx 4070 ti")),
        Product("GeForce RTX 4070 Laptop", "8.9", 8, "geforce"),
        Product("GeForce RTX 4070 Ti SUPER", "8.9", 16, "geforce"),
        Product("GeForce RTX 4080", "8.9", 16, "geforce", ("rtx 4080 super",)),
        Product("GeForce RTX 4080 Laptop", "8.9", 12, "geforce"),
        Product("GeForce RTX 4090", "8.9", 24, "geforce", ("rtx 4090 d",)),
        Product("GeForce RTX 4090 Laptop", "8.9", 16, "geforce"),
    )),
    Series("RTX Ada", _CURRENT, (
        Product("RTX 6000 Ada", "8.9", 48, "rtx-pro", ("rtx 6000",)),
        Product("RTX 5000 Ada", "8.9", 32, "rtx-pro", ("rtx 5000", "rtx 5880 ada"), also=(16,)),
        Product("RTX 4500 Ada", "8.9", 24, "rtx-pro"),
        Product("RTX 4000 Ada", "8.9", 20, "rtx-pro", ("rtx 4000", "rtx 4000 sff ada")),
        Product("RTX 3500 Ada", "8.9", 12, "rtx-pro"),
        Product("RTX 2000 Ada", "8.9", 16, "rtx-pro"),
        Product("L2", "8.9", 24, "datacenter"),
        Product("L4", "8.9", 24, "datacenter"),
        Product("L20", "8.9", 48, "datacenter"),
        Product("L40", "8.9", 48, "datacenter", ("l40g",)),
        Product("L40S", "8.9", 48, "datacenter"),
    )),
    Series("Hopper", _CURRENT, (
        Product("H100", "9.0", 80, "datacenter", ("h800",), also=(96, 64)),
        Product("H100 NVL", "9.0", 94, "datacenter"),
        Product("H20", "9.0", 96, "datacenter", ("h20 3e",), also=(141,)),
        Product("H200", "9.0", 141, "datacenter", ("h200 nvl",)),
        Product("GH200", "9.0", 96, "datacenter", ("gh200 480gb", "gh200 144g hbm3e", "grace hopper"), also=(144,)),
    )),
    Series("Blackwell, data center", _CURRENT, (
        Product("B200", "10.0", 180, "datacenter", also=(192,)),
        Product("B100", "10.0", 192, "datacenter"),
        Product("GB200", "10.0", 186, "datacenter"),
        Product("B300", "10.3", 288, "datacenter", ("blackwell ultra",), also=(270,)),
        Product("GB300", "10.3", 288, "datacenter", also=(279,)),
    )),
    Series("GeForce 50", _CURRENT, (
        Product("GeForce RTX 5050", "12.0", 8, "geforce", ("rtx 5050 laptop",)),
        Product("GeForce RTX 5060", "12.0", 8, "geforce", ("rtx 5060 laptop",)),
        Product("GeForce RTX 5060 Ti", "12.0", 16, "geforce", also=(8,)),
        Product("GeForce RTX 5070", "12.0", 12, "geforce"),
        Product("GeForce RTX 5070 Laptop", "12.0", 8, "geforce"),
        Product("GeForce RTX 5070 Ti", "12.0", 16, "geforce"),
        Product("GeForce RTX 5070 Ti Laptop", "12.0", 12, "geforce"),
        Product("GeForce RTX 5080", "12.0", 16, "geforce", ("rtx 5080 laptop",)),
        Product("GeForce RTX 5090", "12.0", 32, "geforce", ("rtx 5090 d",), also=(24,)),
        Product("GeForce RTX 5090 Laptop", "12.0", 24, "geforce"),
    )),
    Series("RTX PRO Blackwell", _CURRENT, (
        Product("RTX PRO 500 Blackwell Laptop", "12.0", 6, "rtx-pro", ("rtx pro 500",)),
        Product("RTX PRO 1000 Blackwell Laptop", "12.0", 8, "rtx-pro", ("rtx pro 1000",)),
        Product("RTX PRO 2000 Blackwell", "12.0", 16, "rtx-pro"),
        Product("RTX PRO 2000 Blackwell Laptop", "12.0", 8, "rtx-pro"),
        Product("RTX PRO 3000 Blackwell Laptop", "12.0", 12, "rtx-pro", ("rtx pro 3000",)),
        Product("RTX PRO 4000 Blackwell", "12.0", 24, "rtx-pro", ("rtx pro 4000 blackwell sff",)),
        Product("RTX PRO 4000 Blackwell Laptop", "12.0", 16, "rtx-pro"),
        Product("RTX PRO 4500 Blackwell", "12.0", 32, "rtx-pro", ("rtx pro 4500 blackwell server",)),
        Product("RTX PRO 5000 Blackwell", "12.0", 48, "rtx-pro", also=(72,)),
        Product("RTX PRO 5000 Blackwell Laptop", "12.0", 24, "rtx-pro"),
        Product("RTX PRO 6000 Blackwell", "12.0", 96, "rtx-pro", (
            "rtx pro 6000 blackwell workstation edition", "rtx pro 6000 blackwell max-q workstation edition",
            "rtx pro 6000 blackwell server edition", "rtx 6000 blackwell", "rtx 6000 pro", "pro 6000",
        )),
    )),
    Series("Grace Blackwell, one package with its CPU", _CURRENT, (
        Product("GB10", "12.1", 128, "gb10", ("dgx spark", "spark", "grace blackwell gb10")),
    )),
    Series("Jetson", _CURRENT, (
        Product("Jetson Nano", "5.3", 4, "jetson", ("jetson tx1",), also=(2,)),
        Product("Jetson TX2", "6.2", 8, "jetson"),
        Product("Jetson AGX Xavier", "7.2", 32, "jetson", also=(64,)),
        Product("Jetson Xavier NX", "7.2", 8, "jetson", also=(16,)),
        Product("Jetson AGX Orin", "8.7", 64, "jetson", ("orin", "orin nvgpu"), also=(32,)),
        Product("Jetson Orin NX", "8.7", 16, "jetson", also=(8,)),
        Product("Jetson Orin Nano", "8.7", 8, "jetson", also=(4,)),
        Product("Jetson AGX Thor", "11.0", 128, "jetson", ("jetson thor", "jetson t5000", "t5000")),
        Product("Jetson T4000", "11.0", 64, "jetson"),
    )),
    Series(
        "Rubin",
        "ptxas of CUDA 13.5 knows sm_107 and puts it into the family of sm_100; product names and memory as announced, not settled",
        (Product("Rubin", "10.7", 288, "datacenter", ("vera rubin", "vr200", "vr nvl144", "r100", "r200")),),
    ),
)  # fmt: skip

PRODUCTS: tuple[Product, ...] = tuple(product for series in SERIES for product in series.products)
"""All rows, in the table's order: where a short name fits several, the first one is meant."""
