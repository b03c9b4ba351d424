"""Batch norms folded into the convolutions before them: the same function, with fewer passes over memory.

In evaluation mode a batch norm is a fixed scale and shift per channel, so  norm(conv(x; W, b))  is one convolution
with weights  W * g / s  and bias  (b - m) * g / s + h,  where m and s are the running mean and deviation, g and h the
learned scale and shift.
"""

from __future__ import annotations

from collections import Counter

from torch import fx, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

# What tracing raises for networks whose path depends on the values or that are not made of plain tensor operations.
_UNTRACEABLE = (fx.proxy.TraceError, TypeError, ValueError, RuntimeError, NameError)


def fold_conv_norm(network: nn.Module) -> nn.Module:
    """`network`, which must be in evaluation mode, with each batch norm folded that follows a convolution alone.

    A network that cannot be traced, or has no batch norm, comes back as it is. Otherwise the result is a new module;
    modules that are not folded are shared with `network`.
    """
    if not any(isinstance(module, nn.BatchNorm2d) for module in network.modules()):
        return network
    try:
        traced = fx.symbolic_trace(network)
    except _UNTRACEABLE:
        return network
    modules = dict(traced.named_modules())
    calls = Counter(node.target for node in traced.graph.nodes if node.op == "call_module")
    for node in list(traced.graph.nodes):
        if node.op != "call_module" or type(modules[node.target]) is not nn.BatchNorm2d:
            continue
        before = node.args[0]
        if before.op != "call_module" or type(modules[before.target]) is not nn.Conv2d:
            continue
        # A second user of the convolution's output, or a second call of either, needs it unfolded.
        if len(before.users) > 1 or calls[before.target] > 1 or calls[node.target] > 1:
            continue
        traced.set_submodule(before.target, fuse_conv_bn_eval(modules[before.target], modules[node.target]))
        node.replace_all_uses_with(before)
        traced.graph.erase_node(node)
    traced.delete_all_unused_submodules()
    traced.recompile()
    return traced
