//! One conversion of the core's errors to Python exceptions.

use pyo3::exceptions::{PyMemoryError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::{PyErr, create_exception};
use zveil_core::Error;

create_exception!(
    zveil,
    SnapshotError,
    PyValueError,
    "A snapshot that cannot be used: foreign, of another version or key, cut off or altered."
);

/// What a call can end with, besides an answer.
pub(crate) enum Failure {
    Core(Error),
    /// A panic went through an earlier call: the state may be half changed.
    Broken,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            // A panic, only on another thread.
            Error::Lost => Self::Broken,
            error => Self::Core(error),
        }
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        let Failure::Core(error) = failure else {
            return PyRuntimeError::new_err(
                "this gate stopped after an internal error and decides nothing more; \
                 restore it from a snapshot or make a new one",
            );
        };
        let words = error.to_string();
        match error {
            Error::Lost => PyRuntimeError::new_err(words),
            Error::Memory(_) => PyMemoryError::new_err(words),
            Error::NoRandomness => PyOSError::new_err(words),
            Error::Snapshot(zveil_core::SnapshotError::Io { source, .. }) => {
                match source.raw_os_error() {
                    Some(code) => PyOSError::new_err((code, words)),
                    None => PyOSError::new_err(words),
                }
            }
            Error::Snapshot(_) => SnapshotError::new_err(words),
            Error::Chain(failed) if failed.is_io() => PyOSError::new_err(words),
            Error::Chain(_) | Error::Jump { .. } => PyValueError::new_err(words),
            Error::Setting { .. } | Error::Lengths { .. } | Error::State(_) => {
                PyValueError::new_err(words)
            }
        }
    }
}
