"""Known architectures under their public parameter names, so that published weights load."""

from ..lazy import lazy

__all__ = [
    "BertConfig",
    "BertForMaskedLM",
    "BertModel",
    "GPT2Config",
    "GPT2LMHeadModel",
    "GPT2Model",
    "PretrainedModel",
    "ResNet",
    "ResNetConfig",
    "UNet",
    "UNetConfig",
    "VGG",
    "VGGConfig",
    "resnet18",
    "resnet34",
    "resnet50",
    "vgg11",
    "vgg11_bn",
    "vgg16",
    "vgg16_bn",
]

_HOLDERS = {
    "bert": "BertConfig BertForMaskedLM BertModel",
    "gpt2": "GPT2Config GPT2LMHeadModel GPT2Model",
    "pretrained": "PretrainedModel",
    "residual": "ResNet ResNetConfig resnet18 resnet34 resnet50",
    "segmentation": "UNet UNetConfig",
    "visual_geometry": "VGG VGGConfig vgg11 vgg11_bn vgg16 vgg16_bn",
}
__getattr__, __dir__ = lazy(__name__, _HOLDERS)
