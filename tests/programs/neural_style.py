"""Style transfer: an image is optimised with LBFGS against Gram matrices of frozen features."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim


def gram_matrix(input):
    a, b, c, d = input.size()
    features = input.view(a * b, c * d)
    return torch.mm(features, features.t()).div(a * b * c * d)


class ContentLoss(nn.Module):
    def __init__(self, target):
        super().__init__()
        self.target = target.detach()

    def forward(self, input):
        self.loss = F.mse_loss(input, self.target)
        return input


class StyleLoss(nn.Module):
    def __init__(self, target_feature):
        super().__init__()
        self.target = gram_matrix(target_feature).detach()

    def forward(self, input):
        self.loss = F.mse_loss(gram_matrix(input), self.target)
        return input


class Normalization(nn.Module):
    def __init__(self, mean, std):
        super().__init__()
        self.mean = torch.tensor(mean).view(-1, 1, 1)
        self.std = torch.tensor(std).view(-1, 1, 1)

    def forward(self, img):
        return (img - self.mean) / self.std


def setup():
    return {
        "cnn": nn.Sequential(
            nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.Conv2d(6, 6, 3, padding=1), nn.ReLU()
        )
    }


def run(modules, steps):
    cnn = modules["cnn"].eval()
    rng = np.random.default_rng(0)
    content, style = (torch.tensor(rng.random((1, 3, 10, 10)), dtype=torch.float) for _ in "ab")
    model = nn.Sequential(Normalization([0.48, 0.45, 0.4], [0.22, 0.22, 0.22]))
    content_losses, style_losses = [], []
    for i, layer in enumerate(cnn.children()):
        layer = nn.ReLU(inplace=False) if isinstance(layer, nn.ReLU) else layer
        model.add_module(f"layer_{i}", layer)
        if isinstance(layer, nn.Conv2d):
            content_losses.append(ContentLoss(model(content)))
            style_losses.append(StyleLoss(model(style)))
            model.add_module(f"content_{i}", content_losses[-1])
            model.add_module(f"style_{i}", style_losses[-1])
    model.requires_grad_(False)
    image = content.clone().requires_grad_(True)
    optimizer = optim.LBFGS([image], lr=0.3, max_iter=1)
    losses = []

    def closure():
        with torch.no_grad():
            image.clamp_(0, 1)
        optimizer.zero_grad()
        model(image)
        style_score = 1e3 * sum(sl.loss for sl in style_losses)
        loss = style_score + sum(cl.loss for cl in content_losses)
        loss.backward()
        losses.append(loss.item())
        return loss

    while len(losses) < steps:
        optimizer.step(closure)
    return losses[:steps]
