"""Section ``loss``: terms of the training loss and their weights."""

from dataclasses import dataclass

from user_dgl.config.schema import Section, key, only_where, only_with, only_without


@dataclass(frozen=True)
class LossConfig(Section):
    """``loss``: weights and forms of the terms. A term with weight 0 is not computed."""

    npsi_weight: float = key(1.0, "Weight of NPSI(A', Y).", low=0.0)
    npsi_observed: bool = key(
        True,
        "Add NPSI(A, Y) with the same weight, as in the authors' code but not in the paper's text.",
        only_without("loss.npsi_weight", 0),
    )
    davies_bouldin_weight: float = key(0.0, "Weight of DBI(X, Y), the beta of the paper.", low=0.0)
    davies_bouldin_form: str = key(
        "textbook",
        "Form of DBI. textbook: the paper's formula, with memberships as weights. soft_features: "
        "the authors' code, which multiplies features by memberships and then computes distances.",
        only_without("loss.davies_bouldin_weight", 0),
        choices=("textbook", "soft_features"),
    )
    davies_bouldin_space: str = key(
        "features",
        "Points of DBI. features: X, as in the paper. embedding: H.",
        only_without("loss.davies_bouldin_weight", 0),
        choices=("features", "embedding"),
    )
    mixture_weight: float = key(
        0.0,
        "Weight of -mean_i log sum_k exp(cos(h_i, c_k) / temperature), which measures how well the "
        "centroids fit the embeddings. Needs model.head: centroid.",
        low=0.0,
    )
    code_length_weight: float = key(
        0.0,
        "Weight of minus the bits that the clusters save in the code of the edges of A', scaled to "
        "the number of observed edges, and of the non-zero features, for each edge and non-zero.",
        low=0.0,
    )
    observed_edge_weight: float = key(
        0.0,
        "Weight of the penalty on changes of the observed edges' weights in A', the alpha of the "
        "authors' code.",
        only_without("train.structure_lr", 0),
        only_with("structure.learnable", True),
        low=0.0,
    )
    observed_edge_form: str = key(
        "mean_square",
        "Form of that penalty. mean_square: mean over the observed pairs of (A' - prior)^2. "
        "frobenius: ||A' o A - prior||_F, the authors' code; with it the observed weights hardly "
        "change.",
        only_without("loss.observed_edge_weight", 0),
        choices=("mean_square", "frobenius"),
    )
    reconstruction_weight: float = key(
        0.0,
        "Weight of ||sigmoid(H H^T) - A||_F^2, the alpha of the paper. Each edge counts as 1, "
        "whatever it weighs.",
        low=0.0,
    )
    reconstruction_form: str = key(
        "squared",
        "Form of the reconstruction. squared: the formula above, as in the paper. cross_entropy: "
        "the loss of the graph autoencoder of Kipf and Welling, in which edges and non-edges have "
        "the same total weight.",
        only_without("loss.reconstruction_weight", 0),
        choices=("squared", "cross_entropy"),
    )
    reconstruction_samples: int = key(
        5,
        "Number of pairs sampled for the non-edges of the reconstruction, for each node.",
        only_where(
            "loss.reconstruction_weight",
            "loss.reconstruction_weight above 0, or an encoder whose loss draws pairs",
            lambda config: config.loss.reconstruction_weight or config.model.traits.draws_pairs,
        ),
        low=1,
    )
    supporting_weight: float = key(
        10.0,
        "Weight of the encoder's own loss, the alpha of the paper. vgae: links and divergence from "
        "the prior. arga: links and discriminator. dgi: mutual information. sage: neighbours.",
        only_where(
            "model.encoder",
            "an encoder that has its own loss",
            lambda config: config.model.traits.has_own_loss,
        ),
        low=0.0,
    )

    terms: dict[str, float] = key(
        {},
        "Weights of terms without a key of their own. The names are those of "
        "user_dgl.model.terms.TERMS.",
        low=0.0,
    )

    @property
    def needs_embedding_mean(self) -> bool:
        """Whether the loss needs the mean of the embeddings of all nodes."""
        return bool(self.davies_bouldin_weight) and self.davies_bouldin_space == "embedding"
