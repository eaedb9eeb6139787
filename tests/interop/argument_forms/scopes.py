"""Names, scopes, devices, control dependencies and collections: what programs print of their graphs."""

from __future__ import annotations

from tests.interop.argument_forms.forms import forms

_OPS = [
    "tf.add(1, 2, name='a')", "tf.constant(1, name='c')", "tf.placeholder(tf.float32, name='p')",
    "tf.Variable(1., name='v')",
    "tf.matmul([[1.]], [[2.]], name='m')", "tf.reduce_sum([1., 2.], name='r')", "tf.nn.relu([1.], name='n')",
    "tf.identity(1)",
    "tf.get_variable('g', [2])", "tf.reshape([1], [1], name='s')", "tf.concat([[1], [2]], 0, name='k')", "T(1) + 1",
    "T(1.) * 2.",
    "tf.no_op(name='o')", "tf.group(tf.no_op(), name='gr')", "tf.zeros([2], name='z')", "tf.range(3)",
    "tf.one_hot([1], 3, name='h')",
    "tf.gather([1, 2], [0], name='ga')", "tf.expand_dims([1], 0)", "tf.cast([1], tf.float32)", "tf.tile([1], [2])",
    "tf.stack([T(1), T(2)])",
    "tf.squeeze([[1]])", "tf.argmax([1, 2], 0)", "tf.where([True])", "tf.transpose([[1]])", "tf.nn.softmax([[1.]])",
    "tf.split([1, 2], 2)[1]",
    "tf.slice([1, 2], [0], [1])", "T([1, 2])[0]", "tf.equal(1, 1)", "tf.maximum(1, 2)", "tf.pow(2., 2.)",
    "tf.sqrt(4.)", "-T(1)", "tf.abs(-1)",
    "tf.nn.bias_add([[1.]], [1.])", "tf.pad([1], [[1, 1]])", "tf.reduce_mean([1.])", "tf.fill([2], 1)",
    "tf.ones_like([1])", "tf.shape([1])",
    "tf.clip_by_value([1.], 0., 1.)", "tf.nn.l2_loss([1.])", "tf.squared_difference(1., 2.)",
    "tf.Print(T(1), [T(2)])", "tf.stop_gradient(1.)",
]

CASES = [
    *forms("{op}.name", op=_OPS),
    *forms("sorted((node.name, node.op) for node in ({op}).graph.as_graph_def().node)", op=_OPS),
    *forms("[({op}), ({op})][1].name", op=[each for each in _OPS if "get_variable" not in each]),
    *forms("(lambda scope: (scope.__enter__(), ({op}).name, scope.__exit__(None, None, "
           "None))[:2])(tf.name_scope({s}))",
        op=_OPS[:12], s=["'a'", "'a/'", "None", "'b', 'c', []", "None, 'd'"]),
    *forms("(lambda scope: (scope.__enter__().name, ({op}).name, scope.__exit__(None, None, "
           "None))[:2])(tf.variable_scope({s}))", op=_OPS[:10], s=["'a'", "None, 'd'", "'a', reuse=tf.AUTO_REUSE",
           "'x/y'"]),
    *forms("(lambda scope: (scope.__enter__(), ({op}).device, scope.__exit__(None, None, None))[:2])(tf.device({s}))",
        op=_OPS[:8], s=["'/cpu:0'", "'/job:ps/task:1'", "None", "tf.DeviceSpec(job='w')", "lambda op: '/gpu:1'"]),
    *forms("(lambda scope: (scope.__enter__(), [c.name for c in ({op}).op.control_inputs], scope.__exit__(None, "
           "None, None))[:2])(tf.control_dependencies([tf.no_op(name='first')]))", op=_OPS[:8]),
    *forms("(tf.Variable(1.{a}), [len(tf.get_collection(key)) for key in ('variables', 'trainable_variables', "
           "'local_variables')])[1]", a=["", ", trainable=False", ", collections=['local_variables']",
               ", collections=[]"]),
    *forms("(tf.get_variable('v', [2]{a}), [len(tf.get_collection(key)) for key in ('variables', "
           "'trainable_variables', 'regularization_losses')])[1]", a=["", ", trainable=False",
               ", regularizer=lambda v: tf.reduce_sum(v)", ", regularizer=lambda v: None", ", collections=['x']"]),
    *forms("(tf.{f}, sorted(graph.get_all_collection_keys()))[1]", f=["losses.mean_squared_error([1.], [2.])",
        "train.create_global_step()", "summary.scalar('s', 1.)", "metrics.mean([1.])", "train.batch([1.], 2)",
        "Variable(1.)", "get_local_variable('l', [])", "losses.add_loss(T(1.))"]),
    *forms("graph.unique_name({a})", a=["'a'", "'a/b'", "'a', mark_as_used=False"]),
    *forms("tf.{f}({a})", f=["as_dtype"], a=["'float32'", "np.int32", "float", "1", "'float32_ref'", "bool", "object",
        "'x'", "np.dtype('uint8')", "str"]),
    *forms("tf.TensorShape({a}).{m}", a=["None", "[]", "[1, None]", "[2, 3]", "2", "(None,)"], m=["ndims",
        "as_list()", "is_fully_defined()", "num_elements()", "with_rank(2)", "merge_with([2, None])",
        "concatenate([1])", "is_compatible_with([2, 3])", "dims", "rank", "__str__()", "__repr__()"]),
    *forms("tf.Dimension({a}) {op} {b}", a=["2", "None"], op=["+", "*", "//", "-", "==", "<", "%"], b=["3",
        "tf.Dimension(4)", "None", "tf.Dimension(None)"]),
]
