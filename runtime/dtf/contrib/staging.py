"""tf.contrib.staging: areas where one step leaves values for a later one."""

from __future__ import annotations

from dtf.build.ops.staging_area import MapStagingArea, StagingArea

__all__ = ["MapStagingArea", "StagingArea"]
