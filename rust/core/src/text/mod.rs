//! Lines of text read in place: where the fields of a record lie, and what is wrong with it.
//!
//! ```text
//! line ─→ json, csv, log ─→ cells ─→ time: nanoseconds
//! bytes   scanners          places    unescape: text
//! ```
//!
//! Nothing is copied and nothing is kept of a line but the order of its keys. `block` looks at
//! sixteen bytes at a time for both scanners.

mod block;
mod cell;
mod csv;
mod header;
mod json;
mod log;
mod messages;
mod pen;
mod plan;
mod problem;
mod question;
mod read;
mod render;
mod rows;
mod stamp;
mod swaps;
mod take;
mod time;
mod way;
mod witness;

#[cfg(test)]
mod tests;

pub use cell::{Cell, Kind};
pub use csv::{CsvScanner, CsvStep, quote_csv, unquote_csv};
pub use json::{JsonScanner, quote_json, unescape_json};
pub use log::{Headless, LogFormat, LogLine, LogScanner};
pub use messages::Messages;
pub use plan::{Empty, Hierarchy, Output, Plan, TextFormat, path};
pub use problem::Problem;
pub use read::Trouble;
pub use render::{Marks, TextColumn, Written};
pub use stamp::Step;
pub use time::TimeFormat;
pub use way::{Beside, Keyed, Left, Tally, Way, WayError};
pub use witness::Witness;
