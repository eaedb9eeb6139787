"""`import tensorflow` gives dtf, where that was asked for."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys

import pytest

from dtf.as_tensorflow import CHILDREN, absent, modules

PRELUDE = "import sys, tensorflow as tf\n"


def run(tmp_path, source, *arguments, options=(), **environment):
    """(status, output, errors) of `python -m dtf` with a script."""
    script = tmp_path / "trainer.py"
    script.write_text(source)
    command = [sys.executable, "-m", "dtf", *options, *([] if options else [str(script)]), *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, **environment}, timeout=100
    )
    return done.returncode, done.stdout, done.stderr


def test_a_program_finds_itself_as_python_would_have_it(tmp_path):
    status, output, errors = run(
        tmp_path,
        PRELUDE + "print(sys.argv[1:], __name__, __file__, sys.path[0]); print(sys.modules['__main__'].tf is tf)\n"
        "import tensorflow.compat.v1 as v1; v1.disable_v2_behavior(); print(v1 is tf, tf.__version__)",
        "--lr=1",
        "x",
    )
    script = str(tmp_path / "trainer.py")
    assert (status, output.splitlines()[0]) == (0, f"['--lr=1', 'x'] __main__ {script} {tmp_path}")
    assert output.splitlines()[1:] == ["True", f"True {modules.VERSION}"]
    assert errors.startswith("dtf: import tensorflow gives dtf ")
    assert len(errors.splitlines()) == 1


@pytest.mark.slow
def test_children_find_dtf_too(tmp_path):
    source = PRELUDE + (
        "import multiprocessing, subprocess\n"
        "def look(queue):\n    queue.put(tf.__version__)\n"
        "if __name__ == '__main__':\n"
        "    code = 'import tensorflow.python.util.nest as n, tensorflow as t; print(t.__version__, n.flatten)'\n"
        "    subprocess.check_call([sys.executable, '-c', code])\n"
        "    context = multiprocessing.get_context('spawn'); queue = context.Queue()\n"
        "    child = context.Process(target=look, args=(queue,)); child.start(); print(queue.get()); child.join()\n"
    )
    status, output, errors = run(tmp_path, source)
    assert status == 0, errors
    assert output.startswith(f"{modules.VERSION} <function flatten")
    assert output.endswith(f"\n{modules.VERSION}\n")


def test_the_traceback_is_the_programs_alone(tmp_path):
    status, _, errors = run(tmp_path, PRELUDE + "def f():\n    tf.train.NoSuch\nf()\n")
    assert status == 1
    assert errors.count("  File ") == errors.count('trainer.py"') + errors.count('late.py"')
    assert "AttributeError: module 'dtf.train' has no attribute 'NoSuch'" in errors


@pytest.mark.parametrize(
    ("source", "status"),
    [("import sys; sys.exit(7)", 7), ("raise SystemExit('over')", 1), ("x = (", 1), ("1 / 0", 1)],
)
def test_the_exit_status_is_the_programs(tmp_path, source, status):
    assert run(tmp_path, source)[0] == status


def test_modules_code_and_commands_run_too(tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__main__.py").write_text(PRELUDE + "print(sys.argv[1:], tf.__version__)")
    assert run(tmp_path, "", "package", "1", options=("-m",))[1] == f"['1'] {modules.VERSION}\n"
    done = subprocess.run(
        [sys.executable, "-m", "dtf", "package", "2"], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.stdout == f"['2'] {modules.VERSION}\n", done.stderr
    assert run(tmp_path, "", "import tensorflow as t; print(t.VERSION)", options=("-c",))[1] == f"{modules.VERSION}\n"
    line = f"{sys.executable} -c 'import tensorflow as t; print(t.VERSION)'; exit 3"
    assert run(tmp_path, "", "sh", "-c", line, options=("--exec",))[:2] == (3, f"{modules.VERSION}\n")


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ((), 2, "the script is missing"),
        (("-m",), 2, "-m needs an argument"),
        (("--fast", "x.py"), 2, "unknown option --fast"),
        (("missing.py",), 2, "can't open file 'missing.py': no such file"),
        (("/",), 2, "can't open file '/': it is a folder without __main__.py"),
        (("/dev/null",), 2, "can't open file '/dev/null': not a file"),
        (("x" * 5000,), 2, f"can't open file '{'x' * 5000}': File name too long"),
        (("--exec", "no-such-command"), 127, "can't execute 'no-such-command'"),
    ],
)
def test_a_wrong_command_line_gets_one_line(tmp_path, arguments, status, message):
    done = subprocess.run([sys.executable, "-m", "dtf", *arguments], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == status
    assert f"python -m dtf: {message}" in done.stderr.splitlines()[-1]


def test_another_tensorflow_that_is_imported_already_is_refused(tmp_path):
    (tmp_path / "tensorflow.py").write_text("")
    code = "import tensorflow, dtf.as_tensorflow as a\na.install()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert "tensorflow is already imported, from " in done.stderr.splitlines()[-1]


def test_without_being_asked_nothing_changes(tmp_path):
    code = "import dtf, dtf.as_tensorflow, sys; print('tensorflow' in sys.modules, sys.meta_path)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.startswith("False") and "_Finder" not in done.stdout


# -- the table of modules, in this process


@pytest.fixture
def tensorflow():
    """The module, without the finder among the others': it must not stay for other tests."""
    from dtf.as_tensorflow import importer

    before = dict(sys.modules)
    importer.install()
    yield importlib.import_module("tensorflow")
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, importer._Finder)]
    for name in set(sys.modules) - set(before):
        if name.partition(".")[0] == "tensorflow":
            del sys.modules[name]


def test_every_module_of_the_table_can_be_imported_with_all_its_names(tensorflow):
    for name, sources in modules.places().items():
        module = importlib.import_module(name)
        assert all(modules.resolve(source) is not None for source in sources), name
        for public in dir(module):
            assert public.startswith("_") or hasattr(module, public), f"{name}.{public}"


@pytest.mark.parametrize(
    ("path", "dtf_path"),
    [
        ("python.framework.ops.get_default_graph", "get_default_graph"),
        ("python.framework.ops.RegisterGradient", "RegisterGradient"),
        ("python.framework.dtypes.float32", "float32"),
        ("python.ops.array_ops.concat", "concat"),
        ("python.ops.math_ops.reduce_mean", "reduce_mean"),
        ("python.ops.nn.relu", "nn.relu"),
        ("python.ops.variable_scope.get_variable", "get_variable"),
        ("python.training.optimizer.Optimizer", "train.Optimizer"),
        ("python.training.session_run_hook.SessionRunHook", "train.SessionRunHook"),
        ("python.platform.flags.FLAGS", "flags.FLAGS"),
        ("python.platform.gfile.GFile", "gfile.GFile"),
        ("python.saved_model.tag_constants.SERVING", "saved_model.tag_constants.SERVING"),
        ("python.layers.core.Dense", "layers.Dense"),
        ("python.util.nest.flatten", "nest.flatten"),
        ("core.framework.summary_pb2.Summary", "Summary"),
        ("core.example.feature_pb2.Feature", "train.Feature"),
        ("core.util.event_pb2.Event", "Event"),
        ("contrib.slim.conv2d", "contrib.slim.conv2d"),
        ("contrib.learn.python.learn.datasets.mnist.read_data_sets", "contrib.learn.datasets.mnist.read_data_sets"),
        ("examples.tutorials.mnist.input_data.read_data_sets", "contrib.learn.datasets.mnist.read_data_sets"),
        ("mul", "multiply"),
        ("initialize_all_variables", "global_variables_initializer"),
        ("merge_all_summaries", "summary.merge_all"),
        ("nn.rnn_cell.LSTMCell", "nn.rnn_cell.LSTMCell"),
    ],
)
def test_a_historic_name_is_the_public_one(tensorflow, path, dtf_path):
    import dtf

    def found(module, names):
        for name in names.split("."):
            module = getattr(module, name)
        return module

    expected = found(dtf, dtf_path)
    actual = found(tensorflow, path)
    assert actual is expected or actual == expected


def test_functions_of_single_ops_take_their_arguments_in_the_contracts_order(tensorflow):
    import dtf
    from dtf.as_tensorflow import generated_ops

    with dtf.Graph().as_default(), dtf.Session() as session:
        image = dtf.reshape(dtf.range(16.0), [1, 4, 4, 1])
        pooled = generated_ops.max_pool(image, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
        grad = generated_ops._max_pool_grad(image, pooled, pooled, [1, 2, 2, 1], [1, 2, 2, 1], "VALID", name="back")
        assert grad.op.name == "back"
        assert session.run(grad).sum() == 5 + 7 + 13 + 15
    with pytest.raises(AttributeError, match="no op matches the function 'no_such'"):
        generated_ops.no_such  # noqa: B018


@pytest.mark.parametrize("path", sorted(absent.REASONS))
def test_what_is_not_here_by_intent_says_what_to_use(tensorflow, path):
    with pytest.raises((AttributeError, ImportError)) as refusal:
        module, _, name = f"tensorflow.{path}".rpartition(".")
        found = getattr(importlib.import_module(module), name)
        found.anything  # noqa: B018  (a package that is there, so that it can be imported, has no names)
    assert absent.REASONS[path] in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_an_unknown_module_is_not_found_in_one_line(tensorflow):
    with pytest.raises(ModuleNotFoundError, match=r"no module named 'tensorflow.nothing' \(dtf does not have it\)"):
        importlib.import_module("tensorflow.nothing")
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("tensorflow.wire")


def test_the_folder_for_children_has_that_package_only():
    assert [name for name in os.listdir(CHILDREN) if not name.startswith("__")] == ["tensorflow"]


def test_names_of_tensorflow_s_own_modules_that_are_spelled_otherwise_are_found():
    from dtf.as_tensorflow import modules

    for module, names in modules.renamed().items():
        assert module in modules.places(), module
        for source in names.values():
            place, _, name = source.rpartition(".")
            assert hasattr(modules.resolve(place), name), source


@pytest.mark.parametrize(
    ("module", "some"),
    [
        ("tensorflow.contrib.seq2seq", ["LuongAttention", "dynamic_decode"]),
        ("tensorflow.contrib.slim", ["conv2d", "arg_scope", "learning"]),
        ("tensorflow.contrib.layers", ["xavier_initializer", "fully_connected"]),
        ("tensorflow.contrib.estimator", ["stop_if_no_decrease_hook"]),
        ("tensorflow.python.ops.array_ops", ["placeholder", "concat"]),
        ("tensorflow.python.ops.rnn_cell", ["BasicLSTMCell"]),
        ("tensorflow.python.framework.ops", ["Graph", "name_scope"]),
    ],
)
def test_a_star_import_gives_the_public_names_and_not_what_the_module_works_with(tensorflow, module, some):
    names: dict[str, object] = {}
    exec(f"from {module} import *", names)
    assert [name for name in some if name not in names] == []
    assert {"annotations", "Any", "importlib", "np"}.isdisjoint(names)


def test_a_barrier_gives_the_elements_whose_components_are_all_there(tensorflow):
    from dtf.as_tensorflow.historic.data_flow_ops import Barrier

    tf = tensorflow
    with tf.Graph().as_default(), tf.Session() as session:
        barrier = Barrier((tf.float32, tf.int32), shapes=((), (2,)), name="B")
        session.run(barrier.insert_many(0, ["a", "b"], [1.0, 2.0]))
        session.run(barrier.insert_many(1, ["b"], [[3, 4]]))
        assert session.run([barrier.ready_size(), barrier.incomplete_size()]) == [1, 1]
        _, keys, values = barrier.take_many(1)
        assert [value.tolist() for value in session.run([keys, *values])] == [[b"b"], [2.0], [[3, 4]]]
        session.run(barrier.close())
        with pytest.raises(tf.errors.CancelledError, match="is closed"):
            session.run(barrier.insert_many(0, ["c"], [1.0]))


def test_shapes_that_do_not_fit_are_named_in_tensorflows_words(tensorflow):
    tf = tensorflow
    with tf.Graph().as_default(), tf.Session() as session:
        given = tf.placeholder(tf.float32)
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"Incompatible shapes: \[3\] vs\. \[2\]"):
            session.run(given + [1.0, 2.0], {given: [1.0, 2.0, 3.0]})


def test_something_else_than_queues_cannot_be_chosen_from(tensorflow):
    with tensorflow.Graph().as_default(), pytest.raises(TypeError, match="A list of queues expected"):
        tensorflow.QueueBase.from_list(0, [tensorflow.constant(1)])


def test_a_replaced_name_of_a_module_is_replaced_where_dtf_uses_it():
    from unittest import mock

    from dtf.as_tensorflow import modules
    from dtf.train import saver

    there = modules.find("tensorflow.python.training.saver")
    before = saver.time
    for _ in range(2):
        with mock.patch.object(there, "time") as clock:
            assert saver.time is clock
        assert saver.time is before
        assert there.time is before


def test_the_two_nests_walk_alike_but_for_their_rules(tensorflow):
    from dtf.as_tensorflow.historic import dataset_nest, nest

    assert nest.flatten_up_to([1, (1, 2)], [(5, 6), (7, [8])]) == [(5, 6), 7, [8]]
    assert dataset_nest.flatten_up_to((1, (1, 2)), ([5, 6], (7, [8]))) == [[5, 6], 7, [8]]
    one, other = {"a": 1, "b": 2}, {"a": 1, "c": 2}
    with pytest.raises(ValueError, match="don't have the same keys"):
        nest.assert_shallow_structure(one, other, check_types=False)
    dataset_nest.assert_shallow_structure(one, other, check_types=False)
    with pytest.raises(ValueError, match="don't have the same keys"):
        dataset_nest.assert_shallow_structure(one, other)
    with pytest.raises(TypeError, match="Input has type: <class 'int'>"):
        nest.assert_shallow_structure((1, 2), 3)
    with pytest.raises(TypeError, match="Input has type: 'int'"):
        dataset_nest.assert_shallow_structure((1, 2), 3)
