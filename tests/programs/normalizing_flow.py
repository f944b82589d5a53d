"""RealNVP: affine couplings under a standard normal, with log determinants."""

import numpy as np
import torch
import torch.nn as nn
from torch import distributions


class RealNVP(nn.Module):
    def __init__(self, masks):
        super().__init__()
        self.mask = nn.Parameter(masks, requires_grad=False)
        self.t = nn.ModuleList([self.net(nn.Identity()) for _ in masks])
        self.s = nn.ModuleList([self.net(nn.Tanh()) for _ in masks])
        self.register_buffer("loc", torch.zeros(2))

    @staticmethod
    def net(last):
        return nn.Sequential(
            nn.Linear(2, 16), nn.LeakyReLU(), nn.Linear(16, 16), nn.Mish(), nn.Linear(16, 2), last
        )

    def f(self, x):
        log_det_J, z = x.new_zeros(x.shape[0]), x
        for i in reversed(range(len(self.t))):
            z_ = self.mask[i] * z
            s = self.s[i](z_) * (1 - self.mask[i])
            t = self.t[i](z_) * (1 - self.mask[i])
            z = (1 - self.mask[i]) * (z - t) * torch.exp(-s) + z_
            log_det_J -= s.sum(dim=1)
        return z, log_det_J

    def log_prob(self, x):
        z, logp = self.f(x)
        prior = distributions.MultivariateNormal(self.loc, torch.eye(2))
        return prior.log_prob(z) + logp


def setup():
    masks = torch.from_numpy(np.array([[0, 1], [1, 0]] * 2).astype(np.float32))
    return {"flow": RealNVP(masks)}


def run(modules, steps):
    flow = modules["flow"]
    optimizer = torch.optim.Adamax([p for p in flow.parameters() if p.requires_grad], lr=5e-3)
    rng = np.random.default_rng(0)
    losses = []
    for _ in range(steps):
        angle = rng.uniform(0, np.pi, 20)
        moons = np.stack([np.cos(angle), np.sin(angle)], 1) + 0.1 * rng.normal(size=(20, 2))
        loss = -flow.log_prob(torch.tensor(moons, dtype=torch.float32)).mean()
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
        losses.append(loss.item())
    return losses
