"""The convolutional network that everyone starts with, on images of NumPy's making."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()  # noqa: UP008 (as old programs write it)
        self.conv1 = nn.Conv2d(1, 8, 3, 1)
        self.conv2 = nn.Conv2d(8, 16, 3, 1)
        self.dropout1 = nn.Dropout(0.0)
        self.dropout2 = nn.Dropout2d(0.0)
        self.fc1 = nn.Linear(16 * 4 * 4, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = F.max_pool2d(x, 2)
        x = self.dropout2(x)
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x))
        x = self.dropout1(x)
        return F.log_softmax(self.fc2(x), dim=1)


def evaluate(model, device, loader):
    model.eval()
    test_loss, correct = 0, 0
    with torch.no_grad():
        for data, target in loader:
            data, target = data.to(device), target.to(device)
            output = model(data)
            test_loss += F.nll_loss(output, target, reduction="sum").item()
            pred = output.argmax(dim=1, keepdim=True)
            correct += pred.eq(target.view_as(pred)).sum().item()
    return test_loss / len(loader.dataset) + correct


def setup():
    return {"model": Net()}


def run(modules, steps):
    use_cuda = torch.cuda.is_available() and False
    device = torch.device("cuda" if use_cuda else "cpu")
    model = modules["model"].to(device)
    rng = np.random.default_rng(0)
    target = rng.integers(0, 10, 64)
    data = rng.normal(size=(64, 1, 12, 12)).astype(np.float32) + target[:, None, None, None] / 5
    dataset = TensorDataset(torch.from_numpy(data.astype(np.float32)), torch.from_numpy(target))
    loader = DataLoader(dataset, batch_size=16, shuffle=False)
    optimizer = optim.Adadelta(model.parameters(), lr=1.0)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.7)
    losses = []
    while len(losses) < steps:
        model.train()
        for data, target in loader:
            data, target = data.to(device), target.to(device)
            optimizer.zero_grad()
            loss = F.nll_loss(model(data), target)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        scheduler.step()
        losses.append(evaluate(model, device, loader))
    return losses[:steps]
