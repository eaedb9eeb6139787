"""tf.train: optimizers, what their step does to variables, decayed learning rates, savers, queues of inputs."""

from __future__ import annotations

from tests.interop.argument_forms.forms import each, forms

_OPTIMIZERS = [
    "GradientDescentOptimizer(0.1)", "GradientDescentOptimizer(T(0.1))", "GradientDescentOptimizer(lambda: 0.1)",
    "GradientDescentOptimizer(learning_rate=0.1, use_locking=True, name='g')", "MomentumOptimizer(0.1, 0.9)",
    "MomentumOptimizer(0.1, momentum=T(0.9), use_nesterov=True)", "AdamOptimizer()",
    "AdamOptimizer(0.1, 0.8, 0.9, 1e-3)", "AdamOptimizer(learning_rate=lambda: 0.1)", "AdagradOptimizer(0.1)",
    "AdagradOptimizer(0.1, initial_accumulator_value=0.5)", "AdadeltaOptimizer()", "AdadeltaOptimizer(1., 0.9, 1e-2)",
    "RMSPropOptimizer(0.1)", "RMSPropOptimizer(0.1, 0.8, 0.5, 1e-2, centered=True)", "FtrlOptimizer(0.1)",
    "FtrlOptimizer(0.1, l1_regularization_strength=0.01, l2_regularization_strength=0.1)",
    "FtrlOptimizer(0.1, learning_rate_power=-0.3, l2_shrinkage_regularization_strength=0.1)",
    "ProximalGradientDescentOptimizer(0.1, 0.01, 0.1)", "ProximalAdagradOptimizer(0.1, 0.2, 0.01, 0.1)",
]
_STEP = (
    "(lambda v, w: A(tf.train.{o}.minimize(tf.reduce_sum(v * v) + 3. * w{a}), lambda: [v.read_value(), "
    "w.read_value()]))(tf.Variable([1., -2.], use_resource={r}), tf.Variable(2., use_resource={r}))"
)
_DECAYS = {
    "exponential_decay": ["0.1, {s}, 10, 0.5", "0.1, {s}, 10, 0.5, True", "learning_rate=T(0.1), global_step={s}, "
                          "decay_steps=T(10), decay_rate=T(0.9), name='d'"],
    "natural_exp_decay": ["0.1, {s}, 10, 0.5", "0.1, {s}, 10, 0.5, staircase=True"],
    "inverse_time_decay": ["0.1, {s}, 10, 0.5", "0.1, {s}, 10, 0.5, staircase=True"],
    "polynomial_decay": ["0.1, {s}, 10", "0.1, {s}, 10, 0.01, 2.", "0.1, {s}, 4, cycle=True", "0.1, {s}, T(10), "
                         "end_learning_rate=0.05, power=0.5"],
    "cosine_decay": ["0.1, {s}, 10", "0.1, {s}, 10, alpha=0.2"],
    "cosine_decay_restarts": ["0.1, {s}, 4", "0.1, {s}, 4, t_mul=1.5, m_mul=0.5, alpha=0.1"],
    "linear_cosine_decay": ["0.1, {s}, 10", "0.1, {s}, 10, num_periods=1., alpha=0.1, beta=0.01"],
    "piecewise_constant": ["{s}, [3, 6], [1., 0.5, 0.1]", "{s}, boundaries=[5], values=[1., 2.]",
           "{s}, [3.5], [1., 2.]",
                           "{s}, [3], [1.]"],
}

CASES = [
    *forms(_STEP, o=_OPTIMIZERS, a=["", ", var_list=[v]", ", global_step=tf.train.create_global_step()"],
           r=["True", "False"]),
    *forms(_STEP, o=_OPTIMIZERS[:1], a=[", gate_gradients=0", ", gate_gradients=2", ", grad_loss=T(2.)",
           ", aggregation_method=tf.AggregationMethod.ADD_N", ", colocate_gradients_with_ops=True", ", name='n'",
           ", var_list=[]", ", gate_gradients=7", ", aggregation_method=9", ", var_list=T(1.)"], r=["True", "False"]),
    *forms("(lambda v: A(tf.train.{o}.minimize(tf.reduce_sum(tf.gather(v, [0, 2, 0]))), lambda: v.read_value()))("
           "tf.Variable([1., 2., 3.], use_resource={r}))", o=_OPTIMIZERS[3:], r=["True", "False"]),
    *forms("(lambda v, o: sorted(each.name for each in (o.minimize(v * v), tf.global_variables())[1]))("
           "tf.get_variable('v', [2]), tf.train.{o})", o=_OPTIMIZERS),
    *forms("(lambda v, o: (o.minimize(tf.reduce_sum(v * v)), o.get_slot_names(), [None if o.get_slot(v, n) is None "
           "else o.get_slot(v, n).name for n in o.get_slot_names()], o.get_name())[1:])(tf.get_variable('v', [2]), "
           "tf.train.{o})", o=_OPTIMIZERS),
    *forms("(lambda v: [g for g, _ in tf.train.GradientDescentOptimizer(1.).compute_gradients({l}{a})])("
           "tf.Variable([1., 2.]))", l=["v * v", "tf.reduce_sum(v)", "lambda: tf.reduce_sum(v * 3.)", "T(1.)",
           "tf.cast(v, tf.int32)"], a=["", ", [v]", ", var_list=(v,)", ", grad_loss=T(3.)", ", gate_gradients=0"]),
    *forms("(lambda v: A(tf.train.GradientDescentOptimizer(1.).apply_gradients({g}{a}), lambda: v.read_value()))("
           "tf.Variable([1., 2.]))", g=["[(T([1., 1.]), v)]", "zip([T([1., 1.])], [v])", "[(None, v)]", "[]",
           "[(tf.IndexedSlices(T([5.]), T([1])), v)]", "[([1., 1.], v)]", "[(T([1., 1.]), T(1.))]"], a=["",
           ", global_step=tf.train.create_global_step()", ", name='a'"]),
    *[case for name, arguments in _DECAYS.items()
      for case in forms("tf.train." + name + "({a})", a=[each_one.format(s=step) for each_one in arguments
                        for step in ("5", "T(5)", "T(12, tf.int64)", "P(5)")])],
    *forms("tf.train.Saver({a})", a=["", "[]", "{{}}", "[T(1.)]", "[tf.Variable(1.)]", "{{'a': tf.Variable(1.)}}",
           "[tf.Variable(1.)], max_to_keep=0", "[tf.Variable(1.)], reshape=True, sharded=True", "5",
           "[tf.Variable(1., name='v'), tf.Variable(1., name='v')]", "var_list=tf.Variable(1.)", "{{'a': 1}}",
           "[tf.Variable(1.)], max_to_keep='x'", "[tf.Variable(1.)], keep_checkpoint_every_n_hours=0.5, name='s'"]),
    *forms("(lambda s: s.saver_def.{f})(tf.train.Saver([tf.Variable(1., name='v')]{a}))", f=["save_tensor_name",
           "restore_op_name", "filename_tensor_name", "max_to_keep", "sharded", "keep_checkpoint_every_n_hours",
           "version"], a=["", ", max_to_keep=3", ", sharded=True", ", name='s'", ", keep_checkpoint_every_n_hours=2"]),
    *forms("tf.train.{f}", f=["get_checkpoint_state('/nonexistent')", "latest_checkpoint('/nonexistent')",
           "checkpoint_exists('/nonexistent/x')", "list_variables('/nonexistent/x')", "load_variable('/none/x', 'v')",
           "NewCheckpointReader('/nonexistent/x')", "get_global_step()", "create_global_step().name",
           "get_or_create_global_step().dtype", "global_step(None, T(1))", "assert_global_step(T(1))",
           "assert_global_step(tf.Variable(1))", "assert_global_step(tf.Variable(1.))",
           "assert_global_step(tf.Variable([1]))"]),
    *each("batch batch_join shuffle_batch maybe_batch", "(lambda r: [each.shape for each in "
          "(r if isinstance(r, list) else r.values() if isinstance(r, dict) else [r])])(tf.train.{f}({a}))",
           a=["[T(1.)], 2", "{{'x': T([1, 2])}}, 3",
          "[T(1.), T('a')], batch_size=2, name='b'", "[P(1.)], 2", "[], 2"]),
    *forms("tf.train.{f}", f=["slice_input_producer([[1, 2], [3, 4]])", "string_input_producer(['a', 'b'])",
           "range_input_producer(5)", "input_producer([1, 2])", "string_input_producer([])",
           "limit_epochs(T(1.), 2)", "limit_epochs(T(1.), 0)", "string_input_producer(['a'], num_epochs=0)"]),
    *forms("(lambda e, v: A(tf.group(tf.global_variables()[0].initializer, e.apply([v])), lambda: e.average(v)))("
           "tf.train.ExponentialMovingAverage({a}), tf.Variable(2., name='v'))", a=["0.9", "0.9, num_updates=3",
           "decay=0.5, zero_debias=True", "T(0.5)", "0.9, name='x'"]),
    *forms("(lambda e, v: (e.apply([v]), e.average_name(v), e.average(v).name))(tf.train.ExponentialMovingAverage("
           "{a}), tf.Variable(2., name='v'))[1:]", a=["0.9", "0.9, 3", "0.9, zero_debias=True", "0.9, name='x'"]),
    *forms("tf.{f}({t}, {n}{a})", f=["clip_by_norm", "clip_by_average_norm"], t=["T([3., 4.])", "P([3., 4.])",
           "[3., 4.]"], n=["1.", "T(10.)", "-1."], a=["", ", name='c'"]),
    *forms("tf.clip_by_global_norm({t}, {n})", t=["[T([3.]), T([4.])]", "[T([3.]), None]", "(T(3.),)", "T(3.)",
           "[P([3.]), tf.IndexedSlices(T([4.]), T([0]))]"], n=["1.", "T(10.)", "1., use_norm=T(2.)"]),
]
