"""Changes of images before they become a batch, and of whole batches."""

from ...lazy import lazy

__all__ = [
    "CenterCrop",
    "ColorJitter",
    "Compose",
    "CutMix",
    "Lambda",
    "MixUp",
    "Normalize",
    "RandomCrop",
    "RandomErasing",
    "RandomHorizontalFlip",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomVerticalFlip",
    "Resize",
    "ToTensor",
    "Transform",
]

_HOLDERS = {
    "base": "Compose Lambda Normalize ToTensor Transform",
    "batches": "CutMix MixUp",
    "color": "ColorJitter RandomErasing",
    "cropping": "CenterCrop RandomCrop RandomResizedCrop Resize",
    "turning": "RandomHorizontalFlip RandomRotation RandomVerticalFlip",
}
__getattr__, __dir__ = lazy(__name__, _HOLDERS)
