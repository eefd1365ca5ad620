"""The one list of rules. A rule that is not named here does not exist; the order is that of the codes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from bringup.evaluate.rules import (
    abi001,
    abi002,
    abi003,
    drv001,
    fs001,
    fs002,
    fs003,
    fs004,
    gpu001,
    gpu002,
    gpu003,
    gpu004,
    gpu005,
    jit001,
    jit002,
    jit003,
    jit004,
    jit005,
    jit006,
    jit007,
    jit008,
    jit009,
    jit010,
    jit011,
    jit012,
    jit013,
    jit014,
    jit015,
    jit016,
    jit017,
    jit018,
    jit019,
    lib001,
    lib002,
    lib003,
    lib004,
    lib005,
    lib006,
    lib007,
    lib008,
    lib009,
    py001,
    py002,
    ver001,
    ver002,
    ver003,
    ver004,
    ver005,
    ver006,
    ver007,
    ver008,
)
from bringup.facts import Facts
from bringup.findings import Finding, Rule


class RuleModule(Protocol):
    """What a file in evaluate/rules/ offers. Its docstring is the rule's documentation."""

    RULE: Rule
    __doc__: str | None

    def check(self, facts: Facts) -> Iterator[Finding]:
        """All incompatibilities of this kind."""
        ...


RULES: tuple[RuleModule, ...] = (
    abi001,
    abi002,
    abi003,
    drv001,
    fs001,
    fs002,
    fs003,
    fs004,
    gpu001,
    gpu002,
    gpu003,
    gpu004,
    gpu005,
    jit001,
    jit002,
    jit003,
    jit004,
    jit005,
    jit006,
    jit007,
    jit008,
    jit009,
    jit010,
    jit011,
    jit012,
    jit013,
    jit014,
    jit015,
    jit016,
    jit017,
    jit018,
    jit019,
    lib001,
    lib002,
    lib003,
    lib004,
    lib005,
    lib006,
    lib007,
    lib008,
    lib009,
    py001,
    py002,
    ver001,
    ver002,
    ver003,
    ver004,
    ver005,
    ver006,
    ver007,
    ver008,
)
