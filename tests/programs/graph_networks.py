"""Graph convolution and graph attention on one random graph."""

import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parameter import Parameter


class GraphConv(nn.Module):
    def __init__(self, input_dim, output_dim, use_bias=True):
        super().__init__()
        self.kernel = Parameter(torch.Tensor(input_dim, output_dim))
        if use_bias:
            self.bias = Parameter(torch.Tensor(output_dim))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        stdv = 1.0 / math.sqrt(self.kernel.size(1))
        self.kernel.data.uniform_(-stdv, stdv)
        if self.bias is not None:
            self.bias.data.uniform_(-stdv, stdv)

    def forward(self, input, adj):
        output = torch.mm(adj, torch.mm(input, self.kernel))
        return output + self.bias if self.bias is not None else output


class GraphAttention(nn.Module):
    def __init__(self, in_features, out_features, n_heads, concat, slope=0.2):
        super().__init__()
        self.n_heads, self.concat = n_heads, concat
        self.n_hidden = out_features // n_heads if concat else out_features
        self.W = nn.Parameter(torch.empty(size=(in_features, self.n_hidden * n_heads)))
        self.a = nn.Parameter(torch.empty(size=(n_heads, 2 * self.n_hidden, 1)))
        self.leakyrelu = nn.LeakyReLU(slope)
        nn.init.xavier_normal_(self.W)
        nn.init.xavier_normal_(self.a)

    def forward(self, h, adj):
        n = h.shape[0]
        h = torch.mm(h, self.W).view(n, self.n_heads, self.n_hidden).permute(1, 0, 2)
        source = torch.matmul(h, self.a[:, : self.n_hidden, :])
        target = torch.matmul(h, self.a[:, self.n_hidden :, :])
        scores = self.leakyrelu(source + target.mT)
        scores = torch.where(adj > 0, scores, -9e16 * torch.ones_like(scores))
        attention = F.dropout(F.softmax(scores, dim=-1), 0.0, training=self.training)
        out = torch.matmul(attention, h)
        if self.concat:
            return out.permute(1, 0, 2).contiguous().view(n, self.n_heads * self.n_hidden)
        return out.mean(dim=0)


class Both(nn.Module):
    def __init__(self, features, hidden, classes):
        super().__init__()
        self.gc = GraphConv(features, hidden)
        self.gat1 = GraphAttention(hidden, hidden, n_heads=4, concat=True)
        self.gat2 = GraphAttention(hidden, classes, n_heads=1, concat=False)

    def forward(self, x, adj, normalised):
        x = F.elu(self.gc(x, normalised))
        return F.log_softmax(self.gat2(F.elu(self.gat1(x, adj)), adj), dim=1)


def setup():
    return {"model": Both(9, 16, 4)}


def run(modules, steps):
    model = modules["model"]
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.normal(size=(20, 9)).astype(np.float32))
    y = torch.from_numpy(rng.integers(0, 4, 20))
    adj = torch.from_numpy((rng.random((20, 20)) < 0.2).astype(np.float32))
    adj = ((adj + adj.t() + torch.eye(20)) > 0).float()
    rowsum = adj.sum(1).pow(-0.5)
    normalised = torch.diag(rowsum) @ adj @ torch.diag(rowsum)
    idx_train = torch.randperm(20).sort()[0][:14]
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    losses = []
    for _ in range(steps):
        model.train()
        optimizer.zero_grad()
        output = model(x, adj, normalised)
        loss = F.nll_loss(output[idx_train], y[idx_train])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
