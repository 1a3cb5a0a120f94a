"""Writes a source file around the first C++ block of a page."""

import pathlib
import re
import sys

page, source = map(pathlib.Path, sys.argv[1:])
block = re.search(r"```cpp\n(.*?)```", page.read_text(), re.DOTALL)
if block is None:
    raise SystemExit(f"{page} has no C++ block")
source.write_text(
    '#include "lamella/ops/functions.h"\n'
    '#include "lamella/ops/infer_rules.h"\n'
    '#include "lamella/ops/opdef.h"\n'
    '#include "lamella/ops/tensor_operators.h"\n\n'
    "namespace lamella {\n\nusing tile::Opcode;\n\n" + block[1] + "\n}  // namespace lamella\n"
)
