"""Section ``loss``: the terms that training minimises, and their weights."""

from dataclasses import dataclass

from user_dgl.config.schema import Section, key, only_where, only_with, only_without


@dataclass(frozen=True)
class LossConfig(Section):
    """``loss``: weights of the terms; a term of weight 0 is not computed."""

    npsi_weight: float = key(1.0, "weight of NPSI(A', Y)", low=0.0)
    npsi_observed: bool = key(
        True,
        "add NPSI(A, Y) at the same weight: the authors' code, not the paper's text",
        only_without("loss.npsi_weight", 0),
    )
    davies_bouldin_weight: float = key(0.0, "the paper's beta, weight of DBI(X, Y)", low=0.0)
    davies_bouldin_form: str = key(
        "textbook",
        "textbook: the paper's formula, memberships as weights; soft_features: the authors' code, "
        "which multiplies features by the membership before it takes distances",
        only_without("loss.davies_bouldin_weight", 0),
        choices=("textbook", "soft_features"),
    )
    davies_bouldin_space: str = key(
        "features",
        "points of the index: features: X, as in the paper; embedding: H",
        only_without("loss.davies_bouldin_weight", 0),
        choices=("features", "embedding"),
    )
    mixture_weight: float = key(
        0.0,
        "weight of -mean_i log sum_k exp(cos(h_i, c_k) / temperature), for head: centroid: how "
        "well the centroids fit the embeddings",
        low=0.0,
    )
    observed_edge_weight: float = key(
        0.0,
        "the authors' alpha, weight of the tie between A' and the observed edges",
        only_without("train.structure_lr", 0),
        only_with("structure.learnable", True),
        low=0.0,
    )
    observed_edge_form: str = key(
        "mean_square",
        "mean_square: mean over observed pairs of (A' - prior)^2; frobenius: ||A' o A - prior||_F, "
        "the authors' code (observed weights hardly move under it)",
        only_without("loss.observed_edge_weight", 0),
        choices=("mean_square", "frobenius"),
    )
    reconstruction_weight: float = key(
        0.0, "the paper's alpha, weight of ||sigmoid(H H^T) - A||_F^2", low=0.0
    )
    reconstruction_form: str = key(
        "squared",
        "squared: that formula, the paper's; cross_entropy: the loss of the graph autoencoder by "
        "Kipf and Welling, in which edges count as much as non-edges",
        only_without("loss.reconstruction_weight", 0),
        choices=("squared", "cross_entropy"),
    )
    reconstruction_samples: int = key(
        5,
        "pairs sampled a node for the non-edges of the reconstruction",
        only_where(
            "loss.reconstruction_weight",
            "loss.reconstruction_weight above 0 or an encoder that draws pairs",
            lambda config: config.loss.reconstruction_weight or config.model.traits.draws_pairs,
        ),
        low=1,
    )
    supporting_weight: float = key(
        10.0,
        "the paper's alpha for model.encoder vgae (links and divergence from the prior), arga "
        "(links and discriminator), dgi (mutual information) and sage (neighbours): weight of the "
        "model's own loss",
        only_where(
            "model.encoder",
            "an encoder with a loss of its own",
            lambda config: config.model.traits.has_own_loss,
        ),
        low=0.0,
    )

    terms: dict[str, float] = key(
        {},
        "weights of terms that have no key here: the name under which model.terms.TERMS knows the "
        "term, and its weight",
        low=0.0,
    )

    @property
    def needs_embedding_mean(self) -> bool:
        """Whether the loss reads the mean of the embeddings of all nodes."""
        return bool(self.davies_bouldin_weight) and self.davies_bouldin_space == "embedding"
