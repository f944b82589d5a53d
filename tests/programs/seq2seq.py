"""Translation: packed GRU encoder, attention decoder with teacher forcing, padding ignored."""

import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

PAD, SOS = 0, 1


class EncoderRNN(nn.Module):
    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.embedding = nn.Embedding(input_size, hidden_size, padding_idx=PAD)
        self.gru = nn.GRU(hidden_size, hidden_size, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(2 * hidden_size, hidden_size)

    def forward(self, input, lengths):
        packed = pack_padded_sequence(
            self.embedding(input), lengths, batch_first=True, enforce_sorted=False
        )
        output, hidden = self.gru(packed)
        output, _ = pad_packed_sequence(output, batch_first=True)
        hidden = torch.tanh(self.fc(torch.cat((hidden[-2], hidden[-1]), dim=1)))
        return output, hidden


class BahdanauAttention(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.Wa = nn.Linear(hidden_size, hidden_size)
        self.Ua = nn.Linear(2 * hidden_size, hidden_size)
        self.Va = nn.Linear(hidden_size, 1)

    def forward(self, query, keys, mask):
        scores = self.Va(torch.tanh(self.Wa(query) + self.Ua(keys)))
        scores = scores.squeeze(2).masked_fill(mask == 0, -1e10).unsqueeze(1)
        return torch.bmm(F.softmax(scores, dim=-1), keys)


class AttnDecoderRNN(nn.Module):
    def __init__(self, hidden_size, output_size):
        super().__init__()
        self.embedding = nn.Embedding(output_size, hidden_size)
        self.attention = BahdanauAttention(hidden_size)
        self.gru = nn.GRUCell(3 * hidden_size, hidden_size)
        self.out = nn.Linear(hidden_size, output_size)

    def forward(self, keys, hidden, mask, target, forced):
        token = torch.empty(keys.size(0), dtype=torch.long).fill_(SOS)
        outputs = []
        for i in range(target.size(1)):
            context = self.attention(hidden.unsqueeze(1), keys, mask).squeeze(1)
            hidden = self.gru(torch.cat((self.embedding(token), context), dim=1), hidden)
            outputs.append(self.out(hidden))
            token = target[:, i] if forced else outputs[-1].topk(1)[1].squeeze(-1).detach()
        return torch.stack(outputs, dim=1)


def setup():
    return {"encoder": EncoderRNN(20, 12), "decoder": AttnDecoderRNN(12, 18)}


def run(modules, steps):
    encoder, decoder = modules["encoder"], modules["decoder"]
    encoder_optimizer = optim.Adam(encoder.parameters(), lr=5e-3)
    decoder_optimizer = optim.Adam(decoder.parameters(), lr=5e-3)
    criterion = nn.CrossEntropyLoss(ignore_index=PAD)
    rng, teacher = np.random.default_rng(0), random.Random(0)
    losses = []
    for _ in range(steps):
        lengths = rng.integers(2, 8, 5)
        source = [torch.from_numpy(rng.integers(1, 20, n)) for n in lengths]
        source = pad_sequence(source, batch_first=True, padding_value=PAD)
        target = [torch.from_numpy(rng.integers(2, 18, n)) for n in rng.integers(2, 6, 5)]
        target = pad_sequence(target, batch_first=True, padding_value=PAD)
        encoder_optimizer.zero_grad()
        decoder_optimizer.zero_grad()
        keys, hidden = encoder(source, torch.tensor(lengths))
        mask = source != PAD
        outputs = decoder(keys, hidden, mask, target, teacher.random() < 0.7)
        loss = criterion(outputs.view(-1, outputs.size(-1)), target.view(-1))
        loss.backward()
        encoder_optimizer.step()
        decoder_optimizer.step()
        losses.append(loss.item())
    return losses
