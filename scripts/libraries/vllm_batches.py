"""vLLM's kernels that prepare a batch: token ids, positions, block tables and slots; each with a loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, arange, int32, int64, randint
from vllm_kernels import Operation, part

BATCH, STATES, LENGTH, BLOCK = 5, 9, 3000, 16


class Requests:
    """A batch of requests: which state each has, and where its tokens of this step stand."""

    def __init__(self) -> None:
        self.state = torch.randperm(STATES)[:BATCH].to(int32)
        self.lengths = torch.tensor([1, 1200, 3, 1, 40])
        self.starts = torch.cat([torch.zeros(1, dtype=int64), self.lengths.cumsum(0)]).to(int32)
        self.tokens = int(self.starts[-1])
        self.ids = randint(0, 5000, (STATES, LENGTH), dtype=int32)
        self.computed = randint(0, 900, (STATES,), dtype=int32)
        self.prefill = self.computed + torch.tensor([1500, -5, 40, 0, 1300, -1, 7, 2000, 1]).to(int32)

    def each(self) -> list[tuple[int, int, slice]]:
        """Number, state and tokens of every request."""
        starts = self.starts.tolist()
        return [(i, int(s), slice(starts[i], starts[i + 1])) for i, s in enumerate(self.state)]


def _in_place(function: Callable[..., Any], *changed: int) -> Callable[..., Any]:
    """What a function leaves in its arguments at `changed`."""

    def run(*inputs: Any) -> Any:
        function(*inputs)
        return tuple(inputs[i] for i in changed)

    return run


def _prefill(r: Requests) -> Operation:
    def reference(ids: Tensor, following: Tensor, *_: Any) -> tuple[Tensor, ...]:
        for _, state, tokens in r.each():
            computed, until = int(r.computed[state]), int(r.prefill[state])
            if computed < until:
                stop = computed + tokens.stop - tokens.start
                ids[tokens] = r.ids[state, computed:stop]
                for ahead in range(3):
                    following[ahead, state] = r.ids[state, stop + ahead] if stop + ahead < until else 0
        return ids, following

    inputs = (torch.zeros(r.tokens, dtype=int32), torch.zeros(3, STATES, dtype=int32), r.state, r.starts, r.ids)
    ours = _in_place(part("v1.worker.gpu.input_batch").prepare_prefill_inputs, 0, 1)
    return ours, reference, (*inputs, r.prefill, r.computed)


def _positions(r: Requests) -> Operation:
    def reference(*inputs: Any) -> tuple[Tensor, ...]:
        positions, lengths = inputs[3:]
        lengths[BATCH:] = 0
        for i, state, tokens in r.each():
            computed, count = int(r.computed[state]), tokens.stop - tokens.start
            lengths[i] = computed + count
            positions[tokens] = arange(computed, computed + count)
        return positions, lengths

    inputs = (r.state, r.starts, r.computed, torch.zeros(r.tokens, dtype=int64), torch.full((12,), 7, dtype=int32))
    return _in_place(part("v1.worker.gpu.input_batch").prepare_pos_seq_lens, 3, 4), reference, inputs


def _sampled_and_draft(r: Requests) -> Operation:
    counts = torch.tensor([1, 1, 3, 1, 4])
    ends = torch.cat([torch.zeros(1, dtype=int64), counts.cumsum(0)]).to(int32)
    lengths = (r.prefill[r.state.long()] + torch.tensor([5, -3, 2, 0, 9])).to(int32)
    sampled, drafts = randint(0, 5000, (STATES,), dtype=int32), randint(0, 5000, (STATES, 3), dtype=int32)

    def reference(ids: Tensor, *_: Any) -> tuple[Tensor, ...]:
        places = torch.empty(10, dtype=int64)
        for i, state, tokens in r.each():
            count = int(counts[i])
            first = tokens.stop - count
            places[int(ends[i]) : int(ends[i + 1])] = arange(first, tokens.stop)
            length, prefill = int(lengths[i]), int(r.prefill[state])
            if length > prefill:
                if length - count >= prefill:
                    ids[first] = sampled[state]
                ids[tokens.stop - count + 1 : tokens.stop] = drafts[state, : count - 1]
        return places, ids

    def ours(ids: Tensor, *rest: Any) -> tuple[Tensor, ...]:
        return part("v1.worker.gpu.input_batch").combine_sampled_and_draft_tokens(ids, *rest, num_logits=10), ids

    inputs = (torch.zeros(r.tokens, dtype=int32), r.state, sampled, r.starts, lengths, r.prefill, drafts, ends)
    return ours, reference, inputs


def _sampled_and_rejected(r: Requests) -> Operation:
    ends = torch.tensor([0, 4, 5, 8, 9, 12], dtype=int32)
    lengths = (r.prefill[r.state.long()] + torch.tensor([5, -3, 2, 0, 9])).to(int32)

    def reference(sampled: Tensor, *_: Any) -> tuple[Tensor, ...]:
        behind = lengths < r.prefill[r.state.long()]
        sampled = sampled.masked_fill(behind, 0)
        return sampled, (ends[1:] - ends[:-1] - sampled).masked_fill(behind, 0)

    inputs = (torch.tensor([2, 1, 3, 1, 1], dtype=int32), lengths, ends, r.state, r.prefill)
    return part("v1.worker.gpu.input_batch").get_num_sampled_and_rejected, reference, inputs


def _after(r: Requests) -> Operation:
    count, rejected = torch.tensor([1, 0, 3, 2, 1], dtype=int32), torch.tensor([0, 1, 0, 2, 0], dtype=int32)
    made, drafts = randint(0, 50, (BATCH, 3), dtype=int32), randint(0, 50, (BATCH, 2), dtype=int32)
    state = r.state.clone()
    state[3] = -1

    def reference(*given: Any) -> tuple[Tensor, ...]:
        computed, last, bins, ids, total, kept = (given[i] for i in (1, 2, 3, 8, 9, 11))
        for i, (_, where, tokens) in enumerate(r.each()):
            if i == 3:
                continue
            new = made[i, : int(count[i])]
            kept[where] = drafts[i]
            if len(new):
                last[where] = new[-1]
            ids[where, int(total[where]) : int(total[where]) + len(new)] = new
            total[where] += len(new)
            bins[where] += torch.bincount(new, minlength=50).to(int32)
            computed[where] += tokens.stop - tokens.start - int(rejected[i])
        return computed, last, bins, ids, total, kept

    bins = torch.zeros(STATES, 50, dtype=int32)
    places = (state, r.computed, torch.zeros(STATES, dtype=int32), bins, made, count, rejected, r.starts, r.ids)
    inputs = (*places, randint(1, 900, (STATES,), dtype=int32), drafts, torch.zeros(STATES, 2, dtype=int32))
    return _in_place(part("v1.worker.gpu.input_batch").post_update, 1, 2, 3, 8, 9, 11), reference, inputs


def _expanded(r: Requests) -> Operation:
    ends = torch.tensor([0, 4, 5, 8, 9, 12], dtype=int32)
    counts = ends[1:] - ends[:-1]

    def reference(*_: Any) -> tuple[Tensor, ...]:
        return r.state.repeat_interleave(counts), torch.cat([arange(int(n), dtype=int32) for n in counts])

    ours = part("v1.worker.gpu.input_batch").expand_idx_mapping
    return lambda s, e: ours(s, 12, e, 4), reference, (r.state, ends)


def _tables() -> tuple[list[Tensor], Tensor, Tensor]:
    tables = [randint(1, 400, (STATES, width), dtype=int32) for width in (300, 80)]
    return tables, torch.tensor([t.shape[1] for t in tables]), torch.tensor([16, 64], dtype=int32)


def _slots(r: Requests) -> Operation:
    tables, strides, sizes = _tables()
    enabled, positions = torch.tensor([True, True]), randint(0, 4000, (r.tokens,))

    def ours(out: Tensor) -> Tensor:
        addresses = torch.tensor([t.data_ptr() for t in tables], dtype=torch.uint64)
        part("v1.worker.gpu.block_table")._compute_slot_mappings_kernel[(2, BATCH + 1)](
            *(out.shape[1], r.state, r.starts, positions, addresses, strides, sizes, enabled, enabled),
            *(out, out.stride(0), 0),
            CP_SIZE=1,
            CP_INTERLEAVE=1,
            PAD_ID=-1,
            TRITON_BLOCK_SIZE=1024,
        )
        return out

    def reference(out: Tensor) -> Tensor:
        out[:] = -1
        for group, (table, size) in enumerate(zip(tables, sizes.tolist(), strict=True)):
            for _, state, tokens in r.each():
                where = positions[tokens]
                out[group, tokens] = table[state, where // size].long() * size + where % size
        return out

    return ours, reference, (torch.zeros(2, r.tokens + 50, dtype=int64),)


def _gathered(r: Requests) -> Operation:
    tables, strides, sizes = _tables()
    counts = torch.stack([randint(1, t.shape[1], (STATES,), dtype=int32) for t in tables])
    reach = torch.tensor([100, 0], dtype=int32)

    def ours(*out: Tensor) -> tuple[Tensor, ...]:
        sources, targets = (torch.tensor([t.data_ptr() for t in x], dtype=torch.uint64) for x in (tables, out))
        part("v1.worker.gpu.block_table")._gather_block_tables_kernel[(2, BATCH + 2)](
            *(r.state, sources, targets, strides, counts, counts.stride(0), BATCH, r.computed, reach, sizes),
            MASK_SLIDING_WINDOW=True,
            BLOCK_SIZE=1024,
        )
        return out

    def reference(*out: Tensor) -> tuple[Tensor, ...]:
        for group, table in enumerate(out):
            table[BATCH:] = 0
            for i, state, _ in r.each():
                count, far = int(counts[group, state]), int(reach[group])
                none = max(int(r.computed[state]) - far, 0) // int(sizes[group]) if far else 0
                table[i, :count] = tables[group][state, :count].masked_fill(arange(count) < none, 0)
        return out

    return ours, reference, [torch.full((BATCH + 2, t.shape[1]), 9, dtype=int32) for t in tables]


def _written(_: Requests) -> Operation:
    rows, starts, ends = (torch.tensor(x, dtype=int32) for x in ([3, 0, 3], [5, 0, 1800], [1500, 1503, 1600]))
    values = randint(0, 5000, (1600,), dtype=int32)

    def ours(out: Tensor) -> Tensor:
        kernel = part("v1.worker.gpu.buffer_utils")._apply_write_kernel
        kernel[(3, 2)](out, out.stride(0), rows, starts, values, ends, None, BLOCK_SIZE=1024, MULTI_GROUP=False)
        return out

    def reference(out: Tensor) -> Tensor:
        first = 0
        for row, start, end in zip(rows.tolist(), starts.tolist(), ends.tolist(), strict=True):
            out[row, start : start + end - first] = values[first:end]
            first = end
        return out

    return ours, reference, (torch.zeros(4, 2000, dtype=int32),)


def _copied(_: Requests) -> Operation:
    sizes = torch.tensor([4000, 7, 1024], dtype=int32)

    def ours(*tensors: Tensor) -> Sequence[Tensor]:
        addresses = torch.tensor([t.data_ptr() for t in tensors])
        part("v1.worker.mamba_utils").batch_memcpy(addresses[:3], addresses[3:], sizes)
        return tensors[3:]

    def reference(*tensors: Tensor) -> Sequence[Tensor]:
        for size, source, target in zip(sizes.tolist(), tensors[:3], tensors[3:], strict=True):
            target[:size] = source[:size]
        return tensors[3:]

    both = (randint(0, 255, (3, 5000), dtype=torch.uint8), torch.zeros(3, 5000, dtype=torch.uint8))
    return ours, reference, [row.clone() for x in both for row in x]


def _rope(r: Requests) -> Operation:
    known, change = randint(0, 5000, (STATES * 3, LENGTH), dtype=int32), randint(-9, 9, (STATES,), dtype=int32)

    def ours(out: Tensor) -> Tensor:
        part("v1.worker.gpu.mm.rope")._prepare_rope_positions_kernel[(BATCH,)](
            *(out, out.stride(0), known, 3 * LENGTH, LENGTH, change, r.state, r.starts, r.prefill, r.computed),
            BLOCK_SIZE=1024,
            NUM_DIMS=3,
        )
        return out

    def reference(out: Tensor) -> Tensor:
        for _, state, tokens in r.each():
            where = int(r.computed[state]) + arange(tokens.stop - tokens.start)
            ahead = bool(r.computed[state] < r.prefill[state])
            for axis in range(3):
                out[axis, tokens] = known[3 * state + axis, where].long() if ahead else where + int(change[state])
        return out

    return ours, reference, (torch.zeros(3, r.tokens + 1, dtype=int64),)


def operations() -> dict[str, Operation]:
    """Operation, reference and inputs by name."""
    torch.manual_seed(0)
    rows = {
        "prepare_prefill_inputs": _prefill,
        "prepare_pos_seq_lens": _positions,
        "post_update": _after,
        "combine_sampled_and_draft_tokens": _sampled_and_draft,
        "expand_idx_mapping": _expanded,
        "get_num_sampled_and_rejected": _sampled_and_rejected,
        "compute_slot_mappings": _slots,
        "gather_block_tables": _gathered,
        "apply_write": _written,
        "batch_memcpy": _copied,
        "rope_positions": _rope,
    }
    return {name: row(Requests()) for name, row in rows.items()}
