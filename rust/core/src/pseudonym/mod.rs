//! What stands in the output instead of a user id.
//!
//! ```text
//! key: fixed ────────────────────────┐
//! key: kept, one for each period ────┼─→ keyring ─→ makers ─→ pseudonyms
//! key: chain, each from the last ────┘   by time     of ids    as spelled
//!        └ chain_file
//! ```
//!
//! A pseudonym is a keyed code of the id, or for addresses another address. Without the key nobody
//! can tell whose it is, also not by trying ids. The ids that the gate counts by are something else,
//! under other keys: pseudonyms may change while a crowd must not.

mod address;
mod chain;
mod chain_file;
mod code;
mod date;
mod keyring;
mod maker;
mod spelling;

pub use chain_file::ChainError;
pub use keyring::{Keyring, Named, Periods};
pub use maker::Maker;
pub use spelling::{Pseudonym, PseudonymFormat};
