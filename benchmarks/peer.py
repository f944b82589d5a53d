"""The peers' side: PyTorch and Lightning, in an environment of their own (`make peers`)."""

import logging
import statistics
import subprocess
import sys
import warnings

from measure import MLP_STEPS, TINY_STEPS, Cycle, clock, main, per_call, per_step


def train(net, batches, loss_function, steps: int) -> dict[str, float]:
    """One training step by hand in PyTorch and under Lightning, microseconds."""
    import pytorch_lightning as pl
    import torch

    warnings.filterwarnings("ignore")
    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)

    class Task(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def training_step(self, batch, batch_idx):
            loss = loss_function(self.net(batch[0]), batch[1])
            self.log("train/loss", loss)
            return loss

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=1e-3)

    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)

    def step(i: int) -> None:
        x, y = batches[i % len(batches)]
        optimizer.zero_grad()
        loss_function(net(x), y).backward()
        optimizer.step()

    by_hand = per_step(step, steps)
    stopwatch = clock(pl.Callback)
    trainer = pl.Trainer(
        max_epochs=1,
        accelerator="cpu",
        callbacks=[stopwatch],
        logger=False,
        enable_progress_bar=False,
        enable_checkpointing=False,
        enable_model_summary=False,
    )
    trainer.fit(Task(), Cycle(batches, steps))
    under_trainer = stopwatch.median()
    return {
        "step_us": under_trainer,
        "by_hand_us": by_hand,
        "overhead_us": under_trainer - by_hand,
    }


def mlp() -> dict[str, float]:
    """784-256-256-10, batch of 64, Adam."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    net = nn.Sequential(
        *(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    )
    batches = [(torch.randn(64, 784), torch.randint(0, 10, (64,))) for _ in range(8)]
    return train(net, batches, nn.functional.cross_entropy, MLP_STEPS)


def tiny() -> dict[str, float]:
    """One linear layer on 8 numbers."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    batches = [(torch.randn(2, 4), torch.randn(2, 1)) for _ in range(8)]
    return train(nn.Linear(4, 1), batches, nn.functional.mse_loss, TINY_STEPS)


def ops() -> dict[str, float]:
    """Recorded operations on tiny tensors, nanoseconds a call."""
    import torch

    a = torch.ones(4, requires_grad=True)
    b = torch.ones(4, requires_grad=True)
    m = torch.ones(4, 4, requires_grad=True)
    return {
        "mul_ns": per_call(lambda: a * b),
        "add_scalar_ns": per_call(lambda: a + 1.0),
        "relu_ns": per_call(lambda: a.relu()),
        "exp_ns": per_call(lambda: a.exp()),
        "matmul_ns": per_call(lambda: m @ m),
        "sum_ns": per_call(lambda: a.sum()),
        "mul_sum_backward_ns": per_call(lambda: (a * b).sum().backward()),
    }


def imports() -> dict[str, float]:
    """Seconds of a first import in a fresh process, interpreter start excluded."""
    code = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"

    def seconds(module: str) -> float:
        command = [sys.executable, "-W", "ignore", "-c", code.format(module)]
        return statistics.median([float(subprocess.check_output(command)) for _ in range(3)])

    return {"framework_s": seconds("torch"), "trainer_s": seconds("pytorch_lightning")}


if __name__ == "__main__":
    main({"mlp": mlp, "tiny": tiny, "ops": ops, "imports": imports})
