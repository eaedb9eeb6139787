"""Figures for Prometheus: families (a Snapshot as OpenMetrics), gather (a Snapshot with all that tasks report),
endpoint (the address at which the supervisor gives them).

prometheus_client writes the format: it is small, has no dependencies, and knows the rules of both text formats. It
comes with the extra `metrics` and is loaded only where figures are given. Its HTTP server is not used: it needs a
thread for each reader, and bounds neither their number nor their time.
"""
