"""A variational autoencoder with summed binary cross-entropy."""

import numpy as np
import torch
import torch.utils.data
from torch import nn, optim
from torch.nn import functional as F


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 40)
        self.fc21 = nn.Linear(40, 5)
        self.fc22 = nn.Linear(40, 5)
        self.fc3 = nn.Linear(5, 40)
        self.fc4 = nn.Linear(40, 64)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar, noise):
        std = torch.exp(0.5 * logvar)
        return mu + noise.type_as(std) * std

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x, noise):
        mu, logvar = self.encode(x.view(-1, 64))
        return self.decode(self.reparameterize(mu, logvar, noise)), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy(recon_x, x.view(-1, 64), reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + KLD


def setup():
    return {"model": VAE()}


def run(modules, steps):
    model = modules["model"]
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    rng = np.random.default_rng(0)
    losses, train_loss = [], 0
    for _ in range(steps):
        data = torch.tensor(rng.random((12, 1, 8, 8)), dtype=torch.float32)
        noise = torch.tensor(rng.normal(size=(12, 5)))
        optimizer.zero_grad()
        loss = loss_function(*unpack(model(data, noise), data))
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
        losses.append(loss.item() / len(data))
    return losses


def unpack(output, data):
    recon, mu, logvar = output
    return recon, data, mu, logvar
