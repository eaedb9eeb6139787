"""How each engine gives hosts, and how ssh reaches them: the settings that a ClusterPlan holds, as frozen values."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class SshSettings:
    """How ssh is called: its `command` with options, and whether the key of a host that it does not know yet is
    accepted. `timeout_s` bounds the making of a connection."""

    command: str = "ssh"
    accept_new: bool = False
    timeout_s: float = 10.0


@dataclass(frozen=True)
class SlurmGroup:
    """The nodes of one job in a heterogeneous allocation: how many, their names, and options of sbatch for them."""

    job: str
    nodes: int = 1
    options: tuple[str, ...] = ()
    members: tuple[str, ...] = ()


@dataclass(frozen=True)
class SlurmSettings:
    """An allocation of Slurm.

    Attributes:
      job: its id, "" until it is submitted.
      restarts: how often the job was queued again before.
      nodes: how many nodes to ask for.
      spares: how many of them, the last ones, get no task until another one is lost.
      options: options of sbatch.
      without: options of dtfctl's own that are left out.
      srun: the command, with options, that reaches the nodes.
      groups: those of a heterogeneous job, in their order; () for a plain one.
      interface: the network interface of a node by whose address other nodes reach it, "" for its name.
      requeues: how many times the job is queued again at its time limit, None for always.
      is_apart: whether nodes share no file system, so that the folder is copied to each of them.
      python: the Python that has dtfctl on the nodes, "" for the path of the one that runs `up`.
    """

    job: str = ""
    nodes: int = 1
    options: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    srun: str = "srun"
    restarts: int = 0
    spares: int = 0
    groups: tuple[SlurmGroup, ...] = ()
    interface: str = ""
    is_apart: bool = False
    python: str = ""
    requeues: int | None = None

    def group_of(self, node: str) -> int | None:
        """The number of the node's group; None in a job that has none."""
        return next((number for number, group in enumerate(self.groups) if node in group.members), None)


@dataclass(frozen=True)
class RaySettings:
    """A placement group of Ray.

    Attributes:
      address: that of the Ray cluster; "" for RAY_ADDRESS, or the one on this machine.
      nodes: how many hosts the group has.
      spares: how many of them, the last ones, get no task until another one is lost.
      resources: `NAME=AMOUNT`, what each host gets in place of, or beside, what its tasks need.
      strategy: how Ray places the hosts.
      options: `name=value`, options of the actors, with values as JSON.
      without: resources and options of dtfctl's own that are left out.
      python: the Python that has ray, "" for dtfctl's own.
      wait_s: how long to wait for the group.
      group: its name, "" until it is made.
      gpus: the GPUs of each host that are the group's, as CUDA_VISIBLE_DEVICES.
    """

    address: str = ""
    nodes: int = 1
    spares: int = 0
    resources: tuple[str, ...] = ()
    strategy: str = "STRICT_SPREAD"
    options: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    python: str = ""
    wait_s: float = 6.0
    group: str = ""
    gpus: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class MpiSettings:
    """Hosts that Open MPI's mpirun reaches.

    Attributes:
      nodes: how many of them to use, the first ones.
      spares: how many of those, the last ones, get no task until another one is lost.
      mpirun: the command, with options.
      options: more options of each call.
      address: the address of a host for the others; {node} is its name.
      hosts: the names that mpirun has for the hosts, () until they are known.
    """

    nodes: int = 1
    spares: int = 0
    mpirun: str = "mpirun"
    options: tuple[str, ...] = ()
    address: str = "{node}"
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True)
class SparkSettings:
    """An application of Spark, whose executors are the hosts.

    Attributes:
      master: its master's URL; "" for that of Spark's own configuration.
      nodes: how many hosts it has.
      spares: how many of them, the last ones, get no task until another one is lost.
      cores: those of each host.
      conf: properties of the application.
      python: the Python that has pyspark, here and on the executors; "" for dtfctl's own.
      wait_s: how long to wait for the executors.
      socket: that of the program whose application it is; "" where dtfctl starts its own.
      group: the name of the hosts' group, "" until they are there.
      gpus: none; see RaySettings.
    """

    master: str = ""
    nodes: int = 1
    spares: int = 0
    cores: int = 1
    conf: dict[str, str] = field(default_factory=dict)
    python: str = ""
    wait_s: float = 60.0
    socket: str = ""
    group: str = ""
    gpus: dict[str, str] = field(default_factory=dict)


GroupSettings = RaySettings | SparkSettings


def engine_hosts(count: int) -> list[str]:
    """The names of the hosts that an engine gives."""
    return [f"node-{number + 1}" for number in range(count)]


@dataclass(frozen=True)
class KubernetesSettings:
    """A namespace of Kubernetes, and what the pods there get.

    Attributes:
      image: the image of each task's container.
      context: that of the kubeconfig, "" for the current one.
      namespace: "" for the context's.
      pull_secrets: names of Secrets with which the image is pulled.
      claim: a PersistentVolumeClaim for the checkpoints; with `storage`, a size, it is created under this name.
      gpu: the resource that a GPU counts as.
      options: `path=value`, a part of each pod and its value as YAML.
      without: paths of parts that are left out.
    """

    image: str = ""
    context: str = ""
    namespace: str = ""
    pull_secrets: tuple[str, ...] = ()
    claim: str = ""
    storage: str = ""
    gpu: str = "nvidia.com/gpu"
    options: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
