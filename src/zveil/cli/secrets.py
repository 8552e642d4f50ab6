"""The secrets of a run: keys of pseudonyms, of gates and of a state, from where they are."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from zveil._native import Keyring
from zveil.durations import duration_ns
from zveil.keys import VARIABLE, key_of, open_keyring, take_key
from zveil.policy import Policy

if TYPE_CHECKING:
    from zveil.state.store import Store


@dataclass(frozen=True)
class Secrets:
    """The keys that are given to a run by ``--key-file`` or the environment."""

    policy: Policy
    file: str | None

    @property
    def _is_chain(self) -> bool:
        """Whether the key file is a chain, which is for pseudonyms alone."""
        return self.policy.user.rotate is not None and not self.policy.user.keep_keys

    def given(self) -> bytes | None:
        """Give the key that stays; None if there is none. The environment still has it then."""
        if self._is_chain:
            return None
        given = take_key({VARIABLE: os.environ.get(VARIABLE, "")})
        return key_of(self.file) if given is None and self.file is not None else given

    def gate_key(self, store: Store | None = None) -> bytes | None:
        """Give what the keys of the gates are derived from; None if the run has none that stays."""
        draws = any(each.noise or each.swap for each in self.policy.attributes)
        given = None
        if self.policy.user.pseudonym != "raw" or draws:
            given = self.given()
        return store.secret("gates") if given is None and store is not None else given

    def keyring(self, store: Store | None = None) -> Keyring | None:
        """Open the keys of the pseudonyms; None if ids leave raw."""
        policy = self.policy
        if policy.user.pseudonym == "raw":
            os.environ.pop(VARIABLE, None)
            return None
        future = policy.limits.max_future
        file: str | os.PathLike[str] | None = self.file
        if self._is_chain and file is None and store is not None:
            from zveil.state.folder import own_chain

            file = own_chain(store.folder)
        return open_keyring(
            policy.user.pseudonym,
            file=file,
            environment=os.environ,
            own=None if store is None else store.secret("pseudonyms"),
            rotate_ns=policy.rotate_ns,
            keep_keys=policy.user.keep_keys,
            lateness_ns=policy.lateness_ns,
            max_future_ns=None if future is None else duration_ns(future, "max_future"),
        )
