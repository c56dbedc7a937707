"""The group of all commands, each imported when it is meant; the help of the program, which imports none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from fuse_index.cli.front.commands import ALIASES, COMMANDS, COMMANDS_BY_TASK, Command
from fuse_index.cli.front.usage import USAGE_ERROR, reword_usage

if TYPE_CHECKING:
    from rich.console import RenderableType


class LazyGroup(TyperGroup):
    """Commands by name, found in ``commands.py`` and loaded from there."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: Any = CommandsByName()

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a name or an alias; None if there is none."""
        return self.commands.get(ALIASES.get(cmd_name, cmd_name))

    def invoke(self, ctx: Any) -> Any:
        """Run a command; what is wrong with its line is said with what to type."""
        try:
            return super().invoke(ctx)
        except USAGE_ERROR as refused:
            reword_usage(refused)
            raise

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read what is typed before the command."""
        try:
            return list(super().parse_args(ctx, args))
        except USAGE_ERROR as refused:
            reword_usage(refused)
            raise

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all commands, by task."""
        return list(self.commands)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """The commands and options that begin as what was typed; no command is loaded for that."""
        named = TyperGroup(
            name=self.name,
            commands={name: TyperCommand(name, help=command.summary) for name, command in COMMANDS.items()},
            params=self.params,
        )
        context = type(ctx)(named, info_name=ctx.info_name, parent=ctx.parent)
        return named.shell_complete(context, incomplete)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the commands, a panel for each task, and what the program takes before them."""
        print_help(ctx, self)


class CommandsByName(Mapping[str, Any]):
    """All commands; one is imported when it is asked for."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = load_command(name, COMMANDS[name])
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


def load_command(name: str, command: Command) -> Any:
    """Import a command, or a group of some, and give its help the example that it has in the table."""
    module, _, app = command.app.partition(":")
    loaded: Any = get_command(getattr(import_module(f"fuse_index.cli.{module}"), app))
    if name in getattr(loaded, "commands", {}):
        loaded = loaded.commands[name]
    loaded.epilog = f"Example: fuse-index {command.example}"
    return loaded


def print_help(context: Any, group: TyperGroup) -> None:
    """Print the help of the program as panels."""
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    from fuse_index.cli.output import stdout_console

    console = stdout_console()
    width = max(map(len, COMMANDS))

    def panel(title: str, lines: list[tuple[str, str]], note: RenderableType | None = None) -> Panel:
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="bold cyan", min_width=width)
        grid.add_column(overflow="fold")
        for name, text in lines:
            grid.add_row(Text(name), Text(text))
        if note is not None:
            grid.add_row("", note)
        return Panel(grid, title=title, title_align="left", border_style="dim", width=min(console.width, 100))

    console.print(Text(f"\n{context.command_path} [OPTIONS] COMMAND …\n\n{group.help}\n"))
    for task, commands in COMMANDS_BY_TASK.items():
        example = Text(f"fuse-index {next(iter(commands.values())).example}", style="dim")
        console.print(panel(task, [(name, command.summary) for name, command in commands.items()], example))
    records = [parameter.get_help_record(context) for parameter in group.get_params(context)]
    console.print(panel("Options", [record for record in records if record is not None]))
    console.print(Text("fuse-index COMMAND --help says what a command takes.\n"))
