//! Snapshots: the whole gate in one file, encrypted and authenticated, written atomically.
//!
//! ```text
//! header  magic (8) | format (2) | key id (8) | nonce (19)          clear, authenticated
//! body    64 KiB pieces under XChaCha20-Poly1305 in STREAM: a piece that is altered, missing,
//!         moved or cut off, the last one too, is found out
//! ```
//!
//! In the body there are settings, counters, clock, and keyed hashes with times: no user and no
//! value, and without the key not even those.

use crate::crowd::NOBODY;
use crate::error::{Error, SnapshotError};
use crate::gate::Gate;
use crate::noise::NoiseSettings;
use crate::secret::Secret;
use crate::settings::{Rule, Settings};
use crate::slab::Entry;
use crate::slot::Key;
use aead_stream::{DecryptorBE32, EncryptorBE32};
use chacha20poly1305::aead::Payload;
use chacha20poly1305::{KeyInit, XChaCha20Poly1305};
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 8] = b"zveil\0sn";
const FORMAT: u16 = 2;
const HEADER: usize = 8 + 2 + 8 + 19;
const PIECE: usize = 64 * 1024;
const TAG: usize = 16;
const LONGEST_NOTE: u32 = 1 << 20;

type Outcome<T> = Result<T, SnapshotError>;

impl Gate {
    /// Writes the state to `path`, readable by its owner only. The file is there whole or not at
    /// all: it is written beside its place, synced, and renamed. The note comes back on restoring.
    pub fn snapshot(&self, path: &Path, note: &[u8]) -> Result<(), Error> {
        Ok(replace(path, |file| self.write(BufWriter::new(file), note))?)
    }

    /// The gate that a snapshot was taken of, spread over so many threads, and its note.
    pub fn restore(path: &Path, secret: &Secret, threads: usize) -> Result<(Self, Vec<u8>), Error> {
        let file = File::open(path).map_err(io("open"))?;
        let body = Opened::new(BufReader::with_capacity(PIECE + TAG, file), secret)?;
        read(body, secret, threads)
    }

    fn write(&self, file: impl Write, note: &[u8]) -> Outcome<()> {
        let mut out = Sealed::new(file, &self.secret)?;
        let settings = &self.settings;
        let stats = self.stats();
        out.number(settings.z as u64)?;
        out.number(settings.z_max as u64)?;
        out.number(settings.window as u64)?;
        out.number(settings.lateness as u64)?;
        out.number(settings.max_future.map_or(u64::MAX, |span| span as u64))?;
        out.number(match settings.rule {
            Rule::FallThrough => 0,
            Rule::Authors => 1,
            Rule::Fixed(level) => 256 + u64::from(level),
        })?;
        out.number(settings.memory_limit.map_or(u64::MAX, |limit| limit as u64))?;
        out.number(settings.noise.map_or(u64::MAX, |noise| noise.most as u64))?;
        let period = settings.noise.and_then(|noise| noise.period);
        out.number(period.map_or(u64::MAX, |period| period as u64))?;
        out.number(self.admission.clock as u64)?;
        let refused = self.shards.iter().map(|shard| shard.refused_clock).max();
        out.number(refused.unwrap_or(i64::MIN) as u64)?;
        for counter in
            [stats.observed, stats.released, stats.late, stats.future, stats.invalid, stats.refused]
        {
            out.number(counter)?;
        }
        out.bytes(&(note.len() as u32).to_le_bytes())?;
        out.bytes(note)?;
        out.number(stats.attributes)?;
        for shard in &self.shards {
            let mut outcome = Ok(());
            shard.export(&self.rules, |key, entries| {
                if outcome.is_ok() {
                    outcome = out.attribute(key, entries);
                }
            });
            outcome?;
        }
        out.finish()
    }
}

/// Reads a body that was opened with the right key; it is checked all the same.
fn read(mut body: impl Body, secret: &Secret, threads: usize) -> Result<(Gate, Vec<u8>), Error> {
    let size = |number: u64| usize::try_from(number).map_err(|_| SnapshotError::Damaged);
    let span = |number: u64| i64::try_from(number).map_err(|_| SnapshotError::Damaged);
    let optional = |number: u64| Some(number).filter(|number| *number != u64::MAX);
    let settings = Settings {
        z: size(body.number()?)?,
        z_max: size(body.number()?)?,
        window: span(body.number()?)?,
        lateness: span(body.number()?)?,
        max_future: optional(body.number()?).map(span).transpose()?,
        rule: match body.number()? {
            0 => Rule::FallThrough,
            1 => Rule::Authors,
            fixed @ 256..512 => Rule::Fixed((fixed - 256) as u8),
            _ => return Err(SnapshotError::Damaged.into()),
        },
        memory_limit: optional(body.number()?).map(size).transpose()?,
        noise: {
            let most = optional(body.number()?).map(size).transpose()?;
            let period = optional(body.number()?).map(span).transpose()?;
            most.map(|most| NoiseSettings { most, period })
        },
        threads,
    };
    let mut gate = Gate::new(settings, secret.clone())?;
    gate.admission.clock = body.number()? as i64;
    let refused_clock = body.number()? as i64;
    gate.observed = body.number()?;
    gate.released = body.number()?;
    gate.admission.late = body.number()?;
    gate.admission.future = body.number()?;
    gate.admission.invalid = body.number()?;
    gate.refused_before = body.number()?;
    for shard in &mut gate.shards {
        shard.refused_clock = refused_clock;
    }
    let length = u32::from_le_bytes(body.array()?);
    if length > LONGEST_NOTE {
        return Err(SnapshotError::Damaged.into());
    }
    let mut note = vec![0; length as usize];
    body.fill(&mut note)?;
    let mut entries = Vec::new();
    for _ in 0..body.number()? {
        let key = body.attribute(&mut entries)?;
        gate.import(key, &entries)?;
    }
    body.end()?;
    Ok((gate, note))
}

impl Gate {
    fn import(&mut self, key: Key, entries: &[Entry]) -> Outcome<()> {
        let ordered = entries.is_sorted_by_key(|entry| entry.time);
        let in_time = |entry: &Entry| i64::MIN < entry.time && entry.time <= self.admission.clock;
        let users = entries.iter().filter(|entry| entry.user != NOBODY).count();
        let fits = users <= self.settings.z_max && (1..=users + 1).contains(&entries.len());
        if key.check & 0b11 != 0 || !ordered || !fits {
            return Err(SnapshotError::Damaged);
        }
        if !entries.iter().all(in_time) {
            return Err(SnapshotError::Damaged);
        }
        let epoch = self.epochs.at(self.admission.clock) as u32;
        let shard = key.shard(self.shards.len());
        self.shards[shard].import(key, entries, epoch);
        Ok(())
    }
}

/// Writes a file beside its place and renames it when it is safe on disk.
fn replace(path: &Path, write: impl FnOnce(&File) -> Outcome<()>) -> Outcome<()> {
    let mut suffix = [0; 8];
    getrandom::fill(&mut suffix).map_err(|error| SnapshotError::Io {
        step: "name",
        source: std::io::Error::other(error.to_string()),
    })?;
    let mut name = OsString::from(".");
    name.push(path.file_name().ok_or(SnapshotError::Foreign)?);
    name.push(format!(".{:016x}", u64::from_le_bytes(suffix)));
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let beside = folder.join(name);
    let outcome = write_and_rename(&beside, path, folder, write);
    if outcome.is_err() {
        // It may not be there; either way the error to report is the first one.
        let _ = std::fs::remove_file(&beside);
    }
    outcome
}

fn write_and_rename(
    beside: &PathBuf,
    path: &Path,
    folder: &Path,
    write: impl FnOnce(&File) -> Outcome<()>,
) -> Outcome<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(beside).map_err(io("create"))?;
    write(&file)?;
    file.sync_all().map_err(io("sync"))?;
    std::fs::rename(beside, path).map_err(io("rename"))?;
    // The rename itself must survive a loss of power.
    #[cfg(unix)]
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(io("sync the folder of"))?;
    #[cfg(not(unix))]
    let _ = folder;
    Ok(())
}

fn io(step: &'static str) -> impl FnOnce(std::io::Error) -> SnapshotError {
    move |source| SnapshotError::Io { step, source }
}

fn key_id(secret: &Secret) -> [u8; 8] {
    secret.derive("snapshot: key id")
}

fn cipher(secret: &Secret) -> XChaCha20Poly1305 {
    XChaCha20Poly1305::new(&secret.derive::<32>("snapshot: key").into())
}

/// A body being written: pieces are encrypted as they fill.
struct Sealed<W> {
    file: W,
    stream: EncryptorBE32<XChaCha20Poly1305>,
    header: [u8; HEADER],
    piece: Vec<u8>,
}

impl<W: Write> Sealed<W> {
    fn new(mut file: W, secret: &Secret) -> Outcome<Self> {
        let mut nonce = [0; 19];
        getrandom::fill(&mut nonce).map_err(|error| SnapshotError::Io {
            step: "encrypt",
            source: std::io::Error::other(error.to_string()),
        })?;
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(MAGIC);
        header[8..10].copy_from_slice(&FORMAT.to_le_bytes());
        header[10..18].copy_from_slice(&key_id(secret));
        header[18..].copy_from_slice(&nonce);
        file.write_all(&header).map_err(io("write"))?;
        let stream = EncryptorBE32::from_aead(cipher(secret), &nonce.into());
        Ok(Self { file, stream, header, piece: Vec::with_capacity(PIECE) })
    }

    fn bytes(&mut self, mut bytes: &[u8]) -> Outcome<()> {
        while !bytes.is_empty() {
            if self.piece.len() == PIECE {
                let payload = Payload { msg: &self.piece, aad: &self.header };
                let sealed = self.stream.encrypt_next(payload).map_err(too_long)?;
                self.file.write_all(&sealed).map_err(io("write"))?;
                self.piece.clear();
            }
            let (now, later) = bytes.split_at(bytes.len().min(PIECE - self.piece.len()));
            self.piece.extend_from_slice(now);
            bytes = later;
        }
        Ok(())
    }

    fn number(&mut self, number: u64) -> Outcome<()> {
        self.bytes(&number.to_le_bytes())
    }

    fn attribute(&mut self, key: Key, entries: &[Entry]) -> Outcome<()> {
        self.number(key.hash)?;
        self.bytes(&key.check.to_le_bytes())?;
        self.bytes(&(entries.len() as u32).to_le_bytes())?;
        for entry in entries {
            self.number(entry.user)?;
            self.number(entry.time as u64)?;
        }
        Ok(())
    }

    fn finish(mut self) -> Outcome<()> {
        let payload = Payload { msg: &self.piece, aad: &self.header };
        let sealed = self.stream.encrypt_last(payload).map_err(too_long)?;
        self.file.write_all(&sealed).map_err(io("write"))?;
        self.file.flush().map_err(io("write"))
    }
}

/// STREAM counts pieces in 32 bits: 256 TiB.
fn too_long(_: chacha20poly1305::Error) -> SnapshotError {
    SnapshotError::Io { step: "encrypt", source: std::io::ErrorKind::FileTooLarge.into() }
}

/// The plain bytes of a snapshot.
trait Body {
    fn fill(&mut self, out: &mut [u8]) -> Outcome<()>;

    /// Fails unless everything has been read.
    fn end(&mut self) -> Outcome<()>;

    fn array<const N: usize>(&mut self) -> Outcome<[u8; N]> {
        let mut out = [0; N];
        self.fill(&mut out)?;
        Ok(out)
    }

    fn number(&mut self) -> Outcome<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn attribute(&mut self, entries: &mut Vec<Entry>) -> Outcome<Key> {
        let key = Key { hash: self.number()?, check: u32::from_le_bytes(self.array()?) };
        let count = u32::from_le_bytes(self.array()?);
        entries.clear();
        for _ in 0..count {
            let (user, time) = (self.number()?, self.number()? as i64);
            entries.push(Entry { user, time });
        }
        Ok(key)
    }
}

/// A body being read: pieces are decrypted as they are needed.
struct Opened<R> {
    file: R,
    /// `None` behind the last piece.
    stream: Option<DecryptorBE32<XChaCha20Poly1305>>,
    header: [u8; HEADER],
    sealed: Vec<u8>,
    piece: Vec<u8>,
    at: usize,
}

impl<R: Read> Opened<R> {
    fn new(mut file: R, secret: &Secret) -> Outcome<Self> {
        let mut header = [0; HEADER];
        let foreign = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => SnapshotError::Foreign,
            _ => SnapshotError::Io { step: "read", source: error },
        };
        file.read_exact(&mut header).map_err(foreign)?;
        if &header[..8] != MAGIC {
            return Err(SnapshotError::Foreign);
        }
        let found = u16::from_le_bytes([header[8], header[9]]);
        if found != FORMAT {
            return Err(SnapshotError::Version { found, known: FORMAT });
        }
        if header[10..18] != key_id(secret) {
            return Err(SnapshotError::Key);
        }
        let mut nonce = [0; 19];
        nonce.copy_from_slice(&header[18..]);
        let stream = Some(DecryptorBE32::from_aead(cipher(secret), &nonce.into()));
        let mut opened = Self { file, stream, header, sealed: vec![], piece: vec![], at: 0 };
        opened.read_sealed()?;
        Ok(opened)
    }

    /// Reads up to one sealed piece and a byte more: without that byte the piece is the last.
    fn read_sealed(&mut self) -> Outcome<()> {
        let missing = (PIECE + TAG + 1).saturating_sub(self.sealed.len()) as u64;
        let mut part = Read::take(&mut self.file, missing);
        part.read_to_end(&mut self.sealed).map_err(io("read"))?;
        Ok(())
    }

    fn next_piece(&mut self) -> Outcome<()> {
        let Some(mut stream) = self.stream.take() else { return Err(SnapshotError::Damaged) };
        let damaged = |_| SnapshotError::Damaged;
        self.at = 0;
        if self.sealed.len() > PIECE + TAG {
            let payload = Payload { msg: &self.sealed[..PIECE + TAG], aad: &self.header };
            self.piece = stream.decrypt_next(payload).map_err(damaged)?;
            self.sealed.drain(..PIECE + TAG);
            self.stream = Some(stream);
            self.read_sealed()
        } else {
            let payload = Payload { msg: &self.sealed[..], aad: &self.header };
            self.piece = stream.decrypt_last(payload).map_err(damaged)?;
            Ok(())
        }
    }
}

impl<R: Read> Body for Opened<R> {
    fn fill(&mut self, mut out: &mut [u8]) -> Outcome<()> {
        while !out.is_empty() {
            if self.at == self.piece.len() {
                self.next_piece()?;
            }
            let now = out.len().min(self.piece.len() - self.at);
            if now == 0 && self.stream.is_none() {
                return Err(SnapshotError::Damaged);
            }
            let (head, tail) = out.split_at_mut(now);
            head.copy_from_slice(&self.piece[self.at..self.at + now]);
            self.at += now;
            out = tail;
        }
        Ok(())
    }

    fn end(&mut self) -> Outcome<()> {
        while self.stream.is_some() && self.at == self.piece.len() {
            self.next_piece()?;
        }
        if self.at == self.piece.len() { Ok(()) } else { Err(SnapshotError::Damaged) }
    }
}

/// Bytes that were never encrypted, for the tests and the fuzzer of the reader.
#[cfg(any(test, fuzzing))]
impl Body for &[u8] {
    fn fill(&mut self, out: &mut [u8]) -> Outcome<()> {
        let (head, tail) = self.split_at_checked(out.len()).ok_or(SnapshotError::Damaged)?;
        out.copy_from_slice(head);
        *self = tail;
        Ok(())
    }

    fn end(&mut self) -> Outcome<()> {
        if self.is_empty() { Ok(()) } else { Err(SnapshotError::Damaged) }
    }
}

/// Reads a body as if it had been opened.
#[cfg(any(test, fuzzing))]
pub fn read_plain(body: &[u8]) -> Result<(Gate, Vec<u8>), Error> {
    read(body, &Secret::new([0; 32]), 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::Value;
    use crate::shard::Now;
    use proptest::prelude::*;

    /// A body as the writer makes it: z 2, z_max 3, one attribute with the given entries.
    fn body(check: u32, entries: &[(u64, i64)]) -> Vec<u8> {
        let mut body = Vec::new();
        let (limit, never) = (u64::MAX, i64::MIN as u64);
        for number in [2, 3, 100, 100, limit, 0, limit, limit, limit, 50, never, 9, 4, 0, 0, 0, 0] {
            body.extend_from_slice(&u64::to_le_bytes(number));
        }
        body.extend_from_slice(&4_u32.to_le_bytes());
        body.extend_from_slice(b"note");
        body.extend_from_slice(&1_u64.to_le_bytes());
        body.extend_from_slice(&7_u64.to_le_bytes());
        body.extend_from_slice(&check.to_le_bytes());
        body.extend_from_slice(&(entries.len() as u32).to_le_bytes());
        for (user, time) in entries {
            body.extend_from_slice(&user.to_le_bytes());
            body.extend_from_slice(&time.to_le_bytes());
        }
        body
    }

    #[test]
    fn a_sound_body_is_taken_and_an_unsound_one_refused() {
        let (gate, note) = read_plain(&body(4, &[(1, 10), (2, 50)])).unwrap();
        assert_eq!(
            (gate.stats().attributes, gate.stats().observed, &note[..]),
            (1, 9, &b"note"[..])
        );
        for (check, entries) in [
            (5, &[(1, 10)][..]),                    // a state where the key ends
            (4, &[]),                               // nobody
            (4, &[(1, 20), (2, 10)]),               // out of order
            (4, &[(1, 10), (2, 51)]),               // newer than the clock
            (4, &[(1, i64::MIN)]),                  // no time
            (4, &[(1, 1), (2, 2), (3, 3), (4, 4)]), // more than z_max
        ] {
            assert!(read_plain(&body(check, entries)).is_err());
        }
    }

    #[test]
    fn a_user_that_stands_twice_counts_once() {
        let (mut gate, _) = read_plain(&body(4, &[(1, 10), (1, 50)])).unwrap();
        assert_eq!(gate.stats().entries, 2);
        gate.set_z(3).unwrap();
        // Whoever comes to that attribute, there are two of them at most.
        let shard = &mut gate.shards[0];
        let entry = Entry { user: 2, time: 50 };
        let now = Now { epoch: 0, in_order: true };
        assert!(!shard.observe(Key { hash: 7, check: 4 }, entry, now, &gate.rules));
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..400),
            places in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        ) {
            let _ = read_plain(&bytes);
            let mut altered = body(4, &[(1, 10), (2, 50)]);
            for (place, byte) in places {
                let place = place.index(altered.len());
                altered[place] = byte;
            }
            if let Ok((mut gate, _)) = read_plain(&altered) {
                gate.observe(60, Some(Value::Integer(1)), Some(Value::Integer(1)));
            }
        }
    }
}
