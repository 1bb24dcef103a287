"""Models of Hugging Face's transformers with random weights by torch.compile with Triton kernels, compared with eager.

`python models.py [--backend triton|cpp] [MODEL]...` runs a forward pass and a training step of small configurations and
prints a line for each: what was compared, and the number of kernels. Needs transformers; fetches nothing.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import torch
import transformers as hf
from named_checks import check_each

import mltriton.as_triton

SMALL: Mapping[str, Any] = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 211}
WORDS = 37
Build = Callable[[], tuple[torch.nn.Module, dict[str, torch.Tensor]]]


def words(count: int = WORDS) -> torch.Tensor:
    """Two rows of tokens."""
    return torch.randint(3, 200, (2, count))


def bert() -> tuple[torch.nn.Module, dict[str, torch.Tensor]]:
    """An encoder with masked words."""
    model = hf.BertForMaskedLM(hf.BertConfig(**SMALL, intermediate_size=128))
    mask = torch.ones(2, WORDS, dtype=torch.long)
    mask[1, 30:] = 0
    return model, {"input_ids": words(), "attention_mask": mask, "labels": words()}


def gpt2() -> tuple[torch.nn.Module, dict[str, torch.Tensor]]:
    """A decoder with learned positions."""
    model = hf.GPT2LMHeadModel(hf.GPT2Config(n_embd=64, n_layer=2, n_head=4, vocab_size=211, n_positions=64))
    tokens = words()
    return model, {"input_ids": tokens, "labels": tokens}


def llama() -> tuple[torch.nn.Module, dict[str, torch.Tensor]]:
    """A decoder with rotated positions and grouped keys."""
    model = hf.LlamaForCausalLM(hf.LlamaConfig(**SMALL, intermediate_size=128, num_key_value_heads=2))
    tokens = words()
    return model, {"input_ids": tokens, "labels": tokens}


def t5() -> tuple[torch.nn.Module, dict[str, torch.Tensor]]:
    """An encoder and a decoder with relative positions."""
    config = hf.T5Config(
        d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, vocab_size=211, decoder_start_token_id=0
    )
    return hf.T5ForConditionalGeneration(config), {"input_ids": words(), "labels": words(19)}


def vit() -> tuple[torch.nn.Module, dict[str, torch.Tensor]]:
    """Pictures by patches."""
    sizes = {name: value for name, value in SMALL.items() if name != "vocab_size"}
    config = hf.ViTConfig(**sizes, intermediate_size=128, image_size=32, patch_size=8, num_labels=5)
    inputs = {"pixel_values": torch.randn(2, 3, 32, 32), "labels": torch.tensor([1, 4])}
    return hf.ViTForImageClassification(config), inputs


def whisper() -> tuple[torch.nn.Module, dict[str, torch.Tensor]]:
    """Sounds: convolutions, an encoder, a decoder."""
    sizes = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in (("layers", 2), ("attention_heads", 4), ("ffn_dim", 128))
    }
    special = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
    config = hf.WhisperConfig(
        **sizes, **special, d_model=64, vocab_size=211, max_source_positions=50, num_mel_bins=16, suppress_tokens=None
    )
    model = hf.WhisperForConditionalGeneration(config)
    return model, {"input_features": torch.randn(2, 16, 100), "labels": words(19)}


def mamba() -> tuple[torch.nn.Module, dict[str, torch.Tensor]]:
    """A state space."""
    model = hf.MambaForCausalLM(hf.MambaConfig(hidden_size=64, num_hidden_layers=2, vocab_size=211, state_size=8))
    tokens = words(19)
    return model, {"input_ids": tokens, "labels": tokens}


MODELS: Mapping[str, Build] = {
    "BERT": bert,
    "GPT-2": gpt2,
    "Llama": llama,
    "T5": t5,
    "ViT": vit,
    "Whisper": whisper,
    "Mamba": mamba,
}


def step(
    run: Callable[..., Any], model: torch.nn.Module, inputs: Mapping[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    """The logits and loss of a forward pass, and the gradients and weights of a training step."""
    with torch.no_grad():
        forward = run(**inputs)
    found = {"logits": forward.logits, "loss": forward.loss}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run(**inputs).loss.backward()
    found |= {f"gradient of {name}": p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    optimizer.step()
    return found | {f"new {name}": p.detach().clone() for name, p in model.named_parameters()}


def check(build: Build) -> str:
    """Compare compiled and eager; what was compared."""
    torch.manual_seed(1)
    model, inputs = build()
    model.eval()  # without dropout; gradients are those of training
    weights = {name: value.clone() for name, value in model.state_dict().items()}
    expected = step(model, model, inputs)
    model.load_state_dict(weights)
    model.zero_grad()
    from torch._inductor import metrics  # looks for triton

    metrics.reset()
    started = time.perf_counter()
    found = step(torch.compile(model), model, inputs)
    seconds = time.perf_counter() - started
    for name, value in expected.items():
        scale = max(value.abs().max().item(), 1e-3)
        error = (found[name] - value).abs().max().item() / scale
        assert error < 2e-4, f"{name} differs by {error:.1e} of its largest value"
    kernels = metrics.generated_kernel_count
    return f"{len(expected)} tensors, {kernels} kernels, {seconds:.0f} s with compilation"


def main() -> int:
    """Read the command line; the status is the number of failures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="MODEL", help=", ".join(MODELS))
    parser.add_argument("--backend", default="triton", choices=("triton", "cpp"))
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    torch._inductor.config.cpu_backend = given.backend
    torch._inductor.config.compile_threads = 1

    def checked(name: str) -> str:
        torch._dynamo.reset()
        return check(MODELS[name])

    return check_each(given.names or MODELS, checked)


if __name__ == "__main__":
    assert mltriton.as_triton
    sys.exit(main())
