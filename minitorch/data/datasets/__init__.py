"""Data sets that are ready to use: grey images with labels."""

from .digits import Digits
from .images import ImageDataset
from .mnist import MNIST, FashionMNIST

__all__ = ["MNIST", "Digits", "FashionMNIST", "ImageDataset"]
