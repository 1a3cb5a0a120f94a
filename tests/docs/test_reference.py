"""The reference holds every operator and every public name; the documentation's links are whole."""

import html.parser
import importlib
import os
import pathlib
import re
import subprocess
import sys

import lamella.alias  # noqa: F401
import pytest
import tomllib

import lamella

ROOT = pathlib.Path(__file__).parents[2]
# Modules of the API, found by their files: what a program can import.
MODULES = sorted(
    ".".join(file.relative_to(ROOT / "python/lamella").with_suffix("").parts).removesuffix(
        ".__init__"
    )
    for file in (ROOT / "python/lamella/mindspore").rglob("*.py")
)
# Other paths to names that are described elsewhere.
SAME_AS = {
    "mindspore.ops.function", "mindspore.ops.functional", "mindspore.ops.operations",
    "mindspore.ops.composite", "mindspore.ops.primitive", "mindspore.ops.loops",
    "mindspore.train.callback", "mindspore.train.metrics", "mindspore.train.model",
    "mindspore.train.serialization", "mindspore.common.api", "mindspore.common.parameter",
    "mindspore.common.tensor", "mindspore.mint.nn.layers",
    "mindspore.mint.nn.functional",
}  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    run = subprocess.run(
        [sys.executable, ROOT / "tools/build_docs", folder], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    return folder


class Page(html.parser.HTMLParser):
    """What a page links to, and what can be linked to in it."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors, self.texts = [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id":
                self.anchors.add(value)
            elif name in ("href", "src"):
                self.links.append(value)

    def handle_data(self, text):
        self.texts.append(text)


@pytest.fixture(scope="module")
def pages(site):
    return {file: Page(file.read_text()) for file in site.rglob("*.html")}


def reference(pages, name):
    return next(page for file, page in pages.items() if file.match(f"docs/reference/{name}.html"))


def test_every_link_leads_somewhere(pages, site):
    for file, page in pages.items():
        for link in page.links:
            if re.match(r"\w+:", link):
                continue
            path, _, anchor = link.partition("#")
            target = pathlib.Path(os.path.normpath(file.parent / path)) if path else file
            assert target.is_file(), f"{file.relative_to(site)}: {link}"
            if anchor:
                assert anchor in pages[target].anchors, f"{file.relative_to(site)}: {link}"


def test_every_operator_is_described(pages):
    page = reference(pages, "operators")
    text = "".join(page.texts)
    for operator in lamella.operators():
        assert operator["name"] in page.anchors
        assert re.sub(r"[`*]", "", operator["doc"]) in re.sub(r"[`*]", "", text), operator["name"]


TABLES = {
    "ops": [("ops", "functions"), ("primitives", "primitives")],
    "mint": [("mint", "functions"), ("mint_nn_functional", "nn_functional")],
    "numpy": [("numpy", "functions")],
    "tensor": [("tensor", "methods")],
}


@pytest.mark.parametrize("file", TABLES)
def test_every_name_of_the_tables_is_described(file, pages):
    table = tomllib.loads((ROOT / f"python/names/{file}.toml").read_text())
    for page, part in TABLES[file]:
        assert set(table[part]) <= reference(pages, page).anchors


def test_tables_say_which_operators_a_name_is_made_of(pages):
    assert "operators.html#softmax" in reference(pages, "ops").links
    # Through a function that adapts arguments.
    assert "operators.html#convolution" in reference(pages, "mint_nn_functional").links
    text = " ".join(reference(pages, "operators").texts)
    for spelling in ("ops.softmax", "ops.LogSoftmax", "Tensor.add", "mint.nn.functional.conv2d"):
        assert spelling in text


def is_module_or_foreign(value):
    module = getattr(value, "__module__", None)
    return isinstance(value, type(pathlib)) or (
        isinstance(module, str) and module.split(".")[0] not in ("lamella", "mindspore")
    )


@pytest.mark.parametrize("name", [m for m in MODULES if m not in SAME_AS])
def test_every_public_name_is_described(name, pages):
    module = importlib.import_module(name)
    described = set(reference(pages, name.replace(".", "_")).texts)
    for page in ("ops", "primitives", "mint", "mint_nn_functional", "numpy"):
        described |= reference(pages, page).anchors
    for public, value in vars(module).items():
        if not public.startswith("_") and public != "missing" and not is_module_or_foreign(value):
            assert public in described, public


@pytest.mark.parametrize("name", sorted(SAME_AS))
def test_other_paths_have_no_names_of_their_own(name):
    module = importlib.import_module(name)
    others = [importlib.import_module(other) for other in MODULES if other not in SAME_AS]
    known = {public for other in others for public in vars(other)}
    if name == "mindspore.mint.nn.functional":
        from lamella.mindspore.mint.nn import _functions

        known |= set(_functions.__all__)
    for public, value in vars(module).items():
        if not public.startswith("_") and public != "missing" and not is_module_or_foreign(value):
            assert public in known, public


def test_every_public_class_and_function_has_a_docstring():
    sys.path.insert(0, os.fspath(ROOT / "tools"))
    import reference_pages

    bare = []
    for name in reference_pages.MODULES:
        module = importlib.import_module(name)
        for public, value in reference_pages.public_names(module).items():
            if callable(value) and not isinstance(value, lamella.dtype):
                inherited = isinstance(value, type) and "__doc__" not in vars(value)
                if inherited or not value.__doc__:
                    bare.append(f"{name}.{public}")
    assert bare == []
