"""What importing each named module really does, after ``import torch``: one forked process a module.

    LD_LIBRARY_PATH=STUB ENV/bin/python import_all.py OUT.jsonl MODULE ...

One JSON line a module: its name, and "imports" or the traceback. Standard library only.
"""

import importlib
import json
import os
import signal
import sys
import traceback

LIMIT = 120


def attempt(module):
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        signal.alarm(LIMIT)
        try:
            importlib.import_module(module)
            said = "imports"
        except BaseException:
            said = traceback.format_exc()
        os.write(writer, said.encode("utf-8", "replace")[-40000:])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read().decode("utf-8", "replace")
    _, status = os.waitpid(pid, 0)
    return said or f"died with status {status}"


def main():
    import torch  # noqa: F401

    with open(sys.argv[1], "w") as out:
        for module in sys.argv[2:]:
            out.write(json.dumps({"module": module, "said": attempt(module)}) + "\n")
            out.flush()


main()
