"""BatchNorm over the samples of all processes: torch's SyncBatchNorm on CUDA, and our own on CPUs, which it rejects."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from dmt.core.processes import Processes


def synchronize(net: nn.Module, processes: Processes) -> None:
    """Make train-mode BatchNorm layers compute their statistics over the samples of all processes, in place."""
    if processes.count > 1:
        for norm in net.modules():
            if isinstance(norm, _BatchNorm) and not isinstance(norm, _Synchronized):
                norm._alone = type(norm)  # type: ignore[assignment]
                norm._processes = processes  # type: ignore[assignment]
                # changing the class keeps parameters, buffers and their names
                norm.__class__ = _SynchronizedAct if hasattr(norm, "act") else _Synchronized


def separate(net: nn.Module) -> None:
    """Undo `synchronize`."""
    for norm in net.modules():
        if isinstance(norm, _Synchronized):
            norm.__class__ = norm._alone  # type: ignore[assignment]
            del norm._alone, norm._processes


class _Synchronized(nn.SyncBatchNorm):
    process_group = None
    _alone: type[_BatchNorm]
    _processes: Processes

    def forward(self, input: Tensor) -> Tensor:
        if input.is_cuda or not self.training:
            return super().forward(input)
        normalized, mean, variance, count = _Normalized.apply(  # type: ignore[no-untyped-call]
            input, self.weight, self.bias, self.eps, self._processes
        )
        if self.track_running_stats and self.running_mean is not None and self.running_var is not None:
            self._follow(mean, variance * count / (count - 1).clamp_min(1))
        return normalized  # type: ignore[no-any-return]

    @torch.no_grad()
    def _follow(self, mean: Tensor, variance: Tensor) -> None:
        assert self.running_mean is not None
        assert self.running_var is not None
        stride = self.momentum
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            stride = 1.0 / float(self.num_batches_tracked) if stride is None else stride
        assert stride is not None
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), stride)
        self.running_var.lerp_(variance.to(self.running_var.dtype), stride)


class _SynchronizedAct(_Synchronized):
    """A BatchNorm layer of timm that also applies dropout and an activation."""

    drop: nn.Module
    act: nn.Module

    def forward(self, input: Tensor) -> Tensor:
        activated: Tensor = self.act(self.drop(super().forward(input)))
        return activated


class _Normalized(torch.autograd.Function):
    """(x − mean)/√(variance + ε)·w + b, with the mean, the biased variance and the number of values per channel."""

    @staticmethod
    def forward(
        ctx: Any, values: Tensor, scale: Tensor | None, shift: Tensor | None, eps: float, processes: Processes
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        # torch's own kernels: as tensor code, each sum and product would read and write all values again
        mean, variance = torch.batch_norm_update_stats(values, None, None, 0.0)
        mine = mean.new_tensor([values.numel() / values.shape[1]])
        # combine the statistics of all processes; no two large numbers are subtracted, so no digits are lost
        found = processes.all_rows(torch.cat([mine, mean, variance])[None], processes.count)  # (P, 1 + 2C)
        counts, (means, variances) = found[:, :1], found[:, 1:].chunk(2, 1)
        count = counts.sum(0)
        mean = (counts * means).sum(0) / count
        variance = (counts * (variances + (means - mean) ** 2)).sum(0) / count
        ctx.save_for_backward(values, scale, mean, variance, count)
        ctx.eps, ctx.processes, ctx.shifts = eps, processes, shift is not None
        ctx.mark_non_differentiable(mean, variance, count)
        return F.batch_norm(values, mean, variance, scale, shift, False, 0.0, eps), mean, variance, count

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, *others: None) -> tuple[Tensor | None, ...]:
        values, scale, mean, variance, count = ctx.saved_tensors
        # gradient with the statistics held fixed; their own contribution is added below
        back, along, total = torch.ops.aten.native_batch_norm_backward(
            gradient, values, scale, mean, variance, None, None, False, ctx.eps, [True, True, True]
        )
        # only the statistics' gradient is summed here; gradients of parameters are summed after the backward pass
        both = ctx.processes.sum_(torch.cat([total, along])) / count
        factor = (variance + ctx.eps).rsqrt() if scale is None else (variance + ctx.eps).rsqrt() * scale
        whole, slope = (both * factor.repeat(2)).neg().chunk(2)
        back += F.batch_norm(values, mean, variance, slope, whole, False, 0.0, ctx.eps)
        return back, None if scale is None else along, total if ctx.shifts else None, None, None
