"""vLLM's kernels that sample: penalties, biases, masks, log-probabilities, top-k, top-p; each in plain torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, arange, int32, randint, randn
from vllm_kernels import Operation, part

TOKENS, STATES, VOCABULARY = 6, 9, 5000
_STATE = torch.tensor([3, 3, 0, 8, 8, 8])
_POSITION = torch.tensor([0, 1, 0, 0, 1, 2], dtype=int32)


def _constant(*inputs: Any) -> tuple[Any, ...]:
    """Inputs whose gradients nobody asks for."""
    for x in inputs:
        x.no_gradient = True
    return inputs


def _sample(name: str, function: str) -> Callable[..., Any]:
    """What one of vLLM's functions leaves in the logits, its first argument, or gives."""

    def run(logits: Tensor, *rest: Any) -> Any:
        given = getattr(part(f"v1.worker.gpu.sample.{name}"), function)(logits, *rest)
        return logits if given is None else given

    return run


def _min_p() -> Operation:
    least = torch.rand(STATES) * 0.2
    least[8] = 0

    def reference(logits: Tensor, *_: Any) -> Tensor:
        low = logits.max(-1, keepdim=True).values + least[_STATE].log()[:, None]
        return logits.masked_fill(logits < low, float("-inf"))

    return _sample("min_p", "apply_min_p"), reference, _constant(randn(TOKENS, VOCABULARY), _STATE.to(int32), least)


def _temperature() -> Operation:
    heat = torch.tensor([0.5, 1, 2, 0, 1, 1, 1, 1, 1.7])

    def reference(logits: Tensor, *_: Any) -> Tensor:
        return logits / heat.masked_fill(heat == 0, 1)[_STATE][:, None]

    return _sample("gumbel", "apply_temperature"), reference, _constant(randn(TOKENS, VOCABULARY), _STATE, heat)


def _bad_words() -> Operation:
    ids = randint(0, 3, (STATES, 60), dtype=int32)
    words = [[[int(t) for t in randint(0, 3, (int(n),))] for n in randint(1, 4, (4,))] for _ in range(STATES)]
    flat, ends = torch.zeros(STATES, 32, dtype=int32), torch.zeros(STATES, 6, dtype=int32)
    for state, known in enumerate(words):
        flat[state, : sum(map(len, known))] = torch.tensor([t for word in known for t in word])
        ends[state, 1:5] = torch.tensor([len(word) for word in known]).cumsum(0)
    count, prompt = torch.full((STATES,), 4, dtype=int32), torch.full((STATES,), 20, dtype=int32)
    total, drafts = prompt + randint(0, 20, (STATES,), dtype=int32), randint(0, 3, (TOKENS,), dtype=int32)

    def reference(logits: Tensor, *_: Any) -> Tensor:
        for row, (state, position) in enumerate(zip(_STATE.tolist(), _POSITION.tolist(), strict=True)):
            first = row - position + 1
            said = ids[state, 20 : int(total[state])].tolist() + drafts[first : first + position].tolist()
            for word in words[state]:
                if said[len(said) - len(word) + 1 :] == word[:-1] and len(word) - 1 <= len(said):
                    logits[row, word[-1]] = float("-inf")
        return logits

    inputs = (randn(TOKENS, 50), _STATE.to(int32), flat, ends, count, ids, prompt, total, drafts, _POSITION)
    ours = _sample("bad_words", "apply_bad_words")
    return lambda *x: ours(*x, 4), reference, _constant(*inputs)


def _penalties() -> Operation:
    repetition, frequency, presence = 1 + torch.rand(STATES), torch.rand(STATES), torch.rand(STATES)
    frequency[0] = presence[0] = 0
    seen = torch.rand(STATES, VOCABULARY) < 0.2
    bits = torch.nn.functional.pad(seen, (0, -VOCABULARY % 32)).view(STATES, -1, 32).long()
    packed = (bits << arange(32)).sum(-1).to(int32)
    counts, drafts = randint(0, 3, (STATES, VOCABULARY), dtype=int32), randint(0, VOCABULARY, (TOKENS,), dtype=int32)

    def reference(logits: Tensor, *_: Any) -> Tensor:
        made = counts[_STATE].clone()
        for row, position in enumerate(_POSITION.tolist()):
            for token in drafts[row - position + 1 : row + 1]:
                made[row, token] += 1
        scale = torch.where(seen[_STATE] | (made > 0), repetition[_STATE][:, None], 1.0)
        logits = logits * torch.where(logits > 0, 1 / scale, scale)
        return logits - frequency[_STATE][:, None] * made - presence[_STATE][:, None] * (made > 0)

    inputs = (randn(TOKENS, VOCABULARY), _STATE.to(int32), drafts, _POSITION, repetition, frequency, presence)
    return _sample("penalties", "apply_penalties"), reference, _constant(*inputs, packed, counts)


def _counts() -> Operation:
    states, ids = torch.tensor([7, 0, 3]), randint(0, 500, (STATES, 3000), dtype=int32)
    prompt = randint(1, 1500, (STATES,), dtype=int32)
    prefill = prompt + randint(1, 1500, (STATES,), dtype=int32)

    def reference(packed: Tensor, counts: Tensor) -> tuple[Tensor, ...]:
        for state in states.tolist():
            start, stop = int(prompt[state]), int(prefill[state])
            seen = torch.bincount(ids[state, :start], minlength=512) > 0
            packed[state] = (seen.view(-1, 32).long() << arange(32)).sum(-1).to(int32)
            counts[state] = torch.bincount(ids[state, start:stop], minlength=500)
        return packed, counts

    def ours(packed: Tensor, counts: Tensor) -> tuple[Tensor, ...]:
        part("v1.worker.gpu.sample.penalties").bincount(states, ids, prompt, prefill, packed, counts, 3000)
        return packed, counts

    return ours, reference, (torch.zeros(STATES, 16, dtype=int32), torch.zeros(STATES, 500, dtype=int32))


def _bias() -> Operation:
    def chosen(most: int) -> tuple[Tensor, Tensor]:
        places = torch.stack([torch.randperm(VOCABULARY)[:16] for _ in range(STATES)]).to(int32)
        return randint(0, most, (STATES,), dtype=int32), places

    (allowed, allowed_ids), (biased, biased_ids), (stops, stop_ids) = chosen(16), chosen(16), chosen(16)
    allowed[8] = 0
    bias, least = randn(STATES, 16), torch.tensor([100, 100, 5, 100, 5, 5, 5, 5, 100], dtype=int32)
    position = torch.tensor([10, 11, 300, 4, 5, 6])

    def reference(logits: Tensor, *_: Any) -> Tensor:
        for row, state in enumerate(_STATE.tolist()):
            if count := int(allowed[state]):
                kept = logits[row, allowed_ids[state, :count]].clone()
                logits[row] = float("-inf")
                logits[row, allowed_ids[state, :count]] = kept
            logits[row, biased_ids[state, : biased[state]]] += bias[state, : biased[state]]
            if position[row] + 1 < least[state]:
                logits[row, stop_ids[state, : stops[state]]] = float("-inf")
        return logits

    inputs = (randn(TOKENS, VOCABULARY), _STATE.to(int32), position, allowed, allowed_ids, biased, biased_ids, bias)
    last = (least, stops, torch.zeros(STATES, dtype=int32), stop_ids)
    return _sample("logit_bias", "apply_logit_bias"), reference, _constant(*inputs, *last)


def _grammar() -> Operation:
    ends, rows = torch.tensor([0, 2, 3, 6], dtype=int32), torch.tensor([0, 1, 2, 3, 6, 7, 8], dtype=int32)
    mask = randint(-(2**31), 2**31 - 1, (7, -(-VOCABULARY // 32)), dtype=int32)

    def ours(logits: Tensor) -> Tensor:
        part("v1.worker.gpu.structured_outputs")._apply_grammar_bitmask_kernel[(7, -(-VOCABULARY // 1024))](
            *(logits, logits.stride(0), rows, ends, mask, mask.stride(0), VOCABULARY),
            MASK_STRIDE=3,
            BLOCK_SIZE=1024,
        )
        return logits

    def reference(logits: Tensor) -> Tensor:
        for index, row in enumerate(rows.tolist()):
            request, position = divmod(row, 3)
            if position < int(ends[request + 1] - ends[request]):
                bits = (mask[index][:, None] >> arange(32)) & 1
                logits[int(ends[request]) + position, bits.flatten()[:VOCABULARY] == 0] = float("-inf")
        return logits

    return ours, reference, _constant(randn(TOKENS, VOCABULARY))


def _log_probabilities() -> Operation:
    def reference(logits: Tensor, ids: Tensor) -> Tensor:
        return torch.log_softmax(logits, -1).gather(-1, ids)

    inputs = (3 * randn(TOKENS, VOCABULARY), randint(0, VOCABULARY, (TOKENS, 7)))
    return _sample("logprob", "compute_token_logprobs"), reference, _constant(*inputs)


def _ranks() -> Operation:
    def ours(logits: Tensor, ids: Tensor) -> Tensor:
        out = torch.empty(TOKENS, dtype=torch.int64)
        kernel = part("v1.worker.gpu.sample.logprob")._ranks_kernel
        kernel[(TOKENS,)](out, logits, logits.stride(0), ids, VOCABULARY, BLOCK_SIZE=8192)
        return out

    def reference(logits: Tensor, ids: Tensor) -> Tensor:
        return (logits >= logits.gather(-1, ids[:, None])).sum(-1)

    return ours, reference, _constant(randn(TOKENS, VOCABULARY), randint(0, VOCABULARY, (TOKENS,)))


def _prompt_ids() -> Operation:
    state, starts = torch.tensor([4, 0, 2], dtype=int32), torch.tensor([0, 1500, 1501, 1600], dtype=int32)
    computed, ids = randint(0, 900, (STATES,), dtype=int32), randint(0, 5000, (STATES, 3000), dtype=int32)

    def reference(*_: Any) -> Tensor:
        counts = (starts[1:] - starts[:-1]).tolist()
        rows = zip(state.tolist(), counts, strict=True)
        return torch.cat([ids[s, int(computed[s]) + 1 :][:n] for s, n in rows]).long()

    function = part("v1.worker.gpu.sample.prompt_logprob").get_prompt_logprobs_token_ids
    return lambda *x: function(1600, *x), reference, (starts, state, computed, ids)


def _compacted() -> Operation:
    ends, sampled = torch.tensor([0, 2, 3], dtype=int32), torch.tensor([2, 1, 3], dtype=int32)
    logits = randn(TOKENS, VOCABULARY).masked_fill(torch.rand(TOKENS, VOCABULARY) < 0.95, float("-inf"))

    def ours(logits: Tensor) -> tuple[Tensor, ...]:
        ids, counts = torch.zeros(9, 200, dtype=int32), torch.zeros(9, dtype=int32)
        packed = torch.zeros(9, -(-VOCABULARY // 8), dtype=torch.uint8)
        part("v1.worker.gpu.sample.output")._compact_sampling_mask_kernel[(9,)](
            *(logits, *logits.stride(), ends, sampled, ids, 200, packed, packed.stride(0), counts, VOCABULARY, 200),
            ROWS_PER_REQUEST=3,
            BLOCK_SIZE=1024,
        )
        return ids, packed, counts

    def reference(logits: Tensor) -> tuple[Tensor, ...]:
        ids, counts = torch.zeros(9, 200, dtype=int32), torch.zeros(9, dtype=int32)
        packed = torch.zeros(9, -(-VOCABULARY // 8), dtype=torch.uint8)
        for row in range(9):
            request, slot = divmod(row, 3)
            if slot < int(sampled[request]):
                finite = logits[int(ends[request]) + slot].isfinite()
                kept = finite.nonzero().flatten()
                counts[row], ids[row, : min(200, len(kept))] = len(kept), kept[:200].to(int32)
                packed[row] = (finite.view(-1, 8).long() << arange(8)).sum(-1).to(torch.uint8)
        return ids, packed, counts

    return ours, reference, _constant(logits)


def _not_numbers() -> Operation:
    logits = randn(TOKENS, VOCABULARY).masked_fill(torch.rand(TOKENS, VOCABULARY) < 0.1, float("nan"))
    return part("v1.worker.gpu.metrics.logits").get_num_nans, lambda x: x.isnan().sum(-1), _constant(logits)


def _hash(seed: Tensor, position: Tensor, domain: int = 0) -> Tensor:
    """MurmurHash3 of seed, position and token in unsigned 32 bits, as numbers of 64 bits."""
    low = 0xFFFFFFFF

    def turned(x: Tensor, by: int) -> Tensor:
        return ((x << by) | (x >> (32 - by))) & low

    def mixed(h: Tensor, key: Tensor) -> Tensor:
        key = (turned((key * 0xCC9E2D51) & low, 15) * 0x1B873593) & low
        return (turned(h ^ key, 13) * 5 + 0xE6546B64) & low

    h = torch.full((TOKENS, 1), domain)
    for key in (seed & low, (seed >> 32) & low, position & low):
        h = mixed(h, key[:, None])
    h = mixed(h, arange(VOCABULARY)) ^ 16
    h = ((h ^ (h >> 16)) * 0x85EBCA6B) & low
    h = ((h ^ (h >> 13)) * 0xC2B2AE35) & low
    return h ^ (h >> 16)


def _gumbel(wide: bool) -> Operation:
    heat = torch.tensor([0.0, 1, 1, 0.7, 1, 1, 1, 1, 1.3])
    seeds, position = randint(-(2**62), 2**62, (STATES,)), randint(0, 9000, (TOKENS,))
    function = part("v1.worker.gpu.sample.gumbel").gumbel_sample

    def ours(*inputs: Any) -> Tensor:
        return function(*inputs, apply_temperature=True, is_drafting=False, use_fp64=wide)

    def reference(logits: Tensor, *_: Any) -> Tensor:
        hot = heat[_STATE][:, None]
        one = _hash(seeds[_STATE], position)
        if wide:
            both = (_hash(seeds[_STATE], position, 0x9E3779B9) << 21) | (one >> 11)
            noise = -(-((both.double() + 0.5) * 2.0**-53).log()).log()
        else:
            noise = -(-torch.log1p(-(one.double() + 0.5) * 2.0**-32)).log()
        return torch.where(hot == 0, logits, logits / hot.masked_fill(hot == 0, 1) + noise).argmax(-1)

    return ours, reference, _constant(randn(TOKENS, VOCABULARY), _STATE.to(int32), heat, seeds, position)


def _most_probable(count: Tensor | None, mass: Tensor | None) -> Operation:
    module = part("v1.sample.ops.topk_topp_triton")
    module.num_compute_units = lambda *_: 4

    def ours(logits: Tensor) -> Tensor:
        rows, vocabulary = logits.shape
        tables = (
            logits.new_tensor(getattr(module, f"_{n}_TABLE")) for n in ("PERCENTILE_TO_STD", "NORMAL_CDF_TO_SIGMA")
        )
        module._topk_topp_kernel[(4,)](
            *(logits, logits.stride(0), logits.new_empty(4, vocabulary), *tables),
            *(logits if count is None else count, logits if mass is None else mass, rows, vocabulary, float("-inf")),
            BLOCK_SIZE=256,
            BLOCK_SIZE_TRUNC=128,
            TOPK_ENABLED=count is not None,
            TOPP_ENABLED=mass is not None,
            SPLIT_COVERS_PONLY=False,
        )
        return logits

    def reference(logits: Tensor) -> Tensor:
        ordered, places = logits.sort(-1)
        if count is not None:
            ordered = ordered.masked_fill(
                ordered < ordered.gather(-1, (VOCABULARY - count.long())[:, None]), float("-inf")
            )
        if mass is not None:
            dropped = ordered.softmax(-1).double().cumsum(-1) <= 1 - mass[:, None]
            dropped[:, -1] = False
            ordered = ordered.masked_fill(dropped, float("-inf"))
        return torch.empty_like(logits).scatter_(-1, places, ordered)

    inputs = _constant(2 * randn(TOKENS, VOCABULARY))
    if mass is None:
        return ours, reference, inputs
    return _kept(ours), _kept(reference), inputs, 5e-3


def _kept(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    """How many tokens a mask keeps and their mass: where to cut is searched for, and a token more or less is kept."""

    def run(logits: Tensor) -> tuple[Tensor, Tensor]:
        mass = logits.softmax(-1)
        kept = function(logits).isfinite()
        return kept.sum(-1), (mass * kept).sum(-1)

    return run


def operations() -> dict[str, Operation]:
    """Operation, reference and inputs by name."""
    torch.manual_seed(0)
    count = torch.tensor([1, 20, 400, 5000, 50, 3], dtype=int32)
    mass = torch.tensor([0.9, 0.5, 0.95, 0.8, 0.3, 0.99])
    return {
        "min_p": _min_p(),
        "temperature": _temperature(),
        "bad_words": _bad_words(),
        "penalties": _penalties(),
        "bincount": _counts(),
        "logit_bias": _bias(),
        "grammar_bitmask": _grammar(),
        "ranks": _ranks(),
        "topk_log_softmax": _log_probabilities(),
        "prompt_logprobs_token_ids": _prompt_ids(),
        "compact_sampling_mask": _compacted(),
        "num_nans": _not_numbers(),
        "gumbel_sample": _gumbel(wide=False),
        "gumbel_sample, float64": _gumbel(wide=True),
        "topk": _most_probable(count, None),
        "topp": _most_probable(None, mass),
        "topk_topp": _most_probable(count, mass),
    }
