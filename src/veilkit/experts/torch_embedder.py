"""Torch networks as experts: frozen, quick, and differentiable to the image."""

from __future__ import annotations

import copy
import hashlib
from collections import Counter
from pathlib import Path
from typing import Literal, TypeVar, Unpack, cast

import torch
from torch import Tensor, fx, nn
from torch.nn.utils.fusion import fuse_conv_bn_weights

from veilkit.errors import ConfigError
from veilkit.experts.base import Description, ExpertInfo, NetworkEmbedder
from veilkit.experts.names import file_sha256
from veilkit.experts.preprocessing import LUMA, Preprocessing
from veilkit.networks.backbones import Backbone
from veilkit.networks.reid import ReidNetwork, load_reid

M = TypeVar("M", bound=nn.Module)


class TorchEmbedder(NetworkEmbedder):
    """Features after BNNeck of a Re-ID network; resize and normalisation are inside the network.

    The network is copied, frozen and set to evaluation mode, its batch norms are folded into its convolutions and its
    weights laid out channels last.
    """

    def __init__(self, network: ReidNetwork, info: ExpertInfo, *, flip: bool = False, batch_size: int = 64) -> None:
        super().__init__(info, flip=flip, batch_size=batch_size)
        frozen = copy.deepcopy(network).eval()
        # A backbone is a module with two more attributes, which the copy keeps.
        backbone = folded_copy(cast(nn.Module, frozen.backbone), _example(3, network.config.size))
        frozen.backbone = cast(Backbone, backbone)
        self._network = _frozen(frozen)

    @classmethod
    def load(
        cls, path: Path, *, name: str | None = None, flip: bool = False, **description: Unpack[Description]
    ) -> TorchEmbedder:
        """The expert of a model file that Re-ID training wrote; its name is the file's, unless given."""
        path = Path(path)
        network = load_reid(path)
        config = network.config
        preprocessing = Preprocessing(config.size, config.mean, config.std)
        info = ExpertInfo(
            name or path.stem, "embedder", feature_length(network), file_sha256(path), True,
            preprocessing=preprocessing, **description,
        )  # fmt: skip
        return cls(network, info, flip=flip)

    def _features(self, images: Tensor) -> Tensor:
        return self._network.embed(images)


def feature_length(network: ReidNetwork) -> int:
    """D of the network's features: all bands in a row, or what they are projected to."""
    config = network.config
    return config.projection or sum(config.bands) * (config.reduced or network.backbone.channels)


class ModuleEmbedder(NetworkEmbedder):
    """A module of one's own (N, channels, H, W), normalised -> (N, D), with the preparation that it needs.

    channels: 1 for networks of infrared or grey pictures; pictures have three, which become their luma, and
    `preprocessing` then normalises by its first mean and std. The module is copied, frozen and set to evaluation
    mode, its batch norms are folded where that can be done. Its sha256 is that of weights and printed structure.
    """

    def __init__(
        self, module: nn.Module, preprocessing: Preprocessing, *, name: str = "module", channels: Literal[1, 3] = 3,
        flip: bool = False, **description: Unpack[Description],
    ) -> None:  # fmt: skip
        if channels not in (1, 3):
            raise ConfigError(f"channels must be 1 or 3, but got {channels}")
        if channels == 1:
            mean, std = preprocessing.mean[0], preprocessing.std[0]
            self._prepare = Preprocessing(preprocessing.size, (mean,) * 3, (std,) * 3)
        else:
            self._prepare = preprocessing
        self._channels = channels
        frozen = copy.deepcopy(module).eval()
        example = _example(channels, preprocessing.size)
        dim = _feature_count(frozen, example, name)
        self._module = _frozen(folded_copy(frozen, example))
        description.setdefault("origin", "user")
        info = ExpertInfo(
            name, "embedder", dim, _digest(module, channels), True, preprocessing=preprocessing,
            **description,
        )  # fmt: skip
        super().__init__(info, flip=flip)

    def _features(self, images: Tensor) -> Tensor:
        if self._channels == 1:
            images = (images * images.new_tensor(LUMA)[:, None, None]).sum(1, keepdim=True).expand(-1, 3, -1, -1)
        prepared = self._prepare(images)[:, : self._channels]
        return cast(Tensor, self._module(prepared.contiguous(memory_format=torch.channels_last)))


def _feature_count(module: nn.Module, example: Tensor, name: str) -> int:
    """D of the features (N, D) that a module must give."""
    try:
        with torch.no_grad():
            answer = module(example)
    except Exception as error:  # whatever a module of one's own raises
        raise ConfigError(
            f"{name}: expected a module that takes images {tuple(example.shape)}, but it failed on one: {error}; "
            "check channels and the size of the preprocessing"
        ) from error
    if not isinstance(answer, Tensor) or answer.ndim != 2 or len(answer) != 1:
        got = tuple(answer.shape) if isinstance(answer, Tensor) else type(answer).__name__
        raise ConfigError(
            f"a module must turn (N, {example.shape[1]}, H, W) into features (N, D), but one image gave {got}; "
            "wrap it so that it returns the features alone"
        )
    return answer.shape[1]


def _example(channels: int, size: tuple[int, int]) -> Tensor:
    return torch.rand(1, channels, *size, generator=torch.Generator().manual_seed(0))


def _frozen(network: M) -> M:
    network.requires_grad_(False)
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # missing from torch's stubs
    return network


def _digest(module: nn.Module, channels: int) -> str:
    """A hash of weights and structure: a module of one's own has no file."""
    total = hashlib.sha256(f"{channels} {module}".encode())
    for name, value in sorted(module.state_dict().items()):
        total.update(name.encode())
        total.update(value.detach().contiguous().cpu().numpy().tobytes())
    return total.hexdigest()


# What tracing raises for networks whose path depends on the values or that are not made of plain tensor operations.
_UNTRACEABLE = (fx.proxy.TraceError, TypeError, ValueError, RuntimeError, NameError)
_TOLERANCE = 1e-4  # of the largest output


def folded_copy(network: M, example: Tensor) -> M:
    """A copy of `network`, which must be in evaluation mode, with its batch norms folded where that is possible.

    Should the outputs for `example` differ by more than 1e-4 of the largest, the copy is a plain one.
    """
    folded = copy.deepcopy(network)
    fold_conv_norm(folded)
    with torch.no_grad():
        wanted, got = network(example), folded(example)
    agree = (got - wanted).abs().max() <= _TOLERANCE * wanted.abs().max()
    return folded if agree else copy.deepcopy(network)


def fold_conv_norm(network: nn.Module) -> int:
    """Fold, in place, each batch norm that follows a convolution and nothing else; returns how many.

    Of a network that cannot be traced as a whole, each part is folded by itself, unless its parts share modules.
    """
    if not any(isinstance(module, nn.BatchNorm2d) for module in network.modules()):
        return 0
    try:
        graph = fx.Tracer().trace(network)
    except _UNTRACEABLE:
        names = list(network.named_modules(remove_duplicate=False))
        shared = len(names) > len(list(network.modules()))
        return 0 if shared else sum(fold_conv_norm(part) for part in network.children())
    return _fold_graph(network, graph)


def _fold_graph(network: nn.Module, graph: fx.Graph) -> int:
    modules = dict(network.named_modules())
    calls = Counter(node.target for node in graph.nodes if node.op == "call_module")
    folded = 0
    for node in graph.nodes:
        before = node.args[0] if node.op == "call_module" else None
        if not isinstance(before, fx.Node) or before.op != "call_module":
            continue
        conv, norm = modules[str(before.target)], modules[str(node.target)]
        if type(conv) is not nn.Conv2d or type(norm) is not nn.BatchNorm2d:
            continue
        # A second user of the convolution's output, or a second call of either, needs it unfolded.
        if len(before.users) > 1 or calls[before.target] > 1 or calls[node.target] > 1:
            continue
        if norm.running_mean is None or norm.running_var is None:  # such a norm depends on the batch
            continue
        conv.weight, conv.bias = fuse_conv_bn_weights(
            conv.weight, conv.bias, norm.running_mean, norm.running_var, norm.eps, norm.weight, norm.bias
        )
        network.set_submodule(str(node.target), nn.Identity())
        folded += 1
    return folded
