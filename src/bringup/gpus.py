"""Products to compute capability, memory and class; and names as people write them."""

from __future__ import annotations

import difflib
import re
from functools import lru_cache
from typing import NamedTuple

from bringup.errors import UsageError
from bringup.facts import Gpu, ProductClass

GIB = 1024**3


class Product(NamedTuple):
    """A GPU product. ``memory`` in GiB as marketed; ``aliases`` are further names, lower case."""

    name: str
    capability: str
    memory: int
    product_class: ProductClass
    aliases: tuple[str, ...] = ()


_CUDA_GPUS = "NVIDIA, CUDA GPU compute capability list, and the products' data sheets"

PRODUCTS: tuple[Product, ...] = (
    # Pascal
    Product("GeForce GTX 1050 Ti", "6.1", 4, "geforce"),
    Product("GeForce GTX 1060", "6.1", 6, "geforce"),
    Product("GeForce GTX 1070", "6.1", 8, "geforce"),
    Product("GeForce GTX 1070 Ti", "6.1", 8, "geforce"),
    Product("GeForce GTX 1080", "6.1", 8, "geforce"),
    Product("GeForce GTX 1080 Ti", "6.1", 11, "geforce"),
    Product("TITAN Xp", "6.1", 12, "geforce"),
    Product("Tesla P4", "6.1", 8, "datacenter"),
    Product("Tesla P40", "6.1", 24, "datacenter"),
    Product("Tesla P100", "6.0", 16, "datacenter"),
    # Volta
    Product("Tesla V100", "7.0", 32, "datacenter", ("v100-sxm2", "v100-pcie", "v100s")),
    Product("TITAN V", "7.0", 12, "geforce"),
    # Turing
    Product("GeForce GTX 1650", "7.5", 4, "geforce"),
    Product("GeForce GTX 1660", "7.5", 6, "geforce", ("gtx 1660 ti", "gtx 1660 super")),
    Product("GeForce RTX 2060", "7.5", 6, "geforce", ("rtx 2060 super",)),
    Product("GeForce RTX 2070", "7.5", 8, "geforce", ("rtx 2070 super",)),
    Product("GeForce RTX 2080", "7.5", 8, "geforce", ("rtx 2080 super",)),
    Product("GeForce RTX 2080 Ti", "7.5", 11, "geforce"),
    Product("TITAN RTX", "7.5", 24, "geforce"),
    Product("Quadro RTX 4000", "7.5", 8, "rtx-pro"),
    Product("Quadro RTX 5000", "7.5", 16, "rtx-pro"),
    Product("Quadro RTX 6000", "7.5", 24, "rtx-pro"),
    Product("Quadro RTX 8000", "7.5", 48, "rtx-pro"),
    Product("Tesla T4", "7.5", 16, "datacenter", ("t4g",)),
    # Ampere
    Product("A100", "8.0", 80, "datacenter", ("a100-sxm4-80gb", "a100-pcie-80gb", "a100-80gb", "a800")),
    Product("A100 40GB", "8.0", 40, "datacenter", ("a100-sxm4-40gb", "a100-pcie-40gb")),
    Product("A30", "8.0", 24, "datacenter"),
    Product("A2", "8.6", 16, "datacenter"),
    Product("A10", "8.6", 24, "datacenter", ("a10g", "a10m")),
    Product("A16", "8.6", 16, "datacenter"),
    Product("A40", "8.6", 48, "datacenter"),
    Product("GeForce RTX 3050", "8.6", 8, "geforce"),
    Product("GeForce RTX 3060", "8.6", 12, "geforce"),
    Product("GeForce RTX 3060 Ti", "8.6", 8, "geforce"),
    Product("GeForce RTX 3070", "8.6", 8, "geforce", ("rtx 3070 ti",)),
    Product("GeForce RTX 3080", "8.6", 10, "geforce"),
    Product("GeForce RTX 3080 Ti", "8.6", 12, "geforce"),
    Product("GeForce RTX 3090", "8.6", 24, "geforce", ("rtx 3090 ti",)),
    Product("RTX A2000", "8.6", 12, "rtx-pro"),
    Product("RTX A4000", "8.6", 16, "rtx-pro"),
    Product("RTX A4500", "8.6", 20, "rtx-pro"),
    Product("RTX A5000", "8.6", 24, "rtx-pro", ("rtx a5500",)),
    Product("RTX A6000", "8.6", 48, "rtx-pro"),
    # Ada
    Product("GeForce RTX 4050", "8.9", 6, "geforce"),
    Product("GeForce RTX 4060", "8.9", 8, "geforce"),
    Product("GeForce RTX 4060 Ti", "8.9", 16, "geforce"),
    Product("GeForce RTX 4070", "8.9", 12, "geforce", ("rtx 4070 super", "rtx 4070 ti")),
    Product("GeForce RTX 4070 Ti SUPER", "8.9", 16, "geforce"),
    Product("GeForce RTX 4080", "8.9", 16, "geforce", ("rtx 4080 super",)),
    Product("GeForce RTX 4090", "8.9", 24, "geforce", ("rtx 4090 d",)),
    Product("RTX 2000 Ada", "8.9", 16, "rtx-pro"),
    Product("RTX 4000 Ada", "8.9", 20, "rtx-pro"),
    Product("RTX 4500 Ada", "8.9", 24, "rtx-pro"),
    Product("RTX 5000 Ada", "8.9", 32, "rtx-pro"),
    Product("RTX 6000 Ada", "8.9", 48, "rtx-pro", ("rtx 6000 ada generation",)),
    Product("L4", "8.9", 24, "datacenter"),
    Product("L20", "8.9", 48, "datacenter"),
    Product("L40", "8.9", 48, "datacenter"),
    Product("L40S", "8.9", 48, "datacenter"),
    # Hopper
    Product("H100", "9.0", 80, "datacenter", ("h100 80gb hbm3", "h100-sxm5", "h100 pcie", "h800")),
    Product("H100 NVL", "9.0", 94, "datacenter"),
    Product("H20", "9.0", 96, "datacenter"),
    Product("H200", "9.0", 141, "datacenter", ("h200 nvl",)),
    Product("GH200", "9.0", 96, "datacenter", ("gh200 480gb", "grace hopper")),
    # Blackwell, data center
    Product("B100", "10.0", 192, "datacenter"),
    Product("B200", "10.0", 180, "datacenter"),
    Product("GB200", "10.0", 186, "datacenter"),
    Product("B300", "10.3", 288, "datacenter", ("blackwell ultra",)),
    Product("GB300", "10.3", 288, "datacenter"),
    # Blackwell, desktop and workstation
    Product("GeForce RTX 5050", "12.0", 8, "geforce"),
    Product("GeForce RTX 5060", "12.0", 8, "geforce"),
    Product("GeForce RTX 5060 Ti", "12.0", 16, "geforce"),
    Product("GeForce RTX 5070", "12.0", 12, "geforce"),
    Product("GeForce RTX 5070 Ti", "12.0", 16, "geforce"),
    Product("GeForce RTX 5080", "12.0", 16, "geforce"),
    Product("GeForce RTX 5090", "12.0", 32, "geforce", ("rtx 5090 d",)),
    Product("GeForce RTX 5090 Laptop", "12.0", 24, "geforce"),
    Product("RTX PRO 2000 Blackwell", "12.0", 16, "rtx-pro"),
    Product("RTX PRO 4000 Blackwell", "12.0", 24, "rtx-pro"),
    Product("RTX PRO 4500 Blackwell", "12.0", 32, "rtx-pro"),
    Product("RTX PRO 5000 Blackwell", "12.0", 48, "rtx-pro"),
    Product(
        "RTX PRO 6000 Blackwell",
        "12.0",
        96,
        "rtx-pro",
        (
            "rtx pro 6000 blackwell workstation edition",
            "rtx pro 6000 blackwell max-q workstation edition",
            "rtx pro 6000 blackwell server edition",
            "rtx 6000 blackwell",
            "rtx 6000 pro",
        ),
    ),
    # One package with its CPU
    Product("GB10", "12.1", 128, "gb10", ("dgx spark", "spark")),
    Product("Jetson Nano", "5.3", 4, "jetson"),
    Product("Jetson AGX Xavier", "7.2", 32, "jetson", ("xavier", "xavier nx")),
    Product("Jetson AGX Orin", "8.7", 64, "jetson", ("orin", "orin nx", "orin nano")),
    Product("Jetson AGX Thor", "11.0", 128, "jetson", ("thor", "jetson thor", "t5000")),
    # As published before its release: sm_107 is what CUDA 13.3's compilers know
    Product("Rubin", "10.7", 288, "datacenter", ("vr200", "r100", "vera rubin", "r200")),
)
"""Source of all rows: see `_CUDA_GPUS`; Rubin's from the architectures that CUDA 13.3's compilers list."""

_NOISE = re.compile(
    r"\b(?:nvidia|tesla|geforce|quadro|gpu|graphics|gpus|generation|edition|workstation|desktop|device|card|corporation)\b"
)
_CAPABILITY = re.compile(r"(?:sm|compute)_?(\d{2,3})[af]?|(\d{1,2})\.(\d)")
_COUNT_BEHIND = re.compile(r"^(.*?\S)\s*(?:[x*×])\s*(\d{1,3})$", re.I)
_COUNT_BEFORE = re.compile(r"^(\d{1,3})\s*[x*×]\s*(\S.*)$", re.I)


def _words(text: str) -> str:
    text = re.sub(r"[^a-z0-9.]+", " ", text.lower())
    text = _NOISE.sub(" ", text)
    text = re.sub(r"\b(gtx|rtx|pro|titan)(?=\d)", r"\1 ", text)
    return " ".join(text.split())


@lru_cache(maxsize=1)
def _index() -> dict[str, Product]:
    found: dict[str, Product] = {}
    for product in PRODUCTS:
        for name in (product.name, *product.aliases):
            words = _words(name)
            found.setdefault(words, product)
            for short in (
                words.removeprefix("rtx ").removeprefix("gtx "),
                words.removesuffix(" blackwell"),
                words.removesuffix(" ada"),
                words.removeprefix("jetson agx ").removeprefix("jetson "),
            ):
                # "6000" alone could be three products; only GeForce numbers are unambiguous without their series.
                if not (short.isdigit() and product.product_class != "geforce"):
                    found.setdefault(short, product)
    return found


def match_product(text: str) -> Product | None:
    """The product that a name means, None where it is none that the table knows.

    Forgives case, punctuation, vendor words, memory sizes and form factors: ``NVIDIA RTX PRO 6000 Blackwell Workstation
    Edition``, ``rtx-pro-6000`` and ``Tesla T4`` all match.
    """
    words = _words(text)
    index = _index()
    if words in index:
        return index[words]
    trimmed = re.sub(
        r"\b(?:\d+ ?g[bi]b?|sxm\d?|ac|lc|pcie|hbm\de?|nvl|laptop|mobile|max q|max|q|server|blackwell)\b", " ", words
    )
    trimmed = " ".join(trimmed.split())
    return index.get(trimmed)


def parse_gpu(text: str) -> Gpu:
    """A GPU from a name, an architecture (``sm_120``) or a compute capability (``12.0``), with a count (``x8``).

    Raises UsageError, with the nearest names, where it means nothing that is known.
    """
    whole = match_product(text)  # first: "RTX 409" must not read as 409 times something
    name, count = (text.strip(), 1) if whole is not None else _count(text.strip())
    capability = _CAPABILITY.fullmatch(name.lower().replace("-", "_"))
    if capability:
        if capability.group(1):
            major, minor = int(capability.group(1)[:-1]), int(capability.group(1)[-1])
        else:
            major, minor = int(capability.group(2)), int(capability.group(3))
        return Gpu(f"sm_{major}{minor}", major, minor, count)
    product = whole or match_product(name)
    if product is None:
        raise UsageError(f"unknown GPU “{name}”; the nearest known: {', '.join(nearest(name))}")
    major, _, minor = product.capability.partition(".")
    return Gpu(
        name=product.name,
        major=int(major),
        minor=int(minor),
        count=count,
        memory=product.memory * GIB,
        product_class=product.product_class,
    )


def nearest(text: str) -> list[str]:
    """The known products whose names come nearest to a text."""
    index = _index()
    close = difflib.get_close_matches(_words(text), list(index), n=8, cutoff=0.3)
    return list(dict.fromkeys(index[one].name for one in close))[:4] or [
        "H200",
        "GeForce RTX 4090",
        "RTX PRO 6000 Blackwell",
    ]


def _count(text: str) -> tuple[str, int]:
    behind, before = _COUNT_BEHIND.match(text), _COUNT_BEFORE.match(text)
    if behind:
        name, number = behind.group(1), behind.group(2)
    elif before:
        number, name = before.group(1), before.group(2)
    else:
        return text, 1
    if int(number) < 1:
        raise UsageError(f"“{text}” asks for {number} GPUs")
    return name, int(number)
