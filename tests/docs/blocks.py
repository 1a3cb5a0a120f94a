"""The code blocks of a Markdown page, and what the page says about running each of them."""

import dataclasses
import pathlib
import re

# What a block may be, by the word after its fence.
PYTHON, SHELL, CPP = "python", "sh", "cpp"
RUNNABLE = (PYTHON, SHELL, CPP)
OUTPUT = "output"  # what the block before it prints
PICTURE = "text"  # a drawing or a file's text: nothing to run

FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,})(?P<language>[^`]*)$")
# On the line before a block: <!-- file: train.py --> or <!-- run: in another test: tests/x.py -->.
MARKER = re.compile(r"^<!-- (?P<kind>\w+): (?P<text>.*) -->$")
ELSEWHERE = "in another test: "


class PageError(Exception):
    """A block of which the page does not say how it is run."""


@dataclasses.dataclass(frozen=True)
class Block:
    """One block: where it stands, what it is, and its marker's text if it has one."""

    page: pathlib.Path
    line: int  # of its first line, counted from 1
    language: str
    source: str
    file: str | None = None  # the name of the file the block is to be written to
    elsewhere: str | None = None  # the test that runs it instead

    @property
    def place(self):
        return f"{self.page}:{self.line}"


def _marked(block, comment):
    """The block with what the comment before it says."""
    marker = MARKER.match(comment)
    if marker is None:
        return block
    kind, text = marker["kind"], marker["text"]
    if kind == "file":
        return dataclasses.replace(block, file=text)
    if kind == "run" and text.startswith(ELSEWHERE):
        return dataclasses.replace(block, elsewhere=text.removeprefix(ELSEWHERE))
    raise PageError(
        f"{block.place}: the comment before this block is none that is known: {comment}"
    )


def read_blocks(page):
    """The blocks of a page in order. PageError for one that nothing is known about."""
    blocks, lines = [], page.read_text().splitlines()
    number, before = 0, ""
    while number < len(lines):
        fence = FENCE.match(lines[number])
        if fence is None:
            before = lines[number]
            number += 1
            continue
        indent, end = len(fence["indent"]), fence["indent"] + fence["ticks"]
        first = number = number + 1
        while number < len(lines) and lines[number].rstrip() != end:
            number += 1
        if number == len(lines):
            raise PageError(f"{page}:{first}: this block is not closed")
        source = "".join(f"{line[indent:]}\n" for line in lines[first:number])
        block = _marked(Block(page, first + 1, fence["language"].strip(), source), before)
        check(block, blocks[-1] if blocks else None)
        blocks.append(block)
        before = ""
        number += 1
    return blocks


def check(block, previous):
    """PageError unless the block says what it is."""
    if block.file is not None:
        return
    if block.language not in (*RUNNABLE, OUTPUT, PICTURE):
        raise PageError(
            f"{block.place}: a block of the language {block.language!r} and without a marker; "
            f"known are {', '.join((*RUNNABLE, OUTPUT, PICTURE))}"
        )
    if block.elsewhere is not None and block.language not in RUNNABLE:
        raise PageError(f"{block.place}: a block of {block.language} is not run in any test")
    if block.language == OUTPUT and (
        previous is None or previous.language not in RUNNABLE or previous.file is not None
    ):
        raise PageError(f"{block.place}: this output stands after no block that is run")
