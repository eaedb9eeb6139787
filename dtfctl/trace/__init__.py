"""Traced steps of a running training: model (values), documents (what tasks answer), critical_path, explain (from
traces to findings), perfetto (the file). Pure; probes/step_traces.py asks the tasks.
"""
