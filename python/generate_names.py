#!/usr/bin/env python3
"""Writes the modules of public names and their stubs from the tables in python/names.

A row is `name = [signature, meaning]`: the signature as inspect.signature shows it, and the meaning
as one Python expression over its arguments, operators and the functions of lamella.adapt. A meaning
that only passes arguments on to an operator becomes a native function; any other becomes a Python
one. `axis|dim=None` in a signature accepts `dim` as another keyword for `axis`. A primitive is
`Name = [signature of making it, signature of calling it, meaning]`. Names whose operator does not
exist are left out and listed in the module's MISSING.

Usage: generate_names.py OUTPUT_FOLDER OPERATORS_TOOL OPERATOR_SOURCE...
"""

import ast
import importlib.util
import sys
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:
    import tomli as tomllib

HERE = Path(__file__).parent
LITERALS = {"inf", "nan", "True", "False", "None"}
BUILTINS = {"len", "isinstance"}


def split_list(text):
    parts, depth, current = [], 0, ""
    for char in text + ",":
        if char == "," and depth == 0:
            if current.strip():
                parts.append(current.strip())
            current = ""
            continue
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(char, 0)
        current += char
    return parts


class Signature:
    """The parameters of a row, in order."""

    def __init__(self, text):
        self.parameters = []  # (name, default or None, kind), kind in "", "*", "**", "keyword"
        self.aliases = {}  # other keyword -> name
        keyword_only = False
        for part in split_list(text.strip()[1:-1]):
            if part == "*":
                keyword_only = True
                continue
            name, equals, default = part.partition("=")
            name, *aliases = name.strip().split("|")
            stars = len(name) - len(name.lstrip("*"))
            name = name.lstrip("*")
            for alias in aliases:
                self.aliases[alias] = name
            kind = "*" * stars or ("keyword" if keyword_only else "")
            keyword_only = keyword_only or stars == 1
            self.parameters.append((name, default.strip() if equals else None, kind))

    @property
    def names(self):
        return [name for name, _, _ in self.parameters]

    def text(self, aliases=False, code=False):
        parts, starred = [], False
        for name, default, kind in self.parameters:
            if kind == "keyword" and not starred:
                parts.append("*")
                starred = True
            starred = starred or kind == "*"
            stars = kind if kind in ("*", "**") else ""
            if default is not None and code:
                default = as_code(default)
            parts.append(stars + name + (f"={default}" if default is not None else ""))
        if aliases and self.aliases:
            extra = [f"{alias}=_a.UNSET" for alias in self.aliases]
            rest = parts.pop() if parts and parts[-1].startswith("**") else None
            parts += ([] if starred else ["*"]) + extra + ([rest] if rest else [])
        return "(" + ", ".join(parts) + ")"


def as_code(default):
    for kind in ("float32", "float16", "int32", "int64"):
        default = default.replace(f"mindspore.{kind}", f"_n.{kind}")
    return "_a.INF" if default == "inf" else default


class Resolver(ast.NodeTransformer):
    """Names in a meaning become those of the generated module."""

    def __init__(self, arguments, operators, adapters):
        self.arguments, self.operators, self.adapters = set(arguments), operators, adapters
        self.unknown = set()

    def visit_Name(self, node):
        if node.id in self.arguments or node.id in LITERALS:
            return node
        for prefix, names in (("_a", self.adapters), ("_o", self.operators)):
            if node.id in names:
                value = ast.Name(id=prefix, ctx=ast.Load())
                return ast.Attribute(value=value, attr=node.id, ctx=ast.Load())
        if node.id not in BUILTINS and node.id != "_n":
            self.unknown.add(node.id)
        return node


class Module:
    """One generated module."""

    def __init__(self, operators, adapters, docs):
        self.operators, self.adapters, self.docs = operators, adapters, docs
        self.lines, self.stubs, self.names, self.missing = [], [], [], []

    def passes_on(self, signature, tree):
        """The operator's parameter for each argument, if the meaning is one plain call."""
        call = tree.body
        plain = (
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Name)
            and call.func.id in self.operators
            and call.func.id not in self.adapters
        )
        if not plain:
            return None
        parameters = self.operators[call.func.id]
        targets = {}
        for position, argument in enumerate(call.args):
            if isinstance(argument, ast.Starred):
                argument = argument.value
            if not isinstance(argument, ast.Name) or position >= len(parameters):
                return None
            targets[argument.id] = parameters[position]
        for keyword in call.keywords:
            if not isinstance(keyword.value, ast.Name):
                return None
            targets[keyword.value.id] = keyword.arg
        if set(targets) != set(signature.names):
            return None
        return call.func.id, targets

    def doc(self, meaning):
        """A docstring's text: the meaning, after what its outermost function does.

        That is left out where an operator is one of several: a product of many says little.
        """
        tree = ast.parse(meaning, mode="eval").body
        used = [n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id in self.operators]
        while isinstance(tree, (ast.Subscript, ast.Attribute)):
            tree = tree.value
        called = tree.func.id if isinstance(tree, ast.Call) and hasattr(tree.func, "id") else ""
        says = self.docs.get(called, "")
        if called in self.operators and called not in self.adapters and len(used) > 1:
            says = ""
        return f"{says}\n\nMeans `{meaning}`." if says else f"Means `{meaning}`."

    def function(self, name, row):
        signature = Signature(row[0])
        tree = ast.parse(row[1], mode="eval")
        native = self.passes_on(signature, tree)
        if native:
            op, targets = native
            rows = []
            variadic = False
            for parameter, default, kind in signature.parameters:
                variadic = variadic or kind == "*"
                aliases = tuple(a for a, n in signature.aliases.items() if n == parameter)
                value = as_code(default) if default is not None else "None"
                rows.append(
                    f"({parameter!r}, {aliases}, {default is not None}, {value},"
                    f" {targets[parameter]!r}, {kind == 'keyword'})"
                )
            self.lines.append(
                f"{name} = _n.dialect_function({name!r}, {op!r}, {signature.text()!r},"
                f" [{', '.join(rows)}], {variadic})"
            )
        else:
            resolver = Resolver(signature.names, self.operators, self.adapters)
            expression = ast.unparse(resolver.visit(tree))
            if resolver.unknown:
                self.missing.append(name)
                return False
            self.lines += ["", f"def {name}{signature.text(aliases=True, code=True)}:"]
            self.lines += [f"    {self.doc(row[1])!r}"]
            self.lines += self.alias_lines(signature) + self.explained(expression, "    ") + [""]
        self.stubs.append(f"def {name}{signature.text(code=True)}: ...")
        self.names.append(name)
        return True

    @staticmethod
    def explained(expression, indent):
        """Returns an expression, whose functions ask their arguments for attributes of tensors."""
        lines = [
            "try:",
            f"    return {expression}",
            "except AttributeError as error:",
            "    _a.explain(error)",
            "    raise",
        ]
        return [indent + line for line in lines]

    @staticmethod
    def alias_lines(signature):
        return [
            f"    {name} = _a.either({alias!r}, {alias}, {name})"
            for alias, name in signature.aliases.items()
        ]

    def primitive(self, name, row):
        made, called = Signature(row[0]), Signature(row[1])
        resolver = Resolver(made.names + called.names, self.operators, self.adapters)
        expression = ast.unparse(resolver.visit(ast.parse(row[2], mode="eval")))
        if resolver.unknown:
            self.missing.append(name)
            return
        inside = made.text(code=True)[1:-1]
        outside = called.text(code=True)[1:-1]
        stores = [f"        self.{p} = {p}" for p in made.names]
        loads = [f"        {p} = self.{p}" for p in made.names if p in expression]
        self.lines += [
            "",
            f"class {name}(_a.Primitive):",
            f"    {self.doc(row[2])!r}",
            "",
            f"    def __init__(self{', ' + inside if inside else ''}):",
            f"        super().__init__({name!r})",
            *stores,
            "",
            f"    def __call__(self{', ' + outside if outside else ''}):",
            *loads,
            *self.explained(expression, "        "),
            "",
        ]
        self.stubs += [
            f"class {name}:",
            f"    def __init__(self{', ' + inside if inside else ''}) -> None: ...",
            f"    def __call__(self{', ' + outside if outside else ''}): ...",
        ]
        self.names.append(name)

    def write(self, path, title):
        body = [
            f'"""{title} Generated from python/names."""',
            "",
            "from lamella import _native as _n",
            "from lamella import adapt as _a",
            "",
            "_o = _n.operators_by_name",
            "",
            *self.lines,
            "",
            f"MISSING = {sorted(self.missing)!r}",
            f"__all__ = {sorted(self.names)!r}",
        ]
        stubs = ["from lamella import _native as _n", "from lamella import adapt as _a", ""]
        for file, lines in ((path, body), (path.with_suffix(".pyi"), stubs + self.stubs)):
            text = "\n".join(lines) + "\n"
            file.parent.mkdir(parents=True, exist_ok=True)
            if not file.exists() or file.read_text() != text:
                file.write_text(text)


def load_operators(tool, sources):
    """(operator -> its parameters, operator -> what it computes)."""
    spec = importlib.util.spec_from_file_location("generate_ops", tool)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    operators = {
        name: [parameter for _, parameter, _ in parameters]
        for name, parameters, _ in module.read_operators(sources)
    }
    return operators, module.read_docs(sources)


def read_adapters():
    """Public name of lamella.adapt -> its docstring, if it has one."""
    docs = {}
    for file in (HERE / "lamella/adapt").glob("*.py"):
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
                docs[node.name] = ast.get_docstring(node) or ""
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name) and target.id[0] != "_":
                        docs[target.id] = ""
    return docs


# Table of the file -> (module written, what it is).
MODULES = {
    ("ops", "functions"): ("mindspore/ops/_functions.py", "The functions of mindspore.ops."),
    ("ops", "primitives"): ("mindspore/ops/_primitives.py", "The primitives of mindspore.ops."),
    ("mint", "functions"): ("mindspore/mint/_functions.py", "The functions of mindspore.mint."),
    ("mint", "nn_functional"): (
        "mindspore/mint/nn/_functions.py",
        "The functions of mindspore.mint.nn.functional.",
    ),
    ("numpy", "functions"): ("mindspore/numpy/_functions.py", "The functions of mindspore.numpy."),
    ("tensor", "methods"): ("_tensor_methods.py", "The methods of Tensor."),
}


def main():
    folder, tool, sources = Path(sys.argv[1]), sys.argv[2], sorted(sys.argv[3:])
    operators, docs = load_operators(tool, sources)
    adapters = read_adapters()
    tables = {
        file.stem: tomllib.loads(file.read_text()) for file in (HERE / "names").glob("*.toml")
    }
    for (file, table), (path, title) in MODULES.items():
        module = Module(operators, adapters, docs | adapters)
        for name, row in tables[file].get(table, {}).items():
            module.primitive(name, row) if table == "primitives" else module.function(name, row)
        module.write(folder / path, title)


if __name__ == "__main__":
    main()
