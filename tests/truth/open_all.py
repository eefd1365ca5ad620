"""What really happens when every shared library below a site-packages folder is opened, after ``import torch``.

    LD_LIBRARY_PATH=STUB ENV/bin/python open_all.py OUT.jsonl

STUB holds a libcuda.so.1. One forked process a library, RTLD_NOW, since a library that loads stays and would change what
comes after. One JSON line a library: its path below the folder, and what the loader said. Standard library only: it runs
in the environment that is examined.
"""

import ctypes
import json
import os
import signal
import sys
import sysconfig

ROOT = sysconfig.get_paths()["purelib"]
LIMIT = 60


def is_library(name):
    return name.endswith(".so") or (".so." in name and name.rpartition(".so.")[2][:1].isdigit())


def libraries():
    for folder, _, files in os.walk(ROOT):
        for name in sorted(files):
            path = os.path.join(folder, name)
            if is_library(name) and os.path.isfile(path) and not os.path.islink(path):
                with open(path, "rb") as file:
                    if file.read(4) == b"\x7fELF":
                        yield path


def try_open(path):
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        signal.alarm(LIMIT)
        try:
            ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_LOCAL)
            said = "loads"
        except OSError as error:
            said = str(error)
        os.write(writer, said.encode("utf-8", "replace")[:4000])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read().decode("utf-8", "replace")
    _, status = os.waitpid(pid, 0)
    return said or f"died with status {status}"


def main():
    try:
        import torch  # noqa: F401
    except Exception as error:
        print(f"import torch failed: {error}", file=sys.stderr)
        sys.exit(1)
    with open(sys.argv[1], "w") as out:
        for path in sorted(libraries()):
            said = try_open(path).replace(ROOT + "/", "")
            out.write(json.dumps({"path": os.path.relpath(path, ROOT), "said": said}) + "\n")


main()
