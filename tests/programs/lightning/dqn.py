"""Deep Q-learning: a replay buffer behind an IterableDataset, a target network, an agent."""

from collections import deque, namedtuple

import numpy as np
import pytorch_lightning as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

Experience = namedtuple("Experience", ("state", "action", "reward", "done", "new_state"))


class Corridor:
    """Walk right to win."""

    def reset(self):
        self.place = 0
        return self.look()

    def look(self):
        state = np.zeros(5, dtype=np.float32)
        state[self.place] = 1.0
        return state

    def step(self, action):
        self.place = max(0, self.place + (1 if action else -1))
        done = self.place == 4
        return self.look(), float(done), done


class ReplayBuffer:
    def __init__(self, capacity):
        self.buffer = deque(maxlen=capacity)

    def append(self, experience):
        self.buffer.append(experience)

    def sample(self, count):
        picked = np.random.choice(len(self.buffer), count, replace=False)
        return zip(*(self.buffer[i] for i in picked), strict=True)


class RLDataset(IterableDataset):
    def __init__(self, buffer, sample_size=40):
        self.buffer = buffer
        self.sample_size = sample_size

    def __iter__(self):
        states, actions, rewards, dones, new_states = self.buffer.sample(self.sample_size)
        for i in range(len(dones)):
            yield states[i], actions[i], rewards[i], dones[i], new_states[i]


class DQNLightning(pl.LightningModule):
    def __init__(self, batch_size=8, lr=0.01, gamma=0.9, sync_rate=4, warm_start=60):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 2))
        self.target_net = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 2))
        self.target_net.load_state_dict(self.net.state_dict())
        for parameter in self.target_net.parameters():
            parameter.requires_grad = False
        self.env = Corridor()
        self.buffer = ReplayBuffer(200)
        self.state = self.env.reset()
        self.total_reward = 0.0
        for _ in range(warm_start):
            self.play(epsilon=1.0)

    @torch.no_grad()
    def play(self, epsilon):
        if np.random.random() < epsilon:
            action = int(np.random.randint(2))
        else:
            q_values = self.net(torch.tensor(self.state).unsqueeze(0))
            action = int(q_values.argmax(dim=1).item())
        new_state, reward, done = self.env.step(action)
        self.buffer.append(Experience(self.state, action, reward, done, new_state))
        self.state = self.env.reset() if done else new_state
        return reward

    def dqn_mse_loss(self, batch):
        states, actions, rewards, dones, next_states = batch
        values = self.net(states).gather(1, actions.long().unsqueeze(-1)).squeeze(-1)
        with torch.no_grad():
            next_values = self.target_net(next_states).max(1)[0]
            next_values[dones] = 0.0
        expected = next_values * self.hparams.gamma + rewards.float()
        return nn.functional.mse_loss(values, expected)

    def training_step(self, batch, nb_batch):
        self.total_reward += self.play(epsilon=0.2)
        loss = self.dqn_mse_loss(batch)
        if self.global_step % self.hparams.sync_rate == 0:
            self.target_net.load_state_dict(self.net.state_dict())
        self.log_dict({"reward": self.total_reward, "train_loss": loss})
        self.log("steps", float(self.global_step), logger=False, prog_bar=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.net.parameters(), lr=self.hparams.lr)

    def train_dataloader(self):
        return DataLoader(RLDataset(self.buffer), batch_size=self.hparams.batch_size)


def main(root):
    pl.seed_everything(3)
    trainer = pl.Trainer(
        accelerator="cpu",
        max_epochs=6,
        default_root_dir=root,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    model = DQNLightning()
    trainer.fit(model)
    return {"steps": trainer.global_step, "loss": float(trainer.callback_metrics["train_loss"])}
