"""The cases of the benchmarks in ONNX Runtime, which runs networks but does not train them."""

import functools
import pathlib
import sys

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from measure import MATMULS, Call, main
from sides import THREADS

random = np.random.default_rng(0)


def randn(*shape: int) -> np.ndarray:
    return random.standard_normal(shape, dtype=np.float32)


def run(nodes: list, result: str, **operands: np.ndarray) -> Call:
    """A call of the graph of `nodes`, whose result stays in memory of ONNX Runtime."""
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, array.shape)
        for name, array in operands.items()
    ]
    outputs = [helper.make_tensor_value_info(result, TensorProto.FLOAT, None)]
    graph = helper.make_graph(nodes, "case", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    binding = session.io_binding()
    for name, array in operands.items():
        binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(array))
    binding.bind_output(result)
    return lambda: session.run_with_iobinding(binding)


def chain_of_10() -> Call:
    nodes, value = [], "x"
    for i in range(5):
        nodes.append(helper.make_node("Mul", [value, "y"], [f"product{i}"]))
        nodes.append(helper.make_node("Tanh", [f"product{i}"], [f"tanh{i}"]))
        value = f"tanh{i}"
    return run(nodes, value, x=randn(64), y=randn(64))


def matmul(rows: int, inner: int, columns: int) -> Call:
    node = helper.make_node("MatMul", ["a", "b"], ["c"])
    return run([node], "c", a=randn(rows, inner), b=randn(inner, columns))


CASES = {
    "chain_of_10": chain_of_10,
    **{name: functools.partial(matmul, *shape) for name, shape in MATMULS.items()},
}

if __name__ == "__main__":
    main(CASES, sys.argv[1:])
