"""Names that torch exports, and how to tell a name of torch from any other."""

from __future__ import annotations

from functools import lru_cache

from bringup.evaluate.symbols import exports_of, family
from bringup.facts import Facts, Known

TORCH_FAMILIES = frozenset({"c10", "at", "torch", "caffe2", "aoti", "c10d"})
"""Namespaces and C prefixes under which torch's own libraries export."""

_NEW = "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
_OLD = "Ss"


def is_torch_symbol(symbol: str) -> bool:
    """Whether a name belongs to torch."""
    return family(symbol) in TORCH_FAMILIES


@lru_cache(maxsize=8)
def torch_exports(facts: Facts) -> frozenset[str]:
    """Everything that the installed torch's libraries export. Remembered by identity of the facts."""
    if not isinstance(facts.libraries, Known):
        return frozenset()
    return frozenset().union(*(exports_of(one).plain for one in facts.libraries.value if one.owner == "torch"))


def other_string_abi(symbol: str) -> frozenset[str]:
    """The spellings that a name has under the other C++ string ABI; empty where it takes no string.

    Mangling abbreviates what was said before (``S1_``), and the two spellings hold different numbers of parts, so that the
    abbreviations after a string differ, too: only names with a single string at the end are certain, and they suffice.
    """
    if symbol.endswith(_NEW):
        return frozenset({symbol.removesuffix(_NEW) + _OLD})
    if symbol.endswith("R" + "K" + _OLD) or symbol.endswith(_OLD):
        return frozenset({symbol.removesuffix(_OLD) + _NEW})
    return frozenset()
