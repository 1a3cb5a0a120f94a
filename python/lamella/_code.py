"""What a code object names, and the name a call of getattr was given."""

import dis
import functools
import typing

# Attributes that lead to others by names that need not stand in the code.
_LEADING = {"__dict__", "__getattribute__", "__getattr__", "__setattr__", "__delattr__"}
_BY_NAME = {"getattr", "hasattr", "setattr", "delattr"}
_LOADS_LOCAL = {"LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW", "LOAD_DEREF"}
_CATCHING = {"SETUP_FINALLY", "SETUP_WITH"}  # before Python 3.11


class Facts(typing.NamedTuple):
    """What a code object may read."""

    globals: list  # names looked up among globals
    attributes: list  # names read or written as attributes
    imports: list  # (module, level) of its import statements
    catches: bool  # whether an error may end inside of it
    refused: str  # what it does that cannot be followed, if anything


@functools.lru_cache(maxsize=4096)
def facts_of(code):
    """The facts of a code object."""
    among_globals, attributes, imports, refused = set(), set(), [], ""
    catches = bool(getattr(code, "co_exceptiontable", b""))
    before = []
    for instruction in dis.get_instructions(code):
        name, value = instruction.opname, instruction.argval
        if name.endswith(("_GLOBAL", "_NAME")) and name != "IMPORT_NAME":
            among_globals.add(value)
            if value in _BY_NAME and "NULL" not in instruction.argrepr:  # not to be called here
                refused = refused or f"{value} as a value"
        elif name == "IMPORT_NAME":
            imports.append((value, before[0].argval))
        elif name.endswith(("_ATTR", "_METHOD")) or name == "IMPORT_FROM":
            attributes.add(value)
            if value in _LEADING:
                refused = refused or value
        elif name == "MATCH_CLASS":
            refused = refused or "a pattern of a class"
        catches = catches or name in _CATCHING
        before = [*before[-1:], instruction]
    return Facts(sorted(among_globals), sorted(attributes), imports, catches, refused)


@functools.lru_cache(maxsize=1024)
def _instructions_of(code):
    return list(dis.get_instructions(code))


def attribute_given(frame):
    """The second argument of the call that a frame is in; None if it was made for the call."""
    operands, end = [], None
    for instruction in _instructions_of(frame.f_code):
        if instruction.offset > frame.f_lasti:
            break
        if instruction.opname in ("PRECALL", "CACHE"):
            end = instruction if instruction.is_jump_target else end
            continue
        operands.append(instruction)
    call = operands.pop()
    if call.opname not in ("CALL", "CALL_FUNCTION") or call.arg < 2 or len(operands) < call.arg:
        return None
    # The name, and what follows it, must come from one instruction each, run one after the other.
    name, *others = operands[1 - call.arg :]
    joined = [end, call, *others]
    if any(each is not None and each.is_jump_target for each in joined):
        return None
    if any(_loaded(frame, each) is None for each in others):
        return None
    found = _loaded(frame, name)
    return found[0] if found is not None and isinstance(found[0], str) else None


def _loaded(frame, instruction):
    """(what an instruction loads,); None for one that does anything else."""
    name, value = instruction.opname, instruction.argval
    if name == "LOAD_CONST":
        return (value,)
    if name in _LOADS_LOCAL:
        return (frame.f_locals.get(value),)
    if name == "LOAD_GLOBAL" and "NULL" not in instruction.argrepr:
        return (frame.f_globals.get(value),)
    return None
