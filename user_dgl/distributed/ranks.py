"""Several processes of one training: sums over all of them, rows that others own, one log.

Everything goes through `torch.distributed`. Sums and exchanges take part in autograd; every rank
calls them in the same order, forward and backward, as all ranks build the same graph of operations.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist

from user_dgl.errors import InputError, RankError, ReportedError

T = TypeVar("T")


class Ranks:
    """The processes of this run, as seen by one of them.

    Parameters
    ----------
    timeout_s : float
        How long one may wait for the others.

    Attributes
    ----------
    rank, size : int
    bytes_sent : int
        What this rank has sent to others: rows of exchanges and its part of sums.
    """

    def __init__(self, timeout_s: float):
        self.rank, self.size, self.timeout_s = dist.get_rank(), dist.get_world_size(), timeout_s
        self.bytes_sent = 0

    @property
    def first(self) -> bool:
        """Whether this is the rank that reads, reports and writes."""
        return self.rank == 0

    def all_reduce(self, x: torch.Tensor, what: str) -> torch.Tensor:
        """Sum of the x of all ranks; the gradient of a sum is that of all ranks' losses."""
        return _AllReduce.apply(x, self, what)

    def all_reduce_replicated(self, x: torch.Tensor, what: str) -> torch.Tensor:
        """Sum over ranks for a loss that every rank computes; the backward pass is the identity.

        `all_reduce` would sum the gradients of all ranks, so that the one loss would count as often
        as there are ranks.
        """
        return _AllReduceReplicated.apply(x, self, what)

    def all_reduce_(self, x: torch.Tensor, what: str) -> torch.Tensor:
        """x (in place) with those of all others added, without autograd."""
        if self.size > 1:
            self.bytes_sent += 2 * (self.size - 1) * x.numel() * x.element_size() // self.size
            with self.waiting(what):
                shared = x.cpu() if self._by_way_of_cpu(x) else x
                _completed(dist.all_reduce(shared, async_op=True))
                if shared is not x:
                    x.copy_(shared)
        return x

    def exchange_rows(
        self,
        out: torch.Tensor,
        x: torch.Tensor,
        received: Sequence[int],
        sent: Sequence[int],
        what: str,
    ) -> None:
        """Rows from every rank into ``out``.

        The first ``sent[0]`` of x go to rank 0, the next ``sent[1]`` to rank 1, and so on.
        """
        if self.size > 1:
            self.bytes_sent += x.numel() * x.element_size()
            with self.waiting(what):
                into, x = out, x.contiguous()
                if self._by_way_of_cpu(x):
                    into, x = torch.empty_like(out, device="cpu"), x.cpu()
                _completed(
                    dist.all_to_all_single(into, x, list(received), list(sent), async_op=True)
                )
                if into is not out:
                    out.copy_(into)

    def broadcast_from_first(self, make: Callable[[], T], what: str) -> T:
        """What the first rank makes, for all; a fault there is every rank's fault.

        Raises
        ------
        InputError
            As on the first rank, on the others a `ReportedError`.
        """
        outcome: list[Any] = [None, None]
        if self.first:
            try:
                outcome[0] = make()
            except InputError as error:
                outcome[1] = error
        shared = list(outcome)
        with self.waiting(what):
            dist.broadcast_object_list(shared)
        self._agree(shared[1])
        return outcome[0] if self.first else shared[0]

    def run_on_all(self, make: Callable[[], T], what: str) -> T:
        """What this rank makes; a fault of one rank is every rank's, and told by the first.

        Raises
        ------
        InputError
            That of the first rank that has one, on all others a `ReportedError`.
        """
        made, error = None, None
        try:
            made = make()
        except InputError as fault:
            error = fault
        errors: list[Any] = [None] * self.size
        with self.waiting(what):
            dist.all_gather_object(errors, error)
        self._agree(next((fault for fault in errors if fault is not None), None))
        return made

    def _agree(self, error: InputError | None) -> None:
        if error is None:
            return
        if self.first:
            raise error
        self.leave_to_first()
        raise ReportedError(str(error))

    def leave_to_first(self) -> None:
        """Give the first rank time to tell a fault of all: the launcher ends the others with it."""
        if not self.first:
            with suppress(RankError):
                self.wait("the first rank, which tells what is wrong")

    def scatter(self, items: Sequence[T] | None, what: str) -> T:
        """The item of this rank; ``items`` counts on the first."""
        mine: list[Any] = [None]
        with self.waiting(what):
            dist.scatter_object_list(mine, None if items is None else list(items))
        return mine[0]

    def gather(self, item: T, what: str) -> list[T] | None:
        """The items of all ranks on the first, None on the others."""
        items: list[Any] | None = [None] * self.size if self.first else None
        with self.waiting(what):
            dist.gather_object(item, items)
        return items

    def wait(self, what: str) -> None:
        """Until all ranks are here."""
        with self.waiting(what):
            # Not dist.barrier: with a GPU that would only wait until its stream is told to.
            _completed(dist.all_reduce(torch.zeros(1), async_op=True))

    def _by_way_of_cpu(self, x: torch.Tensor) -> bool:
        """Whether gloo talks, which exchanges no rows of a GPU."""
        return x.is_cuda and dist.get_backend() == "gloo"

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """Says what this rank waited for where the others do not answer.

        Raises
        ------
        RankError
        """
        try:
            yield
        except torch.cuda.OutOfMemoryError:
            raise
        except RuntimeError as error:
            reason = str(error).strip().splitlines()[0]
            raise RankError(
                f"rank {self.rank} of {self.size}: no answer for {what} within "
                f"{self.timeout_s:g} s, or another rank has ended ({reason})"
            ) from None


def _completed(work: dist.Work) -> None:
    """Wait by the work: where torch itself does, it need not keep to TORCH_NCCL_BLOCKING_WAIT."""
    work.wait()


@contextmanager
def joined(backend: str, timeout_s: float, device: torch.device) -> Iterator[Ranks]:
    """The ranks that a launcher started, together for as long as the block lasts.

    They meet as the environment says: in the file ``USER_DGL_STORE`` on one machine, else at
    ``MASTER_ADDR`` and ``MASTER_PORT``, as with torchrun.

    Parameters
    ----------
    backend : str
        ``gloo`` or ``nccl``; with the latter, what is not on a GPU goes by gloo.
    timeout_s : float
    device : torch.device
        Where this process trains.

    Raises
    ------
    RankError
        Not all came.
    """
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    timeout, how = timedelta(seconds=timeout_s), {}
    file = os.environ.get("USER_DGL_STORE")
    if file:
        store = dist.FileStore(file, size)
        store.set_timeout(timeout)
        how = {"store": store}
    if device.type == "cuda":
        torch.cuda.set_device(device)
    if backend == "nccl":
        # So that a rank that waits in vain says so, and is not ended by a watchdog.
        os.environ.setdefault("TORCH_NCCL_BLOCKING_WAIT", "1")
        backend = "cpu:gloo,cuda:nccl"
    try:
        dist.init_process_group(backend, timeout=timeout, rank=rank, world_size=size, **how)
    except RuntimeError as error:
        raise RankError(
            f"rank {rank} of {size}: the others did not come within {timeout_s:g} s ({error})"
        ) from None
    yield Ranks(timeout_s)
    # Not after a fault: that could wait for others, or abort where they have gone.
    dist.destroy_process_group()


@dataclass(frozen=True, eq=False)
class Exchange:
    """Rows that a rank owns, followed by those that it needs of others.

    Attributes
    ----------
    ranks : Ranks
    sent : int64 Tensor
        Places of the own rows that others need, those for rank 0 first.
    sent_counts, received_counts : tuple of int
        For and from each rank.
    """

    ranks: Ranks
    sent: torch.Tensor
    sent_counts: tuple[int, ...]
    received_counts: tuple[int, ...]

    def extend(self, x: torch.Tensor, what: str) -> torch.Tensor:
        """Own rows (n, ...), then those of others (h, ...); gradients return to their owner."""
        if self.ranks.size == 1:
            return x
        return _Extend.apply(x, self, what)


class _AllReduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, ranks, what):
        ctx.ranks, ctx.what = ranks, what
        return ranks.all_reduce_(x.clone(), what)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        return ctx.ranks.all_reduce_(grad.clone(), f"the gradient of {ctx.what}"), None, None


class _AllReduceReplicated(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, ranks, what):
        return ranks.all_reduce_(x.clone(), what)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        return grad, None, None


class _Extend(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, exchange, what):
        n = len(x)
        ctx.exchange, ctx.what, ctx.num_own = exchange, what, n
        out = x.new_empty(n + sum(exchange.received_counts), *x.shape[1:])
        out[:n] = x
        exchange.ranks.exchange_rows(
            out[n:],
            x.index_select(0, exchange.sent),
            exchange.received_counts,
            exchange.sent_counts,
            what,
        )
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        exchange, n = ctx.exchange, ctx.num_own
        back = grad.new_empty(len(exchange.sent), *grad.shape[1:])
        exchange.ranks.exchange_rows(
            back,
            grad[n:],
            exchange.sent_counts,
            exchange.received_counts,
            f"the gradient of {ctx.what}",
        )
        return grad[:n].clone().index_add_(0, exchange.sent, back), None, None
