"""Adam without the import of torch's compiler."""

import inspect
from collections.abc import Callable
from typing import Any

import torch


def _own(name: str) -> Callable[..., Any]:
    """Take a method of torch's optimisers without the wrapper that keeps it from compilation."""
    method: Callable[..., Any] = inspect.unwrap(getattr(torch.optim.Optimizer, name))
    return method


class Adam(torch.optim.Adam):
    """Adam (Kingma and Ba, 2015) with the state and the numbers of `torch.optim.Adam` on a CPU.

    ``m = b1 m + (1 - b1) g``, ``v = b2 v + (1 - b2) g^2``,
    ``theta -= lr / (1 - b1^t) m / (sqrt(v / (1 - b2^t)) + eps)``

    Torch wraps four methods of its optimisers, and their step, so that they can be part of a
    compiled program. The first call of one of them imports ``torch._dynamo``. That takes as
    long as a whole training on Cora. Nothing is compiled here, so that this class takes the methods
    without their wrappers and has a step of its own. Two settings are supported: ``lr`` and
    ``weight_decay``, each of a group. The state of one class can be loaded into the other.
    """

    def __init__(self, groups: list[dict[str, Any]], lr: float):
        super().__init__(groups, lr=lr)

    add_param_group = _own("add_param_group")
    load_state_dict = _own("load_state_dict")
    state_dict = _own("state_dict")
    zero_grad = _own("zero_grad")

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update every parameter that has a gradient; ``closure`` is not supported."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, parameter.grad, group)

    def _update(
        self, parameter: torch.Tensor, gradient: torch.Tensor, group: dict[str, Any]
    ) -> None:
        """Update one parameter. The order of operations is that of torch, for equal rounding."""
        state = self.state[parameter]
        if not state:
            state["step"] = torch.tensor(0.0)
            state["exp_avg"] = torch.zeros_like(parameter)
            state["exp_avg_sq"] = torch.zeros_like(parameter)
        state["step"] += 1
        number, (beta1, beta2) = float(state["step"]), group["betas"]
        if group["weight_decay"] != 0:
            gradient = gradient.add(parameter, alpha=group["weight_decay"])
        first = state["exp_avg"].lerp_(gradient, 1 - beta1)
        second = state["exp_avg_sq"].mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        scale = (second.sqrt() / (1 - beta2**number) ** 0.5).add_(group["eps"])
        parameter.addcdiv_(first, scale, value=-group["lr"] / (1 - beta1**number))
