"""Siamese and triplet training of one encoder."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim


class SiameseNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 6, 3, padding=1, padding_mode="reflect"),
            nn.PReLU(),
            nn.AvgPool2d(2),
            nn.Conv2d(6, 8, 3, groups=2),
            nn.InstanceNorm2d(8, affine=True),
            nn.ELU(),
            nn.Flatten(),
        )
        self.head = nn.Sequential(nn.Linear(2 * 32, 16), nn.ReLU(inplace=True), nn.Linear(16, 1))

    def forward(self, first, second):
        both = torch.cat((self.encoder(first), self.encoder(second)), 1)
        return torch.sigmoid(self.head(both))


def setup():
    return {"model": SiameseNetwork()}


def run(modules, steps):
    model = modules["model"]
    bce, triplet = nn.BCELoss(), nn.TripletMarginLoss(margin=1.0, p=2)
    cosine = nn.CosineEmbeddingLoss(margin=0.1)
    optimizer = optim.RMSprop(model.parameters(), lr=1e-3)
    rng = np.random.default_rng(0)
    losses = []
    for _ in range(steps):
        a, b, c = (torch.Tensor(rng.normal(size=(5, 1, 8, 8))) for _ in range(3))
        same = torch.from_numpy(rng.integers(0, 2, 5)).float()
        za, zb, zc = (F.normalize(model.encoder(t), dim=1) for t in (a, b, c))
        loss = bce(model(a, b).squeeze(), same) + triplet(za, zb, zc)
        loss = loss + cosine(za, zb, 2 * same - 1)
        loss = loss + F.pairwise_distance(za, zc).clamp(min=0.2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
