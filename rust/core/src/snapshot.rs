//! Snapshots: the whole gate in one sealed file, written atomically, or the same as bytes.
//!
//! In the body there are settings, counters, clock, and keyed hashes with times: no user and no
//! value, and without the key not even those.

use crate::codec::{Body, Out, Outcome, io};
use crate::crowd::NOBODY;
use crate::error::{Error, SnapshotError};
use crate::gate::Gate;
use crate::replace::Replacement;
use crate::sealed::{Kind, Opened, PIECE, Seal, Sealed, TAG};
use crate::secret::Secret;
use crate::settings::Settings;
use crate::slab::Entry;
use crate::slot::Key;
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::Path;

const SNAPSHOT: Kind =
    Kind { magic: b"zveil\0sn", format: 2, key: "snapshot: key", key_id: "snapshot: key id" };
const LONGEST_NOTE: u32 = 1 << 20;

impl Gate {
    /// Writes the state to `path`, readable by its owner only. The file is there whole or not at
    /// all: it is written beside its place, synced, and renamed. The note comes back on restoring.
    pub fn snapshot(&self, path: &Path, note: &[u8]) -> Result<(), Error> {
        let seal = Seal::new(&SNAPSHOT, &self.secret)?;
        let place = Replacement::new(path)?;
        Ok(place
            .write(|file| self.write_snapshot(Sealed::new(BufWriter::new(file), seal)?, note))?)
    }

    /// The gate that a snapshot was taken of, spread over so many threads, and its note.
    pub fn restore(path: &Path, secret: &Secret, threads: usize) -> Result<(Self, Vec<u8>), Error> {
        let file = File::open(path).map_err(io("open"))?;
        let file = BufReader::with_capacity(PIECE + TAG, file);
        read(Opened::new(file, &SNAPSHOT, secret)?, secret, threads)
    }

    /// What `snapshot` writes, for whoever keeps it elsewhere than in a file.
    pub fn to_bytes(&self, note: &[u8]) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        let seal = Seal::new(&SNAPSHOT, &self.secret)?;
        self.write_snapshot(Sealed::new(&mut bytes, seal)?, note)?;
        Ok(bytes)
    }

    /// The gate that `to_bytes` or a file of `snapshot` holds, as for `restore`.
    pub fn of_bytes(
        bytes: &[u8],
        secret: &Secret,
        threads: usize,
    ) -> Result<(Self, Vec<u8>), Error> {
        read(Opened::new(bytes, &SNAPSHOT, secret)?, secret, threads)
    }

    fn write_snapshot(&self, mut out: Sealed<impl Write>, note: &[u8]) -> Outcome<()> {
        let stats = self.stats();
        self.settings.write(&mut out)?;
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
                    outcome = write_attribute(&mut out, key, entries);
                }
            });
            outcome?;
        }
        out.finish()
    }
}

fn write_attribute(out: &mut impl Out, key: Key, entries: &[Entry]) -> Outcome<()> {
    out.number(key.hash)?;
    out.bytes(&key.check.to_le_bytes())?;
    out.bytes(&(entries.len() as u32).to_le_bytes())?;
    for entry in entries {
        out.number(entry.user)?;
        out.number(entry.time as u64)?;
    }
    Ok(())
}

fn read_attribute(body: &mut impl Body, entries: &mut Vec<Entry>) -> Outcome<Key> {
    let key = Key { hash: body.number()?, check: u32::from_le_bytes(body.array()?) };
    let count = u32::from_le_bytes(body.array()?);
    entries.clear();
    for _ in 0..count {
        let (user, time) = (body.number()?, body.number()? as i64);
        entries.push(Entry { user, time });
    }
    Ok(key)
}

/// Reads a body that was opened with the right key; it is checked all the same.
fn read(mut body: impl Body, secret: &Secret, threads: usize) -> Result<(Gate, Vec<u8>), Error> {
    let settings = Settings { threads, ..Settings::read(&mut body)? };
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
    let attributes = body.number()?;
    // Only addresses: memory is had for what has come.
    gate.reserve(usize::try_from(attributes).map_err(|_| SnapshotError::Damaged)?);
    for _ in 0..attributes {
        let key = read_attribute(&mut body, &mut entries)?;
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
        let shard = self.deal.shard(key);
        self.shards[shard].import(key, entries, epoch);
        Ok(())
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
