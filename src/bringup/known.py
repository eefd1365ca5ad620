"""A value with the place where it was read, or the reason why it is not known."""

from __future__ import annotations

from typing import Generic, TypeVar, Union

from msgspec import Struct

T = TypeVar("T")


class Known(Struct, Generic[T], frozen=True, tag="known", tag_field="state"):
    """A value that was read somewhere."""

    value: T
    source: str


class Unknown(Struct, frozen=True, tag="unknown", tag_field="state"):
    """A value that could not be read, and why."""

    reason: str


Maybe = Union[Known[T], Unknown]
