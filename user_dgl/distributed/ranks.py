"""Communication between the processes of a training: sums, exchanged rows, shared objects.

Everything uses `torch.distributed`. Sums and exchanges take part in autograd. Every rank calls them
in the same order, forward and backward, because all ranks build the same graph of operations.
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

# What a launcher sets for each process; MASTER_ADDR is a name, the others are numbers.
_OF_LAUNCHER = ("RANK", "WORLD_SIZE", "MASTER_PORT", "MASTER_ADDR")

T = TypeVar("T")


class Ranks:
    """The processes of this run, from the view of one of them.

    Each method takes a text ``what``, which names the data in the error if a rank does not answer.

    Parameters
    ----------
    timeout_s : float
        How long a rank waits for the others.

    Attributes
    ----------
    rank, size : int
    bytes_sent : int
        Bytes that this rank has sent to others: rows of exchanges and its part of sums.
    """

    def __init__(self, timeout_s: float):
        self.rank, self.size, self.timeout_s = dist.get_rank(), dist.get_world_size(), timeout_s
        self.bytes_sent = 0

    @property
    def first(self) -> bool:
        """Whether this is the first rank, which reads, reports and writes."""
        return self.rank == 0

    def all_reduce(self, x: torch.Tensor, what: str) -> torch.Tensor:
        """Sum x over all ranks. The gradient of the sum is summed over all ranks' losses."""
        return _AllReduce.apply(x, self, what)

    def all_reduce_replicated(self, x: torch.Tensor, what: str) -> torch.Tensor:
        """Sum x over all ranks for a loss that every rank computes.

        The backward pass is the identity. With `all_reduce`, the gradients of all ranks would be
        summed, and the one loss would count as many times as there are ranks.
        """
        return _AllReduceReplicated.apply(x, self, what)

    def all_reduce_(self, x: torch.Tensor, what: str) -> torch.Tensor:
        """Add the x of all other ranks to x (in place), without autograd."""
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
        """Exchange rows with every rank.

        The first ``sent[0]`` rows of x go to rank 0, the next ``sent[1]`` to rank 1, and so on. The
        received rows are written to ``out``, in the order of the ranks.
        """
        if self.size == 1:
            out.copy_(x)
        else:
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
        """Call ``make`` on the first rank and return its result on all ranks.

        Raises
        ------
        InputError
            The error of ``make`` on the first rank, and a `ReportedError` on the others.
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
        """Call ``make`` on every rank and return the rank's own result.

        If it fails on one rank, it fails on all of them, and the first rank reports the error. If
        ``make`` exchanges data with the other ranks, it must raise on all of them or before that:
        the others would wait in the exchange.

        Raises
        ------
        InputError
            The error of the lowest rank that has one; on all ranks but the first, a
            `ReportedError`.
        """
        made: list[T] = []
        error = None
        try:
            made.append(make())
        except InputError as fault:
            error = fault
        errors = self.all_gather(error, what)
        self._agree(next((fault for fault in errors if fault is not None), None))
        return made[0]

    def _agree(self, error: InputError | None) -> None:
        """Raise an error that all ranks know about, if there is one."""
        if error is None:
            return
        if self.first:
            raise error
        self.leave_to_first()
        raise ReportedError(str(error))

    def leave_to_first(self) -> None:
        """Give the first rank time to report a common error before the launcher ends the others."""
        if not self.first:
            with suppress(RankError):
                self.wait("the first rank, which tells what is wrong")

    def scatter(self, items: Sequence[T] | None, what: str) -> T:
        """Return the item of this rank. Only the ``items`` of the first rank are read."""
        mine: list[Any] = [None]
        with self.waiting(what):
            dist.scatter_object_list(mine, None if items is None else list(items))
        return mine[0]

    def gather(self, item: T, what: str) -> list[T] | None:
        """Return the items of all ranks on the first rank, and None on the others."""
        items: list[Any] | None = [None] * self.size if self.first else None
        with self.waiting(what):
            dist.gather_object(item, items)
        return items

    def all_gather(self, item: T, what: str) -> list[T]:
        """Return the items of all ranks, on every rank."""
        items: list[Any] = [None] * self.size
        with self.waiting(what):
            dist.all_gather_object(items, item)
        return items

    def gather_checked(
        self, item: T, check: Callable[[list[T]], None], what: str
    ) -> list[T] | None:
        """Gather the items of all ranks, and fail on all ranks if the first refuses the items.

        Raises
        ------
        InputError
            The error of ``check`` on the first rank, and a `ReportedError` on the others.
        """
        items = self.gather(item, what)
        self.broadcast_from_first(lambda: None if items is None else check(items), what)
        return items

    def wait(self, what: str) -> None:
        """Wait until all ranks are here."""
        with self.waiting(what):
            # dist.barrier is not used: on a GPU it only waits until its stream has been told to.
            _completed(dist.all_reduce(torch.zeros(1), async_op=True))

    def _by_way_of_cpu(self, x: torch.Tensor) -> bool:
        """Return whether x must pass through the CPU: gloo exchanges no rows of a GPU."""
        return x.is_cuda and dist.get_backend() == "gloo"

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """Turn an error of the communication into one that says what this rank waited for.

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
    """Wait with `Work.wait`; torch's own waiting may ignore TORCH_NCCL_BLOCKING_WAIT."""
    work.wait()


def _place_of_process(meets_in_file: bool) -> tuple[int, int]:
    """Number of this process and of all, as a launcher has put them into the environment.

    Raises
    ------
    InputError
        A variable is missing, or is no number.
    """
    needed = ("RANK", "WORLD_SIZE") if meets_in_file else _OF_LAUNCHER
    values = {name: os.environ.get(name, "") for name in needed}
    wrong = [name for name in needed if name != "MASTER_ADDR" and not values[name].isdecimal()]
    if "MASTER_ADDR" in needed and not values["MASTER_ADDR"]:
        wrong.append("MASTER_ADDR")
    if wrong:
        raise InputError(
            f"RANK and WORLD_SIZE are set, as for one of several processes, but {wrong[0]} is "
            f"{values[wrong[0]]!r}: start them with user-dgl launch or torchrun, or unset RANK"
        )
    return int(values["RANK"]), int(values["WORLD_SIZE"])


@contextmanager
def joined(backend: str, timeout_s: float, device: torch.device) -> Iterator[Ranks]:
    """Join the ranks that a launcher has started, for the duration of the block.

    They meet where the environment says: in the file ``USER_DGL_STORE`` on one machine, else at
    ``MASTER_ADDR`` and ``MASTER_PORT`` as with torchrun.

    Parameters
    ----------
    backend : str
        ``gloo`` or ``nccl``. With nccl, data outside a GPU still go through gloo.
    timeout_s : float
    device : torch.device
        Device of this process.

    Raises
    ------
    InputError
        The environment does not say where they meet.
    RankError
        Some ranks did not join in time.
    """
    file = os.environ.get("USER_DGL_STORE")
    rank, size = _place_of_process(meets_in_file=bool(file))
    timeout, store = timedelta(seconds=timeout_s), None
    if file:
        store = dist.FileStore(file, size)
        store.set_timeout(timeout)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    if backend == "nccl":
        # A rank that waits in vain then raises an error instead of being ended by a watchdog.
        os.environ.setdefault("TORCH_NCCL_BLOCKING_WAIT", "1")
        backend = "cpu:gloo,cuda:nccl"
    try:
        dist.init_process_group(backend, timeout=timeout, rank=rank, world_size=size, store=store)
    except RuntimeError as error:
        raise RankError(
            f"rank {rank} of {size}: the others did not come within {timeout_s:g} s ({error})"
        ) from None
    yield Ranks(timeout_s)
    # Not after an error: this could wait for other ranks, or abort if they have gone.
    dist.destroy_process_group()


@dataclass(frozen=True, eq=False)
class Exchange:
    """Extends the rows that a rank owns by the rows that it needs of other ranks.

    Attributes
    ----------
    ranks : Ranks
    sent : int64 Tensor
        Places of the own rows that other ranks need, those for rank 0 first.
    sent_counts, received_counts : tuple of int
        Number of rows sent to and received from each rank.
    """

    ranks: Ranks
    sent: torch.Tensor
    sent_counts: tuple[int, ...]
    received_counts: tuple[int, ...]

    def extend(self, x: torch.Tensor, what: str) -> torch.Tensor:
        """Return own rows (n, ...) and then others' rows (h, ...); gradients go to the owners."""
        if self.ranks.size == 1:
            return x
        return _Extend.apply(x, self, what)


class _AllReduce(torch.autograd.Function):
    """Sum over ranks, forward and backward, see `Ranks.all_reduce`."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, ranks: Ranks, what: str) -> torch.Tensor:
        ctx.ranks, ctx.what = ranks, what
        return ranks.all_reduce_(x.clone(), what)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return ctx.ranks.all_reduce_(grad.clone(), f"the gradient of {ctx.what}"), None, None


class _AllReduceReplicated(torch.autograd.Function):
    """Sum over ranks with the identity as gradient, see `Ranks.all_reduce_replicated`."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, ranks: Ranks, what: str) -> torch.Tensor:
        return ranks.all_reduce_(x.clone(), what)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return grad, None, None


class _Extend(torch.autograd.Function):
    """Exchange of rows, and of their gradients on the way back, see `Exchange.extend`."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, exchange: Exchange, what: str) -> torch.Tensor:
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
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
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
