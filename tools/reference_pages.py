"""The reference as Markdown pages, from the declarations of operators and the tables of names.

Nothing in it is written by hand: operators come from the library, their families from the files
that declare them, the spellings from python/names, everything else from the package's own
signatures and docstrings. tools/build_docs renders the pages.
"""

import ast
import importlib
import inspect
import pathlib
import re
import sys
import types

import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import generate_ops  # noqa: E402 (stands beside this file)
import lamella.alias  # noqa: E402, F401

import lamella  # noqa: E402

# Tables of names: file and table -> how programs spell a name of it, the page, what it is.
SPELLINGS = {
    ("ops", "functions"): ("ops.", "ops", "The functions of `mindspore.ops`"),
    ("ops", "primitives"): ("ops.", "primitives", "The primitives of `mindspore.ops`"),
    ("mint", "functions"): ("mint.", "mint", "The functions of `mindspore.mint`"),
    ("mint", "nn_functional"): (
        "mint.nn.functional.", "mint_nn_functional",
        "The functions of `mindspore.mint.nn.functional`",
    ),
    ("numpy", "functions"): ("numpy.", "numpy", "The functions of `mindspore.numpy`"),
    ("tensor", "methods"): ("Tensor.", "tensor", "The methods of `Tensor`"),
}  # fmt: skip

# Modules whose classes and functions are described by themselves; modules of tables come above.
MODULES = [
    "mindspore", "mindspore.nn", "mindspore.ops", "mindspore.mint", "mindspore.mint.nn",
    "mindspore.mint.optim", "mindspore.numpy", "mindspore.dataset", "mindspore.dataset.transforms",
    "mindspore.dataset.vision", "mindspore.dataset.config", "mindspore.train",
    "mindspore.amp", "mindspore.boost", "mindspore.profiler", "mindspore.runtime",
    "mindspore.context", "mindspore.common", "mindspore.common.dtype",
    "mindspore.common.initializer", "lamella",
    "lamella.control_flow",
]  # fmt: skip


def tables():
    """(file, table) -> rows by name."""
    return {
        (file, table): tomllib.loads((ROOT / f"python/names/{file}.toml").read_text())[table]
        for file, table in SPELLINGS
    }


def families():
    """Operator -> the family it is declared in; a family is a file of lamella/ops."""
    return {
        name: source.stem
        for source in sorted((ROOT / "lamella/ops").glob("*.cpp"))
        for name, _, _ in generate_ops.read_operators([source])
    }


# ---- Which operators a name stands for ----


def adapters():
    """Function of lamella.adapt -> (operators, adapters) that it calls by name."""
    found = {}
    for file in sorted((ROOT / "python/lamella/adapt").glob("*.py")):
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                operators = {
                    part.attr
                    for part in ast.walk(node)
                    if isinstance(part, ast.Attribute)
                    and isinstance(part.value, ast.Name)
                    and part.value.id == "_o"
                }
                names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
                found[node.name] = (operators, names - {node.name})
    return found


def operators_of(meaning, operators, adapting):
    """The operators that a row's meaning is made of, those of adapters included."""
    reached, seen = set(), set()
    waiting = [part.id for part in ast.walk(ast.parse(meaning)) if isinstance(part, ast.Name)]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in adapting:
            called, names = adapting[name]
            reached |= called & operators
            waiting += names & set(adapting)
        elif name in operators:
            reached.add(name)
    return sorted(reached)


# Operators that only bring operands into form.
FORM = {
    "reshape", "squeeze", "expand_dims", "transpose", "cast", "broadcast_to", "narrow",
    "stop_gradient", "zeros_like", "ones_like",
}  # fmt: skip


def stands_for(name, operators):
    """The operator that a name made of these is a spelling of; None if several are composed."""
    if name.lower() in operators:
        return name.lower()
    main = [operator for operator in operators if operator not in FORM] or operators
    return main[0] if len(main) == 1 else None


# ---- Pages ----


def cell(text):
    """Text that fits into a table's cell."""
    return re.sub(r"\s+", " ", text).replace("|", "\\|")


def code(text):
    return f"`{cell(text)}`"


def operator_links(names):
    return ", ".join(f"[{name}](operators.md#{name})" for name in names)


def parameter_text(parameter):
    if "default" in parameter:
        return f"{parameter['name']}={parameter['default']!r}"
    return parameter["name"]


PROMOTIONS = {
    "none": "dtypes stay as they are",
    "common": "operands take their common dtype",
    "float": "operands take their common dtype, integers and bool become float32",
    "branches": "the first operand stays, the others take their common dtype",
    "first": "operands take the dtype of the first",
}
LOWERINGS = {
    "composite": "made of other operators, fused with its neighbours",
    "tile": "element by element, fused with its neighbours",
    "reduction": "a reduction, fused with its neighbours",
    "index": "element numbers, fused with its neighbours",
    "view": "a view: no element is moved unless a kernel needs them dense",
    "kernel": "a kernel of its own",
    "control": "runs the graphs of its bodies",
}


def operator_section(operator, spellings):
    parameters = ", ".join(parameter_text(p) for p in operator["parameters"])
    lines = [f"### {operator['name']}", "", operator["doc"], ""]
    lines += ["```text", f"{operator['name']}({parameters})", "```", ""]
    operands = [p for p in operator["parameters"] if "tensor" in p["kind"]]
    for operand, accepted in zip(operands, operator["accepts"], strict=True):
        lines.append(f"- `{operand['name']}`: {', '.join(accepted) or 'any dtype'}")
    for parameter in operator["parameters"]:
        if parameter not in operands:
            lines.append(f"- `{parameter['name']}`: {parameter['kind']}")
    lines.append(f"- promotion: {PROMOTIONS[operator['promotion']]}")
    if operator["has_gradient"]:
        lines.append("- gradient: yes")
    else:
        lines.append(f"- gradient: none, {operator['why_no_gradient']}")
    lines.append(f"- runs as: {LOWERINGS[operator['lowering']]}")
    if operator["reference"]:
        lines.append(f"- in NumPy: `{operator['reference']}`")
    if spellings:
        lines.append(f"- spelled: {', '.join(f'`{spelling}`' for spelling in spellings)}")
    return [*lines, ""]


def operators_page(rows):
    """One section an operator, by family; rows: spelling -> operators."""
    spelled = {}
    for spelling, names in rows.items():
        if operator := stands_for(spelling.rpartition(".")[2], names):
            spelled.setdefault(operator, []).append(spelling)
    family = families()
    by_family = {}
    for operator in lamella.operators():
        by_family.setdefault(family.get(operator["name"], "others"), []).append(operator)
    lines = ["# Operators", "", "Every operator, by the file of `lamella/` that declares it.", ""]
    for name in sorted(by_family):
        listed = ", ".join(f"[{o['name']}](#{o['name']})" for o in by_family[name])
        lines += [f"- `ops/{name}.cpp`: {listed}"]
    for name in sorted(by_family):
        lines += ["", f"## `ops/{name}.cpp`", ""]
        for operator in by_family[name]:
            lines += operator_section(operator, spelled.get(operator["name"], []))
    return lines


def table_page(title, table, operators, adapting, prefix):
    """(lines of the page, spelling -> operators)."""
    lines = [f"# {title}", "", "| name | means | operators |", "|---|---|---|"]
    rows = {}
    for name, row in sorted(table.items()):
        # A primitive has two signatures, of making it and of calling it.
        head = name + "".join(row[:-1])
        reached = operators_of(row[-1], operators, adapting)
        rows[prefix + name] = reached
        lines.append(
            f"| <a id='{name}'></a>{code(head)} | {code(row[-1])} | {operator_links(reached)} |"
        )
    return lines, rows


def public_names(module):
    """The names of a module that users may rely on, with what they are."""
    found = {}
    for name, value in sorted(vars(module).items()):
        foreign = getattr(value, "__module__", None)
        if (
            name.startswith("_")
            or isinstance(value, types.ModuleType)
            or name == "missing"
            or (isinstance(foreign, str) and foreign.split(".")[0] not in ("lamella", "mindspore"))
        ):
            continue
        found[name] = value
    return found


def signature_of(value):
    try:
        return str(inspect.signature(value))
    except (TypeError, ValueError):
        return ""


def is_class_or_function(value):
    return inspect.isclass(value) or callable(value)


def module_page(name, known):
    """A module's own classes and functions; `known` are names that a table describes."""
    module = importlib.import_module(name)
    lines = [f"# `{name}`", "", inspect.getdoc(module) or "", ""]
    plain = []
    for public, value in public_names(module).items():
        if public in known:
            continue
        if not is_class_or_function(value) or isinstance(value, lamella.dtype):
            plain.append(f"- `{public}` = `{value!r}`")
            continue
        lines += [f"### {public}", ""]
        lines += ["```text", f"{public}{signature_of(value)}", "```", ""]
        lines += [inspect.getdoc(value) or "", ""]
    if plain:
        lines += ["## Values", "", *plain, ""]
    return lines


def page_of_module(name):
    return name.replace(".", "_")


def pages():
    """Every page: its file name -> its text."""
    made, rows = {}, {}
    operators = {operator["name"] for operator in lamella.operators()}
    adapting, named = adapters(), tables()
    for place, (prefix, page, title) in SPELLINGS.items():
        lines, reached = table_page(title, named[place], operators, adapting, prefix)
        made[f"{page}.md"] = lines
        rows |= reached
    made["operators.md"] = operators_page(rows)
    in_tables = {
        "mindspore.ops": {*named["ops", "functions"], *named["ops", "primitives"]},
        "mindspore.mint": {*named["mint", "functions"]},
        "mindspore.numpy": {*named["numpy", "functions"]},
    }
    for module in MODULES:
        made[f"{page_of_module(module)}.md"] = module_page(module, in_tables.get(module, set()))
    made["README.md"] = index_page(named)
    return {name: "\n".join(lines) + "\n" for name, lines in made.items()}


def index_page(named):
    lines = ["# Reference", "", "Written from the declarations by `make docs`.", ""]
    lines.append(f"- [Operators](operators.md): {len(lamella.operators())} of them")
    for place, (_, page, title) in SPELLINGS.items():
        lines.append(f"- [{title}]({page}.md): {len(named[place])} names")
    for module in MODULES:
        summary = (inspect.getdoc(importlib.import_module(module)) or "").split("\n")[0]
        lines.append(f"- [`{module}`]({page_of_module(module)}.md): {summary}")
    return lines
