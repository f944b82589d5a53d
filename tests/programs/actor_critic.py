"""Actor and critic on a small cart: log-probabilities of the actions that were taken, returns."""

from collections import namedtuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Categorical

SavedAction = namedtuple("SavedAction", ["log_prob", "value"])


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(4, 24)
        self.action_head = nn.Linear(24, 2)
        self.value_head = nn.Linear(24, 1)
        self.saved_actions = []
        self.rewards = []

    def forward(self, x):
        x = F.relu(self.affine1(x))
        return F.softmax(self.action_head(x), dim=-1), self.value_head(x)


def select_action(model, state, chance):
    probs, state_value = model(torch.from_numpy(state).float())
    m = Categorical(probs)
    action = torch.tensor(int(chance > m.probs[0].item()))
    model.saved_actions.append(SavedAction(m.log_prob(action), state_value))
    return action.item(), m.entropy()


def finish_episode(model, optimizer, entropies):
    R, returns = 0, []
    for r in model.rewards[::-1]:
        R = r + 0.99 * R
        returns.insert(0, R)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + np.finfo(np.float32).eps.item())
    policy_losses, value_losses = [], []
    for (log_prob, value), R in zip(model.saved_actions, returns):  # noqa: B905
        policy_losses.append(-log_prob * (R - value.item()))
        value_losses.append(F.smooth_l1_loss(value, torch.tensor([R])))
    optimizer.zero_grad()
    loss = torch.stack(policy_losses).sum() + torch.stack(value_losses).sum()
    loss = loss - 0.01 * torch.stack(entropies).mean()
    loss.backward()
    optimizer.step()
    del model.rewards[:]
    del model.saved_actions[:]
    return loss.item()


def setup():
    return {"model": Policy()}


def run(modules, steps):
    model = modules["model"]
    optimizer = optim.Adam(model.parameters(), lr=3e-2)
    rng = np.random.default_rng(0)
    losses = []
    for _ in range(steps):
        state, entropies = rng.normal(size=4), []
        for _ in range(8):
            action, entropy = select_action(model, state, rng.random())
            entropies.append(entropy)
            state = 0.9 * state + (action - 0.5) * np.array([0.1, -0.2, 0.3, 0.1])
            model.rewards.append(1.0 - float(np.abs(state).mean()))
        losses.append(finish_episode(model, optimizer, entropies))
    return losses
