//! The file that a chain lives in. It holds the oldest key that is still needed, and never one from
//! before: it is written anew, beside its place, each time that one goes.
//!
//! ```text
//! zveil chain
//! period 86400000000000          nanoseconds; this line and the next come with the first event
//! number 20641                   of the period that the key belongs to, counted from 1970
//! key 0123…                      64 hexadecimal digits
//! ```
//!
//! One run has it at a time: the file is locked, and so is the one that takes its place before it
//! does.

use super::date::date;
use crate::secret::Secret;
use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use zeroize::Zeroizing;

const TITLE: &str = "zveil chain";
const LONGEST: usize = 1024;
/// The file may be replaced between being opened and being locked.
const TRIES: usize = 10;
/// How often a lock is asked for that somebody has, and how long it is left between.
const LOCK_TRIES: usize = 20;
const BETWEEN: Duration = Duration::from_millis(50);

/// Why the file of a chain cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("key-file: {path}: {problem}")]
pub struct ChainError {
    path: String,
    problem: Problem,
}

#[derive(Debug, thiserror::Error)]
enum Problem {
    #[error("is not there; make one with: zveil key --chain {0}")]
    Missing(String),
    #[error("others can read this key; take that away with: chmod 600 {0}")]
    Exposed(String),
    #[error(
        "the file cannot be written, and the key of a chain must be able to move on; allow it with: \
         chmod 600 {0}"
    )]
    ReadOnly(String),
    #[error("another run is using this chain; give each run a chain of its own")]
    InUse,
    #[error("there is no chain in it; make one with: zveil key --chain FILE")]
    Foreign,
    #[error(
        "its chain has periods of {held} s, not of {asked} s; rotate as before, or make a new chain \
         with: zveil key --chain FILE"
    )]
    Length { held: i64, asked: i64 },
    #[error(
        "its chain has moved on to {since}, and the events are from before; the keys of that time \
         are gone. Take a new chain for them: zveil key --chain FILE"
    )]
    MovedOn { since: String },
    #[error("could not {step} the file: {source}")]
    Io { step: &'static str, source: io::Error },
}

impl ChainError {
    /// Whether reading or writing failed.
    pub fn is_io(&self) -> bool {
        matches!(self.problem, Problem::Io { .. })
    }
}

/// A file that is locked and ready to be replaced.
pub(super) struct ChainFile {
    /// As it was given, for messages.
    name: String,
    path: PathBuf,
    /// Locked as long as it is open.
    file: File,
    period: i64,
}

/// What a file says.
pub(super) struct Content {
    pub(super) secret: Secret,
    /// The period's length and number.
    pub(super) begun: Option<(i64, i64)>,
}

impl ChainFile {
    /// Opens and locks the chain of a file for periods of this length. The file is replaced by one
    /// that says the same, so that it is known from the start that this works.
    pub(super) fn open(path: &Path, period: i64) -> Result<(Self, Content), ChainError> {
        let name = path.display().to_string();
        let fail = |problem| ChainError { path: name.clone(), problem };
        let place = path.canonicalize().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => fail(Problem::Missing(name.clone())),
            _ => fail(io("open")(error)),
        })?;
        let mut file = Self::locked(&place, &name).map_err(fail)?;
        let content = read(&mut file).map_err(fail)?;
        if let Some((held, _)) = content.begun.filter(|(held, _)| *held != period) {
            let (held, asked) = (held / 1_000_000_000, period / 1_000_000_000);
            return Err(fail(Problem::Length { held, asked }));
        }
        let mut opened = Self { name, path: place, file, period };
        opened.write(&content.secret, content.begun.map(|(_, number)| number))?;
        Ok((opened, content))
    }

    fn locked(path: &Path, name: &str) -> Result<File, Problem> {
        let spoken = || name.to_owned();
        for _ in 0..TRIES {
            let file = match OpenOptions::new().read(true).write(true).open(path) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    return Err(Problem::ReadOnly(spoken()));
                }
                opened => opened.map_err(io("open"))?,
            };
            #[cfg(unix)]
            {
                let mode = std::os::unix::fs::PermissionsExt::mode(
                    &file.metadata().map_err(io("look at"))?.permissions(),
                );
                if mode & 0o077 != 0 {
                    return Err(Problem::Exposed(spoken()));
                }
                // Whoever may do anything could write it all the same; it was not meant to be.
                if mode & 0o200 == 0 {
                    return Err(Problem::ReadOnly(spoken()));
                }
            }
            match lock(&file) {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(Problem::InUse),
                Err(TryLockError::Error(error)) => return Err(io("lock")(error)),
            }
            if is_at(&file, path).map_err(io("look at"))? {
                return Ok(file);
            }
        }
        Err(Problem::InUse)
    }

    /// Puts this key, of the period of this number, into the file's place. Only then is the old
    /// content overwritten, as far as a file system lets one do that.
    pub(super) fn write(&mut self, key: &Secret, number: Option<i64>) -> Result<(), ChainError> {
        let fail = |problem| ChainError { path: self.name.clone(), problem };
        let mut suffix = [0; 8];
        getrandom::fill(&mut suffix)
            .map_err(|_| fail(io("name")(io::Error::other("no random bytes"))))?;
        let mut name = OsString::from(".");
        name.push(self.path.file_name().unwrap_or_default());
        name.push(format!(".{:016x}", u64::from_le_bytes(suffix)));
        let beside = self.path.with_file_name(name);
        let replaced = self.replace(&beside, &spelled(key, self.period, number));
        let file = replaced.map_err(|problem| {
            // It may not be there; either way the error to report is the first one.
            let _ = std::fs::remove_file(&beside);
            fail(problem)
        })?;
        let mut old = std::mem::replace(&mut self.file, file);
        // The key is out of the folder. That its bytes are gone too is a bonus where they can be.
        let _ = blot(&mut old);
        Ok(())
    }

    fn replace(&self, beside: &Path, content: &str) -> Result<File, Problem> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(beside).map_err(io("create another beside"))?;
        file.lock().map_err(io("lock"))?;
        file.write_all(content.as_bytes()).map_err(io("write"))?;
        file.sync_all().map_err(io("sync"))?;
        std::fs::rename(beside, &self.path).map_err(io("replace"))?;
        // The rename itself must survive a loss of power.
        #[cfg(unix)]
        if let Some(folder) = self.path.parent() {
            File::open(folder).and_then(|folder| folder.sync_all()).map_err(io("sync"))?;
        }
        Ok(file)
    }

    /// The events are older than the period of this number.
    pub(super) fn moved_on(&self, number: i64) -> ChainError {
        let since = date(number.saturating_mul(self.period));
        ChainError { path: self.name.clone(), problem: Problem::MovedOn { since } }
    }
}

fn io(step: &'static str) -> impl FnOnce(io::Error) -> Problem {
    move |source| Problem::Io { step, source }
}

/// Whether a file is still the one at its path.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let (open, there) = (file.metadata()?, std::fs::metadata(path)?);
    Ok(open.dev() == there.dev() && open.ino() == there.ino())
}

#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> io::Result<bool> {
    Ok(true)
}

fn blot(file: &mut File) -> io::Result<()> {
    let length = file.metadata()?.len().min(LONGEST as u64) as usize;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(&vec![b'0'; length])?;
    file.sync_all()
}

fn read(file: &mut File) -> Result<Content, Problem> {
    let mut text = Zeroizing::new(String::with_capacity(LONGEST));
    let read = file.take(LONGEST as u64).read_to_string(&mut text);
    match read {
        Ok(_) => parse(&text).ok_or(Problem::Foreign),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(Problem::Foreign),
        Err(error) => Err(io("read")(error)),
    }
}

fn parse(text: &str) -> Option<Content> {
    let mut lines = text.lines();
    if lines.next() != Some(TITLE) {
        return None;
    }
    let (mut period, mut number, mut secret) = (None, None, None);
    for line in lines {
        match line.split_once(' ')? {
            ("period", value) if period.is_none() => {
                period = Some(value.parse().ok().filter(|length: &i64| *length > 0)?);
            }
            ("number", value) if number.is_none() => number = Some(value.parse().ok()?),
            ("key", value) if secret.is_none() => secret = Some(unhex(value)?),
            _ => return None,
        }
    }
    let begun = match (period, number) {
        (Some(period), Some(number)) => Some((period, number)),
        (None, None) => None,
        _ => return None,
    };
    Some(Content { secret: secret?, begun })
}

fn unhex(digits: &str) -> Option<Secret> {
    let mut bytes = Zeroizing::new([0_u8; 32]);
    if digits.len() != 64 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, place) in bytes.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(&digits[place..place + 2], 16).ok()?;
    }
    Some(Secret::new(*bytes))
}

fn spelled(key: &Secret, period: i64, number: Option<i64>) -> Zeroizing<String> {
    use std::fmt::Write;
    let mut text = Zeroizing::new(String::with_capacity(LONGEST));
    text.push_str(TITLE);
    // Writing to memory does not fail.
    if let Some(number) = number {
        let _ = write!(text, "\nperiod {period}\nnumber {number}");
    }
    text.push_str("\nkey ");
    for byte in key.bytes() {
        let _ = write!(text, "{byte:02x}");
    }
    text.push('\n');
    text
}

/// Locks a file, with some patience: a run that was killed may have left a process behind that saves its
/// state, and closes what it does not need a moment after it has begun.
fn lock(file: &File) -> Result<(), TryLockError> {
    for _ in 0..LOCK_TRIES {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(BETWEEN),
            outcome => return outcome,
        }
    }
    file.try_lock()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400_000_000_000;

    fn file(content: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("chain");
        std::fs::write(&path, content).unwrap();
        set_mode(&path, 0o600);
        (folder, path)
    }

    #[cfg(unix)]
    fn set_mode(path: &Path, mode: u32) {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(path, mode).unwrap();
    }

    fn words(path: &Path, period: i64) -> String {
        ChainFile::open(path, period).map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn what_is_written_reads_back() {
        let (folder, path) = file(&format!("{TITLE}\nkey {}\n", "7".repeat(64)));
        let (mut opened, content) = ChainFile::open(&path, DAY).unwrap();
        assert_eq!(content.begun, None);
        opened.write(&Secret::new([8; 32]), Some(-3)).unwrap();
        drop(opened);
        let (_, content) = ChainFile::open(&path, DAY).unwrap();
        assert_eq!((content.begun, content.secret.bytes()), (Some((DAY, -3)), &[8; 32]));
        assert!(words(&path, DAY / 2).contains("periods of 86400 s, not of 43200 s"));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn one_at_a_time() {
        let (_folder, path) = file(&format!("{TITLE}\nkey {}\n", "7".repeat(64)));
        let (mut opened, _) = ChainFile::open(&path, DAY).unwrap();
        assert!(words(&path, DAY).contains("another run"));
        opened.write(&Secret::new([8; 32]), Some(1)).unwrap();
        assert!(words(&path, DAY).contains("another run"));
        drop(opened);
        assert!(ChainFile::open(&path, DAY).is_ok());
    }

    #[test]
    fn the_old_content_is_overwritten() {
        let (_folder, path) = file(&format!("{TITLE}\nkey {}\n", "7".repeat(64)));
        let other = path.with_file_name("other");
        std::fs::hard_link(&path, &other).unwrap();
        ChainFile::open(&path, DAY).unwrap();
        assert!(!std::fs::read_to_string(other).unwrap().contains('7'));
    }

    #[test]
    #[cfg(unix)]
    fn permissions_are_looked_at_first() {
        let (_folder, path) = file(&format!("{TITLE}\nkey {}\n", "7".repeat(64)));
        set_mode(&path, 0o640);
        assert!(words(&path, DAY).contains("chmod 600"));
        set_mode(&path, 0o400);
        assert!(words(&path, DAY).contains("cannot be written"));
    }

    #[test]
    fn other_files_are_not_touched() {
        let seven = "7".repeat(64);
        for content in [
            String::new(),
            seven.clone(),
            TITLE.to_owned(),
            format!("{TITLE}\nkey {}\n", &seven[1..]),
            format!("{TITLE}\nkey {}é\n", &seven[2..]),
            format!("{TITLE}\nkey {seven}\nkey {seven}\n"),
            format!("{TITLE}\nnumber 1\nkey {seven}\n"),
            format!("{TITLE}\nperiod 0\nnumber 1\nkey {seven}\n"),
            format!("{TITLE}\nperiod 9\nnumber x\nkey {seven}\n"),
        ] {
            let (_folder, path) = file(&content);
            let said = words(&path, DAY);
            assert!(said.contains("no chain") && !said.contains("777"), "{said}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
        }
    }
}
