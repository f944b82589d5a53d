"""Q-learning: replay memory, a target network moved softly, clipped gradients."""

import math
import random
from collections import deque, namedtuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))


class ReplayMemory:
    def __init__(self, capacity):
        self.memory = deque([], maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, batch_size):
        return random.Random(len(self.memory)).sample(list(self.memory), batch_size)

    def __len__(self):
        return len(self.memory)


class DQN(nn.Module):
    def __init__(self, n_observations, n_actions):
        super().__init__()
        self.layer1 = nn.Linear(n_observations, 16)
        self.layer2 = nn.Linear(16, 16)
        self.layer3 = nn.Linear(16, n_actions)

    def forward(self, x):
        x = F.relu(self.layer1(x))
        return self.layer3(F.relu(self.layer2(x)))


def setup():
    policy_net, target_net = DQN(3, 2), DQN(3, 2)
    return {"policy": policy_net, "target": target_net}


def optimize_model(policy_net, target_net, optimizer, memory):
    batch = Transition(*zip(*memory.sample(8)))  # noqa: B905
    non_final_mask = torch.tensor([s is not None for s in batch.next_state], dtype=torch.bool)
    non_final_next_states = torch.cat([s for s in batch.next_state if s is not None])
    state_action_values = policy_net(torch.cat(batch.state)).gather(1, torch.cat(batch.action))
    next_state_values = torch.zeros(8)
    with torch.no_grad():
        next_state_values[non_final_mask] = target_net(non_final_next_states).max(1).values
    expected = (next_state_values * 0.99) + torch.cat(batch.reward)
    loss = nn.SmoothL1Loss()(state_action_values, expected.unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_value_(policy_net.parameters(), 100)
    optimizer.step()
    return loss.item()


def run(modules, steps):
    policy_net, target_net = modules["policy"], modules["target"]
    target_net.load_state_dict(policy_net.state_dict())
    optimizer = optim.AdamW(policy_net.parameters(), lr=1e-2, amsgrad=True)
    memory, rng = ReplayMemory(100), np.random.default_rng(0)
    state, losses, done = torch.tensor(rng.normal(size=3), dtype=torch.float32).unsqueeze(0), [], 0
    while len(losses) < steps:
        if rng.random() > math.exp(-done / 10):
            with torch.no_grad():
                action = policy_net(state).max(1).indices.view(1, 1)
        else:
            action = torch.tensor([[int(rng.integers(0, 2))]], dtype=torch.long)
        observation = 0.8 * state.numpy()[0] + (action.item() - 0.5) + 0.1 * rng.normal(size=3)
        reward = torch.tensor([float(-np.abs(observation).sum())])
        terminated = rng.random() < 0.15
        next_state = torch.tensor(observation, dtype=torch.float32).unsqueeze(0)
        memory.push(state, action, None if terminated else next_state, reward)
        state, done = next_state, done + 1
        if len(memory) < 8:
            continue
        losses.append(optimize_model(policy_net, target_net, optimizer, memory))
        target_net_state_dict = target_net.state_dict()
        policy_net_state_dict = policy_net.state_dict()
        for key in policy_net_state_dict:
            target_net_state_dict[key] = policy_net_state_dict[key] * 0.05 + target_net_state_dict[
                key
            ] * (1 - 0.05)
        target_net.load_state_dict(target_net_state_dict)
    return losses
