"""A command line for a task and its data: typed arguments, YAML files, and the run's own config."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from minitorch.callbacks.callback import Callback
from minitorch.errors import ArgumentError, describe
from minitorch.trainer import environment
from minitorch.trainer.cli_parser import CLIParser, Namespace
from minitorch.trainer.data_module import DataModule
from minitorch.trainer.seeding import seed_everything
from minitorch.trainer.task import TaskModule, overrides
from minitorch.trainer.trainer import Trainer

if TYPE_CHECKING:
    from types import MethodType

__all__ = [
    "CLI",
    "CLIParser",
    "LightningArgumentParser",
    "LightningCLI",
    "SaveConfigCallback",
    "TrainerCLI",
]

SUBCOMMANDS: dict[str, set[str]] = {
    "fit": {"model", "train_dataloaders", "val_dataloaders", "datamodule"},
    "validate": {"model", "dataloaders", "datamodule"},
    "test": {"model", "dataloaders", "datamodule"},
    "predict": {"model", "dataloaders", "datamodule"},
}
"""Each run with those of its arguments that the command line makes itself."""


class SaveConfigCallback(Callback):
    """Writes the configuration of a fit beside its logs, so that `--config` repeats it.

    Args:
        parser: The parser that read it.
        config: What it read.
        config_filename: Name of the file, in the run's `log_dir`.
        overwrite: Replace a file of another run; else this one gets a number.
        multifile: Write files that the configuration was made of as files again.
    """

    def __init__(
        self,
        parser: Any,
        config: Namespace,
        config_filename: str = "config.yaml",
        overwrite: bool = False,
        multifile: bool = False,
    ) -> None:
        self.parser = parser
        self.config = config
        self.config_filename = config_filename
        self.overwrite = overwrite
        self.multifile = multifile

    def setup(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        if stage == "fit" and not trainer.fast_dev_run:
            self.save_config(trainer, module, stage)

    def save_config(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        """Writes the file; a subclass may send it elsewhere."""
        os.makedirs(trainer.log_dir, exist_ok=True)
        path = os.path.join(trainer.log_dir, self.config_filename)
        stem, kind = os.path.splitext(path)
        number = 0
        while os.path.exists(path) and not self.overwrite:
            number += 1
            path = f"{stem}-v{number}{kind}"
        self.parser.save(self.config, path, overwrite=True, multifile=self.multifile)


class TrainerCLI:
    """Runs a task from the command line; `python train.py fit --model.lr=0.1 --config run.yaml`.

    Arguments come from the signatures of the task, the data module, the Trainer, optimizers and
    schedules. `--config` reads a YAML file, `--print_config` writes one, and a fit saves its own.
    The optimizer and the schedule can be chosen there unless the task configures its own.

    Args:
        model_class: The task's class, or a function that returns a task; None takes any task by
            its import path (`--model=package.Task`).
        datamodule_class: The same for data; None for tasks that have their data.
        save_config_callback: Writes the configuration; None for nothing.
        save_config_kwargs: Its further arguments.
        trainer_class: Class of the Trainer.
        trainer_defaults: Arguments of the Trainer that the command line may change; callbacks in
            it always take part.
        seed_everything_default: A seed, True for PL_GLOBAL_SEED or 0, False for none.
        parser_kwargs: Arguments of the parser; by subcommand too.
        parser_class: Class of the parser.
        subclass_mode_model: Also take subclasses of `model_class` by import path.
        subclass_mode_data: The same for data.
        args: Command line in place of `sys.argv`: a list of strings, or a dict.
        run: Run the subcommand; False only makes `trainer`, `model` and `datamodule`.
        auto_configure_optimizers: Take `--optimizer` and `--lr_scheduler`.

    Attributes:
        config: What was read.
        trainer, model, datamodule: The objects made from it.
        result: What the run returned.

    Raises:
        ImportError: jsonargparse is missing.
    """

    def __init__(
        self,
        model_class: type[TaskModule] | Callable[..., TaskModule] | None = None,
        datamodule_class: type[DataModule] | Callable[..., DataModule] | None = None,
        save_config_callback: type[SaveConfigCallback] | None = SaveConfigCallback,
        save_config_kwargs: dict[str, Any] | None = None,
        trainer_class: type[Trainer] = Trainer,
        trainer_defaults: dict[str, Any] | None = None,
        seed_everything_default: bool | int = True,
        parser_kwargs: dict[str, Any] | None = None,
        parser_class: type[CLIParser] = CLIParser,
        subclass_mode_model: bool = False,
        subclass_mode_data: bool = False,
        args: Sequence[str] | Mapping[str, Any] | None = None,
        run: bool = True,
        auto_configure_optimizers: bool = True,
    ) -> None:
        self.model_class: Any = model_class or TaskModule
        self.datamodule_class: Any = datamodule_class
        self.save_config_callback = save_config_callback
        self.save_config_kwargs = save_config_kwargs or {}
        self.trainer_class = trainer_class
        self.trainer_defaults = dict(trainer_defaults or {})
        self._from_environment = environment.defaults(Trainer, self.trainer_defaults)
        self.seed_everything_default = seed_everything_default
        self.parser_class = parser_class
        self.subclass_mode_model = subclass_mode_model or model_class is None
        self.subclass_mode_data = subclass_mode_data
        self.auto_configure_optimizers = auto_configure_optimizers
        self.datamodule: DataModule | None = None
        self.result: Any = None
        self.subcommand: str | None = None
        self._parsers: dict[str, CLIParser] = {}
        self.parser = self._make_parser(dict(parser_kwargs or {}), run=run)
        self._parse(args)
        seed = self._own().get("seed_everything")
        if seed is not False and seed is not None:
            chosen = None if seed is True else int(seed)
            self._own()["seed_everything"] = seed_everything(chosen, workers=True, verbose=False)
        self.before_instantiate_classes()
        self.instantiate_classes()
        self.after_instantiate_classes()
        if self.subcommand is not None:
            self._run(self.subcommand)

    # What a subclass overrides.

    def add_arguments_to_parser(self, parser: CLIParser) -> None:
        """Adds arguments, links (`parser.link_arguments`) and defaults (`parser.set_defaults`)."""

    def before_instantiate_classes(self) -> None:
        """The command line was read, and nothing is made yet."""

    def after_instantiate_classes(self) -> None:
        """`trainer`, `model` and `datamodule` exist."""

    @staticmethod
    def configure_optimizers(
        module: TaskModule, optimizer: Any, lr_scheduler: Any = None, monitor: str | None = None
    ) -> Any:
        """What `configure_optimizers` of the task returns when the command line chose.

        Args:
            module: The task.
            optimizer: The optimizer.
            lr_scheduler: The schedule, or None.
            monitor: Name of the metric that the schedule watches, or None.
        """
        if lr_scheduler is None:
            return optimizer
        if monitor is not None:
            return {"optimizer": optimizer, "lr_scheduler": lr_scheduler, "monitor": monitor}
        return [optimizer], [lr_scheduler]

    # The parser.

    def _make_parser(self, kwargs: dict[str, Any], *, run: bool) -> CLIParser:
        own = {name: kwargs.pop(name) for name in SUBCOMMANDS.keys() & kwargs.keys()}
        parser = self.parser_class(**kwargs)
        if not run:
            self._fill(parser)
            return parser
        commands = parser.add_subcommands(required=True, dest="subcommand")
        for name, made in SUBCOMMANDS.items():
            method = getattr(self.trainer_class, name)
            text = (method.__doc__ or name).splitlines()[0]
            inner = self.parser_class(**{"description": text, **own.get(name, {})})
            self._fill(inner)
            inner.add_method_arguments(self.trainer_class, name, skip=set(made))
            commands.add_subcommand(name, inner, help=text)
            self._parsers[name] = inner
        return parser

    def _fill(self, parser: CLIParser) -> None:
        parser.add_argument(
            "--seed_everything",
            type=bool | int,
            default=self.seed_everything_default,
            help="A seed, true for PL_GLOBAL_SEED or 0, or false for none.",
        )
        parser.add_argument(
            "-c", "--config", action="config", help="A configuration file in YAML or JSON."
        )
        parser.add_trainer(self.trainer_class, self.trainer_defaults, self._from_environment)
        parser.add_part("model", self.model_class, subclasses=self.subclass_mode_model)
        if self.datamodule_class is not None:
            parser.add_part("data", self.datamodule_class, subclasses=self.subclass_mode_data)
        self.add_arguments_to_parser(parser)
        if self.auto_configure_optimizers and not parser.has_optimizer:
            parser.add_optimizer_args()
            parser.add_lr_scheduler_args()

    def _parse(self, args: Sequence[str] | Mapping[str, Any] | None) -> None:
        if isinstance(args, Mapping):
            self.config = self.parser.parse_object(dict(args))
        else:
            given = sys.argv[1:] if args is None else [str(one) for one in args]
            self.config = self.parser.parse_args(given)
        self.subcommand = self.config.get("subcommand") if self._parsers else None

    def _own(self) -> Namespace:
        """The part of the configuration that belongs to this run."""
        own: Namespace = self.config if self.subcommand is None else self.config[self.subcommand]
        return own

    # The objects.

    def instantiate_classes(self) -> None:
        """Makes data, task and Trainer from the configuration."""
        parser = self.parser if self.subcommand is None else self._parsers[self.subcommand]
        self.config_init = parser.instantiate(self._own())
        self.datamodule = self.config_init.get("data")
        self.model: Any = self.config_init["model"]
        self._choose_optimizers(parser)
        self.trainer = self.instantiate_trainer(parser)

    def instantiate_trainer(self, parser: CLIParser) -> Trainer:
        """Makes the Trainer, with the callbacks of the defaults and the one that saves."""
        options = dict(self.config_init["trainer"].as_dict())
        found = self._from_environment.items()
        environment.tell({name: value for name, value in found if options.get(name) == value})
        extra = [self.config_init[name] for name in parser.callback_names]
        fixed = self.trainer_defaults.get("callbacks") or []
        fixed = list(fixed) if isinstance(fixed, list | tuple) else [fixed]
        given = options.get("callbacks") or []
        given = list(given) if isinstance(given, list | tuple) else [given]
        callbacks = [*given, *[one for one in fixed if one not in given], *extra]
        if self.save_config_callback is not None and self.subcommand in (None, "fit"):
            config = self._own().clone(with_meta=False)
            for key in [k for k in ("ckpt_path", "hparams") if k in config and config[k] is None]:
                del config[key]  # other runs may not have it
            callbacks.append(self.save_config_callback(parser, config, **self.save_config_kwargs))
        return self.trainer_class(**{**options, "callbacks": callbacks})

    def _choose_optimizers(self, parser: CLIParser) -> None:
        make_optimizer = parser.maker("optimizer", self.config_init)
        make_schedule = parser.maker("lr_scheduler", self.config_init)
        if make_optimizer is None:
            if make_schedule is not None:
                raise ArgumentError(
                    "TrainerCLI: a schedule moves an optimizer. Got --lr_scheduler without "
                    "--optimizer. Choose both."
                )
            return
        model = self.model
        if overrides(model, "configure_optimizers"):
            raise ArgumentError(
                f"TrainerCLI: {type(model).__name__} has its own configure_optimizers. Got "
                "--optimizer as well. Leave one of them out."
            )
        made, monitor = self.configure_optimizers, self.config_init.get("lr_scheduler_monitor")

        def configure_optimizers(self: TaskModule) -> Any:
            optimizer = make_optimizer(self.parameters())
            schedule = None if make_schedule is None else make_schedule(optimizer)
            return made(self, optimizer, schedule, monitor)

        bound: MethodType = configure_optimizers.__get__(model)
        vars(model)["configure_optimizers"] = bound

    # The run.

    def _run(self, name: str) -> None:
        before: Any = getattr(self, f"before_{name}", None)
        after: Any = getattr(self, f"after_{name}", None)
        made = SUBCOMMANDS[name]
        config = self.config_init
        named = self._parsers[name].method_names(self.trainer_class, name, made)
        options = {key: config[key] for key in named if key in config}
        if before is not None:
            before()
        self.result = getattr(self.trainer, name)(self.model, datamodule=self.datamodule, **options)
        if name == "predict":
            self._tell_predictions()
        if after is not None:
            after()

    def _tell_predictions(self) -> None:
        """One line about what came: the command would end without a word."""
        trainer, batches = self.trainer, self.result
        if batches is None:
            return
        one = trainer.num_predict_batches
        many = batches if len(one) > 1 else [batches]
        first = many[0][0] if many and many[0] else None
        trainer.print(
            f"predict: {sum(map(len, many))} batches, the first {describe(first)}. "
            "PredictionWriter in trainer.callbacks writes them to a file; cli.result has them."
        )


CLI = LightningCLI = TrainerCLI
LightningArgumentParser = CLIParser
