"""The engines that give hosts by a bridge: one row each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dtfctl.launchers.bridge.client import BridgeProgram
from dtfctl.launchers.ray import request as ray
from dtfctl.launchers.spark import request as spark
from dtfctl.values.engines import GroupSettings, RaySettings, SparkSettings
from dtfctl.values.plan import RAY, SPARK, ClusterPlan
from dtfctl.wire.typed import from_document


@dataclass(frozen=True)
class BridgedEngine:
    """`request` is what the bridge is asked for, beside the names of the hosts; `settled` gives the settings that the
    run keeps."""

    title: str
    request: Callable[[ClusterPlan], dict[str, Any]]
    settled: Callable[[ClusterPlan], GroupSettings]


ENGINES = {
    RAY: BridgedEngine("Ray", ray.request, lambda plan: plan.ray),
    SPARK: BridgedEngine("Spark", spark.request, spark.settled),
}


def engine_of(plan: ClusterPlan) -> BridgedEngine:
    return ENGINES[plan.engine]


def request_of(plan: ClusterPlan) -> dict[str, Any]:
    return engine_of(plan).request(plan)


def program_of(engine: str, settings: GroupSettings) -> BridgeProgram:
    return spark.program(settings) if isinstance(settings, SparkSettings) else ray.program(settings)


def settings_in(engine: str, document: Any) -> GroupSettings:
    """Raises ValueError, KeyError or TypeError for a document of another shape."""
    return from_document(SparkSettings, document) if engine == SPARK else from_document(RaySettings, document)
