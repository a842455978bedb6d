"""Training of USER by several processes, each of which holds a part of the graph.

The training equals that of `training.trainer.Trainer`, up to rounding. Each rank computes the rows
of its own nodes. Products with S fetch the rows of the halo from the ranks that own them, and
gradients return on the same way. The statistics of BatchNorm, the sums that the loss is a function
of, and the gradients of the network are summed over all ranks, so that every rank makes the same
step. The weights of A' and their moments of Adam exist only on the rank that owns the pair.
"""

import os
from dataclasses import replace
from typing import Any

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
from user_dgl.model import USER, LossSums, Scope, State, USERLoss
from user_dgl.structure.learned_adjacency import LearnedAdjacency, put_moments, take_moments
from user_dgl.training.checkpoint import check_view
from user_dgl.training.hooks import Hooks
from user_dgl.training.loop import EpochLoop, EpochReport, Progress, finite_means, with_total
from user_dgl.training.memory import plan_memory

_CPU = torch.device("cpu")


class ShardTrainer(EpochLoop):
    """Trains USER together with the other ranks.

    Parameters
    ----------
    data : RankData
    config : Config
    ranks : Ranks
    device : torch.device
    hooks : Hooks
        Only the first rank calls ``log`` and ``record``.
    """

    optimizer: torch.optim.Adam

    def __init__(
        self,
        data: RankData,
        config: Config,
        ranks: Ranks,
        device: torch.device = _CPU,
        hooks: Hooks | None = None,
    ):
        hooks = hooks or Hooks()
        if not ranks.first:
            silent = Hooks()
            hooks = replace(hooks, log=silent.log, record=silent.record, shows_progress=False)
        super().__init__(config, hooks)
        self.data, self.ranks, self.device = data, ranks, device
        self.engine = resolve_engine(config.structure.engine, device)
        dtype = getattr(torch, config.train.precision)
        shard, part = data.shard, data.shard.part
        here = int(os.environ.get("LOCAL_WORLD_SIZE", ranks.size))
        self.memory = plan_memory(
            config,
            len(data.edges),
            data.feat,
            device,
            here,
            halo=len(part.halo),
            num_pairs=len(part.pairs),
        )
        self.keeps_freed_memory = self.memory.keeps_freed
        self.features = FeatureMatrix(data.feat, dtype, device, data.columns)
        self._graph = part.graph().to(device)
        self._nodes, self._pairs = (self._exchange(plan) for plan in (shard.nodes, shard.pairs))
        self._pair_place = shard.pair_place.to(device)
        self._owned = part.owned.to(device)
        self._observed = data.observed.to(device)
        self._own_nodes = part.nodes[: part.num_owned].to(device)
        assert data.first_weight is not None, "the stages before training have been run"
        self._first_weight = data.first_weight.to(device, dtype)
        self.loss = USERLoss(
            config.loss,
            self._graph,
            self.features,
            self.engine,
            whole=(data.num_nodes, data.num_observed),
        )
        self.model: USER
        self._encoded: tuple[torch.Tensor, ShardPropagation, torch.Tensor] | None = None

    def _exchange(self, plan: ExchangePlan) -> Exchange:
        sent = plan.sent.to(self.device)
        return Exchange(self.ranks, sent, plan.sent_counts, plan.received_counts)

    def build(self) -> None:
        """Make the same network on every rank, and the weights of the pairs that the rank owns."""
        weight, view = self._first_weight, self.data.view
        if view is not None:
            weight = view.smoothing_weight(self._graph, weight, self._observed)
        self._start = weight  # from which the loss measures how far A' moves
        structure = LearnedAdjacency(
            self._graph,
            self._observed,
            weight[self._owned][None],
            self.config.learns_structure,
        )
        self.model = USER(
            structure,
            self.features.shape[1],
            self.config.model,
            self.engine,
            view=view,
        ).to(self.device, self._first_weight.dtype)
        self._network = [each for each in self.model.parameters() if each is not structure.theta]
        self.make_optimizer(self.model, structure)

    def resume(self, checkpoint: list[dict[str, Any]]) -> None:
        """Resume from the checkpoints of all ranks of an earlier run, which may have been more."""
        what = "the checkpoints, which all ranks go on from"
        self.ranks.run_on_all(lambda: super(ShardTrainer, self).resume(checkpoint), what)

    def _forward(self) -> State:
        """Compute the state of the own nodes, and also the memberships of the halo."""
        weight, propagation, hidden = self._encoded or self._encode()
        logits, dropped = self.model.logits((hidden,), (propagation,))
        memberships = torch.softmax(dropped[:, 0], 1)
        assignment = self._nodes.extend(memberships, "the memberships of the halo")
        return State(
            graph=self._graph,
            # Each pair counts only on the rank that owns it.
            weights=(weight * self._owned,),
            observed=self._observed & self._owned,
            learnable=self.model.structure.learnable,
            hidden=(hidden,),
            propagations=(propagation,),
            logits=logits,
            clusters=logits.argmax(2),
            assignment=assignment[:, None],
        )

    def _encode(self) -> tuple[torch.Tensor, ShardPropagation, torch.Tensor]:
        """Compute weights of the pairs of the part, the propagation, and H (n, d) of own nodes."""
        own_weight = self.model.structure()[0]
        weight = self._pairs.extend(own_weight, "the weights of cut pairs")
        weight = weight.index_select(0, self._pair_place)
        num_owned, num_nodes = self.data.shard.part.num_owned, self.data.num_nodes
        propagation = ShardPropagation(
            self._graph, weight, self._nodes, num_owned, num_nodes, self.engine
        )
        encoded = weight, propagation, self.model.encoders[0](propagation, self.features)
        if self.model.encodes_once:
            self._encoded = encoded
        return encoded

    def _terms(self, state: State) -> dict[str, torch.Tensor]:
        """Compute the weighted terms (1,) of the loss of the whole graph."""
        loss, centre = self.config.loss, None
        if loss.needs_embedding_mean:
            own, what = state.hidden[0].sum(0), "the mean of the embeddings"
            centre = self.ranks.all_reduce(own, what) / self.data.num_nodes
        scope = Scope(self.features, self._start, state.observed, centre)
        sums = self.loss.sums(state, scope).double()
        tensors = sums.tensors()
        if tensors:
            joined = torch.cat([tensor.reshape(-1) for tensor in tensors])
            joined = self.ranks.all_reduce_replicated(joined, "the sums of the loss")
            parts = joined.split([tensor.numel() for tensor in tensors])
            shaped = [p.view_as(t) for p, t in zip(parts, tensors, strict=True)]
            sums = sums.with_tensors(shaped)
        of_features = loss.davies_bouldin_form == "soft_features"
        if centre is not None and of_features:
            # The whole loss reads this mean, so that every rank has its full gradient.
            mean = self.ranks.all_reduce_replicated(own, what).double() / self.data.num_nodes
            (index,) = sums.by_term["davies_bouldin"]
            changed = {"davies_bouldin": (replace(index, mean=mean),)}
            sums = LossSums(sums.by_term | changed)
        return self.loss.terms(sums, 1, self.config.model.known_clusters)

    def step(self) -> EpochReport:
        """Make an update with the nodes and pairs of all ranks."""
        self.model.train()
        draw_by(self.model, self.config.seed, self.progress.epoch, self._own_nodes)
        sent = self.ranks.bytes_sent
        state = self._forward()
        terms = self._terms(state)
        in_use = self._clusters_in_use(state.clusters)
        del state
        values, _ = self.update(terms)
        sent_now = {"megabytes_sent": (self.ranks.bytes_sent - sent) / 1e6}
        return EpochReport(with_total(values), in_use, sent_now)

    def agree_to_stop(self, number: int | None) -> int | None:
        """Agree with all ranks: some may get the signal an epoch later than others."""
        asked = torch.zeros(65)
        if number is not None:
            asked[number] = 1
        asked = self.ranks.all_reduce_(asked, "whether to stop").nonzero()
        return int(asked[-1]) if len(asked) else None

    def reduce_gradients(self) -> None:
        """Sum the gradients of the network over the ranks, each of which has a part of the sum."""
        gradients = []
        for parameter in self._network:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            gradients.append(parameter.grad)
        if gradients:
            joined = torch.cat([gradient.view(-1) for gradient in gradients])
            self.ranks.all_reduce_(joined, "the gradients of the network")
            sizes = [gradient.numel() for gradient in gradients]
            for gradient, part in zip(gradients, joined.split(sizes), strict=True):
                gradient.copy_(part.view_as(gradient))

    def _clusters_in_use(self, clusters: torch.Tensor) -> int:
        counts = torch.bincount(clusters[:, 0], minlength=self.config.model.known_clusters)
        return int((self.ranks.all_reduce_(counts, "the sizes of the clusters") > 0).sum())

    @torch.no_grad()
    def evaluate(self) -> tuple[State, dict[str, torch.Tensor]]:
        """Compute the state of the own nodes and the terms of the whole graph, without dropout."""
        self.model.eval()
        state = self._forward()
        return state, self._terms(state)

    @torch.no_grad()
    def result(self) -> RankResult:
        """Return the result for the own nodes and pairs."""
        state, terms = self.evaluate()
        epoch = self.progress.epoch
        means = finite_means(terms, f"after {epoch} epochs the loss is not finite: {{}}")
        embedding = self.model.embeddings(state)[0]
        part = self.data.shard.part
        n, owned, view = part.num_owned, part.owned, self.data.view
        weight = state.weights[0].cpu()[owned]
        if not self.config.learns_structure:
            # The view may be smoothed with a power of these weights.
            weight = self._first_weight.cpu().float()[owned]
        ends = torch.stack([part.nodes[part.src[owned].long()], part.nodes[part.dst[owned].long()]])
        return RankResult(
            nodes=self._own_nodes.cpu().numpy(),
            clusters=state.clusters[:, 0].cpu().numpy(),
            probs=state.assignment[:n, 0].cpu().numpy(),
            embedding=embedding.cpu().numpy(),
            pairs=part.pairs[owned].numpy(),
            ends=ends.sort(0).values.numpy(),
            weight=weight.numpy(),
            observed=self.data.observed[owned].numpy(),
            kmeans=None if view is None else view.kmeans,
            code=None if view is None else view.clusters,
            loss={"total": sum(means.values()), **means},
            epoch_seconds=list(self.progress.epoch_seconds),
        )

    # -----------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return this rank's shard of a checkpoint: the shared state, and the pairs it owns."""
        part, theta = self.data.shard.part, self.model.structure.theta
        state = self.optimizer.state_dict()
        moments: dict[str, torch.Tensor] = {}
        if self.model.structure.learnable:
            state, moments = take_moments(self.optimizer, theta)
        network = self.model.state_dict()
        own = network.pop("structure.theta")[0]
        network.pop("structure.observed")
        return {
            "progress": self.progress.state_dict(),
            "data": self.data.digest,
            "view": None if self.data.view is None else self.data.view.name,
            "pairs": part.pairs[part.owned],
            "theta": own,
            "moments": moments,
            "network": network,
            "optimizer": state,
            "schedule": None if self.schedule is None else self.schedule.state_dict(),
        }

    def load_state_dict(self, state: list[dict[str, Any]]) -> None:
        """Restore the state from the shards of all ranks of the earlier run.

        Each rank takes the values of the pairs that it owns now.

        Raises
        ------
        InputError
            The checkpoint is of other pairs or features.
        """
        part, first = self.data.shard.part, state[0]
        self.progress = Progress(**first["progress"])
        if any(each["data"] != self.data.digest for each in state):
            raise InputError(
                "the checkpoint is of other pairs or features: the data have changed since"
            )
        check_view(first, None if self.data.view is None else self.data.view.name)
        wanted, order = part.pairs[part.owned].sort()
        # The place of each owned pair in a shard, shard by shard: no rank holds all pairs.
        places = []
        for each in state:
            place = torch.searchsorted(wanted, each["pairs"]).clamp_(max=max(len(wanted) - 1, 0))
            here = wanted[place] == each["pairs"] if len(wanted) else place < 0
            places.append((order[place[here]], here))
        if len(torch.cat([place for place, _ in places]).unique()) < len(wanted):
            raise InputError(
                "the checkpoint lacks pairs: it is of processes that were killed while another "
                "number of them wrote it: start anew with overwrite=true"
            )

        def owned_now(shards: list[torch.Tensor]) -> torch.Tensor:
            """Select the values of the pairs that this rank owns from all shards."""
            values = shards[0].new_empty(len(wanted))
            for (place, here), shard in zip(places, shards, strict=True):
                values[place] = shard[here]
            return values

        network = first["network"] | {
            "structure.theta": owned_now([each["theta"] for each in state])[None],
            "structure.observed": self.model.structure.observed,
        }
        self.model.load_state_dict(network)
        moments = {
            name: owned_now([each["moments"][name] for each in state]) for name in first["moments"]
        }
        put_moments(self.optimizer, self.model.structure.theta, first["optimizer"], moments)
        if self.schedule is not None:
            self.schedule.load_state_dict(first["schedule"])
