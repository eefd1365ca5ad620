"""Takes out of a text what tells who and where: home folders, users, hosts, tokens, addresses, credentials.

Pure: what the machine knows of itself (its name, its user) is passed in. It rather takes out too much than too little, apart
from versions of packages, which a report is about.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import msgspec
from msgspec import Struct


class Private(Struct, frozen=True):
    """Names that must not appear: of this machine, of its user."""

    hosts: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    homes: tuple[str, ...] = ()


_EVERYDAY = frozenset(
    {"root", "user", "ubuntu", "admin", "runner", "nobody", "localhost", "home", "python", "torch", "cuda", "gpu"}
)
"""Names of users and hosts that identify nobody, and that are words of a report."""

_HOME = re.compile(r"(?<![\w.~-])/(?:(?:var/)?home|Users|export/home|mnt/home|data/home)/([A-Za-z0-9._@-]+)")
_TOKEN = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|sk-[\w-]{16,}|pypi-[\w-]{16,}"
    r"|xox[abprs]-[\w-]{10,}|AKIA[A-Z0-9]{16}|nvapi-[\w-]{16,}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)"
)
_BEARER = re.compile(r"(?i)\b(bearer|basic|token)(\s+)[A-Za-z0-9+/_.=-]{12,}")
_ASSIGNED = re.compile(
    r"(?i)\b((?:[A-Z0-9]+_)*(?:TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|ACCESS_?KEY|CREDENTIALS?)(?:_[A-Z0-9]+)*)"
    r"(\s*(?:=(?!=)|:(?!:))\s*[\"']?)([^\s\"',;]+)"
)
_USERINFO = re.compile(r"\b([a-z][a-z0-9+.-]*://)[^\s/@\"']+@", re.I)
_QUERY = re.compile(r"(?i)([?&](?:token|key|signature|sig|auth|password|x-amz-[a-z-]+)=)[^&\s\"']+")
_EMAIL = re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}\b")
_UUID = re.compile(r"\b((?:GPU|MIG)-)?[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b")
_MAC = re.compile(r"(?<![\w:])(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}(?![\w:])")
_OCTET = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_IPV4 = re.compile(rf"(?<![\w.])(?:{_OCTET}\.){{3}}{_OCTET}(?!\w|\.\w)")
_IPV6 = re.compile(
    r"(?<![\w:.])(?=[0-9a-fA-F:]*[0-9a-fA-F])(?:(?:[0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}"
    r"|(?:[0-9a-fA-F]{1,4}:){1,6}(?::[0-9a-fA-F]{1,4}){1,6}|(?:[0-9a-fA-F]{1,4}:){2,7}:|::(?:[0-9a-fA-F]{1,4}:){1,6}[0-9a-fA-F]{1,4})(?![\w:])"
)
# A version of four parts looks like an address: it follows ==, a hyphenated package name, or "version".
_VERSION_BEFORE = re.compile(r"(?:[=<>~!]=?\s?|-|\b[A-Za-z]\w*(?:-\w+)+\s|\b(?:version|CUDA|release)\s)$", re.I)
_PLACE = re.compile(r"\b(ssh|docker|kubectl)://(?:([^\s\"'?/@]+)@)?(\[[^\]\s]+\]|[^\s\"'?/:]+)(:\d+)?")


def redact(text: str, private: Private | None = None) -> str:
    """The text without what is private. Applied twice it changes nothing more."""
    private = private or Private()
    users = {*private.users, *_users(text)}
    hosts = {*private.hosts, *_hosts(text)}
    text = _PLACE.sub(r"\1://[host]", text)
    text = without_credentials(text)
    text = _EMAIL.sub("[mail]", text)
    text = _UUID.sub(lambda found: f"{found.group(1) or ''}[uuid]", text)
    text = _MAC.sub("[mac]", text)
    text = _IPV4.sub(_address, text)
    text = _IPV6.sub("[address]", text)
    for home in sorted((one.rstrip("/") for one in private.homes), key=len, reverse=True):
        if home:
            text = re.sub(rf"(?<![\w.-]){re.escape(home)}(?=[/\s\"':,;)]|$)", "~", text)
    text = _HOME.sub("~", text)
    text = _names(text, users, "[user]")
    return _names(text, hosts, "[host]")


def without_credentials(text: str) -> str:
    """The text without tokens, passwords and signed parts of URLs: what no output may hold, whoever reads it."""
    text = _TOKEN.sub("[token]", text)
    text = _BEARER.sub(r"\1\2[token]", text)
    text = _QUERY.sub(r"\1[secret]", text)
    text = _USERINFO.sub(_userinfo, text)
    return _ASSIGNED.sub(r"\1\2[secret]", text)


def _userinfo(found: re.Match[str]) -> str:
    # ssh://user@host is an address that people type, with no secret in it.
    return (
        found.group()
        if found.group(1) == "ssh://" and ":" not in found.group()[6:]
        else f"{found.group(1)}[credentials]@"
    )


T = TypeVar("T", bound=Struct)


def redact_struct(value: T, private: Private) -> T:
    """The same value with every string in it redacted, apart from symbols, sonames and versions.

    Users whose home folder one string names, and hosts that one string gives as an address, are taken out of all of them.
    """
    plain = msgspec.to_builtins(value)
    users = {user for text in _strings(plain) for user in _users(text)}
    hosts = {host for text in _strings(plain) for host in _hosts(text)}
    known = Private(tuple(sorted({*private.hosts, *hosts})), tuple(sorted({*private.users, *users})), private.homes)
    return msgspec.convert(_redacted(plain, known), type(value))


_PUBLIC = frozenset(
    {
        "cuda",
        "exports",
        "id",
        "imports",
        "kind",
        "needed",
        "requires",
        "rule",
        "schema",
        "severity",
        "soname",
        "stage",
        "state",
        "tags",
        "version",
        "version_definitions",
        "version_needs",
        "weak_imports",
    }
)
"""Fields that hold nothing of a person's, and much that looks like it: four-part versions, millions of symbol names."""


def with_places(private: Private, targets: Iterable[str]) -> Private:
    """Add the hosts and users in addresses such as ``ssh://user@host``: a message may repeat them without the scheme."""
    texts = tuple(targets)
    hosts = [host for text in texts for host in _hosts(text)]
    users = [user for text in texts for user in _users(text)]
    return Private((*private.hosts, *hosts), (*private.users, *users), private.homes)


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, item in value.items():
            if name not in _PUBLIC:
                yield from _strings(item)
    elif isinstance(value, Sequence):
        for item in value:
            yield from _strings(item)


def _redacted(value: object, private: Private) -> object:
    if isinstance(value, str):
        return redact(value, private)
    if isinstance(value, Mapping):
        return {name: item if name in _PUBLIC else _redacted(item, private) for name, item in value.items()}
    if isinstance(value, Sequence):
        return [_redacted(item, private) for item in value]
    return value


def _users(text: str) -> list[str]:
    named = [found.group(1) for found in _HOME.finditer(text)]
    return named + [found.group(2).partition(":")[0] for found in _PLACE.finditer(text) if found.group(2)]


def _hosts(text: str) -> list[str]:
    found = [place.group(3) for place in _PLACE.finditer(text)]
    return [host for host in found if host != "[host]"]


def _address(found: re.Match[str]) -> str:
    address = found.group()
    if address.startswith("0.") or address in ("127.0.0.1", "255.255.255.255"):
        return address  # no machine's own
    return address if _VERSION_BEFORE.search(found.string[: found.start()][-80:]) else "[address]"


def _names(text: str, names: Iterable[str], instead: str) -> str:
    for name in sorted(set(names), key=len, reverse=True):
        if len(name) > 2 and name.lower() not in _EVERYDAY:
            text = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", instead, text)
    return text
