"""What command-line flags and `tf.app.run` do, told by short programs with TensorFlow's names only.

    python -m tests.interop.flag_behaviours dtf
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import tempfile
from typing import Any

from tests.interop.behaviours import outcome, plain, run_all


@contextlib.contextmanager
def _command_line(*arguments: str) -> Any:
    """A command line and flags of this behaviour alone."""
    before = sys.argv
    sys.argv = ["prog", *arguments]
    try:
        yield
    finally:
        sys.argv = before


def _fresh(tf: Any) -> Any:
    """The flags, without those of the behaviour before, and as before any parsing."""
    values = tf.flags.FLAGS
    for name in [name for name in values if name.startswith("t_")]:
        delattr(values, name)
    values.unparse_flags()
    return values


def _run(tf: Any, arguments: list[str], main: Any = None, **keywords: Any) -> Any:
    """How app.run ends, what main was given, and whether anything was printed."""
    seen: list[Any] = []

    def plain_main(argv: Any) -> None:
        seen.append(list(argv))

    out, err = io.StringIO(), io.StringIO()
    with _command_line(*arguments), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        ended = outcome(tf.app.run, main or plain_main, **keywords)
    if ended in ("Error", "IllegalFlagValueError", ["SystemExit", 1]) and not out.getvalue():
        return ["refused"]  # absl exits with 1 for the first program of a process, and raises for those after it
    return [ended, seen, bool(out.getvalue()), bool(err.getvalue())]


def app_run(tf: Any) -> Any:
    found = {}
    for arguments in (
        [], ["x", "y"], ["--t_int=3"], ["--t_int", "3", "rest"], ["--unknown=1"], ["--unknown", "1", "--t_int=4"],
        ["--t_int=4", "--", "--t_int=5", "--z"], ["-t_int=7"], ["--t_int=bad"], ["--t_flag", "--not_flag"],
        ["--not_flag"], ["--nothing_flag"], ["--t_flag=false"], ["--t_flag=perhaps"], ["--t_int"], ["-"], ["-x"],
        ["--t_list=a,b", "--t_list=c"], ["--t_enum=one"], ["--t_enum=three"], ["--t_multi=a", "--t_multi=b"],
        ["a", "--t_int=1", "b"], ["--t-int=2"], ["--undefok=abc", "--abc=1"], ["--t_in=3"], ["---t_int=3"],
        ["--t_int=0x10"], ["--t_float=1e-3"], ["--t_float=x"], ["--t_str="], ["--t_str"], ["--t_str", "--t_int=2"],
        ["--not_int"], ["--noq", "--not_flag=true"], ["--t_flag", "true"], ["--t_bounded=7"], ["--t_bounded=11"],
        ["--unknown", "--t_int=2", "--", "y"], ["--only", "x", "--t_int=2"], ["--helpfull"], ["--help"], ["-h"],
    ):  # fmt: skip
        values = _fresh(tf)
        tf.flags.DEFINE_integer("t_int", 1, "An integer.")
        tf.flags.DEFINE_integer("t_bounded", 5, "An integer.", lower_bound=0, upper_bound=10)
        tf.flags.DEFINE_float("t_float", 1, "A number.")
        tf.flags.DEFINE_string("t_str", "text", "A text.")
        tf.flags.DEFINE_boolean("t_flag", False, "A flag.")
        tf.flags.DEFINE_list("t_list", [], "A list.")
        tf.flags.DEFINE_enum("t_enum", "one", ["one", "two"], "A choice.")
        tf.flags.DEFINE_multi_string("t_multi", [], "Texts.")
        ended = _run(tf, arguments)
        if arguments == ["-h"]:
            ended = ended[:2]
        state = {name: plain(values[name].value) for name in values if name.startswith("t_")}
        found[" ".join(arguments)] = [*ended, {name: value for name, value in sorted(state.items())}]
    return found


def main_function(tf: Any) -> Any:
    _fresh(tf)
    found: dict[str, Any] = {}
    found["returns a number"] = _run(tf, [], lambda argv: 3)[0]
    found["returns None"] = _run(tf, [], lambda argv: None)[0]
    found["returns a text"] = _run(tf, [], lambda argv: "bad")[0]
    found["exits"] = _run(tf, [], lambda argv: sys.exit(4))[0]

    def fail(argv: Any) -> None:
        raise KeyError("x")

    found["raises"] = _run(tf, [], fail)[0]
    found["without arguments"] = _run(tf, [], lambda: None)[0]
    seen: list[Any] = []
    found["argv given"] = [_run(tf, ["--q"], lambda argv: seen.append(argv), argv=["name", "a", "--b", "c"])[0], seen]
    found["main by keyword"] = outcome(tf.app.run, main=lambda argv: 5, argv=["name"])
    sys.modules["__main__"].main = lambda argv: 6  # type: ignore[attr-defined]
    found["main of the script"] = outcome(tf.app.run, argv=["name"])
    return found


def with_argparse(tf: Any) -> Any:
    """The way of TensorFlow's own tutorials."""
    _fresh(tf)
    seen: list[Any] = []
    with _command_line("--steps=3", "--other=4", "x"):
        parser = argparse.ArgumentParser()
        parser.add_argument("--steps", type=int)
        flags, unparsed = parser.parse_known_args()
        ended = outcome(tf.app.run, main=lambda argv: seen.append(argv), argv=[sys.argv[0], *unparsed])
    return [flags.steps, unparsed, seen, ended]


def reading_before_parsing(tf: Any) -> Any:
    found = {}
    # Flags that nobody has defined are refused by TensorFlow here, and left alone by dtf, as by TensorFlow 1.0 to 1.4.
    for arguments in (["--t_int=4"], ["--t_int=x"], ["a", "--t_int=3"]):
        values = _fresh(tf)
        tf.flags.DEFINE_integer("t_int", 1, "An integer.")
        with _command_line(*arguments):
            found[" ".join(arguments)] = [
                values.is_parsed(),
                outcome(lambda values=values: values.t_int),
                values.is_parsed(),
                outcome(lambda values=values: values["t_int"].value),
                "t_int" in values,
                outcome(hasattr, values, "t_int"),
            ]
    values = _fresh(tf)
    with _command_line():
        found["no such flag"] = [outcome(lambda: values.t_nothing), outcome(lambda: values["t_nothing"])]
        found["has"] = [hasattr(values, "t_nothing"), "t_nothing" in values]
        found["private name"] = [outcome(lambda: values._t_nothing), hasattr(values, "__t_nothing")]
    return found


def setting_values(tf: Any) -> Any:
    values = _fresh(tf)
    tf.flags.DEFINE_integer("t_int", 1, "An integer.")
    tf.flags.DEFINE_string("t_str", "a", "A text.")
    tf.flags.DEFINE_boolean("t_flag", True, "A flag.")
    found: dict[str, Any] = {}
    with _command_line("--t_int=9"):
        values.t_str = "before"
        found["set before parsing"] = [values.t_str, values.t_int]
        values.t_int = 5
        found["set"] = [values.t_int, values["t_int"].value, values["t_int"].default, values["t_int"].present]
        found["set a text"] = outcome(setattr, values, "t_int", "x")
        found["unknown"] = outcome(setattr, values, "t_nothing", 1)
        values["t_str"].value = "through the flag"
        found["through the flag"] = values.t_str
        values.set_default("t_str", "other")
        found["default"] = [values["t_str"].default, values.t_str]
        tf.flags.FLAGS.t_flag = False
        found["flag"] = values.t_flag
        found["dict"] = {name: value for name, value in values.flag_values_dict().items() if name.startswith("t_")}
        found["names"] = sorted(name for name in dir(values) if name.startswith("t_"))
        found["items"] = sorted(name for name in values if name.startswith("t_"))
        del values.t_str
        found["deleted"] = [hasattr(values, "t_str"), outcome(lambda: values.t_str), outcome(delattr, values, "t_zzz")]
        found["parse again"] = [values(["prog", "--t_int=7", "q"]), values.t_int]
        found["reset"] = [values["t_int"].present, values["t_int"].using_default_value]
    return found


def old_names(tf: Any) -> Any:
    """What programs for TensorFlow 1.0 to 1.15 do with FLAGS to print all of it."""
    values = _fresh(tf)
    tf.flags.DEFINE_integer("t_int", 1, "An integer.")
    tf.flags.DEFINE_string("t_str", "a", "A text.")
    found: dict[str, Any] = {}
    with _command_line("--t_int=3"):
        values.is_parsed() or values(sys.argv)
        flags = getattr(values, "__flags")  # noqa: B009  (not mangled)
        found["flags"] = sorted(name for name in flags if name.startswith("t_"))
        found["values"] = {name: flags[name].value for name in ("t_int", "t_str")}
        found["by flag_values_dict"] = values.flag_values_dict()["t_int"]
        found["keys"] = sorted(name for name, _ in flags.items() if name.startswith("t_"))
        found["into string"] = "--t_int=3" in values.flags_into_string()
        found["len"] = len(values) == len(list(values))
        found["str"] = "t_int" in str(values)
        found["help"] = "An integer." in values.get_help()
        found["main module help"] = isinstance(values.main_module_help(), str)
        found["module_help"] = isinstance(values.module_help("x"), str)
    return found


def ways_to_define(tf: Any) -> Any:
    _fresh(tf)
    flags = tf.flags
    values = flags.FLAGS
    found: dict[str, Any] = {}

    def define(maker: str, *arguments: Any, **keywords: Any) -> Any:
        ended = outcome(lambda: getattr(flags, maker)(*arguments, **keywords) and None)
        name = arguments[0] if arguments else keywords.get("name", keywords.get("flag_name"))
        if ended is not None:
            return ended
        values.mark_as_parsed()
        flag = values[name]
        ended = [plain(flag.value), plain(flag.default), flag.help, flag.boolean, flag.name]
        delattr(values, name)
        return ended

    for maker in ("DEFINE_string", "DEFINE_integer", "DEFINE_float", "DEFINE_bool", "DEFINE_boolean"):
        for default in (None, "", "a", "1", 1, 1.5, True, "true", "no", [1], b"x"):
            found[f"{maker} {default!r}"] = define(maker, "t_x", default, "help")
        found[f"{maker} old names"] = define(maker, flag_name="t_x", default_value=None, docstring="old")
        found[f"{maker} new names"] = define(maker, name="t_x", default=None, help="new")
        found[f"{maker} mixed"] = define(maker, "t_x", None, docstring="old")
        found[f"{maker} without help"] = define(maker, "t_x", None)
        found[f"{maker} no help"] = define(maker, "t_x", None, None)
        found[f"{maker} empty name"] = define(maker, "", None, "help")
        found[f"{maker} wrong name"] = define(maker, "t x", None, "help")
        found[f"{maker} short name"] = define(maker, "t_x", None, "help", short_name="Z")
        found[f"{maker} required"] = define(maker, "t_x", None, "help", required=True)
        found[f"{maker} unknown keyword"] = define(maker, "t_x", None, "help", nothing=True)
    for default in (None, "", "a", "a,b", "a, b", ["a"], [], "\"a,b\",c"):
        found[f"list {default!r}"] = define("DEFINE_list", "t_x", default, "help")
        found[f"space list {default!r}"] = define("DEFINE_spaceseplist", "t_x", default, "help")
        found[f"multi string {default!r}"] = define("DEFINE_multi_string", "t_x", default, "help")
        found[f"multi enum {default!r}"] = define("DEFINE_multi_enum", "t_x", default, ["a", "b"], "help")
    for default in (None, "1", 1, [1, 2], "x", 1.5):
        found[f"multi integer {default!r}"] = define("DEFINE_multi_integer", "t_x", default, "help")
        found[f"multi float {default!r}"] = define("DEFINE_multi_float", "t_x", default, "help")
    for default in (None, "a", "A", "c"):
        found[f"enum {default!r}"] = define("DEFINE_enum", "t_x", default, ["a", "b"], "help")
        found[f"enum, any case {default!r}"] = define(
            "DEFINE_enum", "t_x", default, ["a", "b"], "help", case_sensitive=False
        )
    found["enum of nothing"] = define("DEFINE_enum", "t_x", None, [], "help")
    found["bounds"] = [
        define("DEFINE_integer", "t_x", 11, "help", 0, 10),
        define("DEFINE_integer", "t_x", 5, "help", 0, 10),
        define("DEFINE_float", "t_x", -0.5, "help", lower_bound=0.0),
    ]
    return found


def duplicates(tf: Any) -> Any:
    values = _fresh(tf)
    tf.flags.DEFINE_integer("t_int", 1, "An integer.")
    found: dict[str, Any] = {}
    found["same"] = outcome(tf.flags.DEFINE_integer, "t_int", 1, "An integer.")
    found["other"] = outcome(tf.flags.DEFINE_string, "t_int", "1", "A text.")
    found["error's base"] = issubclass(tf.flags.DuplicateFlagError, tf.flags.Error)
    found["override"] = outcome(lambda: tf.flags.DEFINE_string("t_int", "z", "A text.", allow_override=True) and None)
    with _command_line():
        found["value"] = values.t_int
    values.unparse_flags()
    found["after unparse"] = values.is_parsed()
    return found


def required_and_checked(tf: Any) -> Any:
    found: dict[str, Any] = {}
    flags = tf.flags

    def parse(*arguments: str) -> Any:
        def run() -> Any:
            flags.FLAGS(["prog", *arguments])
            return {name: flags.FLAGS[name].value for name in flags.FLAGS if name.startswith("t_")}

        return outcome(run)

    _fresh(tf)
    flags.DEFINE_string("t_s", None, "A text.")
    flags.mark_flag_as_required("t_s")
    found["required"] = [parse(), parse("--t_s=x")]
    found["required in app.run"] = _run(tf, [])
    _fresh(tf)
    flags.DEFINE_string("t_s", None, "A text.")
    flags.DEFINE_string("t_u", None, "A text.")
    flags.mark_flags_as_required(["t_s", "t_u"])
    found["both required"] = [parse("--t_s=x"), parse("--t_s=x", "--t_u=y")]
    _fresh(tf)
    flags.DEFINE_string("t_s", None, "A text.", required=True)
    found["required by keyword"] = [parse(), parse("--t_s=x")]
    found["required, unknown"] = outcome(flags.mark_flag_as_required, "t_zzz")
    _fresh(tf)
    flags.DEFINE_integer("t_i", 4, "A number.")
    flags.register_validator("t_i", lambda value: value % 2 == 0, message="must be even")
    found["validator"] = [parse(), parse("--t_i=3"), parse("--t_i=6"), outcome(setattr, flags.FLAGS, "t_i", 5)]
    found["value after a refused one"] = flags.FLAGS["t_i"].value

    _fresh(tf)
    flags.DEFINE_integer("t_j", 4, "A number.")

    @flags.validator("t_j")
    def _positive(value: int) -> bool:
        if value < 0:
            raise flags.ValidationError("negative")
        return True

    found["decorator"] = [parse(), parse("--t_j=-3"), parse("--t_j=6")]
    _fresh(tf)
    flags.DEFINE_integer("t_a", 1, "A number.")
    flags.DEFINE_integer("t_b", 2, "A number.")
    flags.register_multi_flags_validator(["t_a", "t_b"], lambda all_: all_["t_a"] < all_["t_b"], message="order")
    found["several"] = [parse(), parse("--t_a=3"), parse("--t_a=3", "--t_b=4")]
    _fresh(tf)
    flags.DEFINE_string("t_c", None, "A text.")
    flags.DEFINE_string("t_d", None, "A text.")
    flags.mark_flags_as_mutual_exclusive(["t_c", "t_d"], required=True)
    found["exclusive"] = [parse(), parse("--t_c=3"), parse("--t_c=3", "--t_d=4")]
    _fresh(tf)
    flags.DEFINE_bool("t_e", False, "A flag.")
    flags.DEFINE_bool("t_f", False, "A flag.")
    flags.mark_bool_flags_as_mutual_exclusive(["t_e", "t_f"])
    found["exclusive flags"] = [parse(), parse("--t_e"), parse("--t_e", "--t_f")]
    return found


def aliases_and_holders(tf: Any) -> Any:
    values = _fresh(tf)
    flags = tf.flags
    holder = flags.DEFINE_integer("t_int", 1, "An integer.")
    flags.DEFINE_alias("t_alias", "t_int")
    with _command_line():
        values(["prog", "--t_alias=5"])
    found = {"holder": [holder.value, holder.default, holder.name], "alias": [values.t_int, values.t_alias]}
    values.t_int = 8
    found["set"] = [holder.value, values.t_alias]
    return found


def flag_files(tf: Any) -> Any:
    values = _fresh(tf)
    tf.flags.DEFINE_integer("t_int", 1, "An integer.")
    tf.flags.DEFINE_string("t_str", "a", "A text.")
    with tempfile.NamedTemporaryFile("w", suffix=".flags") as file:
        file.write("# remark\n--t_int=4\n\n--t_str=b c\n")
        file.flush()
        rest = values(["prog", f"--flagfile={file.name}", "x"])
        found = [rest, values.t_int, values.t_str]
    values.unparse_flags()
    found.append(outcome(values, ["prog", "--flagfile=/nonexistent/flags"]))
    with tempfile.NamedTemporaryFile("r", suffix=".flags") as file:
        values.append_flags_into_file(file.name)
        found.append("--t_int=4" in file.read())
    return found


def parsing_by_hand(tf: Any) -> Any:
    values = _fresh(tf)
    tf.flags.DEFINE_integer("t_int", 1, "An integer.")
    tf.flags.DEFINE_boolean("t_flag", False, "A flag.")
    found: dict[str, Any] = {}
    for arguments, known_only in (
        (["--t_int=2", "x", "--t_flag"], False), (["--zzz", "x"], False), (["--zzz", "x", "--t_int=5"], True),
        (["--zzz=1", "--t_flag", "--", "--t_int=6"], True), (["--t_in=2"], False), ([], False),
    ):  # fmt: skip
        found[f"{arguments} {known_only}"] = [
            outcome(values, ["prog", *arguments], known_only=known_only), values["t_int"].value, values["t_flag"].value
        ]
    found["nothing"] = outcome(values, [])
    found["a text"] = outcome(values, "prog")
    values.set_gnu_getopt(False)
    found["no gnu"] = outcome(values, ["prog", "x", "--t_int=77"])
    values.set_gnu_getopt(True)
    found["gnu"] = [outcome(values, ["prog", "x", "--t_int=78"]), values["t_int"].value]
    return found


_NAMES = """
    ArgumentParser BooleanFlag BooleanParser CantOpenFlagFileError DEFINE DEFINE_alias DEFINE_bool
    DEFINE_boolean DEFINE_enum DEFINE_enum_class DEFINE_flag DEFINE_float DEFINE_integer DEFINE_list
    DEFINE_multi DEFINE_multi_enum DEFINE_multi_float DEFINE_multi_integer DEFINE_multi_string
    DEFINE_spaceseplist DEFINE_string DuplicateFlagError EnumFlag EnumParser Error FLAGS Flag
    FlagNameConflictsWithMethodError FlagValues FloatParser IllegalFlagValueError IntegerParser
    ListParser ListSerializer MultiFlag UnparsedFlagAccessError UnrecognizedFlagError ValidationError
    adopt_module_key_flags declare_key_flag disclaim_key_flags doc_to_help flag_dict_to_args
    get_help_width mark_bool_flags_as_mutual_exclusive mark_flag_as_required
    mark_flags_as_mutual_exclusive mark_flags_as_required multi_flags_validator
    register_multi_flags_validator register_validator text_wrap validator
""".split()


def names(tf: Any) -> Any:
    return {
        "flags": [name for name in _NAMES if hasattr(tf.flags, name)],
        "app": [name for name in ("flags", "run") if hasattr(tf.app, name)],
        "same": tf.app.flags.FLAGS is tf.flags.FLAGS,
        "undashed": outcome(tf.flags.flag_dict_to_args, {"a": 1, "b": True, "c": None, "d": [1, 2]}) is not None,
    }  # fmt: skip


BEHAVIOURS = [
    app_run, main_function, with_argparse, reading_before_parsing, setting_values, old_names, ways_to_define,
    duplicates,
    required_and_checked, aliases_and_holders, flag_files, parsing_by_hand, names,
]  # fmt: skip

if __name__ == "__main__":
    run_all(BEHAVIOURS)
