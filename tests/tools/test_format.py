"""tools/format leaves the declarations of operators as their authors laid them out."""

import pathlib
import runpy

TOOL = pathlib.Path(__file__).parents[2] / "tools" / "format"
lines_to_format = runpy.run_path(str(TOOL))["lines_to_format"]


def test_a_file_without_declarations_is_formatted_whole():
    assert lines_to_format("int x;\nint y;\n") == ["--lines=1:2"]


def test_lines_of_declarations_are_left_out():
    text = """// Arithmetic.

LAMELLA_OP(add, (Operand x, Operand y),
    .cost = Cost{1})

int between;

LAMELLA_OP_MULTI(split, (Operand x),
    .cost = Cost{1})

}  // namespace
"""
    assert lines_to_format(text) == ["--lines=1:2", "--lines=5:7", "--lines=10:11"]


def test_a_declaration_may_stand_at_either_end():
    assert lines_to_format("LAMELLA_OP(a,\n    .b)\n\nint x;\n") == ["--lines=3:4"]
    assert lines_to_format("int x;\n\nLAMELLA_OP(a,\n    .b)\n") == ["--lines=1:2"]
    assert lines_to_format("LAMELLA_OP(a,\n    .b)\n") == []
