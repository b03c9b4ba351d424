"""The last step of a training: features projected onto the directions that tell the training people apart.

A network learns to bring the pictures of its training people together, and leaves in its features much that tells
nothing about who somebody is. Regularised discriminant analysis finds that from the same pictures, in closed form.
"""

from __future__ import annotations

import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from torch import Tensor

from veilkit.errors import DataError
from veilkit.networks.reid import ReidNetwork
from veilkit.training.retrieval import embed_pixels


def discriminant(features: Tensor, people: Tensor, count: int, shrinkage: float) -> tuple[Tensor, Tensor]:
    """Weight (count, D) and bias (count,) of the projection fitted to features (N, D) of people (N,).

    The projected features have mean 0 over the images and, apart from shrinkage, covariance 1 within a person.
    No more than D directions, and one less than there are people, can be found; a larger `count` gets so many.
    """
    classes = len(torch.unique(people))
    if classes < 2 or classes == len(people):
        raise DataError(f"expected several images of at least two people, but got {len(people)} of {classes}")
    count = min(count, features.shape[1], classes - 1)
    analysis = LinearDiscriminantAnalysis(solver="eigen", shrinkage=shrinkage, n_components=count)
    analysis.fit(features.double().numpy(), people.numpy())
    weight = torch.from_numpy(analysis.scalings_[:, :count].T.copy()).float()
    return weight, -weight @ features.mean(0)


def project(network: ReidNetwork, pixels: Tensor, people: Tensor, count: int, shrinkage: float) -> ReidNetwork:
    """`network` with the projection that its features of these pictures, and of their mirror images, ask for."""
    features = torch.cat(
        [embed_pixels(network, pixels, flip=False), embed_pixels(network, pixels.flip(3), flip=False)]
    )
    return network.projected(*discriminant(features, people.repeat(2), count, shrinkage))
