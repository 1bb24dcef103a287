"""vLLM's kernels of speculative decoding: acceptance, recovery and the next step's inputs; each with a loop."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, arange, int32, rand, randint
from vllm_kernels import Operation, part

REQUESTS, MOST, VOCABULARY = 4, 3, 3000
COUNTS = torch.tensor([3, 0, 2, 3])
ENDS = COUNTS.cumsum(0).to(int32)
TOKENS = int(ENDS[-1])


def _rows() -> list[tuple[int, range]]:
    return [(i, range(int(ENDS[i] - COUNTS[i]), int(ENDS[i]))) for i in range(REQUESTS)]


def _accepted(out: Tensor, tokens: list[list[tuple[bool, int]]], bonus: Tensor, skipped: Tensor) -> Tensor:
    """Tokens of each request up to the first that is not accepted, and after all of them the bonus."""
    for i, row in enumerate(tokens):
        if skipped[i]:
            continue
        for position, (good, token) in enumerate(row):
            out[i, position] = token
            if not good:
                break
        else:
            out[i, len(row)] = bonus[i]
    return out


def _greedy() -> Operation:
    best, bonus = randint(0, 9, (TOKENS,)), randint(0, 9, (REQUESTS,))
    drafts = torch.where(rand(TOKENS) < 0.7, best, randint(0, 9, (TOKENS,))).to(int32)
    greedy = torch.tensor([True, True, False, True])
    kernel = part("v1.sample.rejection_sampler").rejection_greedy_sample_kernel

    def ours(out: Tensor) -> Tensor:
        kernel[(REQUESTS,)](out, ENDS, drafts, best, bonus, greedy, MOST, None, None, SYNTHETIC_MODE=False)
        return out

    def reference(out: Tensor) -> Tensor:
        made = [[(bool(drafts[t] == best[t]), int(best[t])) for t in tokens] for _, tokens in _rows()]
        return _accepted(out, made, bonus, ~greedy)

    return ours, reference, (torch.full((REQUESTS, MOST + 1), -1, dtype=int32),)


def _random() -> Operation:
    draft, target = rand(TOKENS, VOCABULARY).softmax(-1), (2 * rand(TOKENS, VOCABULARY)).softmax(-1)
    drafts, recovered = (randint(0, VOCABULARY, (TOKENS,), dtype=int32) for _ in range(2))
    chances, bonus = rand(TOKENS, dtype=torch.float64), randint(0, 9, (REQUESTS,))
    greedy = torch.tensor([False, False, True, False])
    kernel = part("v1.sample.rejection_sampler").rejection_random_sample_kernel

    def ours(out: Tensor) -> Tensor:
        kernel[(REQUESTS,)](
            *(out, ENDS, drafts, draft, target, bonus, recovered, chances, greedy, MOST, VOCABULARY, None),
            NO_DRAFT_PROBS=False,
            SYNTHETIC_MODE=False,
        )
        return out

    def one(t: int) -> tuple[bool, int]:
        good = bool(target[t, drafts[t]] / draft[t, drafts[t]] >= chances[t])
        return good, int(drafts[t] if good else recovered[t])

    def reference(out: Tensor) -> Tensor:
        return _accepted(out, [[one(t) for t in tokens] for _, tokens in _rows()], bonus, greedy)

    return ours, reference, (torch.full((REQUESTS, MOST + 1), -1, dtype=int32),)


def _recovered(wide: bool) -> Operation:
    draft, target = rand(TOKENS, VOCABULARY).softmax(-1), (2 * rand(TOKENS, VOCABULARY)).softmax(-1)
    inverse = 1 / torch.empty(REQUESTS, VOCABULARY, dtype=torch.float64 if wide else torch.float32).exponential_()
    drafts = randint(0, VOCABULARY, (TOKENS,), dtype=int32)
    kernel = part("v1.sample.rejection_sampler").sample_recovered_tokens_kernel

    def ours(out: Tensor) -> Tensor:
        kernel[(REQUESTS, MOST)](
            *(out, ENDS, drafts, draft, target, inverse, VOCABULARY),
            BLOCK_SIZE=1024,
            NO_DRAFT_PROBS=False,
            USE_FP64_GUMBEL=wide,
        )
        return out

    def reference(out: Tensor) -> Tensor:
        for i, tokens in _rows():
            for t in tokens:
                out[t] = ((target[t] - draft[t]).clamp(min=0) * inverse[i]).argmax()
        return out

    return ours, reference, (torch.zeros(TOKENS, dtype=int32),)


def _spread() -> Operation:
    values = torch.tensor([5, -1, 7, 9])

    def ours(out: Tensor) -> Tensor:
        kernel = part("v1.sample.rejection_sampler").expand_kernel
        kernel[(REQUESTS,)](out, values, ENDS, -1, 0, MAX_NUM_TOKENS=128)
        return out

    def reference(_: Tensor) -> Tensor:
        return values.masked_fill(values == -1, 0).repeat_interleave(COUNTS)

    return ours, reference, (torch.zeros(TOKENS, dtype=torch.int64),)


def _next_step() -> Operation:
    table, positions = randint(1, 99, (REQUESTS, 20), dtype=int32), torch.tensor([0, 63, 318, 319])
    kernel = part("v1.spec_decode.utils").eagle_step_slot_mapping_metadata_kernel

    def ours(lengths: Tensor, where: Tensor, slots: Tensor) -> tuple[Tensor, ...]:
        kernel[(REQUESTS + 2,)](
            *(positions, table, table.stride(0), lengths, where, slots),
            block_size=16,
            max_model_len=320,
            n_blocks_per_req=20,
            PAD_ID=-1,
            batch_size=REQUESTS,
        )
        return lengths, where, slots

    def reference(lengths: Tensor, where: Tensor, slots: Tensor) -> tuple[Tensor, ...]:
        over = positions + 1 >= 320
        moved = (positions + 1).masked_fill(over, 0)
        found = table[arange(REQUESTS), moved // 16] * 16 + moved % 16
        slots[:] = -1
        slots[:REQUESTS] = found.masked_fill(over, -1)
        return (lengths + 1).masked_fill(over, 1), moved + 0 * where, slots

    zeros = (torch.zeros(REQUESTS, dtype=torch.int64), torch.zeros(REQUESTS + 2, dtype=torch.int64))
    return ours, reference, (torch.tensor([1, 64, 319, 320], dtype=int32), *zeros)


def _padded_inputs() -> Operation:
    valid, starts = torch.tensor([2, 1, 3, 4], dtype=int32), torch.tensor([0, 4, 5, 8, 12], dtype=int32)
    kernel = part("v1.spec_decode.utils").eagle_prepare_inputs_padded_kernel

    def ours(places: Tensor, rejected: Tensor) -> tuple[Tensor, ...]:
        kernel[(REQUESTS,)](ENDS, valid, starts, places, rejected, REQUESTS)
        return places, rejected

    def reference(*_: Any) -> tuple[Tensor, ...]:
        rejected = (COUNTS + 1 - valid).masked_fill(COUNTS == 0, 0)
        return starts[1:] - 1 - rejected, rejected

    return ours, reference, (torch.zeros(REQUESTS, dtype=int32), torch.zeros(REQUESTS, dtype=int32))


def _next_tokens() -> Operation:
    sampled = torch.tensor([[4, 5, -1, -1], [7, 8, 9, 1], [-1, -1, -1, -1], [3, 999, -1, -1]], dtype=int32)
    dropped, spare = torch.tensor([False, True, False, False]), torch.tensor([90, 91, 92, 93], dtype=int32)
    kernel = part("v1.spec_decode.utils").eagle_prepare_next_token_padded_kernel

    def ours(tokens: Tensor, valid: Tensor) -> tuple[Tensor, ...]:
        kernel[(REQUESTS,)](
            *(sampled, dropped, spare, tokens, valid, 100, 4, REQUESTS, sampled.stride(0)),
            BLOCK_SIZE_TOKENS=4,
        )
        return tokens, valid

    def reference(*_: Any) -> tuple[Tensor, ...]:
        good = (sampled != -1) & (sampled < 100) & ~dropped[:, None]
        last = (good * arange(1, 5)).max(-1).values
        found = sampled.gather(-1, (last - 1).clamp(min=0)[:, None]).flatten()
        return torch.where(last > 0, found, spare), good.sum(-1)

    return ours, reference, (torch.zeros(REQUESTS, dtype=int32), torch.zeros(REQUESTS, dtype=int32))


def operations() -> dict[str, Operation]:
    """Operation, reference and inputs by name."""
    torch.manual_seed(0)
    return {
        "rejection_greedy_sample": _greedy(),
        "rejection_random_sample": _random(),
        "expand": _spread(),
        "sample_recovered_tokens": _recovered(wide=False),
        "eagle_step_slot_mapping": _next_step(),
        "sample_recovered_tokens, float64": _recovered(wide=True),
        "eagle_prepare_inputs_padded": _padded_inputs(),
        "eagle_prepare_next_token_padded": _next_tokens(),
    }
