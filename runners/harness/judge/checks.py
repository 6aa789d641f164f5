"""Checks of every call, except of values: the structure of its output, and its side effects."""

import json
import os
import select
import signal
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from runners.contract.verdict import Verdict
from runners.harness.deadline import Deadline
from runners.harness.protocol import scalars, values
from runners.harness.protocol.arena import Arena, lay_out, view
from runners.harness.supervision.process import CandidateProcess
from runners.harness.verdicts import CHECK_OUT_OF_TIME, OutOfTimeError, VerdictError


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    plain = tensor.resolve_conj().resolve_neg()
    flat = values.bits(plain).contiguous().reshape(-1)
    # A single element may have any stride, but a view as bytes needs stride 1.
    return flat.as_strided(flat.shape, (1,)).view(torch.uint8)


def same(after: torch.Tensor, right: torch.Tensor) -> bool:
    """Whether two tensors have the same dtype, shape and bits."""
    if after.dtype != right.dtype or after.shape != right.shape:
        return False
    pair = [_bytes(after), _bytes(right)]
    if not any((each.numel() | int(each.storage_offset()) | each.data_ptr()) % 8 for each in pair):
        pair = [each.view(torch.int64) for each in pair]  # several times faster on the CPU
    return torch.equal(*pair)


def first_place(found: torch.Tensor) -> tuple[int, ...]:
    """The index of the first true element; `nonzero` would list all, which takes more memory."""
    place: tuple[int, ...] = ()
    index = int(found.reshape(-1).view(torch.uint8).argmax())
    for extent in reversed(found.shape):
        index, at = divmod(index, extent)
        place = (at, *place)
    return place


def _same_outside(
    place: values.TensorNode,
    after: torch.Tensor,
    private: torch.Tensor,
    returned: Sequence[values.TensorNode],
) -> bool:
    """Whether an input is unchanged outside of the tensors that the kernel returned."""
    if any(_is_whole_in(place, each) for each in returned) or same(after, private):
        return True
    mask = _elements_in(place, returned, after.device).as_strided(place.shape, place.stride)
    mask = mask.reshape(-1)
    if after.dtype != private.dtype or after.shape != private.shape:
        return bool(mask.all())
    pair = (_bytes(each).view(-1, place.itemsize) for each in (after, private))
    differs = torch.ne(*pair).any(dim=1)
    return not bool((differs & ~mask).any())


def _is_whole_in(place: values.TensorNode, returned: values.TensorNode) -> bool:
    """Whether all of an input is in a tensor that the kernel returned, without looking closely."""
    begin, first = place.offset or 0, returned.offset or 0
    within = first <= begin and begin + place.reach <= first + returned.reach
    return returned == place or (within and fills_its_span(returned))


def _elements_in(
    place: values.TensorNode, returned: Iterable[values.TensorNode], device: torch.device
) -> torch.Tensor:
    """Which elements of an input, from its first to its last one in memory, were returned."""
    found = torch.zeros(place.reach, dtype=torch.bool, device=device)
    for node in returned:
        at = (node.offset or 0) - (place.offset or 0)
        first, last = max(0, at), min(place.reach, at + node.reach)
        if first < last:
            own = torch.zeros(node.reach, dtype=torch.bool, device=device)
            extents = [n if step else 1 for n, step in zip(node.shape, node.stride, strict=True)]
            steps = [step * node.itemsize for step in node.stride]
            own.as_strided((*extents, node.itemsize), (*steps, 1)).fill_(True)  # noqa: FBT003
            found[first:last] |= own[first - at : last - at]
    return found.view(place.span, place.itemsize).all(dim=1)


@dataclass(frozen=True, slots=True)
class Changes:
    """Input tensors after a call, the judge's private copies, and their places."""

    places: Sequence[values.TensorNode]
    after: Sequence[torch.Tensor]
    private: Sequence[torch.Tensor]


def fills_its_span(node: values.TensorNode) -> bool:
    """Whether a tensor has every element between its first and its last one, and each only once."""
    count = 1
    for stride, extent in sorted(zip(node.stride, node.shape, strict=True)):
        if extent != 1 and stride != count:
            return False
        count *= extent
    return True


def placed(nodes: Iterable[values.TensorNode], base: int) -> list[values.TensorNode]:
    """Return tensors with their offsets from the address `base` instead of their addresses."""
    return [each.model_copy(update={"offset": each.address - base, "address": 0}) for each in nodes]


def refuse_changed(changes: Changes, returned: Sequence[values.TensorNode]) -> None:
    """Refuse a kernel that wrote into an input, except into elements that it `returned`.

    The offsets of inputs and outputs are from the same address.
    """
    rows = zip(changes.places, changes.after, changes.private, strict=True)
    for place, after, private in rows:
        if not _same_outside(place, after, private, returned):
            raise VerdictError(
                Verdict.WRONG_ANSWER, "the kernel changed an input, which this task does not allow"
            )


def changes_in(arena: Arena, data: object) -> Changes:
    """The host tensors of an arena and the private `data` that was written into it."""
    rows = list(zip(values.tensors(lay_out(data).node), values.leaves(data), strict=True))
    host = [(node, private) for node, private in rows if node.device == "cpu"]
    return Changes(
        places=[node for node, _ in host],
        after=[view(arena.buffer, node) for node, _ in host],
        private=[private for _, private in host],
    )


ACROSS_INPUTS = "an output overlaps the memory of the inputs, but is not within one of them"


def refuse_across(output: range, inputs: Iterable[values.TensorNode], memory: range) -> None:
    """Refuse an output that overlaps the `memory` of the inputs, but is not within one of them.

    The judge fills all of it when the window opens, with zeros between and behind the inputs.
    """
    apart = output.stop <= memory.start or memory.stop <= output.start
    if output and not apart and not any(_is_within(output, each) for each in inputs):
        raise VerdictError(Verdict.DISALLOWED, ACROSS_INPUTS)


def _is_within(output: range, place: values.TensorNode) -> bool:
    """Whether every byte of an output is of an element of a tensor, not of a gap between two."""
    begin = place.offset or 0
    if output.start < begin or begin + place.reach < output.stop:
        return False
    if fills_its_span(place):
        return True
    used = torch.zeros(place.span, dtype=torch.bool)
    used[torch.arange(place.span).as_strided(place.shape, place.stride).reshape(-1)] = True
    first, last = output.start - begin, output.stop - begin
    return bool(used[first // place.itemsize : -(-last // place.itemsize)].all())


def refuse_other_program(process: CandidateProcess) -> None:
    """Refuse a candidate that replaced its program: a small one stops sooner than Python does."""
    if process.has_replaced_itself():
        raise VerdictError(Verdict.DISALLOWED, "the kernel replaced the candidate's program")


def refuse_new_processes(before: frozenset[int], now: tuple[int, ...]) -> None:
    """Refuse a timed call after which more processes exist than after the warm-up.

    A pool may replace its workers, which are frozen like those before them. Python starts its
    resource tracker when it first needs it, so one of these does not count.
    """
    count = len(now) - len(before)
    if count > 0 and any(map(_is_resource_tracker, frozenset(now) - before)):
        count -= 1
    if count > 0:
        what = "a process" if count == 1 else f"{count} processes"
        raise VerdictError(
            Verdict.DISALLOWED,
            f"the kernel left {what} running after its call; start all workers in the first call",
        )


def _is_resource_tracker(pid: int) -> bool:
    """Whether a process has the command line of Python's resource tracker; any process may."""
    try:
        with Path(f"/proc/{pid}/cmdline").open("rb") as line:
            return b"multiprocessing.resource_tracker" in line.read(4096)
    except OSError:
        return False


USUAL_OUTPUT = 1 << 20
"""An output without a reference is large if it has this many bytes more than twice its input."""
TEXT_MOST = 4000
"""The most characters of a check's text that its child process sends."""


def run_in_child(check: Callable[[], str | None], seconds: float) -> str | None:
    """Run a check in a child process; VerdictError `timed_out` if it takes more than `seconds`.

    In this process no signal ends a long call of a library, such as a sort. The alarm is off during
    the fork: what it raises in a handler of the fork is lost, and locks stay taken.
    """
    reader, writer = os.pipe()
    left_s, _ = signal.setitimer(signal.ITIMER_REAL, 0)
    child = os.fork()
    if child == 0:
        try:
            torch.set_num_threads(1)  # OpenMP would wait for threads that were not forked
            os.write(writer, json.dumps(_result_of(check)).encode() + b"\n")
        finally:
            os._exit(0)
    signal.setitimer(signal.ITIMER_REAL, left_s)
    os.close(writer)
    try:
        sent = _read_line(reader, Deadline.after(seconds))
    except OutOfTimeError:
        sent = None
    finally:
        os.close(reader)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    if sent is None:
        raise VerdictError(Verdict.TIMED_OUT, CHECK_OUT_OF_TIME)
    try:
        verdict, text = json.loads(sent)
    except ValueError:  # it has ended before it had sent all
        verdict, text = Verdict.WRONG_ANSWER, "its check ended without a result"
    if verdict is not None:
        raise VerdictError(Verdict(verdict), text)
    return text or None


def _read_line(reader: int, deadline: Deadline) -> bytes | None:
    """Return a line, or all of a pipe that ends sooner; None in time if a process keeps it open."""
    sent = b""
    while (left := deadline.remaining) > 0 and select.select([reader], [], [], left)[0]:
        sent += (part := os.read(reader, 16 * TEXT_MOST))
        if not part or sent.endswith(b"\n"):
            return sent
    return None


def may_take_long(output: object, data: object, expected: values.Node | None) -> bool:
    """Whether a check may take long in one call of a library, which no signal ends.

    Nothing limits which numbers a text stands for or, without a reference, how large an output is.
    """
    return (expected is None and _is_large(output, data)) or scalars.has_text(output)


def _is_large(output: object, data: object) -> bool:
    """Whether an output is so large, compared with its input, that its check may take long."""
    size, usual = (sum(each.nbytes for each in values.leaves(one)) for one in (output, data))
    return size > 2 * usual + USUAL_OUTPUT


def _result_of(check: Callable[[], str | None]) -> tuple[str | None, str]:
    """Return the verdict that a check raises, or None, and its text."""
    try:
        return None, (check() or "")[:TEXT_MOST]
    except VerdictError as error:
        return error.verdict.value, error.message[:TEXT_MOST]


def difference(expected: values.Node, actual: values.Node, where: str = "the output") -> str | None:
    """Return the first difference of two structures in type, shape, dtype or device, as a text.

    None if there is no difference.
    """
    match expected, actual:
        case values.TensorNode(), values.TensorNode():
            return _tensor_difference(expected, actual, where)
        case values.SequenceNode(), values.SequenceNode():
            return _sequence_difference(expected, actual, where)
        case values.DictNode(), values.DictNode():
            return _dict_difference(expected, actual, where)
        case _ if _kind(expected) != _kind(actual):
            return f"{where} is a {_kind(actual)}, a {_kind(expected)} is expected"
    return None


def _kind(node: values.Node) -> str:
    return type(node.value).__name__ if isinstance(node, values.ScalarNode) else node.kind


def _sequence_difference(
    expected: values.SequenceNode, actual: values.SequenceNode, where: str
) -> str | None:
    if len(expected.items) != len(actual.items):
        return f"{where} has {len(actual.items)} items, {len(expected.items)} are expected"
    pairs = zip(expected.items, actual.items, strict=True)
    found = (difference(e, a, f"{where}[{i}]") for i, (e, a) in enumerate(pairs))
    return next((text for text in found if text), None)


def _tensor_difference(
    expected: values.TensorNode, actual: values.TensorNode, where: str
) -> str | None:
    for name in ("shape", "dtype", "device"):
        want, got = getattr(expected, name), getattr(actual, name)
        if want != got:
            texts = (list(v) if isinstance(v, tuple) else v for v in (got, want))
            return "{} has {} {}, {} is expected".format(where, name, *texts)
    return None


def _dict_difference(expected: values.DictNode, actual: values.DictNode, where: str) -> str | None:
    want, got = dict(expected.items), dict(actual.items)
    if want.keys() != got.keys():
        return (
            f"{where} has the keys {sorted(map(str, got))}, {sorted(map(str, want))} are expected"
        )
    found = (difference(want[key], got[key], f"{where}[{key!r}]") for key in want)
    return next((text for text in found if text), None)


def sorted_by_key(node: values.Node) -> values.Node:
    """Return the same structure with every dict sorted by key, numbers before texts."""
    match node:
        case values.SequenceNode():
            return node.model_copy(update={"items": tuple(map(sorted_by_key, node.items))})
        case values.DictNode():
            pairs = tuple(
                (key, sorted_by_key(item)) for key, item in sorted(node.items, key=values.key_order)
            )
            return node.model_copy(update={"items": pairs})
        case _:
            return node


def ordered_like(pattern: values.Node, node: values.Node) -> values.Node:
    """Return `node` with its dicts in the order of `pattern`, and its lists or tuples as there.

    Both must have the same structure.
    """
    match pattern, node:
        case values.SequenceNode(), values.SequenceNode():
            items = tuple(map(ordered_like, pattern.items, node.items))
            return node.model_copy(update={"kind": pattern.kind, "items": items})
        case values.DictNode(), values.DictNode():
            found = dict(node.items)
            pairs = tuple((key, ordered_like(each, found[key])) for key, each in pattern.items)
            return node.model_copy(update={"items": pairs})
        case _:
            return node
