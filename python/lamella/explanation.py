"""What the machine does for a layer: its tile programs, their arithmetic intensity, and the share
of the machine's peak that they reach."""

import warnings

from lamella import _native


class Explanation:
    """Listens while it is a context:

        with Explanation("backbone.conv1") as explanation:
            train_one_step()
        print(explanation)

    layer: launches with an operation of this layer or of a layer in it; "" is all of them. A fused
    launch may also hold operations of other layers: its figures are of all it does. ValueError
    while a profiler or another explanation is running.
    """

    def __init__(self, layer=""):
        self._explainer = _native.profile.Explainer(layer)

    def __enter__(self):
        self._explainer.start()
        return self

    def __exit__(self, kind, error, trace):
        try:
            self._explainer.stop()
        except Exception as pending:
            if error is None:
                raise
            warnings.warn(f"[explain] what was pending failed: {pending}", stacklevel=2)

    def launches(self):
        """The launches of compiled graphs, the costliest first, as dictionaries: layers,
        operations, phases, programs (text of tile programs and kernels), runs, seconds (of all),
        seconds_a_run (less the first in each graph, which may compile, unless there are no others),
        flops and bytes (of one run)."""
        return self._explainer.launches()

    def text(self, count=20):
        """The `count` costliest launches beside the machine's peaks, which are measured once in a
        process. That of arithmetic is float32's."""
        return self._explainer.text(count)

    def __str__(self):
        return self.text()
