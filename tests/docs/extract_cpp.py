"""Writes a source file of the C++ blocks of a page; --declaration puts an operator's frame around.

Lines keep their numbers of the page in what the compiler says.
"""

import argparse
import pathlib

from blocks import CPP, read_blocks

BEFORE_DECLARATION = """#include "lamella/ops/functions.h"
#include "lamella/ops/infer_rules.h"
#include "lamella/ops/opdef.h"
#include "lamella/ops/tensor_operators.h"

namespace lamella {

using tile::Opcode;
"""

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("page", type=pathlib.Path)
parser.add_argument("source", type=pathlib.Path)
parser.add_argument("--declaration", action="store_true")
options = parser.parse_args()
blocks = [block for block in read_blocks(options.page) if block.language == CPP]
if not blocks:
    raise SystemExit(f"{options.page} has no C++ block")
code = "".join(f'#line {block.line} "{block.page}"\n{block.source}' for block in blocks)
if options.declaration:
    code = f"{BEFORE_DECLARATION}\n{code}\n}}  // namespace lamella\n"
options.source.write_text(code)
