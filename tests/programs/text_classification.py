"""Bags of words: EmbeddingBag with offsets, collate function, plain SGD and a decaying rate."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class News(Dataset):
    def __init__(self, rng, count):
        self.items = []
        for _ in range(count):
            label = int(rng.integers(0, 4))
            words = rng.integers(10 * label, 10 * label + 15, rng.integers(1, 9))
            self.items.append((label, words))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


class TextClassificationModel(nn.Module):
    def __init__(self, vocab_size, embed_dim, num_class):
        super().__init__()
        self.embedding = nn.EmbeddingBag(vocab_size, embed_dim, mode="mean", sparse=False)
        self.fc = nn.Linear(embed_dim, num_class)
        self.init_weights()

    def init_weights(self):
        initrange = 0.5
        self.embedding.weight.data.uniform_(-initrange, initrange)
        self.fc.weight.data.uniform_(-initrange, initrange)
        self.fc.bias.data.zero_()

    def forward(self, text, offsets):
        return self.fc(self.embedding(text, offsets))


def collate_batch(batch):
    label_list, text_list, offsets = [], [], [0]
    for label, text in batch:
        label_list.append(label)
        text_list.append(torch.tensor(text, dtype=torch.int64))
        offsets.append(text_list[-1].size(0))
    offsets = torch.tensor(offsets[:-1]).cumsum(dim=0)
    return torch.tensor(label_list, dtype=torch.int64), torch.cat(text_list), offsets


def setup():
    return {"model": TextClassificationModel(50, 8, 4)}


def run(modules, steps):
    model = modules["model"]
    loader = DataLoader(
        News(np.random.default_rng(0), 40), batch_size=8, shuffle=False, collate_fn=collate_batch
    )
    criterion = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=5)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1.0, gamma=0.1)
    losses = []
    while len(losses) < steps:
        for label, text, offsets in loader:
            optimizer.zero_grad()
            predicted_label = model(text, offsets)
            loss = criterion(predicted_label, label)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()
            losses.append(loss.item())
        scheduler.step()
    return losses[:steps]
