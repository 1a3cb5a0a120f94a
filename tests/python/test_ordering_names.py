"""Names that order, accumulate, pick and place elements: their meanings against NumPy."""

import lamella.alias  # noqa: F401
import mindspore as ms
import mindspore.mint as mint
import mindspore.numpy as mnp
import numpy as np
import pytest
from mindspore import Parameter, Tensor, ops
from mindspore.mint.nn import functional

NAN = float("nan")
RANDOM = np.random.default_rng(0)
A = RANDOM.normal(size=(3, 4)).astype(np.float32)
B = RANDOM.normal(size=(3, 4)).astype(np.float32)
N = np.array([[1, NAN, 3], [NAN, NAN, NAN], [2, 0, 5]], np.float32)
I = np.array([3, 1, 3, 0, 1, 3], np.int64)  # noqa: E741
S = np.sort(A.ravel())
M = A > 0
X, Y, XN, XI, XS, XM = (Tensor(a) for a in (A, B, N, I, S, M))
BATCH = RANDOM.normal(size=(2, 4, 4, 6)).astype(np.float32)
XB = Tensor(BATCH)


def added(x, indices, updates):
    x = x.copy()
    np.add.at(x, indices, updates)
    return x


def changed(x, key, value):
    x = x.copy()
    x[key] = value
    return x


CASES = {
    "ops.sort": (lambda: ops.sort(X)[0], np.sort(A)),
    "ops.sort positions": (lambda: ops.sort(X, 0, True)[1], np.argsort(-A, 0)),
    "ops.argsort": (lambda: ops.argsort(X), np.argsort(A)),
    "ops.topk": (lambda: ops.topk(X, 2)[0], -np.sort(-A)[:, :2]),
    "ops.topk dim": (lambda: ops.topk(X, 2, dim=0, largest=False)[1], np.argsort(A, 0)[:2]),
    "ops.TopK": (lambda: ops.TopK()(X, 1)[1], np.argmax(A, 1)[:, None]),
    "mint.topk": (lambda: mint.topk(X, 3)[0], -np.sort(-A)[:, :3]),
    "Tensor.sort": (lambda: X.sort(descending=True)[0], -np.sort(-A)),
    "Tensor.topk": (lambda: X.topk(2, 0)[0], -np.sort(-A, 0)[:2]),
    "Tensor.argsort": (lambda: X.argsort(axis=0), np.argsort(A, 0)),
    "ops.median": (lambda: ops.median(X)[0], np.sort(A)[:, 1]),
    "mint.median": (lambda: mint.median(X), S[5]),
    "Tensor.median": (lambda: X.median(0)[1], np.argsort(A, 0)[1]),
    "ops.Median": (lambda: ops.Median(axis=1, keep_dims=True)(X)[0], np.sort(A)[:, 1:2]),
    "ops.nanmedian": (lambda: ops.nanmedian(XN)[0], [1, NAN, 2]),
    "ops.quantile": (lambda: ops.quantile(X, 0.3, 1), np.quantile(A, 0.3, 1)),
    "ops.quantile many": (lambda: ops.quantile(X, Tensor([0.0, 0.5])), np.quantile(A, [0, 0.5])),
    "Tensor.quantile NaN": (lambda: XN.quantile(0.5, 1), np.quantile(N, 0.5, 1)),
    "ops.nanquantile": (lambda: ops.nanquantile(XN, 0.25, 0), np.nanquantile(N, 0.25, 0)),
    "ops.cumsum": (lambda: ops.cumsum(X, 1), np.cumsum(A, 1)),
    "ops.CumSum": (lambda: ops.CumSum(True, True)(X, 0), np.cumsum(A[::-1], 0)[::-1] - A),
    "numpy.cumsum": (lambda: mnp.cumsum(X), np.cumsum(A)),
    "ops.cumprod": (lambda: ops.cumprod(X, 0), np.cumprod(A, 0)),
    "ops.CumProd": (lambda: ops.CumProd()(X, 1), np.cumprod(A, 1)),
    "ops.cummax": (lambda: ops.cummax(X, 1)[0], np.maximum.accumulate(A, 1)),
    "mint.cummin": (lambda: mint.cummin(X, 0)[0], np.minimum.accumulate(A, 0)),
    "ops.logcumsumexp": (lambda: ops.logcumsumexp(X, 1), np.log(np.cumsum(np.exp(A), 1))),
    "numpy.nancumsum": (lambda: mnp.nancumsum(XN, 1), np.nancumsum(N, 1)),
    "ops.nansum": (lambda: ops.nansum(XN, 0), np.nansum(N, 0)),
    "Tensor.nansum dim": (lambda: XN.nansum(dim=1, keepdim=True), np.nansum(N, 1, keepdims=True)),
    "numpy.nanmax": (lambda: mnp.nanmax(XN, 1), [3, NAN, 5]),
    "numpy.nanmean": (lambda: mnp.nanmean(XN, 1), [2, NAN, 7 / 3]),
    "numpy.nanstd": (lambda: mnp.nanstd(XN, 0), np.nanstd(N, 0)),
    "ops.aminmax": (lambda: ops.aminmax(X, axis=1)[1], A.max(1)),
    "ops.searchsorted": (lambda: ops.searchsorted(XS, Y), np.searchsorted(S, B)),
    "numpy.searchsorted": (lambda: mnp.searchsorted(XS, 0.1, "right"),
                           np.searchsorted(S, 0.1, "right")),
    "ops.bucketize": (lambda: ops.bucketize(X, XS), np.searchsorted(S, A)),
    "numpy.digitize": (lambda: mnp.digitize(X, XS), np.digitize(A, S)),
    "numpy.digitize down": (lambda: mnp.digitize(X, Tensor(S[::-1].copy())),
                            np.digitize(A, S[::-1])),
    "ops.bincount": (lambda: ops.bincount(XI), np.bincount(I)),
    "ops.bincount weights": (lambda: ops.bincount(XI, Tensor(A.ravel()[:6]), 6),
                             np.bincount(I, A.ravel()[:6], 6)),
    "ops.histc": (lambda: ops.histc(X, 5, -1.0, 1.0), np.histogram(A, 5, (-1, 1))[0]),
    "numpy.histogram": (lambda: mnp.histogram(X, 4)[0], np.histogram(A, 4)[0]),
    "numpy.histogram edges": (lambda: mnp.histogram(X, [-1.0, 0.0, 0.5, 2.0], density=True)[0],
                              np.histogram(A, [-1, 0, 0.5, 2], density=True)[0]),
    "ops.unique": (lambda: ops.unique(XI)[0], [0, 1, 3]),
    "ops.unique inverse": (lambda: ops.unique(XI)[1], [2, 1, 2, 0, 1, 2]),
    "mint.unique": (lambda: mint.unique(XI, return_counts=True)[1], [1, 2, 3]),
    "numpy.unique": (lambda: mnp.unique(XI), np.unique(I)),
    "Tensor.unique_consecutive": (lambda: XI.unique_consecutive(), I),
    "ops.unique_with_pad": (lambda: ops.unique_with_pad(XI, -1)[0], [0, 1, 3, -1, -1, -1]),
    "numpy.isin": (lambda: mnp.isin(XI, [1, 7]), np.isin(I, [1, 7])),
    "numpy.intersect1d": (lambda: mnp.intersect1d(XI, Tensor([5, 3, 1])), [1, 3]),
    "numpy.setdiff1d": (lambda: mnp.setdiff1d(XI, Tensor([3])), [0, 1]),
    "ops.nonzero": (lambda: ops.nonzero(XM), np.argwhere(M)),
    "ops.nonzero tuple": (lambda: ops.nonzero(XM, as_tuple=True)[1], np.nonzero(M)[1]),
    "numpy.argwhere": (lambda: mnp.argwhere(XI), np.argwhere(I)),
    "ops.masked_select": (lambda: ops.masked_select(X, XM), A[M]),
    "ops.diff": (lambda: ops.diff(X), np.diff(A)),
    "numpy.diff": (lambda: mnp.diff(X, 2, 0, prepend=0), np.diff(A, 2, 0, prepend=0)),
    "numpy.trapz": (lambda: mnp.trapz(X), np.trapezoid(A)),
    "ops.trapz x": (lambda: ops.trapz(X, Tensor([0.0, 1.0, 3.0]), dim=0),
                    np.trapezoid(A, [0, 1, 3], axis=0)),
    "ops.isposinf": (lambda: ops.isposinf(Tensor([1.0, np.inf, -np.inf])), [False, True, False]),
    "ops.rot90": (lambda: ops.rot90(X, 3, (0, 1)), np.rot90(A, 3)),
    "numpy.rot90": (lambda: mnp.rot90(X), np.rot90(A)),
    "numpy.rollaxis": (lambda: mnp.rollaxis(XB, 3, 1), np.rollaxis(BATCH, 3, 1)),
    "ops.hsplit": (lambda: ops.hsplit(X, 2)[1], A[:, 2:]),
    "ops.split unequal": (lambda: ops.split(Tensor(S), [1, 2, 0, 1, 1, 2, 1, 1, 1, 2])[5], S[5:7]),
    "ops.unstack": (lambda: ops.unstack(X, 1)[2], A[:, 2]),
    "ops.diag_embed": (lambda: ops.diag_embed(X)[1], np.diag(A[1])),
    "ops.diagonal": (lambda: ops.diagonal(XB, 1, 2, 3), np.diagonal(BATCH, 1, 2, 3)),
    "numpy.diagflat": (lambda: mnp.diagflat(X, 1), np.diagflat(A, 1)),
    "ops.trace": (lambda: ops.trace(X), np.trace(A)),
    "ops.block_diag": (lambda: ops.block_diag(Tensor([1.0]), Tensor([[2.0, 3.0]])),
                       [[1, 0, 0], [0, 2, 3]]),
    "ops.tril_indices": (lambda: ops.tril_indices(3, 4, 1), np.stack(np.tril_indices(3, 1, 4))),
    "numpy.triu_indices": (lambda: mnp.triu_indices(4, 1)[1], np.triu_indices(4, 1)[1]),
    "numpy.diag_indices": (lambda: mnp.diag_indices(3)[1], np.arange(3)),
    "ops.kron": (lambda: ops.kron(X, Y), np.kron(A, B)),
    "numpy.kron": (lambda: mnp.kron(XI, Tensor([[1, 2]])), np.kron(I, [[1, 2]])),
    "ops.vander": (lambda: ops.vander(Tensor([1.0, 2.0, 3.0]), 4), np.vander([1, 2, 3], 4)),
    "ops.cross": (lambda: ops.cross(X, Y), np.cross(A, B, axis=0)),
    "ops.vecdot": (lambda: ops.vecdot(X, Y), (A * B).sum(-1)),
    "ops.cdist": (lambda: ops.cdist(X, Y, 1.0), np.abs(A[:, None] - B[None]).sum(-1)),
    "ops.dist": (lambda: ops.dist(X, Y), np.linalg.norm(A - B)),
    "ops.norm": (lambda: ops.norm(X, 3, 1), (np.abs(A) ** 3).sum(1) ** (1 / 3)),
    "ops.norm inf": (lambda: ops.norm(X, float("inf"), dim=0), np.abs(A).max(0)),
    "ops.pixel_shuffle": (lambda: ops.pixel_shuffle(XB, 2)[0, 0, :2, :2],
                          BATCH[0, :, 0, 0].reshape(2, 2)),
    "ops.pixel_unshuffle": (lambda: ops.pixel_unshuffle(ops.pixel_shuffle(XB, 2), 2), BATCH),
    "ops.DepthToSpace": (lambda: ops.SpaceToDepth(2)(ops.DepthToSpace(2)(XB)), BATCH),
    "ops.interpolate": (lambda: ops.interpolate(XB, scale_factor=2.0),
                        BATCH.repeat(2, 2).repeat(2, 3)),
    "functional.interpolate": (lambda: functional.interpolate(XB, size=(4, 3), mode="area"),
                               BATCH.reshape(2, 4, 4, 3, 2).mean(-1)),
    "ops.interpolate bilinear": (lambda: ops.interpolate(XB, size=(2, 6), mode="bilinear"),
                                 BATCH.reshape(2, 4, 2, 2, 6).mean(3)),
    "ops.ResizeBilinearV2": (lambda: ops.ResizeBilinearV2(True)(XB, (7, 6))[:, :, ::2], BATCH),
    "ops.ResizeNearestNeighbor": (lambda: ops.ResizeNearestNeighbor((2, 3))(XB),
                                  BATCH[:, :, ::2, ::2]),
    "ops.fold of ones": (lambda: ops.fold(ops.unfold(ops.ones((1, 2, 4, 5)), 2), (4, 5), 2)[0, 1],
                         np.outer([1, 2, 2, 1], [1, 2, 2, 2, 1])),
    "ops.unfold": (lambda: ops.unfold(XB, (2, 3), 1, (0, 1), 2)[0, :6, 1],
                   BATCH[0, 0, 0:2, 1:4].ravel()),
    "mint fold": (lambda: functional.fold(functional.unfold(XB, 2, 1, 0, 2), (4, 6), 2, 1, 0, 2),
                        BATCH),
    "ops.MaxPool3D": (lambda: ops.MaxPool3D(2, 2)(XB[None])[0],
                      BATCH.reshape(2, 2, 2, 2, 2, 3, 2).max((2, 4, 6))),
    "ops.MaxPoolWithArgmax": (lambda: ops.MaxPoolWithArgmax(2, 2)(XB)[0],
                              BATCH.reshape(2, 4, 2, 2, 3, 2).max((3, 5))),
    "ops.InTopK": (lambda: ops.InTopK(2)(X, Tensor([0, 1, 2])),
                   [i in np.argsort(-A[i])[:2] for i in range(3)]),
    "ops.Xdivy": (lambda: ops.Xdivy()(Tensor([0.0, 1.0]), Tensor([0.0, 2.0])), [0, 0.5]),
    "ops.TruncateDiv": (lambda: ops.TruncateDiv()(Tensor([-7, 7]), Tensor([2, 2])), [-3, 3]),
    "ops.TruncateMod": (lambda: ops.TruncateMod()(Tensor([-7, 7]), Tensor([2, 2])), [-1, 1]),
    "ops.ReverseSequence": (lambda: ops.ReverseSequence(1)(X, Tensor([2, 4, 1])),
                            np.stack([A[0, [1, 0, 2, 3]], A[1, ::-1], A[2]])),
    "ops.SoftmaxCrossEntropyWithLogits": (
        lambda: ops.SoftmaxCrossEntropyWithLogits()(X, ops.eye(3, 4))[0],
        np.log(np.exp(A).sum(1)) - A[range(3), range(3)]),
    "ops.adaptive_max_pool2d": (lambda: ops.adaptive_max_pool2d(XB, (2, 3)),
                                BATCH.reshape(2, 4, 2, 2, 3, 2).max((3, 5))),
    "ops.AdaptiveMaxPool2D": (lambda: ops.AdaptiveMaxPool2D((1, 1))(XB)[1],
                              BATCH.reshape(2, 4, 24).argmax(-1)[..., None, None]),
    "Tensor.index_put": (lambda: X.index_put((Tensor([0, 0]),), Tensor(1.0), True),
                         added(A, ([0, 0],), 1)),
    "Tensor.index_put set": (lambda: X.index_put((Tensor([0]), Tensor([1])), Tensor([7.0])),
                             changed(A, (0, 1), 7)),
    "ops.IndexPut": (lambda: ops.IndexPut(1)(X, Tensor([2.0]), [Tensor([1]), Tensor([1])]),
                     added(A, (1, 1), 2)),
    "ops.inplace_add": (lambda: ops.inplace_add(X, Tensor(B[:2]), (0, 2)),
                        added(A, ([0, 2],), B[:2])),
    "ops.inplace_update": (lambda: ops.inplace_update(X, Tensor(B[:1]), 1), changed(A, 1, B[0])),
    "Tensor.masked_scatter": (lambda: X.masked_scatter(XM, Y), changed(A, M, B.ravel()[: M.sum()])),
    "ops.select_scatter": (lambda: ops.select_scatter(X, Tensor(B[:, 0]), 1, 2),
                           changed(A, (slice(None), 2), B[:, 0])),
    "ops.diagonal_scatter": (lambda: ops.diagonal_scatter(X, Tensor([1.0, 2.0, 3.0]), 1),
                             changed(A, (range(3), range(1, 4)), [1, 2, 3])),
    "Tensor.fill_diagonal": (lambda: X.fill_diagonal(9.0), changed(A, (range(3), range(3)), 9)),
    "ops.FillDiagonal wrap": (lambda: ops.FillDiagonal(5.0, True)(ops.zeros((5, 2))),
                              np.array([[5, 0], [0, 5], [0, 0], [5, 0], [0, 5]])),
    "Tensor.sum_to_size": (lambda: X.sum_to_size(1, 4), A.sum(0, keepdims=True)),
    "ops.tensor_scatter_div": (lambda: ops.tensor_scatter_div(X, Tensor([[0, 1]]), Tensor([2.0])),
                               changed(A, (0, 1), A[0, 1] / 2)),
    "Tensor.scatter_sub": (lambda: X.scatter_sub(Tensor([[1], [1]]), Tensor(B[:2])),
                           added(A, ([1, 1],), -B[:2])),
    "Tensor.scatter_add": (lambda: X.scatter_add(Tensor([[1], [1]]), Tensor(B[:2])),
                           added(A, ([1, 1],), B[:2])),
    "Tensor.scatter_add dim": (lambda: X.scatter_add(0, Tensor([[0, 0, 0, 0]]), Y),
                               added(A, (0,), B[0])),
    "ops.unsorted_segment_sum": (lambda: ops.unsorted_segment_sum(X, Tensor([1, -1, 1]), 2),
                                 np.stack([np.zeros(4), A[0] + A[2]])),
    "ops.unsorted_segment_max": (lambda: ops.unsorted_segment_max(X, Tensor([0, 1, 0]), 2),
                                 np.stack([np.maximum(A[0], A[2]), A[1]])),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_meanings(name):
    compute, expected = CASES[name]
    got = compute().asnumpy()
    assert got.shape == np.shape(expected)
    assert np.allclose(got, expected, rtol=1e-4, atol=1e-5, equal_nan=True)


IN_PLACE = {
    "scatter_update": (lambda p: ops.scatter_update(p, Tensor([1]), Tensor(B[:1])),
                       changed(A, 1, B[0])),
    "scatter_add": (lambda p: ops.scatter_add(p, Tensor([1, 1]), Tensor(B[:2])),
                    added(A, ([1, 1],), B[:2])),
    "ScatterSub": (lambda p: ops.ScatterSub()(p, Tensor([2]), Tensor(B[:1])), added(A, 2, -B[0])),
    "scatter_div": (lambda p: ops.scatter_div(p, Tensor([2]), Tensor(B[:1])),
                    changed(A, 2, A[2] / B[0])),
    "scatter_max": (lambda p: ops.scatter_max(p, Tensor([0]), Tensor(B[:1])),
                    changed(A, 0, np.maximum(A[0], B[0]))),
    "scatter_nd_update": (lambda p: ops.scatter_nd_update(p, Tensor([[0, 3]]), Tensor([4.0])),
                          changed(A, (0, 3), 4)),
    "ScatterNdAdd": (lambda p: ops.ScatterNdAdd()(p, Tensor([[0, 3], [0, 3]]), Tensor([4.0, 1.0])),
                     added(A, (0, 3), 5)),
    "index_fill_": (lambda p: p.index_fill_(0, Tensor([1]), 3.0), changed(A, 1, 3)),
    "index_copy_": (lambda p: p.index_copy_(1, Tensor([2]), Tensor(B[:, :1])),
                    changed(A, (slice(None), [2]), B[:, :1])),
    "put_": (lambda p: p.put_(Tensor([1, 1]), Tensor([1.0, 2.0]), True), added(A, (0, 1), 3)),
    "masked_scatter_": (lambda p: p.masked_scatter_(XM, Y), changed(A, M, B.ravel()[: M.sum()])),
}  # fmt: skip


@pytest.mark.parametrize("name", IN_PLACE)
@pytest.mark.parametrize("kind", [Tensor, Parameter])
def test_updates_in_place(name, kind):
    update, expected = IN_PLACE[name]
    target = kind(Tensor(A.copy()))
    result = update(target)
    assert np.allclose(target.asnumpy(), expected, rtol=1e-5)
    assert np.allclose(result.asnumpy(), expected, rtol=1e-5)


def test_dtypes_of_positions():
    assert ops.topk(X, 1)[1].dtype == ms.int32
    assert ops.sort(X)[1].dtype == ms.int32
    assert ops.argsort(X).dtype == ms.int32
    assert mint.argsort(X).dtype == ms.int64
    assert ops.nonzero(XM).dtype == ms.int64
    assert ops.bucketize(X, XS).dtype == ms.int32


def test_gradient_of_the_largest_two():
    x = Tensor(np.array([[1, 2, 6, 4, 5], [9, 5, 6, 7, 8]], np.float32))
    gradient = ms.grad(lambda x: ops.topk(x, 2)[0].sum())(x)
    assert np.array_equal(gradient.asnumpy(), [[0, 0, 1, 0, 1], [1, 0, 0, 0, 1]])


def test_gradients_through_sizes_that_depend_on_data():
    gradient = ms.grad(lambda x: (x[x > 0] ** 2).sum() + ops.masked_select(x, x < 0).sum())(X)
    assert np.allclose(gradient.asnumpy(), np.where(A > 0, 2 * A, 1), rtol=1e-5)


def test_conv2d_transpose_is_the_gradient_of_a_convolution():
    weight = Tensor(RANDOM.normal(size=(4, 3, 3, 3)).astype(np.float32))
    x = Tensor(RANDOM.normal(size=(2, 3, 9, 8)).astype(np.float32))
    for mode, pad in (("valid", 0), ("same", 0), ("pad", 1)):
        conv = ops.Conv2D(4, 3, pad_mode=mode, pad=pad, stride=2)
        upstream = Tensor(RANDOM.normal(size=conv(x, weight).shape).astype(np.float32))
        expected = ms.grad(lambda x: (conv(x, weight) * upstream).sum())(x)  # noqa: B023
        transposed = ops.Conv2DTranspose(4, 3, pad_mode=mode, pad=pad, stride=2)
        given = transposed(upstream, weight, x.shape)
        assert np.allclose(given.asnumpy(), expected.asnumpy(), atol=1e-4), mode


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ops.topk(X, 9), ValueError, "k must be one number from 0 to 4"),
        (lambda: ops.interpolate(XB), ValueError, "exactly one of size and scale_factor"),
        (lambda: ops.interpolate(XB, size=3, mode="bicubic"), NotImplementedError, "bicubic"),
        (lambda: ops.interpolate(XB, size=3, mode="linear"), ValueError, "2 spatial axes"),
        (lambda: mint.unique(X, dim=0), NotImplementedError, "slices of an axis"),
        (lambda: ops.quantile(X, 2.0), ValueError, "q must be between 0 and 1"),
        (lambda: X.masked_scatter(X > -9, Tensor([1.0])), ValueError, "source has 1"),
        (lambda: ops.split(X, [1, 1]), ValueError, "add up to 3"),
        (lambda: mnp.searchsorted(XS, 1.0, "middle"), ValueError, "side must be"),
    ],
)
def test_errors_name_the_call(call, error, message):
    with pytest.raises(error, match=message):
        call()
