"""Runs the blocks of one page in a folder of its own, in which the checkout seems to lie."""

import doctest
import json
import os
import pathlib
import shlex
import subprocess
import sys

import lamella

from .blocks import CPP, OUTPUT, PYTHON, SHELL

ROOT = pathlib.Path(__file__).parents[2]
BUILD = pathlib.Path(lamella.__file__).parents[2]
SECONDS = 120  # after which a block counts as hanging


class BlockError(Exception):
    """A block that failed, or printed something else than the page says."""


def lay_out(folder):
    """Links the checkout into the folder; `build/release` is the build under test."""
    for entry in ROOT.iterdir():
        if entry.name not in ("build", "output", ".git"):
            (folder / entry.name).symlink_to(entry)
    (folder / "build").mkdir()
    (folder / "build/release").symlink_to(BUILD)
    (folder / "build/venv").symlink_to(sys.prefix)


# What pages say holds without these.
SETTINGS = ("LAMELLA_WINDOW", "LAMELLA_DUMP", "LAMELLA_LOG")


def environment(commands):
    """The environment of blocks: `python` and, as a wheel would install it, `lamella` are found."""
    python = shlex.quote(sys.executable)
    for name, command in {"python": python, "lamella": f"{python} -m lamella"}.items():
        (commands / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        (commands / name).chmod(0o755)
    return {
        **{name: value for name, value in os.environ.items() if name not in SETTINGS},
        "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.fspath(BUILD / "python"),
        "OMP_WAIT_POLICY": "passive",
    }


def compare(block, printed, expected):
    """BlockError unless the block printed what the page says; "..." stands for anything."""
    want = expected.source.rstrip() if expected is not None else ""
    if doctest.OutputChecker().check_output(want, printed.rstrip(), doctest.ELLIPSIS):
        return
    if expected is None:
        raise BlockError(f"{block.place}: prints what the page does not show:\n{printed}")
    raise BlockError(f"{expected.place}: the page shows\n{want}but what came is\n{printed}")


class PageRun:
    """The processes of one page; a Python session lives from the first block to the last."""

    def __init__(self, folder):
        self.folder = folder / "checkout"
        commands = folder / "bin"
        for made in (self.folder, commands):
            made.mkdir()
        lay_out(self.folder)
        self.environment = environment(commands)
        self.session = None

    def run(self, blocks):
        """Runs blocks in order. BlockError for the first one that does not do as the page says."""
        try:
            for number, block in enumerate(blocks):
                following = blocks[number + 1] if number + 1 < len(blocks) else None
                expected = following if following and following.language == OUTPUT else None
                self.run_block(block, expected)
        finally:
            self.close()

    def run_block(self, block, expected):
        if block.file is not None:
            (self.folder / block.file).write_text(block.source)
        elif block.elsewhere is not None:
            check_elsewhere(block)
        elif block.language == PYTHON:
            self.run_python(block, expected)
        elif block.language == SHELL:
            self.run_command(block, ["bash", "-euo", "pipefail", "-c", block.source], expected)
        elif block.language == CPP:
            self.run_cpp(block, expected)

    def run_command(self, block, command, expected):
        run = subprocess.run(
            command, cwd=self.folder, env=self.environment, text=True, timeout=SECONDS,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        if run.returncode != 0:
            raise BlockError(f"{block.place}: ends with {run.returncode}:\n{run.stdout}")
        compare(block, run.stdout, expected)

    def run_cpp(self, block, expected):
        """The page's blocks are one program, which the build compiled; the last one runs it."""
        if "int main(" in block.source:
            self.run_command(block, [os.fspath(program_of(block.page))], expected)

    def run_python(self, block, expected):
        if self.session is None:
            self.session = subprocess.Popen(
                [sys.executable, os.fspath(ROOT / "tests/docs/session.py")], cwd=self.folder,
                env=self.environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            )  # fmt: skip
        page = os.path.relpath(block.page, ROOT)
        asked = {"page": page, "line": block.line, "source": block.source}
        self.session.stdin.write(json.dumps(asked) + "\n")
        self.session.stdin.flush()
        answer = self.session.stdout.readline()
        if not answer:
            raise BlockError(f"{block.place}: the process died of this block")
        answer = json.loads(answer)
        if answer["traceback"] is not None and expected is None:
            raise BlockError(f"{block.place}:\n{answer['traceback']}")
        try:
            compare(block, answer["output"], expected)
        except BlockError as failed:
            raise BlockError(f"{failed}\n{answer['traceback'] or ''}") from None

    def close(self):
        if self.session is not None:
            self.session.stdin.close()
            self.session.wait(timeout=SECONDS)
            self.session.stdout.close()


def program_of(page):
    """The program that tests/docs/CMakeLists.txt makes of a page's C++ blocks."""
    program = BUILD / "tests/docs" / f"page_{page.stem}"
    if not program.exists():
        raise BlockError(f"{page}: its C++ is not compiled: name it in tests/docs/CMakeLists.txt")
    return program


def check_elsewhere(block):
    """BlockError unless the test that is said to run a block names what the block runs."""
    path = ROOT / block.elsewhere
    if not path.is_file():
        raise BlockError(f"{block.place}: there is no test {block.elsewhere}")
    text = path.read_text()
    if block.language != SHELL:
        wanted = [{block.page.name}]
    else:
        lines = [line.partition("#")[0].strip() for line in block.source.splitlines()]
        # The whole command, or the file it runs.
        wanted = [{line, *(w for w in line.split() if "/" in w)} for line in lines if line]
    for names in wanted:
        if not any(name in text for name in names):
            raise BlockError(f"{block.place}: {block.elsewhere} has nothing of {max(names)!r}")
