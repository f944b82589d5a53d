"""Spectrogram, convolution, bidirectional GRU and CTC, with a one-cycle schedule."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class BidirectionalGRU(nn.Module):
    def __init__(self, rnn_dim, hidden_size):
        super().__init__()
        self.gru = nn.GRU(rnn_dim, hidden_size, num_layers=1, batch_first=True, bidirectional=True)
        self.layer_norm = nn.LayerNorm(rnn_dim)

    def forward(self, x):
        x, _ = self.gru(F.gelu(self.layer_norm(x)))
        return x


class SpeechRecognition(nn.Module):
    def __init__(self, n_feats, classes):
        super().__init__()
        self.cnn = nn.Conv2d(1, 4, 3, stride=(2, 1), padding=1)
        self.fully_connected = nn.Linear(4 * ((n_feats + 1) // 2), 12)
        self.rnn = BidirectionalGRU(12, 10)
        self.classifier = nn.Sequential(nn.Linear(20, 12), nn.Hardswish(), nn.Linear(12, classes))

    def forward(self, x):
        x = self.cnn(x)
        sizes = x.size()
        x = x.view(sizes[0], sizes[1] * sizes[2], sizes[3]).transpose(1, 2)
        return self.classifier(self.rnn(self.fully_connected(x)))


def features(wave):
    window = torch.hann_window(16)
    spec = torch.stft(wave, n_fft=16, hop_length=8, window=window, return_complex=True)
    return torch.log1p(spec.abs().pow(2)).unsqueeze(1)


def setup():
    return {"model": SpeechRecognition(9, 7)}


def run(modules, steps):
    model = modules["model"]
    criterion = nn.CTCLoss(blank=6, zero_infinity=True)
    optimizer = torch.optim.AdamW(model.parameters(), 5e-4)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=5e-3, total_steps=steps, anneal_strategy="linear"
    )
    rng = np.random.default_rng(0)
    losses = []
    for _ in range(steps):
        spectrograms = features(torch.tensor(rng.normal(size=(3, 120)).astype(np.float32)))
        labels = torch.from_numpy(rng.integers(0, 6, (3, 5)))
        label_lengths = torch.tensor(rng.integers(2, 6, 3))
        optimizer.zero_grad()
        output = F.log_softmax(model(spectrograms), dim=2).transpose(0, 1)
        input_lengths = torch.full((3,), output.size(0), dtype=torch.long)
        loss = criterion(output, labels, input_lengths, label_lengths)
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    return losses
