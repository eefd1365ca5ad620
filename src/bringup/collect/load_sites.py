"""Where a package's own Python code opens a library: read from its source by `ast`, never by importing it.

A library that would not open is not yet an error: many are variants of which the package picks one, plugins that nobody
asked for, or modules that are imported inside of ``try``. What tells them apart is the code that opens them: does importing
the package reach that place, and does an except clause catch the failure.

Only files that mention a library are parsed, and from there the importers are followed backwards to the package's top.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from msgspec import Struct

from bringup.facts import LoadSite

How = Literal["import", "ctypes", "torch", "tvm_ffi", "text"]

_CATCHES = frozenset({"ImportError", "ModuleNotFoundError", "OSError", "Exception", "BaseException", "RuntimeError"})
_OPENERS: dict[str, How] = {
    "CDLL": "ctypes",
    "PyDLL": "ctypes",
    "LoadLibrary": "ctypes",
    "load_library": "torch",
    "load_module": "tvm_ffi",
    "dlopen": "ctypes",
}
_MAX_SOURCE = 4_000_000  # a generated module larger than this opens no library
_MAX_DEPTH = 12


class Wanted(Struct, frozen=True):
    """A library to look for: its path below the root, the dotted module that it would be imported as, name fragments."""

    path: str
    module: str
    fragments: tuple[str, ...]


def wanted(path: str) -> Wanted:
    """What code would call the library at ``path``: ``pkg/sub/_C.abi3.so`` is ``pkg.sub._C``, or the string ``_C``."""
    folder, _, name = path.rpartition("/")
    stem = name.split(".", 1)[0]
    bare = re.sub(r"[-_.]?(?:cu|cuda|rocm|xpu|sm|torch|core|ops)?\d+.*$", "", stem) or stem
    fragments = tuple(dict.fromkeys(one for one in (stem, bare) if len(one) >= 5 or one == stem))
    return Wanted(path, ".".join([*folder.split("/"), stem]) if folder else stem, fragments)


class _Place(Struct, frozen=True):
    line: int
    how: How
    function: str  # '' at module level
    guarded: bool


class Package:
    """The Python sources of one distribution: ``sources`` maps dotted module names to a function that reads the text."""

    def __init__(self, files: Mapping[str, Callable[[], bytes]]) -> None:
        self._read = files
        self._texts: dict[str, bytes] = {}
        self._trees: dict[str, ast.Module | None] = {}

    def text(self, module: str) -> bytes:
        """A module's source, empty where it cannot be read."""
        if module not in self._texts:
            try:
                data = self._read[module]()
            except OSError:
                data = b""
            self._texts[module] = data if len(data) <= _MAX_SOURCE else b""
        return self._texts[module]

    def tree(self, module: str) -> ast.Module | None:
        """A module's syntax tree, None where it does not parse (another Python's syntax, templates)."""
        if module not in self._trees:
            try:
                self._trees[module] = ast.parse(self.text(module))
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                self._trees[module] = None
        return self._trees[module]

    def mentioning(self, fragment: str) -> list[str]:
        """Modules whose source holds the fragment."""
        needle = fragment.encode()
        return [module for module in self._read if needle in self.text(module)]


def find_load_sites(package: Package, paths: Iterable[str], roots: frozenset[str]) -> tuple[LoadSite, ...]:
    """All places that open one of ``paths``. ``roots``: the distribution's own top-level names."""
    found: list[LoadSite] = []
    for path in paths:
        target = wanted(path)
        candidates = dict.fromkeys(module for fragment in target.fragments for module in package.mentioning(fragment))
        for module in candidates:
            tree = package.tree(module)
            for place in _places(tree, module, target) if tree is not None else ():
                found.append(_site(package, module, place, target, roots))
    return tuple(found)


def _site(package: Package, module: str, place: _Place, target: Wanted, roots: frozenset[str]) -> LoadSite:
    reached = _reach(package, module, place)
    chain, guarded, at_import = reached if reached is not None else ((), place.guarded, False)
    return LoadSite(
        opens=target.path,
        module=module.removesuffix(".__init__"),
        line=place.line,
        how=place.how,
        when="import" if at_import else "call",
        guarded=place.guarded or guarded,
        chain=tuple(one.removesuffix(".__init__") for one in chain),
        preloads=_preloads(package, chain or (module,), module, place.line, roots),
    )


def _places(tree: ast.Module, module: str, target: Wanted) -> list[_Place]:
    found: list[_Place] = []
    for node, function, guarded in _visit(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            if target.module in imported_modules(node, module):
                found.append(_Place(node.lineno, "import", function, guarded))
        elif isinstance(node, ast.Call):
            opener = _OPENERS.get(_called(node))
            if opener is not None and _mentions(node, target.fragments):
                found.append(_Place(node.lineno, opener, function, guarded))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 200:
            # A bare string names the library; the call that opens it may be anywhere.
            if any(fragment in node.value for fragment in target.fragments if len(fragment) >= 8):
                found.append(_Place(node.lineno, "text", function, guarded))
    sure = [place for place in found if place.how != "text"]
    return sure or found


def _visit(tree: ast.AST) -> list[tuple[ast.AST, str, bool]]:
    """Every node with the innermost function around it ('' for none) and whether an except clause would catch a failure."""
    order: list[tuple[ast.AST, str, bool]] = []
    stack: list[tuple[ast.AST, str, bool]] = [(tree, "", False)]
    while stack:
        node, function, guarded = stack.pop()
        order.append((node, function, guarded))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            stack += [(child, node.name, False) for child in ast.iter_child_nodes(node)]
        elif isinstance(node, ast.Lambda):
            stack += [(child, function or "<lambda>", guarded) for child in ast.iter_child_nodes(node)]
        elif isinstance(node, ast.Try):
            inside = guarded or any(_catches(handler) for handler in node.handlers)
            stack += [(child, function, inside) for child in node.body]
            stack += [(child, function, guarded) for child in (*node.handlers, *node.orelse, *node.finalbody)]
        elif isinstance(node, ast.With):
            suppressed = any("suppress" in ast.dump(item.context_expr) for item in node.items)
            stack += [(child, function, guarded or suppressed) for child in ast.iter_child_nodes(node)]
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            stack += [(child, function, guarded) for child in node.orelse]
        else:
            stack += [(child, function, guarded) for child in ast.iter_child_nodes(node)]
    return order


def _catches(handler: ast.ExceptHandler) -> bool:
    """Whether the clause catches a failed import and goes on: one that only raises again changes nothing but the words."""
    raises = any(isinstance(statement, ast.Raise) for statement in handler.body)
    if raises:
        return False
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or _name(kind) in _CATCHES for kind in kinds)


def _name(node: ast.AST | None) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


def _called(node: ast.Call) -> str:
    return _name(node.func)


def _mentions(node: ast.Call, fragments: tuple[str, ...]) -> bool:
    strings = [one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    return any(fragment in string for string in strings for fragment in fragments)


def imported_modules(node: ast.Import | ast.ImportFrom, module: str) -> set[str]:
    """Every dotted name that the statement may import as a module, relative ones resolved."""
    if isinstance(node, ast.Import):
        return {prefix for alias in node.names for prefix in _prefixes(alias.name)}
    base = node.module or ""
    if node.level:
        parts = module.removesuffix(".__init__").split(".")
        if not module.endswith(".__init__"):
            parts = parts[:-1]
        parts = parts[: len(parts) - (node.level - 1)] if node.level > 1 else parts
        base = ".".join([*parts, *([node.module] if node.module else [])])
    return {*_prefixes(base), *(f"{base}.{alias.name}" for alias in node.names)}


def _prefixes(dotted: str) -> list[str]:
    parts = dotted.split(".")
    return [".".join(parts[: end + 1]) for end in range(len(parts))]


def _reach(package: Package, module: str, place: _Place) -> tuple[tuple[str, ...], bool, bool] | None:
    """How importing the package's top reaches a place: (modules outermost first, caught on the way, at import time).

    None where it does not. A place inside of a function counts when that function is called at module level.
    """
    starts: list[tuple[str, bool]] = []
    if not place.function:
        starts.append((module, False))
    else:
        starts += [
            (caller, guarded)
            for caller in package.mentioning(place.function)
            for guarded in _calls_at_import(package, caller, place.function)
        ]
    best: tuple[tuple[str, ...], bool, bool] | None = None
    for start, guarded in starts:
        for chain, caught in _chains(package, start):
            caught = caught or guarded
            if best is None or (best[1] and not caught):
                best = (chain, caught, True)
    return best


def _calls_at_import(package: Package, module: str, function: str) -> list[bool]:
    tree = package.tree(module)
    if tree is None:
        return []
    return [
        guarded
        for node, around, guarded in _visit(tree)
        if isinstance(node, ast.Call) and not around and _called(node) == function
    ]


def _chains(package: Package, module: str) -> list[tuple[tuple[str, ...], bool]]:
    """Import chains from a top-level ``__init__`` (or a top-level module) down to ``module``."""
    queue: list[tuple[tuple[str, ...], bool]] = [((module,), False)]
    seen = {module}
    found: list[tuple[tuple[str, ...], bool]] = []
    while queue:
        chain, caught = queue.pop(0)
        head = chain[0]
        dotted = head.removesuffix(".__init__")
        if "." not in dotted:
            found.append((chain, caught))
            continue
        if len(chain) >= _MAX_DEPTH:
            continue
        for importer in package.mentioning(dotted.rpartition(".")[2]):
            if importer in seen or importer == head:
                continue
            guards = _imports_at_import(package, importer, dotted)
            if guards:
                seen.add(importer)
                queue.append(((importer, *chain), caught or all(guards)))
    return found


def _imports_at_import(package: Package, importer: str, dotted: str) -> list[bool]:
    tree = package.tree(importer)
    if tree is None:
        return []
    return [
        guarded
        for node, around, guarded in _visit(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom)) and not around and dotted in imported_modules(node, importer)
    ]


def _preloads(
    package: Package, chain: tuple[str, ...], module: str, line: int, roots: frozenset[str]
) -> tuple[str, ...]:
    """Top-level names of other distributions that are imported at module level on the way, before the place."""
    found: dict[str, None] = {}
    for one in dict.fromkeys((*chain, module)):
        tree = package.tree(one)
        for node, around, _ in _visit(tree) if tree is not None else ():
            if isinstance(node, (ast.Import, ast.ImportFrom)) and (not around or node.lineno < line):
                if one == module and node.lineno >= line:
                    continue
                for dotted in imported_modules(node, one):
                    top = dotted.split(".", 1)[0]
                    if top and top not in roots:
                        found[top] = None
    return tuple(found)
