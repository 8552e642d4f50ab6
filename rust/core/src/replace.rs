//! Files that are there whole or not at all: written beside their place, synced, and renamed.

use crate::codec::{Outcome, io};
use crate::error::SnapshotError;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

/// A file that is going to be replaced.
pub(crate) struct Replacement {
    path: PathBuf,
    folder: PathBuf,
    beside: PathBuf,
}

impl Replacement {
    /// By one with a name of chance: several may be under way at a time.
    pub(crate) fn new(path: &Path) -> Outcome<Self> {
        let mut suffix = [0; 8];
        getrandom::fill(&mut suffix).map_err(|error| SnapshotError::Io {
            step: "name",
            source: std::io::Error::other(error.to_string()),
        })?;
        Self::beside(path, &format!("{:016x}", u64::from_le_bytes(suffix)))
    }

    /// By one that always has the same name. Only one may be under way at a time, and what one that
    /// was killed has left behind goes with the next.
    pub(crate) fn alone(path: &Path) -> Outcome<Self> {
        Self::beside(path, "new")
    }

    fn beside(path: &Path, suffix: &str) -> Outcome<Self> {
        let mut name = OsString::from(".");
        name.push(path.file_name().ok_or(SnapshotError::Foreign)?);
        name.push(".");
        name.push(suffix);
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        Ok(Self { path: path.to_owned(), folder: folder.to_owned(), beside: folder.join(name) })
    }

    /// Writes the file, readable by its owner only, and puts it into its place.
    pub(crate) fn write(&self, write: impl FnOnce(&File) -> Outcome<()>) -> Outcome<()> {
        self.clear();
        let outcome = self.write_and_rename(write);
        if outcome.is_err() {
            self.clear();
        }
        outcome
    }

    /// Takes away what was left beside. It may not be there; where it cannot be taken away, another
    /// step fails and says so.
    pub(crate) fn clear(&self) {
        let _ = std::fs::remove_file(&self.beside);
    }

    fn write_and_rename(&self, write: impl FnOnce(&File) -> Outcome<()>) -> Outcome<()> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&self.beside).map_err(io("create"))?;
        write(&file)?;
        file.sync_all().map_err(io("sync"))?;
        std::fs::rename(&self.beside, &self.path).map_err(io("rename"))?;
        // The rename itself must survive a loss of power.
        #[cfg(unix)]
        File::open(&self.folder)
            .and_then(|folder| folder.sync_all())
            .map_err(io("sync the folder of"))?;
        Ok(())
    }
}
