"""Products to compute capability, memory and class; and names as people and tools write them."""

from __future__ import annotations

import difflib
import itertools
import re
from functools import lru_cache

from bringup.errors import UsageError
from bringup.facts import Gpu, ProductClass
from bringup.gpu_products import GIB as GIB
from bringup.gpu_products import PRODUCTS as PRODUCTS
from bringup.gpu_products import Product as Product

_NOISE = re.compile(
    r"\b(?:nvidia|tesla|geforce|gpu|graphics|gpus|generation|edition|workstation|desktop|device|card|corporation|design|with)\b"
)
_FORM = re.compile(r"\b(?:\d+ ?g[bi]{0,2}|sxm\d?|ac|lc|pcie|hbm\de?|nvl|laptop|mobile|max q|q|server|sff|blackwell)\b")
_LAPTOP = re.compile(r"\b(?:mobile|notebook|max q)\b")
_MEMORY = re.compile(r"(?<![\w.])(\d{1,3}) ?gi?b\b")
_CAPABILITY = re.compile(r"(?:sm|compute)_?(\d{2,3})[af]?|(\d{1,2})\.(\d)[af]?")
# The x of "RTX 409" and of "Jetson TX1" is no "times": it stands behind a space, or between a name and its count without any.
_COUNT_BEHIND = re.compile(r"^(.*?\S)(?:\s+[x*×]\s*|(?<![rg]t)(?<! t)[x*×])(\d{1,3})$", re.I)
_OLDER = frozenset({(3, 5), (3, 7), (5, 0), (5, 2)})
"""Compute capabilities whose products the table leaves out: no release since CUDA 13 knows them."""
_COUNT_BEFORE = re.compile(r"^(\d{1,3})\s*[x*×]\s*(\S.*)$", re.I)


def match_product(name: str) -> Product | None:
    """The product that a name means, None where it is none that the table knows.

    Forgives case, punctuation, vendor words, memory sizes and form factors: ``NVIDIA RTX PRO 6000 Blackwell Workstation
    Edition``, ``rtx-pro-6000`` and ``Tesla T4`` all match. A name that fits several means the most common of them; see
    `others`.
    """
    words = _words(name)
    index = _index()
    for candidate in (words, _LAPTOP.sub("laptop", words), _squeeze(_FORM.sub(" ", words))):
        if candidate in index:
            return index[candidate]
    return None


def parse_gpu(text: str) -> Gpu:
    """A GPU from a name, an architecture (``sm_120``) or a compute capability (``12.0``), with a count (``x8``).

    Memory in the name (``A100-SXM4-40GB``) goes before the table's. Raises UsageError, with the nearest names, where the
    text means nothing that is known.
    """
    whole = match_product(text)  # first: "RTX 409" must not read as 409 times something
    name, count = (text.strip(), 1) if whole is not None else _count(text.strip())
    capability = _capability(name)
    if capability is not None:
        major, minor = capability
        return Gpu(f"sm_{major}{minor}", major, minor, count, product_class=_class_of(major, minor))
    product = whole or match_product(name)
    if product is None:
        raise UsageError(f"unknown GPU “{name}”; the nearest known: {', '.join(nearest(name))}")
    major, minor = product.pair
    memory = _memory_in(name, product) or product.memory
    return Gpu(product.name, major, minor, count, round(memory * GIB), product.product_class)


def others(text: str) -> tuple[str, ...]:
    """What else a name could have meant: other products, or other memory sizes of the same one. Empty where it is plain."""
    name = text.strip() if match_product(text) is not None else _count(text.strip())[0]
    product = match_product(name)
    if product is None or _words(name) == _words(product.name):
        same: tuple[str, ...] = ()
    else:
        same = tuple(alias for other, alias in _ambiguous() if other == _words(name) and alias != product.name)
    if product is None or _memory_in(name, product):
        return same
    return (*same, *(f"{product.name} with {size:g} GiB" for size in product.also))


def nearest(text: str) -> tuple[str, ...]:
    """The known products whose names come nearest to a text, best first; never empty."""
    index = _index()
    close = difflib.get_close_matches(_words(text), list(index), n=8, cutoff=0.3)
    names = tuple(dict.fromkeys(index[one].name for one in close))[:4]
    return names or ("H200", "GeForce RTX 4090", "RTX PRO 6000 Blackwell")


def _words(text: str) -> str:
    text = re.sub(r"\bmig\b.*", " ", text.lower())
    text = _squeeze(_NOISE.sub(" ", re.sub(r"[^a-z0-9.]+", " ", text)))
    text = re.sub(r"\brtx(?=pro)", "rtx ", text)
    text = re.sub(r"\b(gtx|rtx|pro|titan|quadro)(?=\d)", r"\1 ", text)
    return _squeeze(re.sub(r"(?<=\d{3})(ti|super|laptop|d)\b", r" \1", text))


def _squeeze(text: str) -> str:
    return " ".join(text.split())


def _shorter(words: str, product: Product) -> set[str]:
    """Ways to leave out parts of a name: the series in front, the generation behind."""
    found = {words}
    for front, behind in itertools.product(
        ("rtx ", "gtx ", "quadro ", "jetson agx ", "jetson "), (" blackwell", " ada")
    ):
        found |= {one.removeprefix(front) for one in found} | {one.removesuffix(behind) for one in found}
    # "6000" alone could be five products; only GeForce numbers are plain without their series.
    return {one for one in found if product.product_class == "geforce" or not one.split()[0].isdigit()}


@lru_cache(maxsize=1)
def _index() -> dict[str, Product]:
    """Every accepted spelling. Full names go before shortened ones, and earlier rows of the table before later ones."""
    found: dict[str, Product] = {}
    for product in PRODUCTS:
        for name in (product.name, *product.aliases):
            found.setdefault(_words(name), product)
    for product in PRODUCTS:
        for name in (product.name, *product.aliases):
            for short in _shorter(_words(name), product):
                found.setdefault(short, product)
    return found


@lru_cache(maxsize=1)
def _ambiguous() -> tuple[tuple[str, str], ...]:
    """(spelling, product) for every spelling that more than one product could claim."""
    claims: dict[str, list[str]] = {}
    for product in PRODUCTS:
        spellings = {short for name in (product.name, *product.aliases) for short in _shorter(_words(name), product)}
        for spelling in spellings:
            claims.setdefault(spelling, []).append(product.name)
    return tuple((spelling, name) for spelling, found in claims.items() if len(found) > 1 for name in found)


def _memory_in(text: str, product: Product) -> int:
    """GiB that the name itself says, 0 where it says none. GH200's number is its CPU's memory."""
    if product.name.startswith("GH200"):
        return 0
    mig = re.search(r"\bmig\b.*?(\d+)gb", text.lower())
    found = mig or _MEMORY.search(re.sub(r"[^a-z0-9.]+", " ", text.lower()))
    return int(found.group(1)) if found else 0


def _capability(name: str) -> tuple[int, int] | None:
    found = _CAPABILITY.fullmatch(name.lower().replace("-", "_"))
    if found is None:
        return None
    digits = found.group(1)
    pair = (int(digits[:-1]), int(digits[-1])) if digits else (int(found.group(2)), int(found.group(3)))
    known = sorted({product.pair for product in PRODUCTS} | _OLDER)
    # A capability newer than the table is taken as it is: the rules go by numbers. One within its range that no GPU has is a slip.
    if pair not in known and pair < known[-1]:
        listed = ", ".join(f"{major}.{minor}" for major, minor in known)
        raise UsageError(f"no known GPU has compute capability {pair[0]}.{pair[1]}; the known ones: {listed}")
    return pair


def _class_of(major: int, minor: int) -> ProductClass:
    """The class that all products of a compute capability share, "unknown" where they do not."""
    classes = {product.product_class for product in PRODUCTS if product.pair == (major, minor)}
    return classes.pop() if len(classes) == 1 else "unknown"


def _count(text: str) -> tuple[str, int]:
    behind, before = _COUNT_BEHIND.match(text), _COUNT_BEFORE.match(text)
    if before:
        number, name = before.group(1), before.group(2)
    elif behind:
        name, number = behind.group(1), behind.group(2)
    else:
        return text, 1
    if int(number) < 1:
        raise UsageError(f"“{text}” asks for {number} GPUs")
    return name, int(number)
