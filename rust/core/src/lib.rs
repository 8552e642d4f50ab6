//! Exact, zero-delay z-anonymity for streams of (time, user, attribute).
//!
//! An observation is released at once if at least z distinct users showed its attribute within the
//! past window, and veiled otherwise. [`Gate`] decides; everything about z, windows, crowds, time
//! and memory is behind it. It keeps keyed hashes only, never a user or a value.
//!
//! The way of an observation through the modules:
//!
//! ```text
//! column ─→ key ─→ admission ─→ shard: table ─→ crowd ─→ released or veiled
//! values    hashes  clock             attribute  users    (batch: many of them at a time)
//! ```
//!
//! Beside it: `slab` and `memory` (where crowds live), `expiry` (when they go), `snapshot` and `state`
//! (what is kept), `ids` (which events came before), and `pseudonym` (what leaves instead of users).

mod admission;
mod batch;
mod census;
mod codec;
mod column;
mod crew;
mod crowd;
mod deal;
mod error;
mod expiry;
mod gate;
mod ids;
mod key;
pub mod ladder;
mod memory;
mod meter;
mod names;
mod noise;
mod pseudonym;
mod replace;
mod resettle;
mod sealed;
mod secret;
mod settings;
mod shard;
mod slab;
mod slot;
mod snapshot;
pub mod state;
mod swap;
mod table;
pub mod text;

pub use batch::VEILED;
pub use column::{Blocks, Column, Prepared, Prepares, Role, Value};
pub use error::{Error, SnapshotError};
pub use gate::{CrowdSize, Gate, Stats};
pub use ids::EventIds;
pub use meter::{Field, Lens, LiveMeter, Meter, MeterSettings, Reading, Released, Shown, Sight};
pub use names::{ListError, NameFilter, NameList};
pub use noise::NoiseSettings;
pub use pseudonym::{ChainError, Keyring, Maker, Named, Periods, Pseudonym, PseudonymFormat};
pub use resettle::Resettled;
pub use secret::Secret;
pub use settings::{LARGEST_Z, MOST_LEVELS, MOST_THREADS, Rule, Settings};
pub use swap::{Draw, Observations, Owned, Swap};

#[cfg(fuzzing)]
#[doc(hidden)]
pub use {snapshot::read_plain, state::read_plain_state};
