"""The methods of Module that register hooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..autograd.handle import RemovableHandle
from . import hooks
from .hooks import Hook
from .tree import TreeNode


class HookMethods(TreeNode):
    """What a module offers to hang hooks on."""

    _hooks: hooks.HookTable | None

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Calls `hook(module, args)` before every forward; what it returns replaces the arguments.

        Args:
            hook: The function; with `with_kwargs` it gets `(module, args, kwargs)`.
            prepend: Run before the hooks that are there already.
            with_kwargs: Pass keyword arguments too, and expect None or `(args, kwargs)`.
        """
        return hooks.register(self, hooks.FORWARD_PRE, Hook(hook, with_kwargs, False), prepend)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Calls `hook(module, args, output)` after every forward; its result replaces the output.

        Args:
            hook: The function; with `with_kwargs` it gets `(module, args, kwargs, output)`.
            prepend: Run before the hooks that are there already.
            with_kwargs: Pass keyword arguments too.
            always_call: Also after an exception, with the output None.
        """
        return hooks.register(self, hooks.FORWARD, Hook(hook, with_kwargs, always_call), prepend)

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Calls `hook(module, grad_output)` before the gradients of the module are computed."""
        return hooks.register(self, hooks.BACKWARD_PRE, Hook(hook, False, False), prepend)

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Calls `hook(module, grad_input, grad_output)` once the gradients of all inputs are known.

        What it returns replaces the gradients of the inputs.
        """
        return hooks.register(self, hooks.BACKWARD, Hook(hook, False, False), prepend)

    register_backward_hook = register_full_backward_hook

    def register_state_dict_pre_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Calls `hook(module, prefix, keep_vars)` before the state of this module is collected."""
        return hooks.register(self, hooks.SAVE_PRE, hook)

    def register_state_dict_post_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Calls `hook(module, state_dict, prefix, local_metadata)` once the state of this module
        and of everything below it is in `state_dict`; it changes that in place.
        """
        return hooks.register(self, hooks.SAVE, hook)

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """As `register_state_dict_post_hook`; what it returns takes the place of the state."""
        return hooks.register(self, hooks.SAVE, hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Calls `hook(module, state_dict, prefix, local_metadata, strict, missing_keys,
        unexpected_keys, error_msgs)` before this module looks for its names in `state_dict`, a
        copy that the hook may change.
        """
        return hooks.register(self, hooks.LOAD_PRE, Hook(hook, True, False))

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., None], with_module: bool = False
    ) -> RemovableHandle:
        """As `register_load_state_dict_pre_hook`; the hook gets no module unless asked for."""
        return hooks.register(self, hooks.LOAD_PRE, Hook(hook, with_module, False))

    def register_load_state_dict_post_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Calls `hook(module, incompatible_keys)` after loading; it may change the two lists."""
        return hooks.register(self, hooks.LOAD, hook)


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, args)` before every forward of every module."""
    return hooks.register_everywhere(hooks.FORWARD_PRE, Hook(hook, False, False))


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Calls `hook(module, args, output)` after every forward of every module.

    Args:
        hook: What it returns, unless None, takes the place of the output.
        with_kwargs: Call `hook(module, args, kwargs, output)`.
        always_call: Also when forward raised.
    """
    return hooks.register_everywhere(hooks.FORWARD, Hook(hook, with_kwargs, always_call))


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, grad_output)` before the gradients of each module are computed."""
    return hooks.register_everywhere(hooks.BACKWARD_PRE, Hook(hook, False, False))


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, grad_input, grad_output)` once those of each module are known."""
    return hooks.register_everywhere(hooks.BACKWARD, Hook(hook, False, False))


register_module_backward_hook = register_module_full_backward_hook
