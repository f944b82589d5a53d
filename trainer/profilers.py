"""Lightning's path of the profilers, which stand in `minitorch.trainer` itself."""

from minitorch.trainer.advanced_profiler import AdvancedProfiler
from minitorch.trainer.ops_profiler import OpsProfiler
from minitorch.trainer.profiler import Profiler, SimpleProfiler

__all__ = ["AdvancedProfiler", "OpsProfiler", "Profiler", "SimpleProfiler"]
