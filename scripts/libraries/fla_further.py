"""The other operations of flash-linear-attention, each with the library's own reference in torch, or a loop here.

`fused_chunk_gla` and `fused_chunk_delta_rule` are gone from the library, the sliding windows of NSA, MoBA and
DeltaFormer call the package flash-attn, Sinkhorn's kernels want an NVIDIA GPU by its name, and Titans has no kernel.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import fla_loops as loops
import torch
import torch.nn.functional as F
from torch import rand, randn

NEAR = 5e-3  # of the largest value: chunks multiply in tf32 where kernels ask for it
NEAR_BFLOAT16 = 2e-2
Torch = Callable[..., torch.Tensor]
Operation = tuple[Any, ...]  # the operation, its reference, inputs; how near (`NEAR` where it is left out)


class Row(NamedTuple):
    """An operation `fla.PATH` and its tensors ("q k=unit": the argument, and its value's name where that differs;
    "!k" has no gradient, "*x" is given by position).

    The reference is a function of the same tensors, or the path of one (`ops.` left out), with "^" before it
    where it has heads before time and is called by position.
    """

    path: str
    tensors: str
    reference: str | Torch
    options: Mapping[str, Any] = MappingProxyType({})  # of both
    extra: Mapping[str, Any] = MappingProxyType({})  # of the operation alone
    only: str = ""  # "forward", where there is no backward pass; "bfloat16", where float32 is refused
    name: str = ""


def _both(path: str, name: str, tensors: str, reference: str | Torch, **more: Any) -> tuple[Row, ...]:
    """The form in chunks and that token by token."""
    return tuple(Row(f"ops.{path}.{form}_{name}", tensors, reference, **more) for form in ("chunk", "fused_recurrent"))


def _recurrent(path: str, name: str, tensors: str, reference: str | Torch, **more: Any) -> tuple[Row, ...]:
    """The same where the second has no backward pass."""
    chunk, token = _both(path, name, tensors, reference, **more)
    return chunk, token._replace(only="forward")


def _layers(names: str) -> dict[str, int]:
    return dict(zip(names.split(), (0, 4), strict=True))


MOMENTUM = {"use_qk_l2norm_in_kernel": False, "use_p_times_alpha": False}
ATTENTION = {"block_size": 32, "block_counts": 2}
NORM_LINEAR = "x norm_weight=scale norm_bias=offset linear_weight=weight linear_bias=bias"
ROWS = (
    Row("ops.abc.chunk_abc", "q k v s", "^abc.naive.naive_cumsum_abc"),
    *_both("gsa", "gsa", "q k v s g=gs", "gsa.naive.naive_recurrent_gsa"),
    *_recurrent("comba", "comba", "q k=unit v p=other g beta", "comba.naive_chunk_comba"),
    Row("ops.generalized_delta_rule.chunk_iplr_delta_rule", "q k v a b", loops.iplr, only="forward"),
    Row("ops.generalized_delta_rule.fused_recurrent_iplr_delta_rule", "q k v a b", loops.iplr),
    *_recurrent("generalized_delta_rule", "dplr_delta_rule", "q k v a b gk", loops.dplr),
    Row("ops.rwkv4.fused_recurrent_rwkv4", "w=w4 u=u4 k=k4 v=v4 state=state4", loops.rwkv4),
    *_both("rwkv6", "rwkv6", "r=q k v w=gk u=u6", loops.rwkv6),
    *_recurrent("rwkv7", "rwkv7", "r=q w=gk k v a b", loops.rwkv7, extra={"scale": 1.0}),
    Row("ops.rwkv7.fused_mul_recurrent_rwkv7", "r=q w=gk k v kk=unit a=gate", loops.rwkv7_mul, only="forward"),
    Row("ops.gated_delta_rule.fused_recurrent_gated_delta_rule", "q k=unit v g beta", loops.recurrence, only="forward"),
    Row("ops.kda.fused_recurrent_kda", "q k=unit v g=gk beta", loops.recurrence, only="forward"),
    *_recurrent("gated_oja_rule", "gated_oja_rule", "q k v=unit gv=gk beta", loops.oja),
    Row(
        "ops.gated_delta_product.chunk_gated_delta_product",
        "q=short k=unit v g=gshort beta",
        "gated_delta_product.naive.naive_recurrent_gated_delta_product",
        {"num_householder": 2, "scale": 1.0, "cu_seqlens": None},
        only="bfloat16",
    ),
    *_both("lightnet", "lightnet", "q k v", loops.lightnet),
    *_both("lightning_attn", "lightning_attn", "q k v", loops.lightning, extra=_layers("layer_idx num_layers")),
    Row("ops.linear_attn.fused_chunk_linear_attn", "q k v", loops.recurrence, extra={"normalize": False}),
    Row("ops.retention.fused_chunk_retention", "q k v", loops.retention),
    Row("ops.retention.parallel_retention", "q k v", loops.retention),
    Row("ops.simple_gla.fused_chunk_simple_gla", "q k v g", loops.recurrence),
    Row("ops.simple_gla.parallel_simple_gla", "q k v g", loops.recurrence),
    *_recurrent("gdn2", "gdn2", "q k=unit v g=gk b=gate w=gate2", "gdn2.naive_recurrent_gdn2"),
    *(
        row._replace(only=only)
        for row, only in zip(
            _both(
                "momentum_delta_rule",
                "momentum_delta_rule",
                "q k=unit v log_alpha=g log_mu=mu p=other beta eta=beta2",
                "momentum_delta_rule.recurrent_momentum_delta_rule_ref",
                extra=MOMENTUM,
            ),
            ("bfloat16", "forward"),
            strict=True,
        )
    ),
    *_recurrent(
        "precond_gated_delta_rule",
        "precond_gated_delta_rule",
        "q k=unit v g_atk=mu g beta_atk=beta2 beta",
        "precond_gated_delta_rule.naive_recurrent_precond_gated_delta_rule",
    ),
    *_recurrent(
        "precond_kda",
        "precond_kda",
        "q k v g=gk g_atk=mu beta_atk=beta2 beta",
        loops.normalised("precond_kda.naive_recurrent_precond_kda"),
    ),
    *_recurrent(
        "cyfa",
        "cyfa",
        "q k v g delta=mu beta readout q_norm_weight=norm k_norm_weight=norm2",
        "cyfa.naive_recurrent_cyfa",
        options={"q_norm_eps": 1e-6, "k_norm_eps": 1e-6},
    ),
    Row(
        "ops.log_linear_attn.chunk_log_linear_attn",
        "q=q64 k=k64 v=v64 g level_scales=levels",
        "log_linear_attn.naive.naive_log_linear_attn",
    ),
    Row("ops.mesa_net.chunk_mesa_net", "q=unit k=other v g beta lamb", "mesa_net.naive_mesa_net_exact"),
    Row(
        "ops.mesa_net.mesa_net_decoding_one_step",
        "q=q1 k=k1 v=v1 g=g1 lamb beta=b1 prev_h_kk=kk1 prev_h_kv=kv1",
        "mesa_net.naive_mesa_net_decoding_one_step",
        only="forward",
    ),
    Row("ops.ttt.chunk_ttt_linear", "q=unit k=other v w=wt b=bt eta=etat", "ttt.naive.chunk_ttt_linear_ref"),
    Row("ops.ttt.fused_chunk_ttt_linear", "q=unit k=other v w=wt b=bt eta=etat", "ttt.naive.chunk_ttt_linear_ref"),
    Row("ops.attn.parallel_attn", "q=wide k v", loops.grouped_attention, name="parallel_attn, groups of heads"),
    Row(
        "ops.attn.parallel_attn", "q k v", "attn.naive_parallel_attn", {"window_size": 32}, name="parallel_attn, window"
    ),
    Row("ops.attn.parallel_attn", "q k v g", "attn.naive_parallel_attn", name="parallel_attn, gated"),
    Row("ops.based.parallel_based", "q=q16 k=k16 v", "^based.naive.naive_parallel_based"),
    Row("ops.based.fused_chunk_based", "q=q16 k=k16 v", "^based.naive.naive_parallel_based"),
    Row("ops.rebased.parallel_rebased", "q=q16 k=k16 v", "^rebased.naive.naive_parallel_rebased", extra={"eps": 1e-6}),
    Row("ops.forgetting_attn.parallel_forgetting_attn", "q k v g", "forgetting_attn.naive_forgetting_attn"),
    Row("ops.path_attn.parallel_path_attn", "q k v w=unit beta g", "path_attn.naive_path_attn", {"scale": 0.2}),
    Row("ops.nsa.parallel_nsa", "q=many k=k1h v=v1h g_cmp=gate3 g_slc=gate4", "nsa.naive_nsa", ATTENTION),
    Row("ops.parallax.parallel_parallax", "q r=p k v", "parallax.naive_parallax", only="bfloat16"),
    Row("ops.stickbreaking_attn.parallel_stickbreaking_attn", "q k v", "stickbreaking_attn.naive_stickbreaking_attn"),
    Row("ops.wall_attn.parallel_wall_attn", "q k v g=gk", "wall_attn.naive_wall_attn", {"scale": 0.2}),
    Row("ops.attnres.fused_attnres", "query residuals rms_weight=norm", "attnres.naive_attnres"),
    Row("modules.activations.sigmoid", "*x", torch.sigmoid),
    Row("modules.activations.logsigmoid", "x", F.logsigmoid),
    Row("modules.activations.swish", "*x", F.silu),
    Row("modules.activations.sqrelu", "*x", lambda x: F.relu(x).square()),
    Row("modules.activations.swiglu_linear", "*x *y *weight *bias", lambda x, y, w, b: F.linear(F.silu(x) * y, w, b)),
    Row("modules.token_shift.token_shift", "x=sequence", lambda x: F.pad(x, (0, 0, 1, -1)) - x),
    Row("modules.rotary.rotary_embedding", "x=q !cos !sin", "modules.rotary.rotary_embedding_ref"),
    Row(
        "modules.convolution.causal_conv1d",
        "x=sequence weight=taps bias=shift",
        loops.convolution,
        extra={"activation": "silu"},
    ),
    Row("modules.fused_kl_div.fused_kl_div_loss", "x !target_x=y weight !target_weight=weight2", loops.kl_div),
    Row(
        "modules.fused_linear_cross_entropy.fused_linear_cross_entropy_loss",
        "x target weight bias",
        lambda x, target, weight, bias: F.cross_entropy(F.linear(x, weight, bias), target),
    ),
    Row("modules.grpo.fused_grpo_loss", "logits !ref_logp input_ids !advantages", loops.grpo),
    Row("modules.layernorm.group_norm", "x weight=scale bias=offset", loops.group_norm, extra={"num_groups": 4}),
    Row("modules.layernorm.rms_norm_linear", NORM_LINEAR, loops.rms_norm_linear),
    Row("modules.fused_bitlinear.rms_norm_linear_quant", NORM_LINEAR, loops.rms_norm_linear_quant),
    Row("ops.utils.mean_pooling", "x=q", lambda x: x.unflatten(1, (-1, 32)).mean(2), extra={"chunk_size": 32}),
)
AS_CUDA = ("chunk_cyfa", "fused_recurrent_cyfa", "fused_attnres")  # They ask for CUDA tensors.


def _found(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(import_module(f"fla.{module}"), name)


def _call(path: str, names: Sequence[str], options: Mapping[str, Any]) -> Torch:
    def run(*inputs: Any) -> Any:
        named = {name: x for name, x in zip(names, inputs, strict=True) if name[0] != "*"}
        found = _found(path)(*inputs[: len(inputs) - len(named)], **named, **options)
        return found[0] if isinstance(found, tuple) else found

    return run


def _turned(path: str, options: Mapping[str, Any]) -> Torch:
    def run(*inputs: torch.Tensor) -> torch.Tensor:
        found = _found(path)(*(x.transpose(1, 2).contiguous() for x in inputs), **options)
        return (found[0] if isinstance(found, tuple) else found).transpose(1, 2)

    return run


def _reference(row: Row, names: Sequence[str]) -> Torch:
    if callable(row.reference):
        return row.reference
    turned = row.reference[0] == "^"
    path = row.reference.removeprefix("^")
    path = path if path.startswith("modules.") else f"ops.{path}"
    found = _turned(path, row.options) if turned else _call(path, names, row.options)
    return lambda *inputs: found(*(x + 0 for x in inputs))  # Some write into what they are given.


def _operation(row: Row, values: dict[str, torch.Tensor]) -> Operation:
    named = [name.partition("=")[::2] for name in row.tensors.split()]
    names, inputs = [name for name, _ in named], [values[(other or name).lstrip("*!")].clone() for name, other in named]
    near = NEAR
    if row.only == "bfloat16":
        inputs, near = [x.bfloat16() for x in inputs], NEAR_BFLOAT16
    for i, x in enumerate(inputs):
        if row.only == "forward" or names[i][0] == "!":
            x.no_gradient = True
    names = [name.removeprefix("!") for name in names]
    return _call(row.path, names, {**row.options, **row.extra}), _reference(row, names), tuple(inputs), near


def _values() -> dict[str, torch.Tensor]:
    shape = (1, 128, 2, 32)
    q, k, v, p = (randn(shape) for _ in range(4))
    unit, other = F.normalize(k, dim=-1), F.normalize(randn(shape), dim=-1)
    beta, g = rand(shape[:3]), F.logsigmoid(randn(shape[:3]))
    return {
        "q": q,
        "k": k,
        "v": v,
        "p": p,
        "unit": unit,
        "other": other,
        "beta": beta,
        "g": g,
        "beta2": rand(shape[:3]),
        "mu": F.logsigmoid(randn(shape[:3])),
        "gk": F.logsigmoid(randn(shape)) / 4,
        "gate": rand(shape),
        "gate2": rand(shape),
        "s": randn(*shape[:3], 16),
        "gs": F.logsigmoid(randn(*shape[:3], 16)) / 4,
        "a": -unit,
        "b": unit * beta[..., None],
        "u6": randn(shape[2:]),
        "w4": -rand(64),
        "u4": randn(64),
        "k4": randn(2, 64, 64),
        "v4": randn(2, 64, 64),
        "state4": rand(2, 3, 1, 64),
        "short": q[:, :64],
        "gshort": g[:, :64],
        "readout": randn(2, 7, 7),
        "norm": randn(32),
        "norm2": randn(32),
        "levels": rand(1, 128, 2, 8),
        "q64": randn(1, 128, 1, 64),
        "k64": randn(1, 128, 1, 64),
        "v64": randn(1, 128, 2, 64),
        "lamb": rand(2, 32) + 0.25,
        "q1": unit[:, 0],
        "k1": other[:, 0],
        "v1": v[:, 0],
        "g1": g[:, 0],
        "b1": beta[:, 0],
        "kk1": torch.eye(32).expand(1, 2, 32, 32),
        "kv1": randn(1, 2, 32, 32),
        "wt": randn(2, 32),
        "bt": randn(2, 32),
        "etat": rand(*shape[:3], 1) / 10,
        "wide": randn(1, 128, 4, 32),
        "q16": randn(1, 128, 2, 16),
        "k16": randn(1, 128, 2, 16),
        "many": randn(1, 128, 16, 32),
        "k1h": randn(1, 128, 1, 32),
        "v1h": randn(1, 128, 1, 32),
        "gate3": rand(1, 128, 16),
        "gate4": rand(1, 128, 16),
        "x": randn(48, 64),
        "y": randn(48, 64),
        "scale": randn(64),
        "offset": randn(64),
        "weight": randn(96, 64) / 8,
        "weight2": randn(96, 64) / 8,
        "bias": randn(96),
        "sequence": randn(2, 48, 64),
        "taps": randn(64, 4),
        "shift": randn(64),
        "cos": randn(128, 16),
        "sin": randn(128, 16),
        "target": torch.randint(0, 96, (48,)),
        "logits": randn(2, 17, 96),
        "ref_logp": randn(2, 16) - 4,
        "advantages": randn(2),
        "input_ids": torch.randint(0, 96, (2, 24)),
        "query": randn(32),
        "residuals": randn(4, 6, 32),
    }


def _is_there(part: str, name: str) -> bool:
    """Whether this version has it; it is not imported before the CPU stands for a CUDA device, where it does."""
    return part == "modules" or any(Path(folder, "fla", part, name).exists() for folder in sys.path)


def further() -> dict[str, Operation]:
    """Operation, reference and inputs by name, of what this version of the library has."""
    torch.manual_seed(0)
    values = _values()
    there = [row for row in ROWS if _is_there(*row.path.split(".")[:2])]
    return {row.name or row.path.split(".")[-1]: _operation(row, values) for row in there}
