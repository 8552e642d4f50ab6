"""What changes the service while it runs: for tokens with the right to admin."""

from __future__ import annotations

import json
from typing import Any

from zveil.serve.engine import Engine
from zveil.serve.log import Log
from zveil.serve.problem import refuse
from zveil.serve.replay import Replays
from zveil.serve.tokens import Tokens
from zveil.serve.visit import Visit

_MOST = 64 << 10


class Admin:
    """Forgets users, sets z, saves the state.

    Parameters
    ----------
    engine
        What is changed.
    tokens
        Who may; None if anyone.
    log
        Is told that something was changed, never whom it was about.
    replays
        Has answers, in which somebody may be who is to be erased.
    """

    def __init__(self, engine: Engine, tokens: Tokens | None, log: Log, replays: Replays) -> None:
        self._engine = engine
        self._replays = replays
        self._tokens = tokens
        self._log = log

    async def forget(self, visit: Visit) -> None:
        """Answer ``POST /v1/forget``: erase a user from the state."""
        said = await self._said(visit, {"user"})
        user = said.get("user")
        if isinstance(user, bool) or not isinstance(user, str | int | float) or user == "":
            raise refuse("bad-parameters", "Send an object with a member 'user': text or number.")
        try:
            count = await self._engine.forget(user)
        except (OverflowError, ValueError):
            raise refuse("bad-parameters", "The user is of no kind that a gate takes.") from None
        self._replays.clear()
        self._log.say("forget", token=visit.token and visit.token.name)
        await self._answer(visit, {"attributes": count})

    async def set_z(self, visit: Visit) -> None:
        """Answer ``POST /v1/z``: let attributes need another number of users."""
        said = await self._said(visit, {"z", "attribute"})
        z, attribute = said.get("z"), said.get("attribute")
        if isinstance(z, float) and z.is_integer():  # JSON knows no difference
            z = int(z)
        if isinstance(z, bool) or not isinstance(z, int):
            raise refuse("bad-parameters", "Send an object with a member 'z', a whole number.")
        if attribute is not None and not isinstance(attribute, str):
            raise refuse("bad-parameters", "The member 'attribute' names a field of the policy.")
        try:
            await self._engine.set_z(z, attribute)
        except ValueError as error:
            raise refuse("bad-parameters", str(error)) from None
        self._log.say("z", token=visit.token and visit.token.name, z=z)
        await self._answer(visit, {"z": z})

    async def save(self, visit: Visit) -> None:
        """Answer ``POST /v1/save``: save the state now."""
        visit.authorize(self._tokens, "admin")
        if self._engine.keeping is None:
            raise refuse("no-state", "Start it with --state DIR to keep its state.")
        await self._engine.save()
        await self._answer(visit, {"saved": True})

    async def _said(self, visit: Visit, names: set[str]) -> dict[str, Any]:
        visit.authorize(self._tokens, "admin")
        stated = (visit.header(b"content-type") or b"").partition(b";")[0].strip().lower()
        if stated != b"application/json":
            # A page of elsewhere cannot have a browser send this without asking.
            raise refuse("media-type", "Send application/json.")
        try:
            said = json.loads(await visit.whole(_MOST))
        except (ValueError, RecursionError):
            said = None
        if not isinstance(said, dict) or set(said) - names:
            members = " and ".join(f"'{name}'" for name in sorted(names, reverse=True))
            raise refuse("bad-parameters", f"Send an object with members of {members} only.")
        return said

    async def _answer(self, visit: Visit, said: dict[str, Any]) -> None:
        await visit.answer(200, "application/json", json.dumps(said).encode() + b"\n")
