"""The public names of tf.train.

Only re-exports names; each module of this folder covers one subject.
"""

# ruff: noqa: F401
from __future__ import annotations

from dtf.server import Server
from dtf.train import experimental
from dtf.train.adadelta import AdadeltaOptimizer
from dtf.train.adagrad import AdagradOptimizer
from dtf.train.adagrad_da import AdagradDAOptimizer
from dtf.train.adam import AdamOptimizer
from dtf.train.all_reduce_optimizer import AllReduceOptimizer
from dtf.train.basic_loops import basic_train_loop
from dtf.train.basic_session_run_hooks import (
    CheckpointSaverHook,
    CheckpointSaverListener,
    FeedFnHook,
    FinalOpsHook,
    GlobalStepWaiterHook,
    LoggingTensorHook,
    NanLossDuringTrainingError,
    NanTensorHook,
    ProfilerHook,
    SecondOrStepTimer,
    StepCounterHook,
    StopAtStepHook,
    SummarySaverHook,
)
from dtf.train.checkpoint import Checkpoint, CheckpointManager
from dtf.train.checkpoint_management import (
    checkpoint_exists,
    checkpoints_iterator,
    generate_checkpoint_state_proto,
    get_checkpoint_mtimes,
    get_checkpoint_state,
    latest_checkpoint,
    remove_checkpoint,
    update_checkpoint_state,
)
from dtf.train.checkpoint_utils import (
    CheckpointReader,
    NewCheckpointReader,
    init_from_checkpoint,
    list_variables,
    load_checkpoint,
    load_variable,
)
from dtf.train.coordinator import Coordinator, LooperThread
from dtf.train.device_setter import replica_device_setter
from dtf.train.ftrl import FtrlOptimizer
from dtf.train.gradient_descent import GradientDescentOptimizer
from dtf.train.graph_io import write_graph
from dtf.train.input import (
    input_producer,
    limit_epochs,
    match_filenames_once,
    range_input_producer,
    slice_input_producer,
    string_input_producer,
)
from dtf.train.input_batch import (
    batch,
    batch_join,
    maybe_batch,
    maybe_batch_join,
    maybe_shuffle_batch,
    maybe_shuffle_batch_join,
    shuffle_batch,
    shuffle_batch_join,
)
from dtf.train.learning_rate_decay import (
    cosine_decay,
    cosine_decay_restarts,
    exponential_decay,
    inverse_time_decay,
    linear_cosine_decay,
    natural_exp_decay,
    noisy_linear_cosine_decay,
    piecewise_constant,
    piecewise_constant_decay,
    polynomial_decay,
)
from dtf.train.meta_graph import export_meta_graph
from dtf.train.meta_graph_import import import_meta_graph
from dtf.train.momentum import MomentumOptimizer
from dtf.train.monitored_session import MonitoredSession, MonitoredTrainingSession, SingularMonitoredSession
from dtf.train.moving_averages import ExponentialMovingAverage
from dtf.train.optimizer import Optimizer
from dtf.train.proximal import ProximalAdagradOptimizer, ProximalGradientDescentOptimizer
from dtf.train.queue_runner import QueueRunner, add_queue_runner, start_queue_runners
from dtf.train.recovery import RecoveryPolicy
from dtf.train.rmsprop import RMSPropOptimizer
from dtf.train.saver import Saver
from dtf.train.scaffold import Scaffold
from dtf.train.session_creators import ChiefSessionCreator, SessionCreator, WorkerSessionCreator
from dtf.train.session_manager import SessionManager
from dtf.train.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues
from dtf.train.stale_updates import StalenessHook, staleness
from dtf.train.summary_writer import summary_iterator
from dtf.train.supervisor import Supervisor
from dtf.train.sync_replicas_optimizer import SyncReplicasOptimizer
from dtf.train.training_util import (
    assert_global_step,
    create_global_step,
    get_global_step,
    get_or_create_global_step,
    global_step,
)
from dtf.train.warm_starting import VocabInfo, warm_start
from dtf.train.work_queue import WorkQueue
from dtf.wire.cluster import ClusterSpec
from dtf.wire.pb.checkpoint_state_pb2 import CheckpointState
from dtf.wire.pb.cluster_pb2 import ClusterDef, JobDef
from dtf.wire.pb.example_pb2 import (
    BytesList,
    Example,
    Feature,
    FeatureList,
    FeatureLists,
    Features,
    FloatList,
    Int64List,
    SequenceExample,
)
from dtf.wire.pb.queue_runner_pb2 import QueueRunnerDef
from dtf.wire.pb.saver_pb2 import SaverDef
from dtf.wire.pb.tensorflow_server_pb2 import ServerDef
