"""Data sets: images, tables and texts, from files or ready to use."""

from ...lazy import lazy
from .digits import Digits
from .images import ImageDataset
from .mnist import MNIST, FashionMNIST

__all__ = [
    "CIFAR10",
    "MNIST",
    "CSVDataset",
    "DatasetFolder",
    "Digits",
    "FashionMNIST",
    "ImageDataset",
    "ImageFolder",
    "TextDataset",
    "Vocabulary",
]

_HOLDERS = {
    "cifar": "CIFAR10",
    "folders": "DatasetFolder ImageFolder",
    "tables": "CSVDataset",
    "texts": "TextDataset Vocabulary",
}
__getattr__, __dir__ = lazy(__name__, _HOLDERS)
