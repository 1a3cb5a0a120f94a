"""The runner of pages fails where a page is wrong, or says nothing about a block."""

import pytest

from .blocks import PageError, read_blocks
from .page_run import BlockError, PageRun


def run(folder, text):
    page = folder / "page.md"
    page.write_text(text)
    PageRun(folder).run(read_blocks(page))


UNCLEAR = {
    "no language": "```\nx = 1\n```\n",
    "an unknown language": "```fortran\nX = 1\n```\n",
    "an unknown marker": "<!-- run: another day -->\n```python\nx = 1\n```\n",
    "output of nothing": "```output\n1\n```\n",
    "output elsewhere": "<!-- run: in another test: tests/docs/blocks.py -->\n```text\n1\n```\n",
    "an open block": "```python\nx = 1\n",
}


@pytest.mark.parametrize("case", UNCLEAR)
def test_a_block_that_nothing_is_known_about_is_an_error(case, tmp_path):
    with pytest.raises(PageError, match=r"page\.md:\d"):
        run(tmp_path, UNCLEAR[case])


WRONG = {
    "python that fails": "```python\n1 / 0\n```\n",
    "another output": "```python\nprint(1)\n```\n```output\n2\n```\n",
    "output that is not shown": "```python\nprint(1)\n```\n",
    "no output where some is shown": "```python\nx = 1\n```\n```output\n1\n```\n",
    "another error": "```python\n1 / 0\n```\n```output\nZeroDivisionError: by one\n```\n",
    "a shell command that fails": "```sh\nfalse\n```\n",
    "a test that is not there": "<!-- run: in another test: tests/none.py -->\n```sh\ntrue\n```\n",
    "a test of something else": (
        "<!-- run: in another test: tests/docs/blocks.py -->\n```sh\nmake coffee\n```\n"
    ),
    "C++ that nobody compiles": "```cpp\nint main() {}\n```\n",
}


@pytest.mark.parametrize("case", WRONG)
def test_a_block_that_does_not_do_as_the_page_says_is_an_error(case, tmp_path):
    with pytest.raises(BlockError):
        run(tmp_path, WRONG[case])


def test_blocks_of_a_page_follow_each_other(tmp_path):
    run(
        tmp_path,
        """
```python
import mindspore as ms
x = ms.Tensor([1.0, 2.0])
open("written.txt", "w").write("by Python")
```

<!-- file: program.py -->
```python
import mindspore as ms
print(ms.Tensor([3.0]).asnumpy())
```

```sh
cat written.txt; echo; lamella run program.py
```

```output
by Python
[3.]
```

1. In a list.

   ```python
   print(x.sum().item())
   x.reshape(3)
   ```

   ```output
   3.0
   ValueError: [reshape] ...
   ```
""",
    )
