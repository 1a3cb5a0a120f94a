"""tools/check_layers reports each kind of forbidden include, and nothing else."""

import pathlib
import subprocess
import sys

import pytest

TOOL = pathlib.Path(__file__).parents[2] / "tools" / "check_layers"


@pytest.fixture
def check(tmp_path):
    """Writes a small tree of {path: includes} and returns what the tool prints about it."""

    def run(files: dict[str, str]) -> list[str]:
        for path, text in files.items():
            file = tmp_path / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("".join(f"#include {name}\n" for name in text.split()))
        result = subprocess.run([sys.executable, TOOL, tmp_path], capture_output=True, text=True)
        lines = result.stdout.splitlines()
        assert result.stderr == ""
        assert result.returncode == (1 if lines else 0)
        return lines

    return run


def test_a_tree_that_keeps_to_the_table_is_accepted(check):
    assert not check(
        {
            "lamella/lamella.h": '"lamella/nn/cell.h" "lamella/base/error.h"',
            "lamella/base/error.h": "<string>",
            "lamella/base/system/pages.cpp": "<sys/mman.h> <unistd.h>",
            "lamella/base/parallel.cpp": "<omp.h>",
            "lamella/types/shape.cpp": '"lamella/types/shape.h" "lamella/base/error.h"',
            "lamella/types/shape.h": "<vector>",
            "lamella/tile/math/exp_avx2.cpp": "<immintrin.h>",
            "lamella/tile/cpu/compiler.cpp": "<llvm-c/Core.h>",
            "lamella/kernels/onednn_matmul.cpp": "<oneapi/dnnl/dnnl.hpp>",
            "lamella/ops/unary.cpp": '"lamella/tile/math/exp.h" "lamella/tile/builder.h"',
            "lamella/runtime/flush.cpp": '"lamella/tile/cpu/compiler.h" "lamella/ops/registry.h"',
            "lamella/nn/cell.h": '"lamella/runtime/flush.h"',
            "cli/main.cpp": '"lamella/models/lenet.h" "cli/options.h" <CLI/CLI.hpp>',
            "python/module.cpp": '<Python.h> <nanobind/nanobind.h> "lamella/train/model.h"',
            "tests/runtime/flush_test.cpp": '<gtest/gtest.h> <sys/wait.h> "lamella/tile/cpu/x.h"',
        }
    )


@pytest.mark.parametrize(
    ("file", "header", "reason"),
    [
        # A lower layer that names an upper one.
        ("lamella/base/log.cpp", '"lamella/types/dtype.h"', "base may include: nothing"),
        ("lamella/ir/node.cpp", '"lamella/ops/registry.h"', "ir may include: base types device"),
        ("lamella/ir/node.cpp", '"lamella/tile/builder.h"', "ir may include"),
        ("lamella/ir/tensor.cpp", '"lamella/runtime/flush.h"', "ir may include"),
        ("lamella/tile/verify.cpp", '"lamella/ir/node.h"', "tile may include"),
        ("lamella/transform/grad.cpp", '"lamella/device/pool.h"', "transform may include"),
        ("lamella/runtime/flush.cpp", '"lamella/nn/cell.h"', "runtime may include"),
        ("lamella/data/map.cpp", '"lamella/ops/math.h"', "data may include"),
        ("lamella/ops/unary.cpp", '"lamella/device/pool.h"', "ops may include"),
        # Of the tile layer, operators see the builder and the mathematics only.
        ("lamella/ops/unary.cpp", '"lamella/tile/interpreter.h"', "ops may include"),
        ("lamella/transform/fuse.cpp", '"lamella/tile/cpu/jit.h"', "private to tile"),
        ("lamella/runtime/select.cpp", '"lamella/kernels/onednn.h"', "private to kernels"),
        # What is no layer.
        ("lamella/base/log.cpp", '"lamella/misc/x.h"', "'misc' is no layer"),
        ("lamella/nn/cell.cpp", '"lamella/lamella.h"', "umbrella"),
        # How a header is named.
        ("lamella/base/log.cpp", '"log.h"', "file path from the root"),
        ("lamella/base/log.cpp", '"../base/log.h"', "file path from the root"),
        ("lamella/base/log.cpp", "<lamella/base/log.h>", 'included with ""'),
        ("python/module.cpp", '"cli/options.h"', "not for others"),
        ("lamella/base/log.cpp", '"cli/options.h"', "not for others"),
        # Foreign headers outside their places.
        ("lamella/data/map.cpp", "<sys/mman.h>", "system calls"),
        ("cli/main.cpp", "<unistd.h>", "system calls"),
        ("lamella/kernels/sort.cpp", "<immintrin.h>", "intrinsics"),
        ("lamella/kernels/sort.cpp", "<cpuid.h>", "intrinsics"),
        ("lamella/tile/builder.cpp", "<llvm/IR/IRBuilder.h>", "LLVM"),
        ("lamella/runtime/flush.cpp", "<llvm-c/Core.h>", "LLVM"),
        ("lamella/kernels/sort.cpp", "<dnnl.hpp>", "oneDNN"),
        ("lamella/runtime/flush.cpp", "<oneapi/dnnl/dnnl.h>", "oneDNN"),
        ("lamella/nn/cell.cpp", "<Python.h>", "Python"),
        ("cli/main.cpp", "<nanobind/nanobind.h>", "Python"),
        ("lamella/data/map.cpp", "<omp.h>", "base/parallel"),
        ("lamella/nn/cell.cpp", "<mpi.h>", "communication"),
        ("lamella/nn/cell.cpp", "<gtest/gtest.h>", "test frameworks"),
    ],
)
def test_a_forbidden_include_is_reported_with_its_place_and_reason(check, file, header, reason):
    (fault,) = check({file: "<vector> " + header})
    assert fault.startswith(f"{file}:2: includes {header.strip('<>' + chr(34))}: ")
    assert reason in fault


def test_a_folder_that_is_no_layer_is_reported(check):
    (fault,) = check({"lamella/helpers/string.cpp": "<string>"})
    assert fault.startswith("lamella/helpers: no layer")


def test_headers_that_include_each_other_are_reported(check):
    (fault,) = check(
        {
            "lamella/ir/node.h": '"lamella/ir/value.h"',
            "lamella/ir/value.h": '"lamella/ir/graph.h"',
            "lamella/ir/graph.h": '"lamella/ir/node.h"',
        }
    )
    assert fault.count(" -> ") == 3


def test_an_include_inside_a_comment_does_not_count(check, tmp_path):
    folder = tmp_path / "lamella" / "base"
    folder.mkdir(parents=True)
    (folder / "log.cpp").write_text(
        '/* like\n#include "lamella/nn/cell.h"\n*/\n// #include <unistd.h>\n#include <vector>\n'
    )
    assert not check({})
