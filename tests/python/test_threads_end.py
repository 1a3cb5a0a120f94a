"""What a thread computed but did not read is there after its end."""

import gc
import threading
from concurrent.futures import ThreadPoolExecutor

import lamella.mindspore as ms
import numpy as np
import pytest
from lamella.mindspore import Tensor, nn, ops

import lamella


def in_a_thread(function):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


def test_a_result_is_read_after_the_thread_that_asked_for_it():
    x = Tensor(np.arange(4, dtype=np.float32))
    assert in_a_thread(lambda: ops.exp(x) * 2).asnumpy() == pytest.approx(np.exp(np.arange(4)) * 2)


def test_parameters_that_a_thread_trained_have_their_new_values():
    def trained(call):
        ms.set_seed(1)
        net = nn.Dense(2, 1)
        optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
        x = Tensor(np.ones((1, 2), np.float32))
        step = ms.value_and_grad(lambda x: net(x).sum(), None, optimizer.parameters)
        for _ in range(3):
            call(lambda: optimizer(step(x)[1]) and None)
        return net.weight.asnumpy().tobytes()

    assert trained(in_a_thread) == trained(lambda function: function())


def test_a_failure_is_raised_where_the_result_is_read():
    table, index = Tensor(np.ones((3, 4), np.float32)), Tensor(np.array([77]))

    def not_run_yet():
        lamella.set_window(0)  # whatever LAMELLA_WINDOW says
        return ops.gather(table, index, 0)

    row = in_a_thread(not_run_yet)
    with pytest.raises(IndexError, match="77 is out of range"):
        row.asnumpy()


def test_many_threads_leave_results_and_many_read_nothing():
    x = Tensor(np.ones(8, np.float32))
    kept = []

    def work(number):
        y = x * float(number)
        if number % 3 == 0:
            kept.append((number, y))

    for number in range(60):
        thread = threading.Thread(target=work, args=(number,))
        thread.start()
        thread.join()
    gc.collect()
    for number, y in kept:
        assert y.asnumpy() == pytest.approx(np.full(8, number))
