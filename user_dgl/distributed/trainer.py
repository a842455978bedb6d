"""Training of USER by several processes, each of which holds a part of the graph.

The training is that of `training.trainer.Trainer`, to rounding. Each rank computes the rows of its
own nodes: products with S take the rows of the halo from the ranks that own them, and gradients go
back the same way; statistics of BatchNorm and the sums that the loss is a function of are summed
over all ranks; the gradients of the network too, so that every rank makes the same step. Weights of
A' and their moments of Adam exist once, on the rank that owns the pair.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from user_dgl.config import Config
from user_dgl.distributed.assembly import RankResult
from user_dgl.distributed.propagation import ShardPropagation
from user_dgl.distributed.ranks import Exchange, Ranks
from user_dgl.distributed.shards import ExchangePlan, RankData
from user_dgl.encoders.dropout import draw_by
from user_dgl.errors import InputError
from user_dgl.features.matrix import FeatureMatrix
from user_dgl.graph.ops import resolve_engine
from user_dgl.model import USER, Scope, State, USERLoss
from user_dgl.structure.learned_adjacency import LearnedAdjacency
from user_dgl.training.loop import EpochLoop, Progress, denormals_flushed, finite_means
from user_dgl.training.memory import plan_memory

_CPU = torch.device("cpu")


class ShardTrainer(EpochLoop):
    """Trains USER together with the other ranks.

    Parameters
    ----------
    holding : RankData
    config : Config
    ranks : Ranks
    device : torch.device
    log, record, save : callable
        As in `EpochLoop`; ``log`` and ``record`` are called on the first rank alone.
    """

    def __init__(
        self,
        holding: RankData,
        config: Config,
        ranks: Ranks,
        device: torch.device = _CPU,
        *,
        log: Callable[[str], None] = lambda line: None,
        record: Callable[[dict[str, Any]], None] = lambda row: None,
        save: Callable[[dict[str, Any]], None] = lambda state: None,
    ):
        silent: Callable[[Any], None] = lambda _: None  # noqa: E731
        first = ranks.first
        super().__init__(config, log if first else silent, record if first else silent, save)
        self.shows_progress = first
        self.holding, self.ranks = holding, ranks
        self.device = device
        self.engine = resolve_engine(config.structure.engine, device)
        dtype = getattr(torch, config.train.precision)
        shard, part = holding.shard, holding.shard.part
        here = int(os.environ.get("LOCAL_WORLD_SIZE", ranks.size))
        self.memory = plan_memory(
            config, len(part.pairs), holding.feat, device, here, halo=len(part.halo)
        )
        self._keeps_freed = self.memory.keeps_freed
        self.features = FeatureMatrix(holding.feat, dtype, device, holding.columns)
        self._graph = part.graph().to(device)
        self._nodes, self._pairs = (self._exchange(lists) for lists in (shard.nodes, shard.pairs))
        self._pair_place = shard.pair_place.to(device)
        self._owned = part.owned.to(device)
        self._observed = holding.observed.to(device)
        self._own_nodes = part.nodes[: part.num_owned].to(device)
        self._first_weight = holding.first_weight.to(device, dtype)
        self.loss = USERLoss(
            config.loss,
            self._graph,
            self.features,
            self.engine,
            whole=(holding.num_nodes, holding.num_observed),
        )
        self._learns_structure = config.structure.learnable and config.train.structure_lr != 0

    def _exchange(self, lists: ExchangePlan) -> Exchange:
        sent = lists.sent.to(self.device)
        return Exchange(self.ranks, sent, lists.sent_counts, lists.received_counts)

    @property
    def epoch_seconds(self) -> list[float]:
        """Of each epoch, those before a resume included."""
        return list(self._progress.epoch_seconds)

    def fit(self, checkpoints: list[dict[str, Any]] | None = None) -> RankResult:
        """Train, or go on from the checkpoints of all ranks of an earlier run, of any number."""
        with torch.random.fork_rng(devices=[]), denormals_flushed():
            self._build()
            if checkpoints is not None:
                what = "the checkpoints, which all ranks go on from"
                self.ranks.run_on_all(lambda: self._restore(checkpoints), what)
            self._run_epochs()
            return self._result()

    def _build(self) -> None:
        # The same first network on every rank.
        sequence = np.random.SeedSequence([self.config.seed, 0])
        torch.default_generator.manual_seed(int(sequence.generate_state(1)[0]))
        holding, config = self.holding, self.config
        structure = LearnedAdjacency(
            self._graph,
            self._observed,
            self._first_weight[self._owned][None],
            self._learns_structure,
        )
        self.model = USER(
            structure, self.features.shape[1], config.model, self.engine, view=holding.view
        ).to(self.device, self._first_weight.dtype)
        draw_by(self.model, config.seed, 0, self._own_nodes)
        self._network = [p for n, p in self.model.named_parameters() if n != "structure.theta"]
        self._make_optimizer(self.model, structure.theta if self._learns_structure else None)

    def _forward(self) -> State:
        """The state of the own nodes; memberships of the halo too."""
        holding, part = self.holding, self.holding.shard.part
        own_weight = self.model.structure()[0]
        weight = self._pairs.extend(own_weight, "the weights of cut pairs")
        weight = weight.index_select(0, self._pair_place)
        propagation = ShardPropagation(
            self._graph, weight, self._nodes, part.num_owned, holding.num_nodes, self.engine
        )
        hidden, logits, dropped = self.model.forward_part(self.features, propagation)
        assignment = self._nodes.extend(torch.softmax(dropped, 1), "the memberships of the halo")
        return State(
            graph=self._graph,
            # Each pair counts on the rank that owns it.
            weights=(weight * self._owned,),
            observed=self._observed & self._owned,
            learnable=self._learns_structure,
            hidden=(hidden,),
            propagations=(propagation,),
            logits=logits[:, None],
            clusters=logits.argmax(1, keepdim=True),
            assignment=assignment[:, None],
        )

    def _terms(self, state: State) -> dict[str, torch.Tensor]:
        """Weighted terms (1,) of the loss of the whole graph."""
        loss, centre = self.config.loss, None
        if loss.needs_embedding_mean:
            own, what = state.hidden[0].sum(0), "the mean of the embeddings"
            centre = self.ranks.all_reduce(own, what) / self.holding.num_nodes
        scope = Scope(self.features, self._first_weight, state.observed, centre)
        sums = self.loss.sums(state, scope).double()
        tensors = sums.tensors()
        if tensors:
            joined = torch.cat([tensor.reshape(-1) for tensor in tensors])
            joined = self.ranks.all_reduce_replicated(joined, "the sums of the loss")
            parts = joined.split([tensor.numel() for tensor in tensors])
            shaped = [p.view_as(t) for p, t in zip(parts, tensors, strict=True)]
            sums = sums.with_tensors(shaped)
        if centre is not None and loss.davies_bouldin_form == "soft_features":
            # Where the whole loss reads it, every rank has all of its gradient.
            mean = self.ranks.all_reduce_replicated(own, what).double() / self.holding.num_nodes
            (index,) = sums.davies_bouldin
            sums = replace(sums, davies_bouldin=(replace(index, mean=mean),))
        return self.loss.terms(sums, 1, self.config.model.num_clusters)

    def _step(self) -> tuple[dict[str, float], int, dict[str, float]]:
        self.model.train()
        draw_by(self.model, self.config.seed, self._progress.epoch, self._own_nodes)
        sent = self.ranks.bytes_sent
        state = self._forward()
        terms = self._terms(state)
        in_use = self._clusters_in_use(state.clusters)
        del state
        values = self._finite_means(terms)
        total = sum(term.sum() for term in terms.values())
        if isinstance(total, torch.Tensor) and total.requires_grad:
            total.backward()
            self._sum_gradients()
            self.optimizer.step()
            if self.schedule is not None:
                self.schedule.step(sum(values.values()))
        self.optimizer.zero_grad(set_to_none=True)
        values["total"] = sum(values.values())
        return values, in_use, {"megabytes_sent": (self.ranks.bytes_sent - sent) / 1e6}

    def _agreed(self, number: int | None) -> int | None:
        # One sum for all: some ranks may get the signal an epoch later than others.
        asked = torch.zeros(65)
        if number is not None:
            asked[number] = 1
        asked = self.ranks.all_reduce_(asked, "whether to stop").nonzero()
        return int(asked[-1]) if len(asked) else None

    def _sum_gradients(self) -> None:
        """Gradients of the network, of which every rank has a part."""
        for parameter in self._network:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        if self._network:
            joined = torch.cat([parameter.grad.view(-1) for parameter in self._network])
            self.ranks.all_reduce_(joined, "the gradients of the network")
            sizes = [parameter.numel() for parameter in self._network]
            for parameter, part in zip(self._network, joined.split(sizes), strict=True):
                parameter.grad.copy_(part.view_as(parameter))

    def _clusters_in_use(self, clusters: torch.Tensor) -> int:
        counts = torch.bincount(clusters[:, 0], minlength=self.config.model.num_clusters)
        return int((self.ranks.all_reduce_(counts, "the sizes of the clusters") > 0).sum())

    @torch.no_grad()
    def _result(self) -> RankResult:
        self.model.eval()
        state = self._forward()
        terms = self._terms(state)
        epoch = self._progress.epoch
        means = finite_means(terms, f"after {epoch} epochs the loss is not finite: {{}}")
        embedding = self.model.embeddings(state)[0]
        part = self.holding.shard.part
        n, owned = part.num_owned, part.owned
        ends = torch.stack([part.nodes[part.src[owned].long()], part.nodes[part.dst[owned].long()]])
        return RankResult(
            nodes=self._own_nodes.cpu().numpy(),
            clusters=state.clusters[:, 0].cpu().numpy(),
            probs=state.assignment[:n, 0].cpu().numpy(),
            embedding=embedding.cpu().numpy(),
            pairs=part.pairs[owned].numpy(),
            ends=ends.sort(0).values.numpy(),
            weight=state.weights[0].cpu()[owned].numpy(),
            observed=self.holding.observed[owned].numpy(),
            kmeans=None if self.holding.view is None else self.holding.view.clusters,
            loss={"total": sum(means.values()), **means},
        )

    # -----------------------------------------------------------------------------------------

    def _checkpoint(self) -> None:
        part, state = self.holding.shard.part, self.optimizer.state_dict()
        moments: dict[str, torch.Tensor] = {}
        if self._learns_structure:
            index = state["param_groups"][1]["params"][0]
            own = state["state"].pop(index, {})
            moments = {name: own[name][0] for name in ("exp_avg", "exp_avg_sq") if name in own}
        network = self.model.state_dict()
        theta = network.pop("structure.theta")[0]
        network.pop("structure.observed")
        self.save(
            {
                "progress": vars(self._progress),
                "data": self.holding.digest,
                "pairs": part.pairs[part.owned],
                "theta": theta,
                "moments": moments,
                "network": network,
                "optimizer": state,
                "schedule": None if self.schedule is None else self.schedule.state_dict(),
            }
        )

    def _restore(self, checkpoints: list[dict[str, Any]]) -> None:
        """From what all ranks of the earlier run wrote: each takes the pairs that it owns now."""
        part = self.holding.shard.part
        try:
            first = checkpoints[0]
            self._progress = Progress(**first["progress"])
            pairs = torch.cat([checkpoint["pairs"] for checkpoint in checkpoints])
            if any(checkpoint["data"] != self.holding.digest for checkpoint in checkpoints):
                raise InputError(
                    "the checkpoint is of other pairs or features: the data have changed since"
                )
            wanted = part.pairs[part.owned]

            def owned_now(name: Callable[[dict[str, Any]], torch.Tensor]) -> torch.Tensor:
                values = torch.cat([name(checkpoint) for checkpoint in checkpoints])
                by_position = torch.empty_like(values)
                by_position[pairs] = values
                return by_position[wanted]

            network = first["network"] | {
                "structure.theta": owned_now(lambda state: state["theta"])[None],
                "structure.observed": self.model.structure.observed,
            }
            self.model.load_state_dict(network)
            optimizer, states = first["optimizer"], dict(first["optimizer"]["state"])
            if first["moments"]:
                step = next(iter(states.values()))["step"]
                states[optimizer["param_groups"][1]["params"][0]] = {"step": step.clone()} | {
                    name: owned_now(lambda state, name=name: state["moments"][name])[None]
                    for name in first["moments"]
                }
            self.optimizer.load_state_dict({**optimizer, "state": states})
            if self.schedule is not None:
                self.schedule.load_state_dict(first["schedule"])
        except (
            KeyError, TypeError, StopIteration, RuntimeError, IndexError, AttributeError
        ) as error:  # fmt: skip
            raise InputError(
                f"the checkpoint is not one of a distributed run of this version ({error})"
            ) from None
