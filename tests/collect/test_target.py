"""Places elsewhere, against a real sshd on the loopback address."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import Struct

from bringup.collect import probe
from bringup.collect.elsewhere import elsewhere_facts, read_fleet, unpack
from bringup.collect.target import command_line, parse_place, probe_place
from bringup.errors import UnreadableError, UsageError
from bringup.facts import Facts, Known


def test_prefixes_and_their_quoting() -> None:
    argv = command_line(parse_place("ssh://me@host:2222/pct/200/docker/web"), ["sh", "-c", 'echo "$1"', "sh", "a b"])
    assert argv[0] == "ssh"
    assert argv[-5:-2] == ["-p", "2222", "me@host"]
    assert argv[-1] == "pct exec 200 -- docker exec -i web sh -c 'echo \"$1\"' sh 'a b'"
    assert command_line(parse_place("docker://web"), ["x", "a b"]) == ["docker", "exec", "-i", "web", "x", "a b"]
    assert command_line(parse_place("kubectl://ns/pod/main"), ["x"])[:8] == [
        "kubectl",
        "exec",
        "-i",
        "-n",
        "ns",
        "pod",
        "-c",
        "main",
    ]
    assert command_line(parse_place("ssh://a/kubectl/ns/pod"), ["x"])[-1] == "kubectl exec -i -n ns pod -- x"


@pytest.mark.parametrize(
    "address", ["ssh://", "ftp://host", "docker://a/pct", "kubectl://ns", "ssh://-oProxyCommand=x", "host"]
)
def test_what_is_no_place(address: str) -> None:
    with pytest.raises(UsageError):
        parse_place(address)


def test_the_probe_is_small_and_needs_only_the_standard_library() -> None:
    source = Path(probe.__file__).read_text()
    assert len(source) < 200_000
    assert "import bringup" not in source
    assert "from bringup" not in source


PYTHONS = [
    path
    for path in sorted(Path.home().glob(".pyenv/versions/3.*/bin/python"))
    if int(path.parts[-3].split(".")[1]) >= 8
]


@pytest.mark.parametrize("python", [str(path) for path in PYTHONS] or [sys.executable])
def test_the_probe_runs_in_every_python(python: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [python, "-"], input=Path(probe.__file__).read_bytes(), capture_output=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    assert b'"schema": "bringup.probe/1"' in done.stdout
    assert list(tmp_path.iterdir()) == [], "the probe leaves nothing behind"


@pytest.mark.parametrize(
    ("stream", "reason"),
    [
        (b"garbage", "damaged"),
        (zlib.compress(b"F\x05\0\0\0"), "cut"),
        (zlib.compress(b"X" + probe.struct.pack("<IQI", 2, 0, 0) + b"/a"), "unknown record"),
        (zlib.compress(b"F" + probe.struct.pack("<IQI", 11, 0, 0) + b"../../../up"), "outside"),
        (
            zlib.compress(b"F" + probe.struct.pack("<IQI", 2, 4, 1) + b"/a" + probe.struct.pack("<QQ", 0, 1 << 40)),
            "cut",
        ),
    ],
)
def test_hostile_mirrors(stream: bytes, reason: str, tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match=reason):
        unpack(stream, str(tmp_path), "ssh://host")


class Server(Struct, frozen=True):
    port: int
    options: tuple[str, ...]
    """With a key that is accepted."""
    wrong: tuple[str, ...]
    bare: tuple[str, ...]
    """With a key whose commands run in a root folder that holds a shell and nothing else."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    sshd = shutil.which("sshd", path="/usr/sbin:/usr/bin:/sbin")
    if sshd is None or shutil.which("ssh") is None:
        pytest.skip("no OpenSSH server on this machine")
    if os.getuid() != 0:
        pytest.skip("a root folder of one's own needs root")
    home = tmp_path_factory.mktemp("sshd")
    for name in ("host", "good", "bare", "wrong"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(home / name)], check=True)
    root = bare_root(home / "root")
    forced = f'command="chroot {root} /bin/sh -c \\"$SSH_ORIGINAL_COMMAND\\""'
    (home / "keys").write_text((home / "good.pub").read_text() + f"{forced} {(home / 'bare.pub').read_text()}")
    with socket.socket() as probe_socket:
        probe_socket.bind(("127.0.0.1", 0))
        port = probe_socket.getsockname()[1]
    lines = [
        f"Port {port}", "ListenAddress 127.0.0.1", f"HostKey {home}/host", f"AuthorizedKeysFile {home}/keys", "StrictModes no",
        "UsePAM no", "PasswordAuthentication no", "PidFile none", "PermitRootLogin yes", "MaxStartups 100", "LogLevel QUIET",
    ]  # fmt: skip
    (home / "config").write_text("\n".join(lines) + "\n")
    Path("/run/sshd").mkdir(exist_ok=True)
    process = subprocess.Popen([sshd, "-D", "-e", "-f", str(home / "config")], stderr=subprocess.DEVNULL)
    known = home / "known"
    known.write_text(f"[127.0.0.1]:{port} {(home / 'host.pub').read_text()}")
    base = (
        "-o",
        f"UserKnownHostsFile={known}",
        "-o",
        "IdentitiesOnly=yes",
        "-o",
        "StrictHostKeyChecking=yes",
        "-F",
        "/dev/null",
    )
    for _ in range(100):
        with socket.socket() as attempt:
            if attempt.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.05)
    yield Server(port, *((*base, "-i", str(home / name)) for name in ("good", "wrong", "bare")))
    process.terminate()
    process.wait(10)


def bare_root(root: Path) -> Path:
    """A root folder with /bin/sh and the libraries that it needs."""
    (root / "bin").mkdir(parents=True)
    shell = os.path.realpath("/bin/sh")
    shutil.copy(shell, root / "bin/sh")
    listed = subprocess.run(["ldd", shell], capture_output=True, text=True, check=False).stdout
    for word in listed.split():
        if word.startswith("/"):
            target = root / word.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(word, target)
    return root


def address(server: Server, more: str = "") -> str:
    return f"ssh://{getpass.getuser()}@127.0.0.1:{server.port}{more}"


def test_an_environment_behind_ssh(server: Server) -> None:
    prefix = sys.prefix
    facts = elsewhere_facts(address(server), environment=prefix, ssh_options=server.options, seconds=60)
    assert isinstance(facts.distributions, Known)
    assert any(one.name == "msgspec" for one in facts.distributions.value)
    assert isinstance(facts.libraries, Known)
    assert all(one.root.startswith(prefix) for one in facts.libraries.value)
    assert isinstance(facts.machine, Known)
    assert isinstance(facts.system_libraries, Known)
    assert any(one.soname == "libc.so.6" for one in facts.system_libraries.value)


def test_a_place_behind_a_place(server: Server) -> None:
    nested = address(server, f"/ssh/{getpass.getuser()}@127.0.0.1:{server.port}")
    answer = probe_place(nested, ssh_options=server.options, seconds=60)
    assert answer.observed["python"]


def test_a_host_without_python(server: Server) -> None:
    with pytest.raises(UnreadableError, match="has no python3"):
        probe_place(address(server), ssh_options=server.bare, seconds=30)


def test_a_wrong_key(server: Server) -> None:
    with pytest.raises(UnreadableError, match="refuses the login"):
        probe_place(address(server), ssh_options=server.wrong, seconds=30)


def test_an_unknown_host_key(server: Server) -> None:
    options = tuple("UserKnownHostsFile=/dev/null" if "UserKnownHosts" in one else one for one in server.options)
    with pytest.raises(UnreadableError, match="host key"):
        probe_place(address(server), ssh_options=options, seconds=30)


def test_a_host_that_hangs() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        started = time.monotonic()
        with pytest.raises(UnreadableError, match="did not answer within 2 s"):
            probe_place(f"ssh://127.0.0.1:{silent.getsockname()[1]}", seconds=2)
        assert time.monotonic() - started < 6


def test_programs_that_are_not_here() -> None:
    with pytest.raises(UnreadableError, match="kubectl cannot be started here"):
        probe_place("kubectl://ns/pod", environ={"PATH": "/nowhere"})


def test_a_fleet_of_fifty(server: Server) -> None:
    """Broken hosts of every kind beside good ones: each gets its own answer, in order."""
    kinds = {
        "good": (address(server), server.options),
        "wrong": (address(server), server.wrong),
        "bare": (address(server), server.bare),
        "closed": ("ssh://127.0.0.1:1", server.options),
        "nameless": ("ssh://no-such-host.invalid", server.options),
    }
    names = [name for name in kinds if name != "good" for _ in range(11)] + ["good"] * 6
    names = [f"{name}#{number}" for number, name in enumerate(names)]

    def read(name: str) -> Facts:
        where, options = kinds[name.partition("#")[0]]
        answer = probe_place(where, ssh_options=options, seconds=60)
        return Facts(target=str(answer.observed["python"]))

    found = read_fleet(names, read)
    assert [name for name, _ in found] == names
    assert len(found) == 50
    for name, outcome in found:
        assert isinstance(outcome, Facts) is name.startswith("good"), (name, outcome)
