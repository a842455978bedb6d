"""Training of USER on one part of the graph at a time.

The loss is that of the whole graph. It is computed from sums over pairs and nodes
(`user_dgl.model.LossSums`). Each update computes the sums of its part anew and uses for all other
parts the sums of their last update, without gradients. The statistics of BatchNorm, the
memberships Y of the halo and the layer outputs of the halo, which a second layer reads, are treated
in the same way. These values are at most one epoch old. The weight of a pair in A' and its moments
of Adam are updated by the part that owns the pair.
"""

from typing import Any

import numpy as np
import torch

from user_dgl.encoders.dropout import draw_by
from user_dgl.errors import InputError
from user_dgl.graph import Graph
from user_dgl.graph.ops import weighted_degree
from user_dgl.graph.part_propagation import Moments, PartPropagation
from user_dgl.graph.parts import Part, grouped, metis_assignment, parts_of
from user_dgl.graph.propagation import Propagation
from user_dgl.model import LossSums, Scope, State
from user_dgl.runtime.streams import Stream, stream_rng
from user_dgl.structure.learned_adjacency import PairAdam
from user_dgl.training.loop import EpochReport, with_total
from user_dgl.training.result import TrainingResult
from user_dgl.training.trainer import Evaluation, Trainer


class PartitionTrainer(Trainer):
    """`Trainer` in which each update uses one batch of parts; for ``train.mode: partition``."""

    _sums: LossSums
    # The batch of each node (N,), None before the graph is cut.
    _batch_of: np.ndarray | None = None

    def build_on(self, pairs: Graph, observed: torch.Tensor) -> None:
        """Cut the graph into parts, then build model, optimiser and the values the parts share."""
        # The cut comes first, so that the memory of METIS is free before the model needs it.
        if self._batch_of is None:
            partition, seed = self.config.train.partition, self.config.seed
            num_parts = min(partition.num_parts, pairs.num_nodes)
            part_of = metis_assignment(pairs, num_parts, seed)
            self._batch_of = grouped(part_of, num_parts, partition.parts_per_batch, seed)
        self._parts = parts_of(pairs, self._batch_of, int(self._batch_of.max()) + 1)
        super().build_on(pairs, observed)
        num_nodes, num_clusters = pairs.num_nodes, self.config.model.known_clusters
        dtype = self.features.dtype
        weight = self.model.structure.weight()
        # The last known values of all nodes and pairs.
        self._assignment = torch.full((num_nodes, num_clusters), 1 / num_clusters, dtype=dtype)
        widths = self.config.model.hidden_feats
        self._hidden = [torch.zeros(num_nodes, width, dtype=dtype) for width in widths]
        self._weight, self._degree = weight, _degree(pairs, weight)
        # For each layer: the moments of each part.
        self._moments: list[dict[int, Moments]] = [{} for _ in self._hidden]
        learns = self.model.structure.learnable
        self._pair_adam = PairAdam(self.model.structure) if learns else None
        self._prior = self.prior.weight.to(dtype)
        if len(self._prior) < pairs.num_edges:
            self._prior = torch.zeros(pairs.num_edges, dtype=dtype)
            self._prior[observed] = self.prior.weight.to(dtype)
        cut = sum(len(part.pairs) for part in self._parts) - pairs.num_edges
        self.partition = {
            "batches": len(self._parts),
            "cut_share": cut / max(pairs.num_edges, 1),
            "largest_part": max(part.num_owned for part in self._parts),
            "largest_halo": max(len(part.halo) for part in self._parts),
        }
        self.log(
            f"Partition: {len(self._parts)} batches of up to {self.partition['largest_part']} "
            f"nodes and {self.partition['largest_halo']} in the halo, "
            f"{100 * self.partition['cut_share']:.1f} % of the pairs cut; values that a batch "
            "reads from others are at most one epoch old"
        )

    def build(self) -> None:
        """Build as `Trainer.build` does, then compute the shared values of all parts."""
        super().build()
        self._settle()

    def step(self) -> EpochReport:
        """Do one update with each batch of parts, in a random order."""
        epoch, settle_every = self.progress.epoch, self.config.train.partition.settle_every
        self.model.train()
        order = stream_rng(self.config.seed, Stream.BATCH_ORDER, epoch).permutation(
            len(self._parts)
        )
        trained = False
        for number in order:
            values, trains = self._update_part(int(number))
            trained |= trains
        if trained:
            self.advance_schedule(values)
        values = with_total(values)
        extra = {}
        if (epoch + 1) % settle_every == 0 or epoch + 1 == self.config.train.epochs:
            extra["exact_loss"] = sum(term.mean().item() for term in self._settle().values())
            self.partition["exact_loss"] = extra["exact_loss"]
            self.partition["loss_before"] = values["total"]
        clusters = self._assignment.argmax(1, keepdim=True)
        found = int((torch.bincount(clusters[:, 0]) > 0).sum())
        return EpochReport(values, found, extra)

    def _update_part(self, number: int) -> tuple[dict[str, float], bool]:
        """Call `update` with one part. The terms are those of the loss of the whole graph."""
        part, structure = self._parts[number], self.model.structure
        graph, before = part.graph(), self._weight[part.pairs]
        scope = self._scope(part, part.owned)
        assignment = self._assignment[part.nodes]
        with torch.no_grad():
            old = self.loss.sums(self._part_state(part, graph, before, assignment), scope).double()
            degree_before = weighted_degree(graph, before, self.engine)
        theta, weight = structure.leaf_of(part.pairs)
        weight = torch.where(part.owned, weight, before)
        state, propagation = self._forward(number, graph, weight, degree_before)
        new = self.loss.sums(state, scope).double()
        terms = self.loss.terms(self._sums - old + new, 1, self.config.model.known_clusters)
        values, trains = self.update(terms, schedules=False)
        with torch.no_grad():
            if self._pair_adam is not None and theta.grad is not None:
                pairs, gradient = part.pairs[part.owned], theta.grad[part.owned]
                self._pair_adam.step(self.optimizer, pairs, gradient, self.progress.epoch)
            self._sums = self._sums - old + new.detach()
            self._keep(number, state, propagation)
            if structure.learnable:
                weight = weight.detach()
                self._weight[part.pairs] = weight
                change = weighted_degree(graph, weight, self.engine) - degree_before
                self._degree[part.nodes] += change
        return values, trains

    def _forward(
        self, number: int, graph: Graph, weight: torch.Tensor, degree: torch.Tensor
    ) -> tuple[State, PartPropagation]:
        """Compute a forward pass of the model over one part.

        Parameters
        ----------
        number : int
            Number of the part.
        graph : Graph
            Graph of the part.
        weight : Tensor (p,)
            Weights of its pairs.
        degree : Tensor (n + h,)
            Weighted degrees inside the part with the last known weights.
        """
        part, num_owned = self._parts[number], self._parts[number].num_owned
        propagation = PartPropagation(
            self._product(part, graph, weight, degree),
            part,
            lambda layer: self._hidden[layer][part.halo],
            lambda layer: self._others(layer, number),
        )
        features = self.features.rows(part.nodes)
        draw_by(self.model, self.config.seed, self.progress.epoch, part.nodes)
        try:
            _, _, logits = self.model.forward_part(features, propagation)
        except RuntimeError:  # of sizes that do not fit, where rows of the halo are missing
            self._check_extended(propagation)
            raise
        self._check_extended(propagation)
        own = torch.softmax(logits[:num_owned], 1)
        assignment = torch.cat([own, self._assignment[part.halo]])
        state = self._part_state(part, graph, weight, assignment)
        return state, propagation

    def _check_extended(self, propagation: PartPropagation) -> None:
        """Refuse an encoder that does not keep the outputs of its layers for other parts."""
        if len(propagation.hidden) < len(self._hidden):
            raise InputError(
                f"model.encoder={self.config.model.encoder}: to be trained in parts, it has to "
                "call propagation.extend after each layer: set train.mode=full"
            )

    def _product(
        self, part: Part, graph: Graph, weight: torch.Tensor, degree: torch.Tensor
    ) -> Propagation:
        """Build S on the nodes of a part and its halo; the parameters are those of `_forward`."""
        # Degree from pairs that the part does not touch; their last known weights are used. The
        # part touches all pairs of its own nodes.
        outside = (self._degree[part.nodes] - degree).clamp_min(0)
        outside[: part.num_owned] = 0
        return Propagation.of(graph, weight, self.engine, outside)

    def _part_state(
        self, part: Part, graph: Graph, weight: torch.Tensor, assignment: torch.Tensor
    ) -> State:
        """Build the `State` from which the sums of a part are computed."""
        return State(
            graph=graph,
            weights=(weight,),
            observed=self.model.structure.observed[part.pairs],
            learnable=self.model.structure.learnable,
            hidden=(),
            propagations=(),
            logits=assignment.new_empty(0),
            clusters=assignment.new_empty(0),
            assignment=assignment[:, None],
        )

    def _scope(self, part: Part, owned: torch.Tensor) -> Scope:
        """Build the `Scope` of a part, in which the pairs ``owned`` (p,) are counted."""
        return Scope(
            self.features.rows(part.nodes[: part.num_owned]),
            self._prior[part.pairs],
            owned & self.model.structure.observed[part.pairs],
        )

    def _others(self, layer: int, number: int) -> Moments:
        """Compute the last known moments of a layer over the nodes of all other parts."""
        none = torch.zeros_like(self._hidden[layer][0])
        known = [moments for other, moments in self._moments[layer].items() if other != number]
        return Moments.joined([Moments(0, none, none), *known])

    def _keep(self, number: int, state: State, propagation: PartPropagation) -> None:
        """Store the values of a part that other parts read."""
        part = self._parts[number]
        own = part.nodes[: part.num_owned]
        self._assignment[own] = state.assignment[: part.num_owned, 0].detach()
        for layer, hidden in propagation.hidden.items():
            self._hidden[layer][own] = hidden
        for layer, moments in propagation.moments.items():
            self._moments[layer][number] = moments

    @torch.no_grad()
    def _settle(self) -> dict[str, torch.Tensor]:
        """Update all shared values, without dropout, and return the exact terms of the loss."""
        self.model.eval()
        structure = self.model.structure
        self._weight = structure.weight()
        self._degree = _degree(structure.graph, self._weight)
        # For each layer, one pass makes the statistics of its BatchNorm exact, and a second pass
        # makes its outputs exact, which the next layer reads.
        for _ in range(2 * len(self._hidden) + 1):
            for number, part in enumerate(self._parts):
                graph, weight = part.graph(), self._weight[part.pairs]
                degree = weighted_degree(graph, weight, self.engine)
                self._keep(number, *self._forward(number, graph, weight, degree))
        self._sums = self._sums_known()
        return self.loss.terms(self._sums, 1, self.config.model.known_clusters)

    @torch.no_grad()
    def _sums_known(self) -> LossSums:
        """Compute the sums over the whole graph from the last known values."""
        total: LossSums | None = None
        for part in self._parts:
            # Each pair is counted once, in the part that owns it.
            weight = self._weight[part.pairs] * part.owned
            state = self._part_state(part, part.graph(), weight, self._assignment[part.nodes])
            state.observed.logical_and_(part.owned)
            sums = self.loss.sums(state, self._scope(part, part.owned)).double()
            total = sums if total is None else total + sums
        assert total is not None  # a graph has at least one part
        return total

    def result(self) -> TrainingResult:
        """Return the result, see `Trainer.result`."""
        self._pair_adam = None  # frees as much memory as the result needs
        return super().result()

    def report_sections(self) -> dict[str, Any]:
        """Section ``partition``: sizes of the parts, exact loss, and loss of the last updates."""
        return {"partition": self.partition}

    def evaluate(self) -> Evaluation:
        """Compute the state and the loss terms of the whole graph, without dropout."""
        terms = self._settle()
        losses = sum(terms.values(), torch.zeros(1, dtype=torch.float64))
        return Evaluation(
            self._assignment[:, None],
            self._assignment.argmax(1, keepdim=True),
            (self._weight,),
            lambda: [self._embedding()],
            terms,
            losses,
        )

    def _embedding(self) -> torch.Tensor:
        """Compute the input of the head (N, d) from the values of the last `_settle`."""
        if self.config.model.head != "graph_conv":
            return self._hidden[-1]
        embedding = torch.empty_like(self._hidden[-1])
        for part in self._parts:
            graph, weight = part.graph(), self._weight[part.pairs]
            degree = weighted_degree(graph, weight, self.engine)
            product = self._product(part, graph, weight, degree)
            rows = product(self._hidden[-1][part.nodes])[: part.num_owned]
            embedding[part.nodes[: part.num_owned]] = rows
        return embedding

    def state_dict(self) -> dict[str, Any]:
        """Return the content of a checkpoint."""
        assert self._batch_of is not None
        tensors = {"assignment": self._assignment, "weight": self._weight, "degree": self._degree}
        if self._pair_adam is not None:
            tensors |= self._pair_adam.state_dict()
        known = {
            "tensors": tensors,
            "hidden": self._hidden,
            "moments": [
                {number: moments.state_dict() for number, moments in layer.items()}
                for layer in self._moments
            ],
            "sums": self._sums.tensors(),
            "summary": self.partition,
            # METIS may cut the same graph in another way.
            "batch_of": torch.from_numpy(self._batch_of),
        }
        return super().state_dict() | {"partition": known}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from the result of `state_dict`.

        Raises
        ------
        InputError
            The checkpoint is of another graph or other features.
        """
        known = state["partition"]
        self._batch_of = known["batch_of"].numpy()
        super().load_state_dict(state)
        self._settle()  # gives the sums their structure
        self._sums = self._sums.with_tensors(known["sums"])
        tensors = known["tensors"]
        self._assignment = tensors["assignment"]
        self._weight, self._degree = tensors["weight"], tensors["degree"]
        if self._pair_adam is not None:
            self._pair_adam.load_state_dict(tensors)
        self._hidden, self.partition = known["hidden"], known["summary"]
        self._moments = [
            {number: Moments(**moments) for number, moments in layer.items()}
            for layer in known["moments"]
        ]


def _degree(graph: Graph, weight: torch.Tensor) -> torch.Tensor:
    """Compute weighted degrees (N,) without building the CSR form of the graph."""
    degree = torch.zeros(graph.num_nodes, dtype=weight.dtype)
    return degree.index_add_(0, graph.src, weight).index_add_(0, graph.dst, weight)
