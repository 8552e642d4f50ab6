//! A column that nothing can be decided about.

use std::fmt::Display;

/// Why a column cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{parameter}: expected {expected}, got {got}")]
pub struct Unsupported {
    parameter: &'static str,
    expected: &'static str,
    /// A type, never a value.
    got: String,
}

impl Unsupported {
    pub(crate) fn new(parameter: &'static str, expected: &'static str, got: impl Display) -> Self {
        Self { parameter, expected, got: got.to_string() }
    }
}
