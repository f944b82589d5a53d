"""Random programs over parameters, gradients and optimizers, with and without packing."""

from __future__ import annotations

import copy
from typing import Any
from unittest import mock

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from optim_cases import arrays, backward, parameters

import minitorch as mt
from minitorch import optim
from minitorch.nn.utils import clip_grad_norm_
from minitorch.optim import flat

SHAPES: list[tuple[int, ...]] = [(3, 2), (90, 100), (5,), ()]
COUNT = len(SHAPES)


class Program:
    """Parameters, two optimizers over them, and everything a user may hold."""

    def __init__(self, name: str) -> None:
        self.params = parameters(arrays(SHAPES))
        options: dict[str, Any] = {"lr": 0.1, "weight_decay": 0.01}
        self.first = getattr(optim, name)(self.params, **options)
        self.second = optim.SGD(self.params[:2], lr=0.05, momentum=0.9)
        self.held: list[Any] = []
        self.seed = 0

    def do(self, action: str, which: int) -> None:
        getattr(self, action)(which)

    def train(self, which: int) -> None:
        self.seed += 1
        gradients: list[Any] = arrays(SHAPES, seed=self.seed)
        if which < COUNT:
            gradients[which] = None
        backward(self.params, gradients)
        self.first.step()

    def train_afresh(self, which: int) -> None:
        self.first.zero_grad(set_to_none=which % 2 == 0)
        self.train(which)

    def step_second(self, which: int) -> None:
        self.second.step()

    def clip(self, which: int) -> None:
        self.held.append(clip_grad_norm_(self.params[: which + 1], 1.0))

    def hold_gradient(self, which: int) -> None:
        self.held.append(self.params[which % COUNT].grad)

    def hold_gradient_array(self, which: int) -> None:
        grad = self.params[which % COUNT].grad
        self.held.append(None if grad is None else grad.numpy())

    def hold_parameter(self, which: int) -> None:
        self.held.append(self.params[which % COUNT].detach())

    def hold_parameter_array(self, which: int) -> None:
        self.held.append(self.params[which % COUNT].detach().numpy()[...])

    def hold_state(self, which: int) -> None:
        state = self.first.state.get(self.params[which % COUNT], {})
        self.held += [v.numpy() for v in state.values() if isinstance(v, mt.Tensor)]

    def let_go(self, which: int) -> None:
        del self.held[: which + 1]

    def replace_data(self, which: int) -> None:
        p = self.params[which % COUNT]
        p.data = p.data * 0.5

    def write(self, which: int) -> None:
        with mt.no_grad():
            self.params[which % COUNT].mul_(0.5)

    def share_gradient(self, which: int) -> None:
        p = self.params[which % COUNT]
        self.held.append(p.grad)
        p.grad = None if p.grad is None else p.grad.clone()

    def freeze(self, which: int) -> None:
        p = self.params[which % COUNT]
        p.requires_grad_(not p.requires_grad or which % COUNT == 0)

    def forget_state(self, which: int) -> None:
        self.first.state.pop(self.params[which % COUNT], None)

    def reload(self, which: int) -> None:
        self.first.load_state_dict(self.first.state_dict())

    def copy_all(self, which: int) -> None:
        self.params, self.first, self.second = copy.deepcopy((self.params, self.first, self.second))

    def seen(self) -> list[np.ndarray]:
        """Copies of all that can be seen."""
        states = [
            np.array(v.numpy() if isinstance(v, mt.Tensor) else v)
            for o in (self.first, self.second)
            for p in self.params
            for v in o.state.get(p, {}).values()
        ]
        grads = [p.grad.numpy().copy() for p in self.params if p.grad is not None]
        held = [np.array(h) for h in self.held if h is not None]
        return [*(p.detach().numpy().copy() for p in self.params), *grads, *states, *held]


ACTIONS = [n for n in vars(Program) if not n.startswith("_") and n not in ("do", "seen")]
STEPS = st.lists(
    st.tuples(
        st.one_of(st.sampled_from(["train", "train_afresh"]), st.sampled_from(ACTIONS)),
        st.integers(0, COUNT),
    ),
    max_size=14,
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(name=st.sampled_from(["SGD", "Adam", "RMSprop"]), steps=STEPS)
def test_packing_is_never_seen(name: str, steps: list[tuple[str, int]]) -> None:
    packed, plain = Program(name), Program(name)
    for action, which in [("train", COUNT), ("train_afresh", COUNT), *steps]:
        packed.do(action, which)
        with mock.patch.object(flat, "is_movable", return_value=False):
            plain.do(action, which)
        for a, b in zip(packed.seen(), plain.seen(), strict=True):
            np.testing.assert_array_equal(a, b, err_msg=f"after {action}({which})")
