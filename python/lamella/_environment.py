"""How long threads spin for more work, which OpenMP reads when it is loaded: with lamella._native.

Its usual 300,000 turns are 10 ms and more on recent processors. Where other programs want to run
meanwhile, a small network's step was seen to take 140 ms instead of 2; with 1 ms of waiting it took
12, and alone it is as fast as before.
"""

import os

TURNS = "20000"

if not {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & os.environ.keys():
    os.environ["GOMP_SPINCOUNT"] = TURNS
