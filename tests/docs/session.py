"""Runs the Python blocks of one page in one namespace, with `mindspore` standing for Lamella.

Reads a JSON object a line, {"page", "line", "source"}, and answers each with {"output",
"traceback"}: what the block printed, errors of the C library's streams and the logs included; an
exception's last line ends the output.
"""

import ctypes
import json
import linecache
import os
import sys
import tempfile
import traceback

# The answers go where the standard output went; what blocks print goes into a file.
answers = os.fdopen(os.dup(1), "w")
captured = tempfile.TemporaryFile()  # noqa: SIM115 (until the process ends)
os.dup2(captured.fileno(), 1)
os.dup2(captured.fileno(), 2)
sys.stdout.reconfigure(line_buffering=True)

import lamella.alias  # noqa: E402 (what is said on import belongs to the output)

lamella.alias.install()


def printed():
    """What was printed since the last call."""
    sys.stdout.flush()
    ctypes.CDLL(None).fflush(None)
    captured.seek(0)
    text = captured.read().decode()
    captured.seek(0)
    captured.truncate()
    return text


def run(page, line, source, namespace):
    """Executes a block; its lines have the numbers of the page."""
    source = "\n" * (line - 1) + source
    # The page itself, as the interpreter would read it: errors show its lines.
    linecache.checkcache(page)
    try:
        exec(compile(source, page, "exec"), namespace)
    except BaseException as error:
        last = traceback.format_exception_only(error)[-1]
        return printed() + last, "".join(traceback.format_exception(error))
    return printed(), None


def main():
    namespace = {"__name__": "__main__"}
    for request in sys.stdin:
        asked = json.loads(request)
        output, trace = run(asked["page"], asked["line"], asked["source"], namespace)
        answers.write(json.dumps({"output": output, "traceback": trace}) + "\n")
        answers.flush()


main()
