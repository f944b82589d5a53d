"""Segmentation with a U-Net: skips, bilinear upsampling, Dice and cross-entropy."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class DoubleConv(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.double_conv = nn.Sequential(
            nn.Conv2d(in_channels, out_channels, kernel_size=3, padding=1, bias=False),
            nn.GroupNorm(2, out_channels),
            nn.SiLU(inplace=True),
            nn.Conv2d(out_channels, out_channels, kernel_size=3, padding="same", dilation=2),
            nn.ReLU(inplace=True),
        )

    def forward(self, x):
        return self.double_conv(x)


class Up(nn.Module):
    def __init__(self, in_channels, out_channels, bilinear):
        super().__init__()
        if bilinear:
            self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
        else:
            self.up = nn.ConvTranspose2d(in_channels // 2, in_channels // 2, 2, stride=2)
        self.conv = DoubleConv(in_channels, out_channels)

    def forward(self, x1, x2):
        x1 = self.up(x1)
        diffY, diffX = x2.size()[2] - x1.size()[2], x2.size()[3] - x1.size()[3]
        x1 = F.pad(x1, [diffX // 2, diffX - diffX // 2, diffY // 2, diffY - diffY // 2])
        return self.conv(torch.cat([x2, x1], dim=1))


class UNet(nn.Module):
    def __init__(self, n_channels, n_classes):
        super().__init__()
        self.inc = DoubleConv(n_channels, 4)
        self.down1 = nn.Sequential(nn.MaxPool2d(2), DoubleConv(4, 8))
        self.down2 = nn.Sequential(nn.MaxPool2d(2), DoubleConv(8, 8))
        self.up1 = Up(16, 4, bilinear=True)
        self.up2 = Up(8, 4, bilinear=False)
        self.outc = nn.Conv2d(4, n_classes, kernel_size=1)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.down1(x1)
        x3 = self.down2(x2)
        return self.outc(self.up2(self.up1(x3, x2), x1))


def dice_coeff(input, target, epsilon=1e-6):
    sum_dim = (-1, -2, -3)
    inter = 2 * (input * target).sum(dim=sum_dim)
    sets_sum = input.sum(dim=sum_dim) + target.sum(dim=sum_dim)
    sets_sum = torch.where(sets_sum == 0, inter, sets_sum)
    return ((inter + epsilon) / (sets_sum + epsilon)).mean()


def setup():
    return {"model": UNet(3, 3)}


def run(modules, steps):
    model = modules["model"].to(memory_format=torch.channels_last)
    optimizer = torch.optim.RMSprop(
        model.parameters(), lr=1e-3, weight_decay=1e-8, momentum=0.9, foreach=True
    )
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "min", patience=2)
    criterion = nn.CrossEntropyLoss()
    rng = np.random.default_rng(0)
    losses = []
    for _ in range(steps):
        images = torch.from_numpy(rng.random((2, 3, 14, 10))).to(dtype=torch.float32)
        true_masks = torch.from_numpy(rng.integers(0, 3, (2, 14, 10))).to(dtype=torch.long)
        masks_pred = model(images)
        loss = criterion(masks_pred, true_masks)
        onehot = F.one_hot(true_masks, 3).permute(0, 3, 1, 2).float()
        loss += 1 - dice_coeff(F.softmax(masks_pred, dim=1).float(), onehot)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        scheduler.step(loss.item())
        losses.append(loss.item())
    return losses
