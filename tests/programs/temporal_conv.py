"""A temporal convolutional network with weight normalisation."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.parametrizations import weight_norm


class Chomp1d(nn.Module):
    def __init__(self, chomp_size):
        super().__init__()
        self.chomp_size = chomp_size

    def forward(self, x):
        return x[:, :, : -self.chomp_size].contiguous()


class TemporalBlock(nn.Module):
    def __init__(self, n_inputs, n_outputs, kernel_size, dilation):
        super().__init__()
        padding = (kernel_size - 1) * dilation
        self.conv1 = weight_norm(
            nn.Conv1d(n_inputs, n_outputs, kernel_size, padding=padding, dilation=dilation)
        )
        self.net = nn.Sequential(self.conv1, Chomp1d(padding), nn.ReLU(), nn.Dropout(0.0))
        self.downsample = nn.Conv1d(n_inputs, n_outputs, 1) if n_inputs != n_outputs else None

    def forward(self, x):
        res = x if self.downsample is None else self.downsample(x)
        return F.relu(self.net(x) + res)


class TCN(nn.Module):
    def __init__(self, input_size, output_size, num_channels, kernel_size):
        super().__init__()
        layers = []
        for i, out_channels in enumerate(num_channels):
            in_channels = input_size if i == 0 else num_channels[i - 1]
            layers += [TemporalBlock(in_channels, out_channels, kernel_size, 2**i)]
        self.tcn = nn.Sequential(*layers)
        self.linear = nn.Linear(num_channels[-1], output_size)

    def forward(self, x):
        return self.linear(self.tcn(x)[:, :, -1])


def setup():
    return {"model": TCN(2, 1, [6, 6, 8], 3)}


def run(modules, steps):
    model = modules["model"]
    optimizer = torch.optim.NAdam(model.parameters(), lr=4e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=6, T_mult=2)
    rng = np.random.default_rng(0)
    losses = []
    for i in range(steps):
        x = torch.from_numpy(rng.random((5, 2, 16))).float()
        y = (x[:, 0] * (x[:, 1] > 0.5)).sum(dim=1, keepdim=True)
        optimizer.zero_grad()
        loss = F.huber_loss(model(x), y, delta=0.7)
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), 0.5)
        optimizer.step()
        scheduler.step(i / 2)
        losses.append(loss.item())
    return losses
