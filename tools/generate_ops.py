#!/usr/bin/env python3
"""Writes the C++ functions of the operators from their declarations.

Reads LAMELLA_OP(name, (parameters), ...) and LAMELLA_OP_MULTI in the given sources, and writes
functions.h and functions.cpp into the output folder. A file whose content would not change is left
alone, so that nothing is rebuilt for it.
"""

import re
import sys
from pathlib import Path

DECLARATION = re.compile(r"^LAMELLA_OP(_MULTI)?\(\s*(\w+),\s*", re.MULTILINE)
DOC = re.compile(r"\.doc\s*=\s*((?:\"(?:[^\"\\]|\\.)*\"\s*)+)")
OPERANDS = {"Operand", "OptionalOperand", "Operands"}
BY_VALUE = {"bool", "int64_t", "double", "DType"}


def parameter_list(text, start):
    """The text between the parentheses that open at start."""
    depth = 0
    for position in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[position], 0)
        if depth == 0:
            return text[start + 1 : position]
    raise SystemExit(f"a parameter list is not closed: {text[start : start + 60]!r}")


def split_parameters(text):
    """Triples of type, name and default; commas inside braces do not separate."""
    parts, depth, current = [], 0, ""
    for char in text + ",":
        if char == "," and depth == 0:
            if current.strip():
                parts.append(current.strip())
            current = ""
            continue
        depth += {"{": 1, "(": 1, "}": -1, ")": -1}.get(char, 0)
        current += char
    triples = []
    for part in parts:
        declared, _, default = part.partition("=")
        kind, _, name = " ".join(declared.split()).rpartition(" ")
        triples.append((kind, name, " ".join(default.split())))
    return triples


def read_operators(sources):
    operators = []
    for source in sources:
        text = Path(source).read_text()
        for match in DECLARATION.finditer(text):
            parameters = split_parameters(parameter_list(text, match.end()))
            operators.append((match[2], parameters, match[1] is not None))
    return sorted(operators)


def read_docs(sources):
    """Operator -> what its declaration says that it computes."""
    docs = {}
    for source in sources:
        text = Path(source).read_text()
        for match in DECLARATION.finditer(text):
            following = DECLARATION.search(text, match.end())
            doc = DOC.search(text, match.end(), following.start() if following else len(text))
            if doc is None:
                raise SystemExit(f"{match[2]}: its .doc is not a string literal")
            literals = re.findall(r'"((?:[^"\\]|\\.)*)"', doc[1])
            docs[match[2]] = "".join(literals).replace('\\"', '"')
    return docs


def signature(name, parameters, several, with_defaults):
    arguments = []
    for kind, parameter, default in parameters:
        text = f"{kind} {parameter}" if kind in BY_VALUE else f"const {kind}& {parameter}"
        if kind == "OptionalOperand" and not default:
            default = "{}"
        arguments.append(text + (f" = {default}" if default and with_defaults else ""))
    return f"{'std::vector<Tensor>' if several else 'Tensor'} {name}({', '.join(arguments)})"


def definition(name, parameters, several):
    operands = [p for k, p, _ in parameters if k in ("Operand", "OptionalOperand")]
    lists = [p for k, p, _ in parameters if k == "Operands"]
    attributes = [p for k, p, _ in parameters if k not in OPERANDS]
    if len(lists) > 1 or (lists and operands):
        raise SystemExit(f"{name}: a list of operands must be the only operand")
    lines = [signature(name, parameters, several, False) + " {"]
    made = "{}"
    if attributes:
        values = ", ".join(f"AttributeValue({a})" for a in attributes)
        made = f"make_attributes({{{values}}})"
    if lists:
        lines += [
            f"  const std::vector<Operand> operands({lists[0]}.begin(), {lists[0]}.end());",
            "  std::vector<const Operand*> pointers;",
            "  for (const Operand& operand : operands) pointers.push_back(&operand);",
        ]
    else:
        listed = ", ".join("&" + o for o in operands)
        lines.append(
            f"  const std::array<const Operand*, {len(operands)}> pointers = {{{listed}}};"
        )
    lines.append(f"  const Results results = call_operator({name}_definition, pointers, {made});")
    lines.append("  return tensors(results);" if several else "  return Tensor(results[0]);")
    return "\n".join([*lines, "}"])


def write_if_changed(path, text):
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def main():
    folder, sources = Path(sys.argv[1]), sorted(sys.argv[2:])
    operators = read_operators(sources)
    declarations = "\n".join(f"LAMELLA_API {signature(*op, True)};" for op in operators)
    write_if_changed(
        folder / "functions.h",
        "// Generated from the operators' declarations: the functions users call.\n"
        '#pragma once\n\n#include "lamella/ops/function_types.h"\n\n'
        f"namespace lamella::ops {{\n\n{declarations}\n\n}}  // namespace lamella::ops\n",
    )
    externs = "\n".join(f"extern const OpDef {name}_definition;" for name, _, _ in operators)
    definitions = "\n\n".join(definition(*op) for op in operators)
    write_if_changed(
        folder / "functions.cpp",
        "// Generated from the operators' declarations.\n"
        '#include "lamella/ops/functions.h"\n\n#include "lamella/ops/opdef.h"\n\n'
        f"namespace lamella {{\n\n{externs}\n\nnamespace ops {{\n\nnamespace {{\n\n"
        "[[maybe_unused]] std::vector<Tensor> tensors(const Results& results) {\n"
        "  std::vector<Tensor> made;\n"
        "  for (size_t i = 0; i < results.size(); ++i) made.emplace_back(results[i]);\n"
        "  return made;\n}\n\n}  // namespace\n\n"
        f"{definitions}\n\n}}  // namespace ops\n\n}}  // namespace lamella\n",
    )


if __name__ == "__main__":
    main()
