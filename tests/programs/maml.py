"""Meta-learning: the outer gradient flows through inner updates."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(1, 20)
        self.fc2 = nn.Linear(20, 20)
        self.fc3 = nn.Linear(20, 1)

    def forward(self, x):
        x = F.relu(self.fc1(x))
        return self.fc3(torch.tanh(self.fc2(x)))


def setup():
    return {"net": Net()}


def run(modules, steps):
    net = modules["net"]
    opt = torch.optim.Adam(net.parameters(), lr=1e-2)
    rng = np.random.default_rng(0)
    losses = []
    for _ in range(steps):
        opt.zero_grad()
        total = 0.0
        for _ in range(3):
            amplitude, phase = rng.uniform(0.1, 5), rng.uniform(0, np.pi)
            x = torch.from_numpy(rng.uniform(-5, 5, (12, 1)).astype(np.float32))
            y = amplitude * torch.sin(x + phase)
            params = dict(net.named_parameters())
            for _ in range(2):
                loss = F.mse_loss(functional_call(net, params, (x[:6],)), y[:6])
                grads = torch.autograd.grad(loss, list(params.values()), create_graph=True)
                params = {k: p - 0.02 * g for (k, p), g in zip(params.items(), grads)}  # noqa: B905
            total = total + F.mse_loss(functional_call(net, params, (x[6:],)), y[6:])
        total.backward()
        opt.step()
        losses.append(total.item())
    return losses
