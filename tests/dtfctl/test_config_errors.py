"""A corpus of malformed cluster files: each gets one line that says where and what, and nothing else happens."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dtfctl.config import load, parse, source
from dtfctl.errors import ConfigError

HEAD = "program: x\n"
BOMB = (
    "x-0: &x0 [1, 1]\n"
    + "".join(f"x-{i}: &x{i} [*x{i - 1}, *x{i - 1}]\n" for i in range(1, 30))
    + HEAD
    + "jobs: {a: 1}\n"
)

MALFORMED = {
    "nothing": ("", "c.yaml:1:1: the file is empty"),
    "only a comment": ("# hello\n", "c.yaml:1:1: the file is empty"),
    "a list": ("- a\n", "c.yaml:1:1: a cluster file must be a mapping of keys to values, not a list"),
    "a word": ("hello", 'c.yaml:1:1: a cluster file must be a mapping of keys to values, not "hello"'),
    "broken yaml": ("jobs: {a: 1\nprogram", "c.yaml:2:8: "),
    "a tab": ("jobs:\n\tps: 1\n", "c.yaml:2:1: a tab; YAML is indented with spaces"),
    "an unclosed quote": ('program: "x\njobs: {a: 1}', "c.yaml:2:13: "),
    "a control character": ("program: \x01", "c.yaml:1:10: the control character #x01"),
    "an unknown alias": ("program: *x\n", "c.yaml:1:10: found undefined alias"),
    "two documents": ("a: 1\n---\nb: 1\n", "c.yaml:2:1: a second document; a cluster file has only one"),
    "no jobs": ("program: x\n", 'c.yaml:1:1: the key "jobs" is missing'),
    "jobs empty": (HEAD + "jobs: {}\n", 'c.yaml:2:7: "jobs" names no job'),
    "jobs null": (HEAD + "jobs:\n", 'c.yaml:2:6: "jobs" must be a mapping of keys to values, not nothing'),
    "jobs a list": (
        HEAD + "jobs: [ps]\n",
        'c.yaml:2:7: "jobs" must be a mapping of keys to values, not a list',
    ),
    "jobs misspelled": (HEAD + "job: {ps: 1}\n", 'c.yaml:2:1: unknown key "job" (did you mean "jobs"?)'),
    "a key far from all": (HEAD + "zzz: 1\n", 'c.yaml:2:1: unknown key "zzz"'),
    "replica": (
        HEAD + "jobs:\n  worker:\n    replica: 2\n",
        'c.yaml:4:5: unknown key "replica" under jobs.worker (did you mean "replicas"?)',
    ),
    "upper case": (
        HEAD + "jobs: {w: {Replicas: 2}}",
        'c.yaml:2:12: unknown key "Replicas" under jobs.w (did you mean "replicas"?)',
    ),
    "a key twice": (HEAD + "program: y\njobs: {a: 1}", 'c.yaml:2:1: the key "program" appears twice'),
    "a job twice": (
        HEAD + "jobs:\n  a: 1\n  a: 2\n",
        'c.yaml:4:3: the key "a" appears twice (first in line 3)',
    ),
    "a key that is a list": (HEAD + "? [a]\n: 1\n", "c.yaml:2:3: a key must be a word, not a list"),
    "a port of metrics": (
        HEAD + "metrics: here:99999\njobs: {a: 1}",
        'c.yaml:2:10: "metrics" names the port 99999; a port lies between 1 and 65535',
    ),
    "autoscale of another job": (
        HEAD + "autoscale: {b: [1, 2]}\njobs: {a: 1}",
        'c.yaml:2:16: "autoscale.b": no job is called b (jobs: a)',
    ),
    "autoscale of parameter servers": (
        HEAD + "autoscale: {ps: [1, 2]}\njobs: {ps: 1, worker: 1}",
        'c.yaml:2:17: "autoscale.ps": the tasks of ps hold state; scale them by hand',
    ),
    "autoscale of tasks that restart": (
        HEAD + "autoscale: {a: [1, 2]}\njobs: {a: 1}",
        'c.yaml:2:16: "autoscale" needs "cluster_spec: elastic" or sparse: a has full ones',
    ),
    "limits of autoscale in the wrong order": (
        HEAD + "autoscale: {a: [3, 2]}\njobs: {a: 1}",
        'c.yaml:2:16: "autoscale.a" is [3, 2]: the first number must not be the larger one',
    ),
    "one limit of autoscale": (
        HEAD + "autoscale: {a: 3}\njobs: {a: 1}",
        'c.yaml:2:16: "autoscale.a" must be two numbers, [least, most], not',
    ),
    "metrics without a port": (
        HEAD + "metrics: here\njobs: {a: 1}",
        'c.yaml:2:10: "metrics" must be a port, or an address',
    ),
    "a webhook of another kind": (
        HEAD + "notify: {failed: ftp://x/y}\njobs: {a: 1}",
        'c.yaml:2:18: "notify.failed" must be a command or a URL that begins with http:// or https://',
    ),
    "another event": (HEAD + "notify: {fails: x}\njobs: {a: 1}", 'c.yaml:2:10: unknown key "fails" under notify'),
    "no program": (
        "jobs: {a: 1}\n",
        'c.yaml:1:11: the key "program" is missing, both at the top and under jobs.a',
    ),
    "an empty program": ("program: ''\njobs: {a: 1}", 'c.yaml:1:10: "program" is empty'),
    "a program of nothing": ("program: []\njobs: {a: 1}", 'c.yaml:1:10: "program" is empty'),
    "a null program": ("program:\njobs: {a: 1}", 'c.yaml:1:9: "program" has no value'),
    "a program of maps": (
        "program: [{a: 1}]\njobs: {a: 1}",
        'c.yaml:1:11: "program" must be one value, not a mapping',
    ),
    "a mapping as program": (
        "program: {a: 1}\njobs: {a: 1}",
        'c.yaml:1:10: "program" must be one value, not a mapping',
    ),
    "a zero byte": ('program: "a\\0b"\njobs: {a: 1}', 'c.yaml:1:10: "program" contains a zero byte'),
    "no replicas": (
        HEAD + "jobs: {a: 0}",
        'c.yaml:2:11: "jobs.a.replicas" must be a whole number from 1 to 10000, not "0"',
    ),
    "negative replicas": (HEAD + "jobs: {a: -1}", 'c.yaml:2:11: "jobs.a.replicas" must be a whole number'),
    "half a replica": (HEAD + "jobs: {a: 1.5}", 'c.yaml:2:11: "jobs.a.replicas" must be a whole number'),
    "replicas in words": (HEAD + "jobs: {a: two}", 'c.yaml:2:11: "jobs.a.replicas" must be a whole number'),
    "too many replicas": (HEAD + "jobs: {a: 10001}", 'c.yaml:2:11: "jobs.a.replicas" must be a whole number'),
    "far too many replicas": (HEAD + f"jobs: {{a: {'9' * 5000}}}", 'c.yaml:2:11: "jobs.a.replicas" must be'),
    "a list of replicas": (
        HEAD + "jobs: {a: {replicas: [1]}}",
        'c.yaml:2:22: "jobs.a.replicas" must be one value, not a list',
    ),
    "a null job": (HEAD + "jobs: {a: }", 'c.yaml:2:10: "jobs.a.replicas" has no value'),
    "a job that is a list": (
        HEAD + "jobs: {a: [1]}",
        'c.yaml:2:11: "jobs.a" must be a mapping of keys to values, not a list',
    ),
    "a job name with a colon": (
        HEAD + 'jobs: {"a:b": 1}',
        'c.yaml:2:8: "a:b" is not a valid job name: use letters, digits, _ and - only',
    ),
    "an empty job name": (
        HEAD + 'jobs: {"": 1}',
        'c.yaml:2:8: "" is not a valid job name: use letters, digits, _ and - only',
    ),
    "a job name in digits": (
        HEAD + "jobs: {1: 1}",
        'c.yaml:2:8: "1" is not a valid job name: use letters, digits, _ and - only',
    ),
    "port zero": (
        HEAD + "jobs: {a: {port: 0}}",
        'c.yaml:2:18: "jobs.a.port" must be a whole number from 1 to 65535, not "0"',
    ),
    "port too high": (HEAD + "jobs: {a: {port: 65536}}", 'c.yaml:2:18: "jobs.a.port" must be a whole number'),
    "ports run out": (
        HEAD + "jobs: {a: {port: 65535, replicas: 2}}",
        'c.yaml:2:18: "jobs.a.port": a:1 would get 65536, and ports end at 65535',
    ),
    "port in words": (
        HEAD + "jobs: {a: {port: any}}",
        'c.yaml:2:18: "jobs.a.port" must be auto, none, a number, a range or a list of numbers, not "any"',
    ),
    "too few ports": (
        HEAD + "jobs: {a: {port: [1], replicas: 2}}",
        'c.yaml:2:18: "jobs.a.port" lists 1 ports for 2 tasks',
    ),
    "a port twice": (
        HEAD + "jobs: {a: {port: 5}, b: {port: [5]}}",
        "c.yaml:2:32: port 5 is used by both a:0 and b:0; give one of them another port",
    ),
    "overlapping ports": (
        HEAD + "jobs: {a: {port: 5, replicas: 3}, b: {port: 7}}",
        "c.yaml:2:45: port 7 is used by both a:2 and b:0; give one of them another port",
    ),
    "a policy": (
        HEAD + "restart: onfailure\njobs: {a: 1}",
        'c.yaml:2:10: "restart.policy" must be always, on-failure, never or exit-code, not "onfailure" (did',
    ),
    "a policy list": (HEAD + "restart: [always]\njobs: {a: 1}", 'c.yaml:2:10: "restart" must be a mapping'),
    "a policy key": (
        HEAD + "restart: {attempt: 3}\njobs: {a: 1}",
        'c.yaml:2:11: unknown key "attempt" under restart (did you mean "attempts"?)',
    ),
    "negative attempts": (
        HEAD + "restart: {attempts: -1}\njobs: {a: 1}",
        'c.yaml:2:21: "restart.attempts" must be',
    ),
    "a duration": (
        HEAD + "restart: {window: soon}\njobs: {a: 1}",
        'c.yaml:2:19: "restart.window" must be a duration such as 500ms, 10s, 5m or 1h, not "soon"',
    ),
    "a duration in weeks": (
        HEAD + "grace_period: 1w\njobs: {a: 1}",
        'c.yaml:2:15: "grace_period" must be a duration',
    ),
    "a negative duration": (
        HEAD + "grace_period: -1s\njobs: {a: 1}",
        'c.yaml:2:15: "grace_period" must be a duration',
    ),
    "an endless duration": (
        HEAD + f"grace_period: {'9' * 400}h\njobs: {{a: 1}}",
        'c.yaml:2:15: "grace_period" must be a duration such as 500ms, 10s, 5m or 1h, not',
    ),
    "a probe": (
        HEAD + "readiness: http\njobs: {a: 1}",
        'c.yaml:2:12: "readiness.probe" must be grpc, tcp or none, not "http"',
    ),
    "two probes": (
        HEAD + "readiness: {probe: tcp, file: x}\njobs: {a: 1}",
        'c.yaml:2:25: "file" and "probe" exclude each other under readiness',
    ),
    "no probe": (
        HEAD + "readiness: {interval: 1s}\njobs: {a: 1}",
        'c.yaml:2:12: "readiness" needs exactly one of the keys',
    ),
    "a probe without a port": (
        HEAD + "jobs: {a: {port: none, readiness: grpc}}",
        'c.yaml:2:35: readiness by grpc needs a port, and "port" is "none"',
    ),
    "a probe in a hurry": (
        HEAD + "readiness: {probe: tcp, interval: 0}\njobs: {a: 1}",
        'c.yaml:2:35: "readiness.interval" must be at least 0.01s',
    ),
    "a placeholder": (
        "program: x {ps_host}\njobs: {ps: 1}",
        'c.yaml:1:10: unknown placeholder "{ps_host}" (did you mean "ps_hosts"?)',
    ),
    "a placeholder without its end": (
        "program: x {cluster_flags --a\njobs: {a: 1}\n",
        'c.yaml:1:10: "program": "{cluster_flags " is not a placeholder; write {cluster_flags} ({{ is a plain brace)',
    ),
    "a placeholder without its beginning": (
        "program: x\nenvironment: {A: 'a/checkpoint_dir}'}\njobs: {a: 1}\n",
        'c.yaml:2:18: "environment.A": "checkpoint_dir}" is not a placeholder; write {checkpoint_dir}',
    ),
    "a placeholder with spaces": (
        "program: [x, '{ task']\njobs: {a: 1}\n",
        'c.yaml:1:14: "program": "{ task" is not a placeholder; write {task}',
    ),
    "a placeholder where there are none": (
        "program: x\ncheckpoint_dir: c/{name}\njobs: {a: 1}\n",
        'c.yaml:2:17: "checkpoint_dir" takes no placeholders; "{name}" would not be replaced',
    ),
    "a placeholder of another job": (
        "program: x {chief_hosts}\njobs: {ps: 1}",
        'c.yaml:1:10: unknown placeholder "{chief_hosts}"',
    ),
    "a placeholder in the environment": (
        HEAD + "environment: {A: '{tsk}'}\njobs: {a: 1}",
        'c.yaml:2:18: unknown placeholder "{tsk}" (did you mean "task"?)',
    ),
    "an environment list": (
        HEAD + "environment: [A=1]\njobs: {a: 1}",
        'c.yaml:2:14: "environment" must be a mapping of keys to values, not a list',
    ),
    "an environment name": (
        HEAD + "environment: {A=B: 1}\njobs: {a: 1}",
        'c.yaml:2:15: "A=B" is not a valid name of an environment variable',
    ),
    "a name with a line end in the environment": (
        HEAD + 'environment: {"A\\nB": "x"}\njobs: {a: 1}',
        'c.yaml:2:15: "A\\nB" is not a valid name of an environment variable',
    ),
    "a job's name with a line end": (
        HEAD + 'jobs: {"p\\ns": 1}',
        'c.yaml:2:8: "p\\ns" is not a valid job name: use letters, digits, _ and - only',
    ),
    "an environment of maps": (
        HEAD + "environment: {A: {b: 1}}\njobs: {a: 1}",
        'c.yaml:2:18: "environment.A" must be one value, not a mapping',
    ),
    "success of nobody": (HEAD + "success: []\njobs: {a: 1}", 'c.yaml:2:10: "success.jobs" is an empty list'),
    "success of a stranger": (
        HEAD + "success: wroker\njobs: {worker: 1, ps: 1}",
        'c.yaml:2:10: "success" must be worker, ps, all or any, not "wroker" (did you mean "worker"?)',
    ),
    "a name with a slash": (HEAD + "name: a/b\njobs: {a: 1}", 'c.yaml:2:7: "name" must be letters, digits'),
    "a name that climbs": (HEAD + "name: ..\njobs: {a: 1}", 'c.yaml:2:7: "name" must be letters, digits'),
    "a name too long": (
        HEAD + f"name: {'n' * 65}\njobs: {{a: 1}}",
        'c.yaml:2:7: "name" must be letters, digits',
    ),
    "an empty folder": (HEAD + "working_dir: ''\njobs: {a: 1}", 'c.yaml:2:14: "working_dir" is empty'),
    "nested without end": ("[" * 600, "c.yaml:1:101: nested too deeply"),
    "brackets that end": ("[" * 60_000 + "]" * 60_000, "c.yaml:1:101: nested too deeply"),
    "blocks without end": ("- " * 60_000, "c.yaml:1:203: nested too deeply"),
    # -- YAML
    "a duplicate in a flow mapping": (
        HEAD + "jobs: {a: {port: 5, port: 6}}",
        'c.yaml:2:21: the key "port" appears twice (first in line 2)',
    ),
    "a merge of a word": (HEAD + "jobs: {a: {<<: x}}", 'c.yaml:2:16: "<<" merges mappings, not "x"'),
    "an alias to itself": (
        HEAD + "x-a: &a {b: *a}\njobs: {a: 1}",
        "c.yaml:2:6: an alias to a value that contains it",
    ),
    "an alias bomb": (BOMB, "c.yaml:1:14: more than 30000 values (aliases count each time)"),
    "indentation": (
        "program: x\n jobs: {a: 1}",
        'c.yaml:2:6: no key can stand here (wrong indentation, or a value with ": " in it, which needs',
    ),
    "an odd tag": (
        HEAD + "jobs: !!python/object:os.system {a: [1]}",
        'c.yaml:2:37: "jobs.a" must be a mapping of keys to values, not a list',
    ),
    "a key that is null": (HEAD + "~: 1\njobs: {a: 1}", 'c.yaml:2:1: unknown key "~"'),
    # -- variables
    "a variable that is not set": (
        "program: x ${NOWHERE}\njobs: {a: 1}",
        'c.yaml:1:10: "program": the variable NOWHERE is not set (a default: ${NOWHERE:-...}; left for the',
    ),
    "a variable with a message": (
        "program: x ${DATA:?where the images are}\njobs: {a: 1}",
        'c.yaml:1:10: "program": the variable DATA is not set: where the images are',
    ),
    "a variable without an end": (
        "program: x ${USER\njobs: {a: 1}",
        'c.yaml:1:10: "program": "${USER" is not a variable: write ${NAME}, ${NAME:-default} or ${NAME:?message};',
    ),
    "a variable with a bad name": (
        "program: x ${1}\njobs: {a: 1}",
        'c.yaml:1:10: "program": "${1}" is not a variable: write ${NAME}, ${NAME:-default} or ${NAME:?message};',
    ),
    "a default without an end": (
        "program: 'x ${A:-b'\njobs: {a: 1}",
        'c.yaml:1:10: "program": a "${" without its "}"',
    ),
    "a variable of the wrong kind": (
        HEAD + "jobs: {a: '${USER}'}",
        'c.yaml:2:11: "jobs.a.replicas" must be a whole number from 1 to 10000, not "me" (from ${USER})',
    ),
    # -- hosts
    "an unknown host": (
        HEAD + "hosts: {node0: , node1: }\njobs: {a: {hosts: nod1}}",
        'c.yaml:3:19: unknown host "nod1" (did you mean "node1"?)',
    ),
    "an unknown spare": (
        HEAD + "hosts: [node0]\njobs: {a: {spare_hosts: [other]}}",
        'c.yaml:3:26: unknown host "other" (known: node0)',
    ),
    "an unknown host of a task": (
        HEAD + "hosts: [node0]\njobs: {a: {tasks: {0: {host: node9}}}}",
        'c.yaml:3:30: unknown host "node9" (did you mean "node0"?)',
    ),
    "hosts that are none": (HEAD + "hosts: []\njobs: {a: 1}", 'c.yaml:2:8: "hosts" names no host'),
    "a host twice": (HEAD + "hosts: {'n[0-2]': , n1: }\njobs: {a: 1}", 'c.yaml:2:24: "hosts" names n1 twice'),
    "a host twice in a list": (
        HEAD + "hosts: [n0, n0]\njobs: {a: 1}",
        'c.yaml:2:13: "n0" appears twice in "hosts"',
    ),
    "a host twice in a job": (
        HEAD + "jobs: {a: {hosts: 'n[0-1],n0'}}",
        'c.yaml:2:19: "jobs.a.hosts" names n0 twice (tasks_per_host says how many run on each)',
    ),
    "a range backwards": (
        HEAD + "jobs: {a: {hosts: 'n[3-1]'}}",
        'c.yaml:2:19: "jobs.a.hosts": the range "3-1" runs backwards',
    ),
    "a range of letters": (
        HEAD + "jobs: {a: {hosts: 'n[a-c]'}}",
        'c.yaml:2:19: "jobs.a.hosts": "[a-c]" is not a range such as [0-3,7]',
    ),
    "a range without an end": (
        HEAD + "jobs: {a: {hosts: 'n[0-3'}}",
        'c.yaml:2:19: "jobs.a.hosts": the brackets of "n[0-3" do not match',
    ),
    "a range without bounds": (
        HEAD + "jobs: {a: {hosts: 'n[0-999999999]'}}",
        'c.yaml:2:19: "jobs.a.hosts": "n[0-999999999]" stands for more than 10000 names',
    ),
    "ranges that multiply": (
        HEAD + "jobs: {a: {hosts: 'n[0-999]m[0-999]'}}",
        'c.yaml:2:19: "jobs.a.hosts": "n[0-999]m[0-999]" stands for more than 10000 names',
    ),
    "an empty host": (
        HEAD + "jobs: {a: {hosts: 'n0,,n1'}}",
        'c.yaml:2:19: "jobs.a.hosts": "n0,,n1" has an empty name',
    ),
    "a host name that is an option": (
        HEAD + "hosts: {'-oProxyCommand=x': }\njobs: {a: 1}",
        'c.yaml:2:9: "-oProxyCommand=x" is not a valid host name',
    ),
    "host keys that are taken for granted": (
        HEAD + "ssh: {host_keys: no}\njobs: {a: 1}",
        'c.yaml:2:18: "ssh.host_keys" must be known or accept-new, not "no"',
    ),
    "an ssh target that is an option": (
        HEAD + "hosts: {n: {ssh: -oProxyCommand=x}}\njobs: {a: 1}",
        'c.yaml:2:18: "hosts.n.ssh" must be none, or what ssh is called with, such as gpu-a',
    ),
    "a job's host that is an option": (
        HEAD + "jobs: {a: {hosts: [-Fx]}}",
        'c.yaml:2:20: "jobs.a.hosts" must be names of hosts, not "-Fx"',
    ),
    "a user that is an option": (
        HEAD + "hosts: {n: {user: -x}}\njobs: {a: 1}",
        'c.yaml:2:19: "hosts.n.user" must be',
    ),
    "an address with a port": (
        HEAD + "hosts: {n: {address: '10.0.0.1:22'}}\njobs: {a: 1}",
        'c.yaml:2:22: "hosts.n.address" must be a host\'s name or IPv4 address, not',
    ),
    "more ranges than anybody needs": (
        HEAD + f"jobs: {{a: {{hosts: '{'n[0]' * 9}'}}}}",
        'c.yaml:2:19: "jobs.a.hosts": "n[0]n[0]',
    ),
    "a host key": (
        HEAD + "hosts: {n0: {adress: x}}\njobs: {a: 1}",
        'c.yaml:2:14: unknown key "adress" under hosts.n0 (did you mean "address"?)',
    ),
    "addresses of another number": (
        HEAD + "hosts: {'n[0-3]': {address: '10.0.0.[1-3]'}}\njobs: {a: 1}",
        'c.yaml:2:29: "address" stands for 3 values, and there are 4 hosts',
    ),
    "no slot left": (
        HEAD + "hosts: {'n[0-1]': {slots: 2}}\njobs: {a: 5}",
        "c.yaml:3:11: no slot is left for a:4: its 2 hosts have 4 in all",
    ),
    "no slot left on a named host": (
        HEAD + "hosts: {n0: {slots: 1}}\njobs: {a: {tasks_per_host: 2}}",
        "c.yaml:3:11: no slot is left for a:1 on n0, which has 1",
    ),
    "more tasks than room": (
        HEAD + "jobs: {a: {hosts: [n0, n1], tasks_per_host: 2, replicas: 5}}",
        "c.yaml:2:11: a has 5 tasks, and its 2 hosts take 4 (2 on each)",
    ),
    "a host that is also a spare": (
        HEAD + "jobs: {a: {hosts: [n0], spare_hosts: [n0]}}",
        "c.yaml:2:20: n0 is both among the hosts and the spare hosts of a",
    ),
    "nothing but spares": (
        HEAD + "hosts: [n0]\njobs: {a: {spare_hosts: n0}}",
        "c.yaml:3:11: a has no host: all of them are spares",
    ),
    "an address that others cannot reach": (
        HEAD + "hosts: [localhost, n0]\njobs: {a: {hosts: [localhost, n0]}}",
        "c.yaml:3:11: a:0 runs on localhost, which other hosts cannot reach at 127.0.0.1; give it an",
    ),
    # -- ports, cores, GPUs
    "a range of ports backwards": (
        HEAD + "jobs: {a: {port: 5-4}}",
        'c.yaml:2:18: "jobs.a.port" must be a range within 1-65535, such as 23000-23099, not "5-4"',
    ),
    "a range of ports that is too small": (
        HEAD + "jobs: {a: {port: 5000-5001, replicas: 3}}",
        'c.yaml:2:18: "jobs.a.port": 3 tasks on localhost, and only 2 ports',
    ),
    "a port of a task that another has": (
        HEAD + "jobs: {a: {port: 5, replicas: 2, tasks: {1: {port: 5}}}}",
        "c.yaml:2:52: port 5 is used by both a:0 and a:1; give one of them another port",
    ),
    "a port of a task without ports": (
        HEAD + "jobs: {a: {port: none, tasks: {0: {port: 5}}}}",
        'c.yaml:2:42: a has no ports ("port" is none), so no task of it has one',
    ),
    "a list of no ports": (HEAD + "jobs: {a: {port: []}}", 'c.yaml:2:18: "jobs.a.port" is an empty list'),
    "cores in words": (
        HEAD + "cpus: all\njobs: {a: 1}",
        'c.yaml:2:7: "cpus" must be how many (2) or which (0-3, [0, 2]), not "all"',
    ),
    "no cores": (
        HEAD + "cpus: 0\njobs: {a: 1}",
        'c.yaml:2:7: "cpus" must be a whole number from 1 to 4095, not "0"',
    ),
    "a core twice": (
        HEAD + "cpus: [0, 0-1]\njobs: {a: 1}",
        'c.yaml:2:7: "cpus": "0,0-1" names a number twice',
    ),
    "cores backwards": (
        HEAD + "cpus: 3-1\njobs: {a: 1}",
        'c.yaml:2:7: "cpus": the range "3-1" runs backwards',
    ),
    "GPUs in words": (
        HEAD + "gpus: some\njobs: {a: 1}",
        'c.yaml:2:7: "gpus" must be how many (2) or which (0-3, [0, 2]), or none, not "some"',
    ),
    "more GPUs than there are": (
        HEAD + "hosts: {localhost: {gpus: 2}}\njobs: {a: {replicas: 3, gpus: 1}}",
        "c.yaml:3:11: a:2 asks for 1 gpus of localhost, which has 2, 2 of them taken",
    ),
    "no threads": (
        HEAD + "threads: 0\njobs: {a: 1}",
        'c.yaml:2:10: "threads" must be a whole number from 1 to 4096, not "0"',
    ),
    # -- the life of a task
    "an exit code beyond": (
        HEAD + "restart: {policy: exit-code, codes: [256]}\njobs: {a: 1}",
        'c.yaml:2:38: "restart.codes" must be exit statuses from 1 to 255, not "256"',
    ),
    "an exit code in words": (
        HEAD + "restart: {codes: SIGKIL}\njobs: {a: 1}",
        'c.yaml:2:18: "restart.codes" must be exit statuses (75, 128-255) or signals (SIGKILL), not "SIGKIL"',
    ),
    "exit codes backwards": (
        HEAD + "restart: {codes: 9-3}\njobs: {a: 1}",
        'c.yaml:2:18: "restart.codes" must be exit statuses from 1 to 255, not "9-3"',
    ),
    "too much jitter": (
        HEAD + "restart: {jitter: 2}\njobs: {a: 1}",
        'c.yaml:2:19: "restart.jitter" must be a number from 0 to 1, not "2"',
    ),
    "a liveness without a port": (
        HEAD + "port: none\nliveness: tcp\njobs: {a: 1}",
        'c.yaml:3:11: liveness by tcp needs a port, and "port" is "none"',
    ),
    "a liveness of no patience": (
        HEAD + "liveness: {probe: tcp, failures: 0}\njobs: {a: 1}",
        'c.yaml:2:34: "liveness.failures" must be a whole number from 1 to 1000, not "0"',
    ),
    "a placeholder in a probe": (
        HEAD + "readiness: {command: 'test {prot}'}\njobs: {a: 1}",
        'c.yaml:2:22: unknown placeholder "{prot}" (did you mean "port"?)',
    ),
    "a signal": (
        HEAD + "stop_signal: SIGTREM\njobs: {a: 1}",
        'c.yaml:2:14: "stop_signal" must be a signal such as SIGTERM, not "SIGTREM"',
    ),
    "a memory limit": (
        HEAD + "limits: {memory: 4 gigs}\njobs: {a: 1}",
        'c.yaml:2:18: "limits.memory" must be a size such as 64KiB, 512MiB or 4GiB, not "4 gigs"',
    ),
    "a memory limit that nothing fits in": (
        HEAD + "limits: {memory: 5}\njobs: {a: 1}",
        'c.yaml:2:18: "limits.memory" must be at least 1048576 bytes and less than 4 EiB, not "5"',
    ),
    "a limit": (
        HEAD + "limits: {open_file: 5}\njobs: {a: 1}",
        'c.yaml:2:10: unknown key "open_file" under limits (did you mean "open_files"?)',
    ),
    "niceness": (
        HEAD + "limits: {nice: 20}\njobs: {a: 1}",
        'c.yaml:2:16: "limits.nice" must be a whole number from -20 to 19, not "20"',
    ),
    "a log size": (
        HEAD + "logs: {max_size: 1}\njobs: {a: 1}",
        'c.yaml:2:18: "logs.max_size" must be at least 4096 bytes and less than 4 EiB, not "1"',
    ),
    # -- levels
    "a task that is not there": (
        HEAD + "jobs: {a: {replicas: 2, tasks: {2: {port: 5}}}}",
        "c.yaml:2:43: a has no task 2: it has 2 (0-1)",
    ),
    "a task in words": (
        HEAD + "jobs: {a: {tasks: {first: {port: 5}}}}",
        'c.yaml:2:20: "first" is not a task: write a number, or a range such as 0-3',
    ),
    "a task twice": (
        HEAD + "jobs: {a: {replicas: 4, tasks: {0-2: {threads: 1}, 1: {threads: 2}}}}",
        "c.yaml:2:52: task 1 appears twice under jobs.a.tasks",
    ),
    "tasks backwards": (
        HEAD + "jobs: {a: {replicas: 4, tasks: {2-0: {threads: 1}}}}",
        'c.yaml:2:33: "jobs.a.tasks": the range "2-0" runs backwards',
    ),
    "a key of a task": (
        HEAD + "jobs: {a: {tasks: {0: {replicas: 2}}}}",
        'c.yaml:2:24: unknown key "replicas" under jobs.a.tasks.0',
    ),
    "a bad value that a job overrides": (
        HEAD + "grace_period: soon\njobs: {a: {grace_period: 5s}}",
        'c.yaml:2:15: "grace_period" must be a duration such as 500ms, 10s, 5m or 1h, not "soon"',
    ),
    "two interpreters": (
        HEAD + "python: /a\nvenv: /b\njobs: {a: 1}",
        'c.yaml:3:1: "venv" and "python" exclude each other',
    ),
    "a bad extension": (HEAD + "x_defaults: {}\njobs: {a: 1}", 'c.yaml:2:1: unknown key "x_defaults"'),
    "an extension misspelled under a job": (
        HEAD + "jobs: {a: {X-b: 1}}",
        'c.yaml:2:12: unknown key "X-b" under jobs.a',
    ),
    # -- the rest
    "an env file that is not there": (
        HEAD + "env_file: gone.env\njobs: {a: 1}",
        'c.yaml:2:11: "env_file": /cluster/gone.env: No such file or directory',
    ),
    "requirements that are not there": (
        HEAD + "venv: v\nrequirements: gone.txt\njobs: {a: 1}",
        'c.yaml:3:15: "requirements": /cluster/gone.txt: No such file or directory',
    ),
    "requirements of no environment": (
        HEAD + "requirements: /dev/null\nvenv: v\njobs: {a: {python: p}}",
        'c.yaml:2:15: "requirements" of a:0 need a "venv", the folder to create',
    ),
    "requirements without files": (
        HEAD + "requirements: {python: python3}\nvenv: v\njobs: {a: 1}",
        'c.yaml:2:15: "requirements" lacks the key "files"',
    ),
    "a secret that is no secret": (
        HEAD + "secrets: [A]\nenvironment: {A: b}\njobs: {a: 1}",
        'c.yaml:2:11: "A" is both a secret and in "environment"',
    ),
    "a secret from two sources": (
        HEAD + "secrets: {A: {file: a, variable: B}}\njobs: {a: 1}",
        'c.yaml:2:24: "variable" and "file" exclude each other under secrets.A',
    ),
    "a secret twice": (
        HEAD + "secrets: [A, A]\njobs: {a: 1}",
        'c.yaml:2:14: "A" appears twice in "secrets"',
    ),
    "a secret's value": (
        HEAD + "secrets: {A: hunter2}\njobs: {a: 1}",
        'c.yaml:2:14: "secrets.A" must name the source of its value, {file: ...} or {variable: ...}; do not',
    ),
    "a spec": (
        HEAD + "cluster_spec: sparce\njobs: {a: 1}",
        'c.yaml:2:15: "cluster_spec" must be full, sparse or elastic, not "sparce" (did you mean "sparse"?)',
    ),
    "a backup on another host": (
        HEAD + "durability: host\njobs: {ps: 1, a: 1}",
        'c.yaml:2:13: "durability: host" needs a second host for the backup of ps:0; the only one is localhost; name '
        "another one under hosts",
    ),
    "a backup for some": (
        HEAD + "hosts: {a: {}, b: {}}\njobs: {ps: {replicas: 2, tasks: {1: {durability: host}}}, w: 1}",
        'c.yaml:3:12: "durability: host" is for all tasks of ps, or for none',
    ),
    "a job with the name of backups": (
        HEAD + "durability: host\nhosts: {a: {}, b: {}}\njobs: {ps: 1, ps-backup: 1}",
        'c.yaml:2:13: "durability: host" makes a job ps-backup: give that job another name',
    ),
    "a durability": (
        HEAD + "durability: proces\njobs: {ps: 1, a: 1}",
        'c.yaml:2:13: "durability" must be none, process or host, not "proces" (did you mean "process"?)',
    ),
    "durability without ps": (
        HEAD + "durability: process\njobs: {a: 1}",
        'c.yaml:2:13: "durability: process" needs a job named ps, with the variables',
    ),
    "security": (
        HEAD + "security: ssl\njobs: {a: 1}",
        'c.yaml:2:11: "security" must be none or tls, not "ssl"',
    ),
    "security of maybe": (
        HEAD + "security: [tls]\njobs: {a: 1}",
        'c.yaml:2:11: "security" must be one value, not a list',
    ),
    "a tensorboard of nothing": (
        HEAD + "tensorboard: true\njobs: {a: 1}",
        'c.yaml:2:14: "tensorboard" needs "checkpoint_dir", or a "logdir" of its own',
    ),
    "a tensorboard of perhaps": (
        HEAD + "tensorboard: perhaps\njobs: {a: 1}",
        'c.yaml:2:14: "tensorboard.enabled" must be true or false, not "perhaps"',
    ),
    "two tensorboards": (
        HEAD + "checkpoint_dir: c\ntensorboard: true\njobs: {tensorboard: 1}",
        'c.yaml:3:14: a job "tensorboard" exists already; remove the job or the key',
    ),
    "a sidecar of perhaps": (
        HEAD + "jobs: {a: {sidecar: maybe}}",
        'c.yaml:2:21: "jobs.a.sidecar" must be true or false, not "maybe"',
    ),
    "success of a sidecar": (
        HEAD + "success: b\njobs: {a: 1, b: {sidecar: true}}",
        'c.yaml:2:10: "success" must be a, all or any, not "b"',
    ),
    "success by some": (
        HEAD + "success: {jobs: a, tasks: some}\njobs: {a: 1}",
        'c.yaml:2:27: "success.tasks" must be all, any or first, not "some"',
    ),
}


@pytest.mark.parametrize(("text", "message"), MALFORMED.values(), ids=MALFORMED.keys())
def test_a_malformed_file_gets_one_line_that_says_where_and_what(text, message):
    with pytest.raises(ConfigError) as raised:
        parse(text, "c.yaml", Path("/cluster"), variables={"USER": "me"})
    assert str(raised.value).startswith(message)
    assert "\n" not in str(raised.value)


def test_what_is_no_text_is_named_with_its_place(tmp_path):
    (tmp_path / "c.yaml").write_bytes(b"program: x\na: \xff\xfe")
    with pytest.raises(ConfigError, match=r"c\.yaml:2:4: not a text file \(byte 14 is not UTF-8\)"):
        load(tmp_path / "c.yaml")
    (tmp_path / "c.yaml").write_text("program: x", encoding="utf-16")
    with pytest.raises(ConfigError, match=r"c\.yaml:1:1: not a text file"):
        load(tmp_path / "c.yaml")


def test_a_file_that_is_not_there_or_no_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"nowhere\.yaml: No such file"):
        load(tmp_path / "nowhere.yaml")
    with pytest.raises(ConfigError, match="Is a directory"):
        load(tmp_path)
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(ConfigError, match=r"pipe\.yaml: a named pipe, not a file"):
        load(tmp_path / "pipe.yaml")


def test_a_huge_file_is_refused_before_it_is_read(tmp_path):
    with open(tmp_path / "c.yaml", "wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ConfigError, match=f"c.yaml: longer than {source.BYTES_MAX} bytes"):
        load(tmp_path / "c.yaml")


def test_an_error_in_a_second_file_points_there(tmp_path):
    (tmp_path / "a.yaml").write_text("program: x\njobs:\n  worker: {replicas: 2}\n")
    (tmp_path / "b.yaml").write_text("jobs:\n  worker:\n    port: 5\n    tasks: {7: {port: 9}}\n")
    with pytest.raises(ConfigError, match=r"b\.yaml:4:23: worker has no task 7: it has 2"):
        load([tmp_path / "a.yaml", tmp_path / "b.yaml"])
    (tmp_path / "b.yaml").write_text("jobs:\n  worker: {replica: 2}\n")
    with pytest.raises(ConfigError, match=r'b\.yaml:2:12: unknown key "replica" under jobs.worker'):
        load([tmp_path / "a.yaml", tmp_path / "b.yaml"])
    (tmp_path / "b.yaml").write_text("jobs: [worker]\n")
    with pytest.raises(ConfigError, match=r'b\.yaml:1:7: "jobs" must be a mapping'):
        load([tmp_path / "a.yaml", tmp_path / "b.yaml"])


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("jobs.a.replica=2", '--set jobs.a.replica: unknown key "replica" under jobs.a (did you mean'),
        ("jobs.a.replicas=x", '--set jobs.a.replicas: "jobs.a.replicas" must be a whole number'),
        ("jobs.a.replicas", "--set jobs.a.replicas: must be key.path=value"),
        ("=2", "--set =2: must be key.path=value"),
        ("jobs..a=2", "--set jobs..a=2: must be key.path=value"),
        ("jobs=[a", "--set jobs: "),
        ("jobs=", '--set jobs: "jobs" must be a mapping of keys to values, not nothing'),
        ("jobs={a: 1", "--set jobs: "),
    ],
)
def test_an_error_in_a_setting_names_the_setting(setting, message):
    with pytest.raises(ConfigError) as raised:
        parse("program: x\njobs: {a: 1}", "c.yaml", Path("/cluster"), [setting])
    assert str(raised.value).startswith(message)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("A B", r"e\.env:2:1: must be NAME=value, not \"A B\""),
        ("=x", r"e\.env:2:1: must be"),
        ("\xff", "not a text"),
    ],
)
def test_a_malformed_env_file_is_named_with_its_line(tmp_path, line, message):
    (tmp_path / "e.env").write_bytes(f"# settings\n{line}\n".encode("latin-1"))
    (tmp_path / "c.yaml").write_text("program: x\njobs: {a: 1}\nenv_file: e.env\n")
    with pytest.raises(ConfigError, match=message):
        load(tmp_path / "c.yaml")
    (tmp_path / ".env").write_bytes((tmp_path / "e.env").read_bytes())
    (tmp_path / "c.yaml").write_text("program: x\njobs: {a: 1}\n")
    assert load(tmp_path / "c.yaml").jobs
    (tmp_path / "c.yaml").write_text("program: x ${Y:-}\njobs: {a: 1}\n")
    with pytest.raises(ConfigError, match=r"\.env"):
        load(tmp_path / "c.yaml")


@pytest.mark.parametrize("number", range(0, 1500, 50))
def test_a_damaged_file_is_read_or_refused_in_one_line(number):
    """Every few bytes of a good file something else stands: nothing but a plan or a ConfigError comes of it."""
    text = Path(__file__).with_name("cluster_full.yaml").read_text()
    place = number % len(text)
    for damage in ("", "\t", "{", "]", "*", "&", ":", "${", "\n", '"', "- "):
        try:
            parse(text[:place] + damage + text[place + 1 :], "c.yaml", Path("/cluster"))
        except ConfigError as error:
            assert "\n" not in str(error)


@pytest.mark.parametrize(
    "given",
    [
        'slurm: {options: "--partition=a\\n#SBATCH --uid=0"}',
        'slurm: {options: ["--comment=a", "--comment=b\\nrm -rf /"]}',
        'slurm: {without: "--requeue\\r"}',
        'slurm: {srun: "srun\\ntrue"}',
        'slurm: {address: "{node}\\x85"}',
        'kubernetes: {namespace: "a\\nb"}',
    ],
)
def test_what_stands_in_one_line_of_a_script_has_one_line(given):
    with pytest.raises(ConfigError, match="must be text on one line, without control characters") as refused:
        parse(HEAD + f"jobs: {{a: 1}}\nengine: {{{given}}}\n", "c.yaml", Path("/cluster"))
    assert "\n" not in str(refused.value)
