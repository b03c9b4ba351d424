"""Batch norms folded into the convolutions before them: the same function, with fewer passes over memory.

In evaluation mode a batch norm is a fixed scale and shift per channel, so  norm(conv(x; W, b))  is one convolution
with weights  W * g / s  and bias  (b - m) * g / s + h,  where m and s are the running mean and deviation, g and h the
learned scale and shift.
"""

from __future__ import annotations

import copy
from collections import Counter
from typing import TypeVar

import torch
from torch import Tensor, fx, nn
from torch.nn.utils.fusion import fuse_conv_bn_weights

# What tracing raises for networks whose path depends on the values or that are not made of plain tensor operations.
_UNTRACEABLE = (fx.proxy.TraceError, TypeError, ValueError, RuntimeError, NameError)
_TOLERANCE = 1e-4  # of the largest output

M = TypeVar("M", bound=nn.Module)


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
