"""Worker processes: what runs in them, and how their exceptions come back."""

import contextlib
import os
import pickle
import signal
import sys
import traceback

from lamella._native import data as _data
from lamella.dataset.calls import call


class WorkerError(Exception):
    """The traceback of an exception in a worker process, as its cause."""

    def __init__(self, text):
        self.text = text

    def __str__(self):
        return f'\n"""\n{self.text}"""'


def _described(error):
    """An exception as bytes: itself if that can be, its text, its traceback."""
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    summary = "".join(traceback.format_exception_only(type(error), error)).strip()
    try:
        exact = pickle.dumps(error)
        pickle.loads(exact)
    except Exception:
        exact = None
    return pickle.dumps((exact, summary, text))


def raised(failure, name):
    """The exception that a worker running the function `name` described."""
    exact, summary, text = pickle.loads(failure)
    try:
        error = pickle.loads(exact) if exact is not None else None
    except Exception:
        error = None
    if not isinstance(error, BaseException):
        error = RuntimeError(f"[dataset] '{name}' failed in a worker process: {summary}")
    error.__cause__ = WorkerError(text)
    return error


def _flush():
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


def serve(handler, channel):
    """Answers requests until the process that forked this one closes the channel or ends."""
    status = 1
    try:
        # Ctrl-C is for the parent, which ends its workers.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        channel.end_with_parent()
        while (request := channel.receive()) is not None:
            key, numbers, arrays = request
            try:
                answer = call(handler, key, numbers, arrays)
                _flush()  # once it has the answer, the parent may end this process
                sent = channel.answer(*answer)
            except BaseException as error:
                _flush()
                sent = channel.fail(_described(error))
            if not sent:
                break
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        _flush()
        os._exit(status)


_data.set_call_functions(call, serve, raised)
