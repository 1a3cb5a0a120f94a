"""python -m lamella: runs programs written for MindSpore, and tells about this build."""

import argparse
import os
import runpy
import sys


def run(arguments):
    """Runs a script with `mindspore` standing for Lamella."""
    import lamella.alias

    lamella.alias.install()
    sys.argv = [arguments.script, *arguments.arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(arguments.script))
    runpy.run_path(arguments.script, run_name="__main__")


def explain(arguments):
    """Runs a script and prints what the machine did for a layer of it."""
    from lamella.explanation import Explanation

    explanation = Explanation(arguments.layer)
    try:
        with explanation:
            run(arguments)
    finally:
        print(explanation.text(arguments.count), end="")


def _positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {number}")
    return number


def info(arguments):
    """Prints versions and sizes."""
    import numpy

    import lamella

    print(f"lamella {lamella.__version__}, {len(lamella.operators())} operators")
    print(f"python {sys.version.split()[0]}, numpy {numpy.__version__}")


def main(argv=None):
    parser = argparse.ArgumentParser(prog="lamella", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    runner = commands.add_parser("run", help="run a program written for MindSpore")
    runner.add_argument("script")
    runner.add_argument("arguments", nargs=argparse.REMAINDER)
    runner.set_defaults(function=run)
    explainer = commands.add_parser(
        "explain", help="run a program and show the tile programs of a layer and how fast they are"
    )
    explainer.add_argument(
        "--layer", default="", help="such as backbone.conv1; all if none is given"
    )
    explainer.add_argument(
        "--count", type=_positive, default=20, help="of launches shown, the costliest"
    )
    explainer.add_argument("script")
    explainer.add_argument("arguments", nargs=argparse.REMAINDER)
    explainer.set_defaults(function=explain)
    commands.add_parser("info", help="say what this build is").set_defaults(function=info)
    parsed = parser.parse_args(argv)
    parsed.function(parsed)


if __name__ == "__main__":
    main()
