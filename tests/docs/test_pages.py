"""Every block of code in the documentation does what the page says; every link leads somewhere."""

import os
import re

import pytest

import lamella

from .blocks import read_blocks
from .page_run import ROOT, PageRun

PAGES = [ROOT / "README.md", ROOT / "README.zh.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINKING = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "bench/README.md"]
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def name(page):
    return os.fspath(page.relative_to(ROOT))


def test_there_are_pages():
    assert len(PAGES) > 10


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_the_code_of_the_page_runs(page, tmp_path):
    PageRun(tmp_path).run(read_blocks(page))


def anchor(heading):
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@pytest.mark.parametrize("page", LINKING, ids=name)
def test_links_of_the_page_lead_somewhere(page):
    for target in LINK.findall(CODE.sub("", page.read_text())):
        if re.match(r"\w+:", target):
            continue  # another site
        path, _, place = target.partition("#")
        file = page.parent / path if path else page
        assert file.exists(), f"{page}: {target}"
        if place:
            headings = re.findall(r"^#+ (.*)$", file.read_text(), re.MULTILINE)
            assert place in [anchor(heading) for heading in headings], f"{page}: {target}"


def test_every_variable_of_the_environment_is_explained():
    sources = [*(ROOT / "lamella").rglob("*.cpp"), *(ROOT / "python/lamella").rglob("*.py")]
    used = {
        name for file in sources for name in re.findall(r'"(LAMELLA_[A-Z_]+)"', file.read_text())
    }
    page = (ROOT / "docs/tutorial/10_speed.md").read_text()
    assert used
    assert [name for name in sorted(used) if f"`{name}=" not in page] == []


def test_every_option_of_set_context_is_explained():
    from lamella import context

    page = (ROOT / "docs/coming_from_mindspore.md").read_text()
    assert [name for name in context._DEFAULTS if f"`{name}`" not in page] == []


@pytest.mark.parametrize("page", ["README.md", "README.zh.md"])
def test_the_number_of_operators_is_right_in_tens(page):
    stated = re.search(r"^\| (\d+) (operators|个算子)", (ROOT / page).read_text(), re.MULTILINE)
    assert int(stated[1]) == len(lamella.operators()) // 10 * 10


def test_the_index_names_every_page():
    index = ROOT / "docs/README.md"
    linked = {(index.parent / target).resolve() for target in LINK.findall(index.read_text())}
    for page in sorted((ROOT / "docs").rglob("*.md")):
        # Decisions are listed by their folder.
        assert page == index or page.parent.name == "decisions" or page in linked, page
