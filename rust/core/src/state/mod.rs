//! Durable state: parts and a note, of one moment, in one sealed file.
//!
//! ```text
//! header | note | parts: gate, gate, event ids, meter …    pieces as in `sealed`, the note first
//! ```
//!
//! The note is the caller's: where input and output stand, what a way and a keyring go on from. It is in
//! the first pieces, so that it can be read without the rest.
//!
//! # What is in it
//! Of gates and ids keyed hashes with times, and the secrets that they are keyed with: no user and no
//! value. Whoever has the file and its key can go on, and can try whether a user is among the hashes;
//! who has only the file has nothing. Where values are swapped, the states of ways and swaps, which go
//! into the note, hold some values themselves: such as have left before. To erase a user,
//! [`Gate::forget`](crate::Gate::forget) them in the gates that were loaded, and save again. Event ids
//! need no erasing by user: they hold none. A meter cannot erase one: [`give_up`](crate::Meter::give_up)
//! what it measures.
//!
//! # How it is saved
//! By a process beside this one, made by `fork`: it has the memory as it is at that moment, writes it
//! down, and ends, while the stream goes on (see `beside`). What that costs:
//!
//! - *The pause* of the fork. The tables of pages are copied, not the memory: next to nothing for huge
//!   pages, about 0.3 µs for each small one. Measured, in CPU time of the caller: 4 to 8 ms with a
//!   million live attributes (67 MB), 4 ms at first and 20 ms later with five million (268 MB).
//! - *Memory.* A page that the stream writes to while it is saved is copied first. At worst, when every
//!   page is written to in that time, the state is there twice. Where memory runs out, the system is
//!   asked to end the process that saves, not the one that decides.
//! - *Time.* Copying a page takes a few µs, once for each page and save: on a stream that goes all over
//!   its state 0.1 s for 67 MB, 0.3 s for 268 MB.
//! - *Huge pages.* The first write to one that is shared splits it, and only 4 KiB are copied. It stays
//!   split until the system puts it together again: this is why later forks take longer, and deciding
//!   is slower by up to a tenth.
//!
//! With `wait`, or where there is no `fork`, the caller writes, and the stream waits.
//!
//! # How it is loaded
//! All of it is checked: lengths, order, times, that no block of memory belongs to two. No length makes
//! memory be had before what it promises has come. A gate that is loaded with as many threads as it was
//! saved with is what it was, to the last byte of its tables: it goes on exactly as it would have,
//! also where its memory limit makes it veil.

#[cfg(unix)]
mod beside;
mod gate;
mod saving;

pub use saving::Saving;

use crate::codec::{Body, Out, Outcome, io};
use crate::error::{Error, SnapshotError};
use crate::gate::Gate;
use crate::ids::EventIds;
use crate::meter::Meter;
use crate::replace::Replacement;
use crate::sealed::{Kind, Opened, PIECE, Seal, Sealed, TAG};
use crate::secret::Secret;
use std::fs::File;
use std::io::{BufReader, Write};
use std::path::Path;
use std::time::Instant;

const STATE: Kind =
    Kind { magic: b"zveil\0st", format: 2, key: "state: key", key_id: "state: key id" };
/// Bytes of the longest note.
pub const LONGEST_NOTE: usize = 16 << 20;

/// Something that is kept. Each kind has a tag of its own, behind which the file has what `write` wrote.
pub trait Part {
    #[doc(hidden)]
    fn tag(&self) -> u64;

    /// Takes no memory and no lock: it may run in a process beside this one.
    #[doc(hidden)]
    fn write(&self, out: &mut Pen<'_>) -> Result<(), SnapshotError>;
}

/// What a part is written with.
pub struct Pen<'a>(&'a mut dyn Out);

const GATE: u64 = 1;
const IDS: u64 = 2;
/// Not 3, which was one of another format.
const METER: u64 = 4;
/// Behind the last part.
const END: u64 = 0;

impl Part for Gate {
    fn tag(&self) -> u64 {
        GATE
    }

    fn write(&self, out: &mut Pen<'_>) -> Outcome<()> {
        gate::write(self, out.0)
    }
}

impl Part for EventIds {
    fn tag(&self) -> u64 {
        IDS
    }

    fn write(&self, out: &mut Pen<'_>) -> Outcome<()> {
        EventIds::write(self, out.0)
    }
}

impl Part for Meter {
    fn tag(&self) -> u64 {
        METER
    }

    fn write(&self, out: &mut Pen<'_>) -> Outcome<()> {
        Meter::write(self, out.0)
    }
}

/// A part that was loaded.
pub enum Loaded {
    Gate(Box<Gate>),
    Ids(Box<EventIds>),
    Meter(Box<Meter>),
}

/// What is saved, and how.
pub struct Plan<'a> {
    pub path: &'a Path,
    pub secret: &'a Secret,
    pub note: &'a [u8],
    pub parts: &'a [&'a dyn Part],
    /// Descriptors that are synced first: what the note says of them must be true.
    pub sync: &'a [i32],
    /// Descriptors that stay open as long as it is being saved: a lock.
    pub keep: &'a [i32],
    /// Here, not beside.
    pub wait: bool,
}

/// Saves parts and a note. With `wait` it is done when this returns; otherwise [`Saving`] tells.
pub fn save(plan: &Plan) -> Result<Saving, Error> {
    let begun = Instant::now();
    if plan.note.len() > LONGEST_NOTE {
        let rule = format!("expected at most {LONGEST_NOTE} bytes");
        let got = plan.note.len().to_string();
        return Err(Error::Setting { parameter: "note", rule, got });
    }
    let place = Replacement::alone(plan.path)?;
    let seal = Seal::new(&STATE, plan.secret)?;
    #[cfg(unix)]
    if !plan.wait {
        return Ok(match beside::start(plan, place, seal) {
            Ok(writer) => Saving::beside(writer, begun),
            Err(unused) => {
                let (place, seal) = *unused;
                Saving::over(write_here(plan, &place, seal), begun)
            }
        });
    }
    let outcome = write_here(plan, &place, seal);
    if plan.wait {
        outcome?;
        return Ok(Saving::over(Ok(()), begun));
    }
    Ok(Saving::over(outcome, begun))
}

fn write_here(plan: &Plan, place: &Replacement, seal: Seal) -> Outcome<()> {
    plan.sync.iter().try_for_each(|descriptor| sync(*descriptor))?;
    place.write(|file| write(plan, file, seal))
}

fn write(plan: &Plan, file: impl Write, seal: Seal) -> Outcome<()> {
    let mut out = Sealed::new(file, seal)?;
    out.text(plan.note)?;
    for part in plan.parts {
        out.number(part.tag())?;
        part.write(&mut Pen(&mut out))?;
    }
    out.number(END)?;
    out.finish()
}

/// Pipes and the like cannot be synced, and need not be: nobody reads them twice.
#[cfg(unix)]
fn sync(descriptor: i32) -> Outcome<()> {
    // SAFETY: a call with a number; one that is no open descriptor is an error.
    while unsafe { libc::fsync(descriptor) } != 0 {
        let error = std::io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR) => {}
            Some(libc::EINVAL | libc::ENOTSUP | libc::EROFS) => return Ok(()),
            _ => return Err(io("sync what belongs to")(error)),
        }
    }
    Ok(())
}

#[cfg(not(unix))]
fn sync(_: i32) -> Outcome<()> {
    Ok(())
}

/// The note and the parts of a state, gates spread over so many threads.
pub fn load(path: &Path, secret: &Secret, threads: usize) -> Result<(Vec<u8>, Vec<Loaded>), Error> {
    read(open(path, secret)?, threads)
}

/// The note alone. Nothing behind it is looked at.
pub fn read_note(path: &Path, secret: &Secret) -> Result<Vec<u8>, Error> {
    Ok(open(path, secret)?.text(LONGEST_NOTE)?)
}

fn open(path: &Path, secret: &Secret) -> Outcome<Opened<BufReader<File>>> {
    let file = File::open(path).map_err(io("open"))?;
    Opened::new(BufReader::with_capacity(PIECE + TAG, file), &STATE, secret)
}

fn read(mut body: impl Body, threads: usize) -> Result<(Vec<u8>, Vec<Loaded>), Error> {
    let note = body.text(LONGEST_NOTE)?;
    let mut parts = Vec::new();
    loop {
        match body.number()? {
            GATE => parts.push(Loaded::Gate(Box::new(gate::read(&mut body, threads)?))),
            IDS => parts.push(Loaded::Ids(Box::new(EventIds::read(&mut body)?))),
            METER => parts.push(Loaded::Meter(Box::new(Meter::read(&mut body)?))),
            END => break,
            _ => return Err(SnapshotError::Damaged.into()),
        }
    }
    body.end()?;
    Ok((note, parts))
}

/// Reads a body as if it had been opened.
#[cfg(any(test, fuzzing))]
pub fn read_plain_state(body: &[u8]) -> Result<(Vec<u8>, Vec<Loaded>), Error> {
    read(body, 1)
}

#[cfg(test)]
mod tests;
