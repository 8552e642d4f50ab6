"""`zveil completion`: what a shell needs to complete commands and options."""

import click
from click.shell_completion import get_completion_class


@click.command(short_help="Print a script that completes zveil's commands in your shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script for your SHELL that completes commands, options and files.

    \b
    bash   echo 'eval "$(zveil completion bash)"' >> ~/.bashrc
    zsh    echo 'eval "$(zveil completion zsh)"' >> ~/.zshrc
    fish   zveil completion fish > ~/.config/fish/completions/zveil.fish
    """  # noqa: D301  # click's mark for text that must not be wrapped
    found = get_completion_class(shell)
    if found is None:  # the choices above are those that click has
        raise click.UsageError(f"no completion for {shell}")
    root = context.find_root()
    click.echo(found(root.command, {}, "zveil", "_ZVEIL_COMPLETE").source())
