"""What there is to read and to install: help TOPIC, completion for shells."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from dtfctl.commands.frame import UNKNOWN, Options, command, fail

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def add_to(group: click.Group) -> None:
    @command(group, "help")
    @click.argument("words", nargs=-1, metavar="[TOPIC|COMMAND]", shell_complete=_complete)
    def manual(options: Options, words: tuple[str, ...]) -> None:
        """Explains a topic or a command; without an argument, lists them."""
        from dtfctl.commands.topics import TOPICS, title

        if not words:
            print("Topics (dtfctl help TOPIC):\n")
            width = max(map(len, TOPICS))
            print("\n".join(f"  {name:{width}}  {title(text())}" for name, text in TOPICS.items()))
            print("\nCommands: dtfctl --help, dtfctl COMMAND --help")
            return
        if words[0] == "key":
            from dtfctl.commands.keys import explained

            print("\n".join(explained(words[1] if len(words) > 1 else "")))
            return
        name = "-".join(words)
        context = click.get_current_context()
        found = group.get_command(context, words[0])
        if name in TOPICS:
            text = TOPICS[name]()
            print(text) if not sys.stdout.isatty() else click.echo_via_pager(text + "\n")
        elif found is not None:
            assert context.parent is not None
            print(found.get_help(click.Context(found, info_name=words[0], parent=context.parent)))
        else:
            fail(UNKNOWN, f"unknown topic or command {name} (topics: {', '.join(TOPICS)})")

    @command(group)
    @click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
    def completion(options: Options, shell: str) -> None:
        """Prints the shell code that completes commands, clusters and tasks.

        \b
        bash:  echo 'eval "$(dtfctl completion bash)"' >> ~/.bashrc
        zsh:   echo 'eval "$(dtfctl completion zsh)"' >> ~/.zshrc
        fish:  dtfctl completion fish > ~/.config/fish/completions/dtfctl.fish
        """
        from click.shell_completion import get_completion_class

        found = get_completion_class(shell)
        assert found is not None
        # Of bash only the text is wanted here, not a look at which version is installed.
        maker = found(group, {}, "dtfctl", COMPLETE_VARIABLE)
        print(maker.source_template % maker.source_vars())


COMPLETE_VARIABLE = "_DTFCTL_COMPLETE"


def _complete(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    from dtfctl.commands.topics import TOPICS

    names = [*TOPICS, *context.find_root().command.list_commands(context)]  # type: ignore[attr-defined]
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]
