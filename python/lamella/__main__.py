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
    commands.add_parser("info", help="say what this build is").set_defaults(function=info)
    parsed = parser.parse_args(argv)
    parsed.function(parsed)


if __name__ == "__main__":
    main()
