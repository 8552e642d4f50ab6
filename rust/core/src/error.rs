//! Everything that can go wrong, in words for the person who has to mend it. No word of the data.

use crate::pseudonym::ChainError;
use std::io;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{parameter}: {rule}, got {got}")]
    Setting { parameter: &'static str, rule: String, got: String },

    #[error(
        "times, users and attributes must have one length, got {times}, {users} and {attributes}"
    )]
    Lengths { times: usize, users: usize, attributes: usize },

    #[error("the operating system gave no random bytes for a key")]
    NoRandomness,

    #[error("memory could not be had from the operating system: {0}")]
    Memory(io::Error),

    #[error(
        "rotate: the time of the events jumps ahead by more than {most} periods; rotate less often, \
         or turn such times away with a smaller max-future"
    )]
    Jump { most: i64 },

    #[error(transparent)]
    Chain(#[from] ChainError),

    #[error("snapshot: {0}")]
    Snapshot(#[from] SnapshotError),

    /// The thread of a meter, and with it what was measured.
    #[error("a thread was lost after an internal error, and what it was at work with")]
    Lost,

    /// What a way, a keyring or a swap was to go on from.
    #[error("state: {0}")]
    State(&'static str),
}

/// Why a snapshot is refused. Nothing of it is used then.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    #[error("the file is not a zveil snapshot; check the path")]
    Foreign,

    #[error(
        "the file has format {found}, this version reads format {known}; \
         restore it with the version of zveil that wrote it"
    )]
    Version { found: u16, known: u16 },

    #[error("the file was written with another key; give the key of the gate that wrote it")]
    Key,

    #[error("the file is cut off or was altered; restore an older snapshot or start a new gate")]
    Damaged,

    #[error("could not {step} the file: {source}")]
    Io { step: &'static str, source: io::Error },
}
