"""Compare predictions with what the loader said."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from bringup.evaluate.loading import Opening

_MISSING = re.compile(r"^([^:]+): cannot open shared object file")
_UNDEFINED = re.compile(r"undefined symbol: ([^\s,]+)")
_VERSION = re.compile(r"version `([^']+)' not found")


@dataclass(frozen=True)
class Disagreement:
    path: str
    said: str
    predicted: str

    def __str__(self) -> str:
        return f"{self.path}\n    really:    {self.said}\n    predicted: {self.predicted}"


def describe(opening: Opening) -> str:
    """A prediction in one line."""
    if opening.loads:
        return "loads"
    parts = [f"foreign {opening.foreign}"] if opening.foreign else []
    parts += [f"missing {one.soname}" for one in opening.missing]
    parts += [f"version {one.version}" for one in opening.versions]
    parts += [f"undefined {one.symbol}" for one in opening.undefined[:8]]
    return ", ".join(parts)


def agrees(said: str, opening: Opening) -> bool:
    """Whether the loader's own words follow from the prediction: the same outcome, and a cause that was named."""
    if said == "loads":
        return opening.loads
    if opening.foreign:
        return True
    missing = _MISSING.search(said)
    if missing:
        return missing.group(1) in {one.soname for one in opening.missing}
    version = _VERSION.search(said)
    if version:
        return not opening.missing and version.group(1) in {one.version for one in opening.versions}
    undefined = _UNDEFINED.search(said)
    if undefined:
        names = {one.symbol.partition("@")[0] for one in opening.undefined}
        return not opening.missing and not opening.versions and undefined.group(1) in names
    return False


def compare(really: Iterable[tuple[str, str]], predicted: dict[str, Opening]) -> tuple[int, int, list[Disagreement]]:
    """(agreed, compared, disagreements). A library that was not read at all is a disagreement."""
    agreed = compared = 0
    wrong: list[Disagreement] = []
    for path, said in really:
        compared += 1
        opening = predicted.get(path)
        if opening is not None and agrees(said, opening):
            agreed += 1
        else:
            wrong.append(Disagreement(path, said, describe(opening) if opening is not None else "not read"))
    return agreed, compared, wrong
