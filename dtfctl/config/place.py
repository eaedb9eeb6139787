"""Which task runs where: hosts, ports, cores and GPUs, from what the jobs ask for. Pure, and the same each time.

- `hosts` with `tasks_per_host`: neighbours stay together, node0 gets tasks 0 and 1, node1 gets 2 and 3.
- `hosts` with `replicas`: in turn, node0 gets tasks 0 and 2, node1 gets 1 and 3.
- neither, and a `hosts:` section: on the host that has the fewest tasks so far, spares aside.
- no hosts at all: on this machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from dtfctl.config.kinds import Values, nearest
from dtfctl.config.source import Position
from dtfctl.config.values import Devices, Ports
from dtfctl.values.plan import LOCALHOST, HostPlan, Place


@dataclass(frozen=True)
class JobRequest:
    """What a job says about its place; `tasks` what its `tasks:` says of single ones."""

    name: str
    at: Position
    replicas: int | None
    hosts: tuple[tuple[str, Position], ...] | None
    tasks_per_host: int | None
    spares: tuple[tuple[str, Position], ...]
    ports: Ports
    ports_at: Position
    cpus: Devices | None
    gpus: Devices | None
    tasks: dict[int, Values] = field(default_factory=dict)


class Placer:
    """Places the jobs of one file, in its order. `hosts` grows by those that jobs name when the file declares none,
    as `make_host` makes them."""

    def __init__(
        self,
        hosts: dict[str, HostPlan],
        declared: tuple[str, ...],
        spares: Collection[str],
        make_host: Callable[[str], HostPlan],
    ) -> None:
        self.hosts = hosts
        self._declared = declared
        self._make_host = make_host
        self._regular = [name for name in declared if name not in spares]
        self._load: Counter[str] = Counter()
        self._cores: Counter[str] = Counter()
        self._gpus: Counter[str] = Counter()
        self._ports: dict[tuple[str, int], tuple[str, Position]] = {}

    def place(self, request: JobRequest) -> tuple[Place, ...]:
        hosts = self._hosts_of(request)
        for index in request.tasks:
            if index >= len(hosts):
                at = next(iter(request.tasks[index].values())).node.at if request.tasks[index] else request.at
                raise at.error(
                    f"{request.name} has no task {index}: it has {len(hosts)} (0-{len(hosts) - 1})"
                )
        ports = self._ports_of(request, hosts)
        places = []
        for index, host in enumerate(hosts):
            own = request.tasks.get(index, {})
            cpus = own["cpus"].value if "cpus" in own else request.cpus
            gpus = own["gpus"].value if "gpus" in own else request.gpus
            places.append(
                Place(
                    host,
                    ports[index],
                    self._deal(request, index, cpus, self._cores, host, "cpus") or (),
                    self._deal(request, index, gpus, self._gpus, host, "gpus"),
                )
            )
        return tuple(places)

    def known(self, name: str, at: Position) -> str:
        """The name of a host, when there is such a one."""
        if name in self.hosts:
            return name
        if self._declared:
            raise at.error(f'unknown host "{name}"{nearest(name, self._declared)}')
        self.hosts[name] = self._make_host(name)
        return name

    # -- hosts

    def _hosts_of(self, request: JobRequest) -> list[str]:
        names = self.candidates(request)
        own = {i: self._named(found["host"]) for i, found in request.tasks.items() if "host" in found}
        count = request.replicas if request.replicas is not None else 1
        if request.replicas is None and (request.hosts is not None or request.tasks_per_host is not None):
            count = len(names) * (request.tasks_per_host or 1)
        if request.tasks_per_host is not None and count > len(names) * request.tasks_per_host:
            room = len(names) * request.tasks_per_host
            raise request.at.error(
                f"{request.name} has {count} tasks, and its {len(names)} hosts take {room} "
                f"({request.tasks_per_host} on each)"
            )
        hosts = []
        for index in range(count):
            if index in own:
                host = own[index]
            elif request.tasks_per_host is not None:
                host = names[index // request.tasks_per_host]
            elif request.hosts is not None:
                host = self._next(request, index, names[index % len(names) :] + names[: index % len(names)])
            else:
                host = self._next(request, index, sorted(names, key=lambda name: self._load[name]))
            self._load[host] += 1
            slots = self.hosts[host].slots
            if slots is not None and self._load[host] > slots:
                raise request.at.error(
                    f"no slot is left for {request.name}:{index} on {host}, which has {slots}"
                )
            hosts.append(host)
        return hosts

    def candidates(self, request: JobRequest) -> list[str]:
        """The hosts on which its tasks may be placed."""
        if request.hosts is not None:
            spares = {name for name, _ in request.spares}
            for name, at in request.hosts:
                if name in spares:
                    raise at.error(f"{name} is both among the hosts and the spare hosts of {request.name}")
            return [self.known(name, at) for name, at in request.hosts]
        if self._declared and not self._regular:
            raise request.at.error(f"{request.name} has no host: all of them are spares")
        return self._regular or [LOCALHOST]

    def _named(self, found: Any) -> str:
        return self.known(found.value, found.node.at)

    def _next(self, request: JobRequest, index: int, names: list[str]) -> str:
        for name in names:
            slots = self.hosts[name].slots
            if slots is None or self._load[name] < slots:
                return name
        room = sum(self.hosts[name].slots or 0 for name in names)
        raise request.at.error(
            f"no slot is left for {request.name}:{index}: its {len(names)} hosts have {room} in all"
        )

    # -- ports

    def _ports_of(self, request: JobRequest, hosts: list[str]) -> list[int]:
        ports, at = request.ports, request.ports_at
        if ports.way == "list" and len(ports.numbers) != len(hosts):
            raise at.error(
                f'"jobs.{request.name}.port" lists {len(ports.numbers)} ports for {len(hosts)} tasks'
            )
        on_host: Counter[str] = Counter()
        chosen = []
        for index, host in enumerate(hosts):
            own = request.tasks.get(index, {})
            port, port_at = 0, at
            if "port" in own:
                port, port_at = own["port"].value, own["port"].node.at
                if ports.way == "none":
                    raise port_at.error(
                        f'{request.name} has no ports ("port" is none), so no task of it has one'
                    )
            elif ports.way == "first":
                port = ports.numbers[0] + (0 if self.hosts[host].has_task_addresses else on_host[host])
            elif ports.way == "list":
                port = ports.numbers[index]
            if port > 65535:
                raise at.error(
                    f'"jobs.{request.name}.port": {request.name}:{index} would get {port}, and ports end at 65535'
                )
            on_host[host] += 1
            self._note_port(host, port, f"{request.name}:{index}", port_at)
            chosen.append(port)
        if ports.way == "range":
            room = ports.numbers[1] - ports.numbers[0] + 1
            host, count = on_host.most_common(1)[0]
            if count > room:
                raise at.error(f'"jobs.{request.name}.port": {count} tasks on {host}, and only {room} ports')
        return chosen

    def _note_port(self, host: str, port: int, task: str, at: Position) -> None:
        if not port or self.hosts[host].has_task_addresses:
            return
        if (host, port) in self._ports:
            other = self._ports[host, port][0]
            raise at.error(
                f"port {port}{'' if host == LOCALHOST else f' of {host}'} is used by both {other} and {task}; "
                "give one of them another port"
            )
        self._ports[host, port] = task, at

    # -- cores and GPUs

    def _deal(
        self,
        request: JobRequest,
        index: int,
        wanted: Devices | None,
        dealt: Counter[str],
        host: str,
        what: str,
    ) -> tuple[int, ...] | None:
        if wanted is None:
            return None
        if wanted.ids is not None:
            return wanted.ids
        first = dealt[host]
        dealt[host] += wanted.count
        there = getattr(self.hosts[host], what)
        if there is not None and dealt[host] > there:
            raise request.at.error(
                f"{request.name}:{index} asks for {wanted.count} {what} of {host}, "
                f"which has {there}, {first} of them taken"
            )
        return tuple(range(first, first + wanted.count))
