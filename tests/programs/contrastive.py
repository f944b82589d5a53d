"""SimCLR's loss with a momentum encoder and a queue as in MoCo."""

import copy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def nt_xent(z, temperature=0.5):
    n = z.shape[0] // 2
    labels = torch.cat([torch.arange(n) for _ in range(2)], dim=0)
    labels = (labels.unsqueeze(0) == labels.unsqueeze(1)).float()
    features = F.normalize(z, dim=1)
    similarity = torch.matmul(features, features.T)
    mask = torch.eye(labels.shape[0], dtype=torch.bool)
    labels = labels[~mask].view(labels.shape[0], -1)
    similarity = similarity[~mask].view(similarity.shape[0], -1)
    positives = similarity[labels.bool()].view(labels.shape[0], -1)
    negatives = similarity[~labels.bool()].view(similarity.shape[0], -1)
    logits = torch.cat([positives, negatives], dim=1) / temperature
    return F.cross_entropy(logits, torch.zeros(logits.shape[0], dtype=torch.long))


class MoCo(nn.Module):
    def __init__(self, encoder, dim, size):
        super().__init__()
        self.encoder_q, self.encoder_k = encoder, copy.deepcopy(encoder)
        for param_k in self.encoder_k.parameters():
            param_k.requires_grad = False
        self.register_buffer("queue", torch.from_numpy(np.cos(np.arange(dim * size))).float())
        self.queue = F.normalize(self.queue.view(dim, size), dim=0)
        self.register_buffer("queue_ptr", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def _momentum_update_key_encoder(self):
        pairs = zip(self.encoder_q.parameters(), self.encoder_k.parameters())  # noqa: B905
        for param_q, param_k in pairs:
            param_k.data = param_k.data * 0.9 + param_q.data * 0.1

    @torch.no_grad()
    def _dequeue_and_enqueue(self, keys):
        ptr = int(self.queue_ptr)
        self.queue[:, ptr : ptr + keys.shape[0]] = keys.T
        self.queue_ptr[0] = (ptr + keys.shape[0]) % self.queue.shape[1]

    def forward(self, im_q, im_k):
        q = F.normalize(self.encoder_q(im_q), dim=1)
        with torch.no_grad():
            self._momentum_update_key_encoder()
            k = F.normalize(self.encoder_k(im_k), dim=1)
        l_pos = torch.einsum("nc,nc->n", [q, k]).unsqueeze(-1)
        l_neg = torch.einsum("nc,ck->nk", [q, self.queue.clone().detach()])
        logits = torch.cat([l_pos, l_neg], dim=1)
        self._dequeue_and_enqueue(k)
        loss = F.cross_entropy(logits / 0.2, torch.zeros(len(logits), dtype=torch.long))
        return loss + nt_xent(torch.cat([q, self.encoder_q(im_k)]))


def setup():
    encoder = nn.Sequential(nn.Linear(10, 16), nn.BatchNorm1d(16), nn.SELU(), nn.Linear(16, 8))
    return {"moco": MoCo(encoder, 8, 12)}


def run(modules, steps):
    moco = modules["moco"]
    params = filter(lambda p: p.requires_grad, moco.parameters())
    optimizer = torch.optim.SGD(params, lr=0.1, momentum=0.9, weight_decay=1e-4)
    rng = np.random.default_rng(0)
    losses = []
    for _ in range(steps):
        x = rng.normal(size=(4, 10))
        views = [torch.tensor(x + 0.1 * rng.normal(size=x.shape)).float() for _ in range(2)]
        loss = moco(*views)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
