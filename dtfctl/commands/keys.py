"""What a key of the cluster file means: explain-key, from the table that its reader is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dtfctl.commands.frame import UNKNOWN, Options, command, fail

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from dtfctl.config.kinds import AnyKind, Key


def add_to(group: click.Group) -> None:
    @command(group, "explain-key")
    @click.argument("path", required=False, metavar="[KEY]", shell_complete=_complete)
    def explain_key(options: Options, path: str | None) -> None:
        """Explains a key of the cluster file: dtfctl explain-key jobs.worker.restart.attempts.

        Names of jobs, hosts and tasks may be any. Without a KEY it lists the keys at the top.
        """
        print("\n".join(explained(path or "")))


def explained(path: str) -> list[str]:
    """The lines about a key; "" stands for the top."""
    import difflib

    from dtfctl.config import schema
    from dtfctl.config.kinds import Section, Table

    kind: AnyKind = schema.CLUSTER
    found: Key | None = None
    done: list[str] = []
    for word in (part for part in path.split(".") if part):
        if isinstance(kind, Table):
            kind, found = kind.kind, None
        elif isinstance(kind, Section) and word in kind.keys:
            found = kind.keys[word]
            kind = found.kind
        else:
            known = list(kind.keys) if isinstance(kind, Section) else []
            near = difflib.get_close_matches(word, known, 1)
            place = ".".join(done) or "the top of the cluster file"
            if not known:
                fail(UNKNOWN, f"{place} has no keys below it")
            advice = f"did you mean {near[0]}?" if near else f"its keys: {', '.join(known)}"
            fail(UNKNOWN, f'{place} has no key "{word}"; {advice}')
        done.append(word)
    lines = [path or "The keys at the top of the cluster file"]
    if found is not None:
        lines += ["", f"  {found.help}"]
        if found.default:
            lines.append(f"  Default: {found.default}")
    lines += _allowed(kind)
    if isinstance(kind, Table):
        lines += ["", "  Any names, each with:" if isinstance(kind.kind, Section) else "  Any names, each with a value"]
        kind = kind.kind
    if isinstance(kind, Section):
        if kind.short:
            lines.append(f"  One value in place of the keys is `{kind.short}`.")
        lines.append("")
        width = max(map(len, kind.keys))
        for name, key in kind.keys.items():
            default = f" [{key.default}]" if key.default else ""
            lines.append(f"  {name:{width}}  {key.help}{default}")
        for group in kind.one_of:
            lines.append(f"  Only one of: {', '.join(group)}.")
    return lines


def _allowed(kind: AnyKind) -> list[str]:
    """The words that a value may be, and its limits, as the schema has them."""
    from dtfctl.config.kinds import Kind

    if not isinstance(kind, Kind):
        return []
    lines = []
    for schema in kind.schema.get("anyOf", [kind.schema]):
        words: list[Any] = schema.get("enum", [])
        if words:
            lines.append(f"  One of: {', '.join(map(str, words))}")
        if "minimum" in schema or "maximum" in schema:
            lines.append(f"  Between {schema.get('minimum', '-')} and {schema.get('maximum', 'any number')}")
    return lines


def _complete(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Keys, one level after the other; below jobs, hosts and tasks any name is good."""
    from click.shell_completion import CompletionItem

    from dtfctl.config import schema
    from dtfctl.config.kinds import Section, Table

    *done, last = incomplete.split(".")
    kind: AnyKind = schema.CLUSTER
    for word in done:
        if isinstance(kind, Table):
            kind = kind.kind
        elif isinstance(kind, Section) and word in kind.keys:
            kind = kind.keys[word].kind
        else:
            return []
    names = list(kind.keys) if isinstance(kind, Section) else ["worker", "ps"] if isinstance(kind, Table) else []
    return [CompletionItem(".".join([*done, name])) for name in names if name.startswith(last)]
