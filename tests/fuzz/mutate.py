"""Seeded damage to binary files: blind damage anywhere, and aimed damage to the numbers that a format's headers hold.

A `Field` is a number's place. A format's module says where its fields are; the mutator then writes values there that readers
trip over: zero, one, all ones, the file's size and its neighbours, other fields' values, powers of two.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple


class Field(NamedTuple):
    """A little-endian number of ``width`` bytes at ``offset``."""

    offset: int
    width: int


class Mutator:
    """Makes one damaged file after the other; the same seed makes the same ones."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def mutate(self, data: bytes, fields: Sequence[Field] = ()) -> bytes:
        """One to four damages. With ``fields``, most of them are aimed."""
        damaged = bytearray(data)
        for _ in range(self.random.choice((1, 1, 1, 2, 2, 3, 4))):
            if fields and self.random.random() < 0.7:
                self._aim(damaged, self.random.choice(fields), fields)
            else:
                self.random.choice(self._BLIND)(self, damaged)
        return bytes(damaged)

    def _aim(self, data: bytearray, field: Field, fields: Sequence[Field]) -> None:
        offset, width = field
        if offset + width > len(data):
            return
        other = self.random.choice(fields)
        number = int.from_bytes(data[offset : offset + width], "little")
        power = 1 << self.random.randrange(8 * width)
        values = (
            0, 1, -1, power, power - 1, len(data), len(data) - 1, len(data) + 1, len(data) - offset, offset,
            number + 1, number - 1, number ^ power, 2 * number, self.random.getrandbits(8 * width),
            self.random.randrange(len(data)), self.random.randrange(len(data)) & ~7,
            int.from_bytes(data[other.offset : other.offset + other.width], "little"),
        )  # fmt: skip
        value = self.random.choice(values) & ((1 << 8 * width) - 1)
        data[offset : offset + width] = value.to_bytes(width, "little")

    def _place(self, data: bytearray) -> int:
        return self.random.randrange(len(data)) if data else 0

    def _flip(self, data: bytearray) -> None:
        if data:
            data[self._place(data)] ^= 1 << self.random.randrange(8)

    def _overwrite(self, data: bytearray) -> None:
        start, size = self._place(data), self.random.choice((1, 2, 4, 8, 16, 256))
        filler = self.random.choice((b"\0", b"\xff", b"\n", b"A", self.random.randbytes(1)))
        data[start : start + size] = filler * len(data[start : start + size])

    def _truncate(self, data: bytearray) -> None:
        del data[self._place(data) :]

    def _delete(self, data: bytearray) -> None:
        start = self._place(data)
        del data[start : start + self.random.choice((1, 4, 8, 64, 512))]

    def _insert(self, data: bytearray) -> None:
        start = self._place(data)
        data[start:start] = self.random.randbytes(self.random.choice((1, 4, 8, 64, 512)))

    def _copy(self, data: bytearray) -> None:
        size = self.random.choice((4, 8, 16, 64, 256, 1024))
        source, target = self._place(data), self._place(data)
        piece = bytes(data[source : source + size])
        data[target : target + len(piece)] = piece

    def _extend(self, data: bytearray) -> None:
        data += self.random.choice((bytes(4096), b"\xff" * 64, bytes(data[:1024])))

    _BLIND = (_flip, _flip, _overwrite, _overwrite, _truncate, _delete, _insert, _copy, _extend)
