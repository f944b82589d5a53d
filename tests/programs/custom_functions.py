"""Own autograd functions, checkpointed blocks, gradient hooks and an averaged copy."""

import numpy as np
import torch
import torch.nn as nn
from torch.autograd import Function
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.checkpoint import checkpoint


class StraightThrough(Function):
    @staticmethod
    def forward(ctx, input, threshold):
        ctx.save_for_backward(input)
        ctx.threshold = threshold
        return (input > threshold).to(input.dtype)

    @staticmethod
    def backward(ctx, grad_output):
        (input,) = ctx.saved_tensors
        return grad_output * (input.abs() <= 1).type_as(input), None


class GradientReversal(Function):
    @staticmethod
    def forward(ctx, x, alpha):
        ctx.alpha = alpha
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.neg() * ctx.alpha, None


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 12)
        self.block = nn.Sequential(nn.Linear(12, 12), nn.Tanh(), nn.Linear(12, 12))
        self.label = nn.Linear(12, 3)
        self.domain = nn.utils.spectral_norm(nn.Linear(12, 2))

    def forward(self, x):
        x = self.first(x)
        x = checkpoint(self.block, x, use_reentrant=False)
        x = x + StraightThrough.apply(x, 0.1)
        return self.label(x), self.domain(GradientReversal.apply(x, 0.3))


def setup():
    return {"net": Net()}


def run(modules, steps):
    net = modules["net"]
    seen = []
    net.first.weight.register_hook(lambda grad: grad.clamp(-0.5, 0.5))
    net.label.register_forward_hook(lambda module, args, output: seen.append(output.shape))
    averaged = AveragedModel(net, multi_avg_fn=get_ema_multi_avg_fn(0.8))
    optimizer = torch.optim.RAdam(net.parameters(), lr=1e-2, weight_decay=1e-3)
    rng = np.random.default_rng(0)
    losses = []
    for i in range(steps):
        x = torch.from_numpy(rng.normal(size=(8, 6))).float()
        y = torch.from_numpy(rng.integers(0, 3, 8))
        label, domain = net(x)
        loss = nn.functional.cross_entropy(label, y, weight=torch.tensor([1.0, 2.0, 0.5]))
        loss = loss + nn.functional.multi_margin_loss(domain, y % 2)
        (loss / 2).backward()
        if i % 2:
            optimizer.step()
            optimizer.zero_grad()
            averaged.update_parameters(net)
        with torch.inference_mode():
            losses.append(loss.item() + averaged.module.label.weight.sum().item())
    assert len(seen) == steps
    return losses
