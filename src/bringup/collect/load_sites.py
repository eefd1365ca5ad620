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

_PASSES = frozenset(
    {
        "AttributeError",
        "IndexError",
        "KeyError",
        "KeyboardInterrupt",
        "NotImplementedError",
        "StopIteration",
        "TypeError",
    }
)
"""Exceptions that a failed opening is never turned into; an except clause for anything else may catch it."""

_OPENERS: dict[str, How] = {
    "CDLL": "ctypes",
    "PyDLL": "ctypes",
    "LoadLibrary": "ctypes",
    "dlopen": "ctypes",
    "load_library": "torch",
    "load_module": "tvm_ffi",
    "load_lib_module": "tvm_ffi",
    "find_spec": "import",
    "import_module": "import",
    "__import__": "import",
    "spec_from_file_location": "import",
    "ExtensionFileLoader": "import",
}
_MAX_SOURCE = 4_000_000  # a generated module larger than this opens no library
_MAX_DEPTH = 12


class Wanted(Struct, frozen=True):
    """A library to look for: its path below the root, the dotted module that it would be imported as, its bare names."""

    path: str
    module: str
    stems: tuple[str, ...]


def wanted(path: str) -> Wanted:
    """What code would call the library at ``path``: ``pkg/sub/_C.abi3.so`` is ``pkg.sub._C``, or the string ``_C``."""
    folder, _, name = path.rpartition("/")
    stem = name.split(".", 1)[0]
    stems = tuple(dict.fromkeys((stem, stem.removeprefix("lib"))))
    return Wanted(path, ".".join([*folder.split("/"), stem]) if folder else stem, stems)


class _Place(Struct, frozen=True):
    line: int
    how: How
    function: str  # '' at module level
    guarded: bool
    choice: bool = False


class Package:
    """The Python sources of one distribution: ``sources`` maps dotted module names to a function that reads the text."""

    def __init__(self, files: Mapping[str, Callable[[], bytes]]) -> None:
        self._read = files
        self._texts: dict[str, bytes] = {}
        self._trees: dict[str, ast.Module | None] = {}
        self._nodes: dict[str, list[_Visited]] = {}
        self._importers: dict[str, list[str]] | None = None

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

    def nodes(self, module: str) -> list[_Visited]:
        """A module's import statements, calls and strings; none where it does not parse. See `_visit`."""
        if module not in self._nodes:
            tree = self.tree(module)
            self._nodes[module] = _visit(tree) if tree is not None else []
        return self._nodes[module]

    def mentioning(self, fragment: str) -> list[str]:
        """Modules whose source holds the fragment."""
        needle = fragment.encode()
        return [module for module in self._read if needle in self.text(module)]

    def importers(self, dotted: str) -> list[str]:
        """Modules with an import statement, anywhere, that may import the module of that name."""
        if self._importers is None:
            self._importers = {}
            for module in self._read:
                for name in _statement_imports(self.text(module), module):
                    self._importers.setdefault(name, []).append(module)
        return self._importers.get(dotted, [])


_STATEMENT = re.compile(
    rb"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]*(\([^)]*\)|[^\n;#]*)|import[ \t]+([^\n;#]*))", re.M
)
_NAME = re.compile(r"[\w.]+|\*")


def _statement_imports(text: bytes, module: str) -> set[str]:
    """Dotted names in a source's import statements, by pattern: it only has to find who is worth parsing."""
    found: set[str] = set()
    for match in _STATEMENT.finditer(text):
        if match.group(3) is not None:
            for part in match.group(3).decode("utf-8", "replace").split(","):
                found.update(_prefixes(part.split(" as ")[0].strip()))
            continue
        base = match.group(1).decode("utf-8", "replace")
        bare = base.lstrip(".")
        base = _absolute(bare, len(base) - len(bare), module)
        found.update(_prefixes(base))
        for part in match.group(2).decode("utf-8", "replace").strip("() \n").split(","):
            name = _NAME.search(part)
            if name:
                found.add(f"{base}.{name.group()}")
    return found


def find_load_sites(package: Package, paths: Iterable[str], roots: frozenset[str]) -> tuple[LoadSite, ...]:
    """All places that open one of ``paths``. ``roots``: the distribution's own top-level names."""
    found: list[LoadSite] = []
    for path in paths:
        target = wanted(path)
        candidates = dict.fromkeys(module for stem in _searched(target) for module in package.mentioning(stem))
        places = [(module, place) for module in candidates for place in _places(package.nodes(module), module, target)]
        # A bare string is only a guess at what opens the library; where a statement does, guesses are left out.
        sure = [(module, place) for module, place in places if place.how != "text"]
        found += [_site(package, module, place, target, roots) for module, place in sure or places]
    return tuple(found)


def _searched(target: Wanted) -> tuple[str, ...]:
    """Fragments that a file must hold to be looked at: for a name put together at run time, its first part."""
    firsts = (
        re.split(r"[-_.]?(?:cu|cuda|rocm|xpu|sm|torch|core|ops)?\d", stem, maxsplit=1)[0] for stem in target.stems
    )
    return tuple(dict.fromkeys((target.stems[-1], *(first for first in firsts if len(first) >= 5))))


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
        choice=place.choice,
        chain=tuple(one.removesuffix(".__init__") for one in chain),
        preloads=_preloads(package, chain or (module,), module, place.line, roots),
    )


def _places(nodes: list[_Visited], module: str, target: Wanted) -> list[_Place]:
    found: list[_Place] = []
    inside: set[int] = set()  # parts of a formatted string, which are no strings of their own
    for node, function, guarded in nodes:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            if target.module in imported_modules(node, module):
                found.append(_Place(node.lineno, "import", function, guarded))
        elif isinstance(node, ast.Call):
            opener = _OPENERS.get(_called(node))
            if opener is not None:
                named = [choice for one in ast.walk(node) if (choice := _names_library(one, target)) is not None]
                if named:
                    found.append(_Place(node.lineno, opener, function, guarded, choice=all(named)))
        elif isinstance(node, (ast.JoinedStr, ast.Constant)) and id(node) not in inside:
            if isinstance(node, ast.JoinedStr):
                inside.update(map(id, node.values))
            choice = _names_library(node, target)
            if choice is not None:
                found.append(_Place(node.lineno, "text", function, guarded, choice))
    return found


def _names_library(node: ast.AST, target: Wanted) -> bool | None:
    """Whether a string names the library: None where it does not, True where part of the name is only known at run time."""
    if isinstance(node, ast.Constant):
        if not isinstance(node.value, str) or len(node.value) > 200 or any(c.isspace() for c in node.value):
            return None
        return False if node.value.rpartition("/")[2].split(".", 1)[0] in target.stems else None
    if isinstance(node, ast.JoinedStr):
        fixed = [one.value for one in node.values if isinstance(one, ast.Constant) and isinstance(one.value, str)]
        if max(map(len, fixed), default=0) < 5:
            return None
        pattern = "".join(
            re.escape(one.value) if isinstance(one, ast.Constant) and isinstance(one.value, str) else ".+"
            for one in node.values
        )
        name = pattern.rpartition("/")[2]
        stems = "|".join(map(re.escape, target.stems))
        full = target.path.rpartition("/")[2]
        if re.fullmatch(name, full) or any(re.fullmatch(name, stem) for stem in target.stems) or name == stems:
            return True
    return None


_Visited = tuple[ast.AST, str, bool]
_LOOKED_AT = (ast.Import, ast.ImportFrom, ast.Call, ast.JoinedStr, ast.Constant)


def _visit(tree: ast.AST) -> list[_Visited]:
    """Every import, call and string, the innermost function around it ('' for none), and whether a failure would be caught."""
    order: list[_Visited] = []
    # Beside each node: the function around it, and the last line of that function on which it raises.
    stack: list[tuple[ast.AST, str, bool, int]] = [(tree, "", False, _last_raise(tree))]
    while stack:
        node, function, guarded, raises = stack.pop()
        if isinstance(node, _LOOKED_AT):
            order.append((node, function, guarded))
        children = ast.iter_child_nodes(node)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            last = _last_raise(node)
            stack += [(child, node.name, False, last) for child in children]
        elif isinstance(node, ast.Lambda):
            stack += [(child, function or "<lambda>", guarded, raises) for child in children]
        elif isinstance(node, ast.Try):
            # Loaders often try one way after the other, keep the errors, and raise once none has worked.
            goes_on = raises <= (node.end_lineno or 0)
            inside = guarded or (goes_on and any(_catches(handler) for handler in node.handlers))
            stack += [(child, function, inside, raises) for child in node.body]
            stack += [(child, function, guarded, raises) for child in (*node.handlers, *node.orelse, *node.finalbody)]
        elif isinstance(node, ast.With):
            suppressed = any("suppress" in ast.dump(item.context_expr) for item in node.items)
            stack += [(child, function, guarded or suppressed, raises) for child in children]
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            stack += [(child, function, guarded, raises) for child in node.orelse]
        else:
            stack += [(child, function, guarded, raises) for child in children]
    return order


def _last_raise(scope: ast.AST) -> int:
    """The last line on which a function, or a module's own level, raises an error that a failed opening may become; 0: none."""
    last = 0
    stack = list(ast.iter_child_nodes(scope))
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        if isinstance(node, ast.Raise) and _raised(node) in (
            "ImportError",
            "OSError",
            "RuntimeError",
            "ModuleNotFoundError",
        ):
            last = max(last, node.lineno)
        stack += ast.iter_child_nodes(node)
    return last


def _raised(node: ast.Raise) -> str:
    return _name(node.exc.func) if isinstance(node.exc, ast.Call) else _name(node.exc)


def _catches(handler: ast.ExceptHandler) -> bool:
    """Whether the clause catches a failed import and goes on: one that only raises again changes nothing but the words."""
    if any(isinstance(statement, ast.Raise) for statement in handler.body):
        return False
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(_name(kind) not in _PASSES for kind in kinds)


def _name(node: ast.AST | None) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


def _called(node: ast.Call) -> str:
    return _name(node.func)


def imported_modules(node: ast.Import | ast.ImportFrom, module: str) -> set[str]:
    """Every dotted name that the statement may import as a module, relative ones resolved."""
    if isinstance(node, ast.Import):
        return {prefix for alias in node.names for prefix in _prefixes(alias.name)}
    base = _absolute(node.module or "", node.level, module)
    return {*_prefixes(base), *(f"{base}.{alias.name}" for alias in node.names)}


def _absolute(name: str, level: int, module: str) -> str:
    """A module name with its leading dots resolved against the importing module."""
    if not level:
        return name
    parts = module.removesuffix(".__init__").split(".")
    if not module.endswith(".__init__"):
        parts = parts[:-1]
    parts = parts[: len(parts) - (level - 1)] if level > 1 else parts
    return ".".join([*parts, *([name] if name else [])])


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
            for caller in package.mentioning(f"{place.function}(")
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
    return [
        guarded
        for node, around, guarded in package.nodes(module)
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
        for importer in package.importers(dotted):
            if importer in seen or importer == head:
                continue
            guards = _imports_at_import(package, importer, dotted)
            if guards:
                seen.add(importer)
                queue.append(((importer, *chain), caught or all(guards)))
    return found


def _imports_at_import(package: Package, importer: str, dotted: str) -> list[bool]:
    return [
        guarded
        for node, around, guarded in package.nodes(importer)
        if isinstance(node, (ast.Import, ast.ImportFrom)) and not around and dotted in imported_modules(node, importer)
    ]


def _preloads(
    package: Package, chain: tuple[str, ...], module: str, line: int, roots: frozenset[str]
) -> tuple[str, ...]:
    """Top-level names of other distributions that are imported at module level on the way, before the place."""
    found: dict[str, None] = {}
    for one in dict.fromkeys((*chain, module)):
        for node, around, _ in package.nodes(one):
            if isinstance(node, (ast.Import, ast.ImportFrom)) and (not around or node.lineno < line):
                if one == module and node.lineno >= line:
                    continue
                for dotted in imported_modules(node, one):
                    top = dotted.split(".", 1)[0]
                    if top and top not in roots:
                        found[top] = None
    return tuple(found)
