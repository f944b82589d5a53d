"""A Wasserstein critic with gradient penalty: a gradient of a gradient."""

import numpy as np
import torch
import torch.autograd as autograd
import torch.nn as nn
from torch.autograd import Variable


def compute_gradient_penalty(D, real_samples, fake_samples, alpha):
    interpolates = (alpha * real_samples + ((1 - alpha) * fake_samples)).requires_grad_(True)
    d_interpolates = D(interpolates)
    fake = Variable(torch.ones(real_samples.shape[0], 1), requires_grad=False)
    gradients = autograd.grad(
        outputs=d_interpolates,
        inputs=interpolates,
        grad_outputs=fake,
        create_graph=True,
        retain_graph=True,
        only_inputs=True,
    )[0]
    gradients = gradients.view(gradients.size(0), -1)
    return ((gradients.norm(2, dim=1) - 1) ** 2).mean()


def setup():
    generator = nn.Sequential(
        nn.Linear(4, 16), nn.BatchNorm1d(16, 0.8), nn.LeakyReLU(0.2), nn.Linear(16, 6), nn.Tanh()
    )
    critic = nn.Sequential(
        nn.Linear(6, 16), nn.LeakyReLU(0.2, inplace=True), nn.Linear(16, 8), nn.Softplus(),
        nn.Linear(8, 1),
    )  # fmt: skip
    return {"generator": generator, "critic": critic}


def run(modules, steps):
    generator, critic = modules["generator"], modules["critic"]
    optimizer_G = torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.5, 0.999))
    optimizer_D = torch.optim.Adam(critic.parameters(), lr=2e-3, betas=(0.5, 0.999))
    rng = np.random.default_rng(0)

    def draw(*shape):
        return torch.FloatTensor(rng.normal(size=shape).astype(np.float32))

    losses = []
    for i in range(steps):
        real_imgs, z = Variable(draw(7, 6)), Variable(draw(7, 4))
        optimizer_D.zero_grad()
        fake_imgs = generator(z)
        penalty = compute_gradient_penalty(
            critic, real_imgs.data, fake_imgs.data, draw(7, 1).sigmoid()
        )
        d_loss = -torch.mean(critic(real_imgs)) + torch.mean(critic(fake_imgs)) + 10 * penalty
        d_loss.backward()
        optimizer_D.step()
        optimizer_G.zero_grad()
        if i % 3 == 0:
            g_loss = -torch.mean(critic(generator(z)))
            g_loss.backward()
            optimizer_G.step()
        losses.append(d_loss.item())
    return losses
