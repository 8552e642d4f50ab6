//! A process beside this one that writes a state down.
//!
//! `fork` in a process with threads copies the memory and the calling thread only. A lock that another
//! thread holds is held for ever in the copy, and what it guards may be half changed. So:
//!
//! - The caller holds the parts: none of them is being changed.
//! - Over there no lock is taken and no thread used: nothing of Python, Arrow or the crew is touched.
//!   It reads the parts, encrypts into memory that was had before, and calls the system: open, write,
//!   fsync, rename, `_exit`. Paths are made into C's texts on the stack, or where one is longer than 384
//!   bytes, by `malloc`, which the C libraries keep usable across a fork. No destructor runs.
//! - All signals are blocked there: a handler of Python's would run in the copy. One that interrupts a
//!   terminal's whole group is for the run itself, which saves again as it ends. Only an alarm is let
//!   through, its handler taken off: it ends a process that hangs (a disk that is gone) after an hour.
//! - Descriptors are closed at once, the standard ones too, but for those that are to be kept: a pipe
//!   that was this process's must not stay open because of the copy.
//!
//! It looks whether its parent is still there between pieces and ends without it. (To ask the system for
//! a signal at the parent's death would go by the *thread* that forked, and in a server that may end
//! earlier.) Where it has gone on to the rename by then, the state is as good; a lock among the
//! descriptors that are kept makes the next run wait for it.

use super::{Plan, write};
use crate::codec::{Outcome, io};
use crate::error::SnapshotError;
use crate::replace::Replacement;
use crate::sealed::Seal;
use std::fs::File;
use std::io::{self as system, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::panic::AssertUnwindSafe;
use std::sync::{Mutex, PoisonError};

/// Where it may fail, as its report has it.
const STEPS: [&str; 9] = [
    "create",
    "write",
    "encrypt",
    "sync",
    "rename",
    "sync the folder of",
    "sync what belongs to",
    "finish",
    "name",
];
const FINE: u8 = u8::MAX;
/// A step and the system's number of what went wrong.
const REPORT: usize = 5;
/// Seconds after which a process that hangs is ended.
const LONGEST: u32 = 3600;

/// Processes whose owner did not wait for their end; they are seen off when the next begins.
static LEFT: Mutex<Vec<libc::pid_t>> = Mutex::new(Vec::new());

/// A process that writes, as its parent sees it.
pub(super) struct Writer {
    process: libc::pid_t,
    is_reaped: bool,
    report: File,
    place: Replacement,
}

/// Starts one. Where that cannot be, gives back what it would have needed.
pub(super) fn start(
    plan: &Plan,
    place: Replacement,
    seal: Seal,
) -> Result<Writer, Box<(Replacement, Seal)>> {
    see_off();
    let Ok((reader, writer)) = system::pipe() else { return Err(Box::new((place, seal))) };
    let (reader, writer) = (OwnedFd::from(reader), OwnedFd::from(writer));
    let parent = own_number();
    let before = block_signals();
    // SAFETY: the module says why the copy is safe. It leaves by `_exit` alone.
    let process = unsafe { libc::fork() };
    if process == 0 {
        let mut seal = Some(seal);
        let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| {
            let seal = seal.take().ok_or(SnapshotError::Damaged)?;
            copy(plan, &place, seal, parent, writer.as_raw_fd())
        }));
        report(&writer, &outcome.unwrap_or(Err(failed())));
        // SAFETY: ends the process without running anything of its parent's.
        unsafe { libc::_exit(0) };
    }
    restore_signals(&before);
    drop(writer);
    if process < 0 {
        return Err(Box::new((place, seal)));
    }
    Ok(Writer { process, is_reaped: false, report: File::from(reader), place })
}

/// What the copy does.
fn copy(
    plan: &Plan,
    place: &Replacement,
    seal: Seal,
    parent: libc::pid_t,
    report: i32,
) -> Outcome<()> {
    close_others(|first| {
        let kept = plan.keep.iter().chain(plan.sync).chain([&report]);
        kept.copied().filter(|descriptor| *descriptor >= first).min()
    });
    offer_to_the_oom_killer();
    set_alarm();
    for descriptor in plan.sync {
        super::sync(*descriptor)?;
        if !plan.keep.contains(descriptor) && *descriptor > 2 {
            // SAFETY: a descriptor of this process, which nothing here uses any more.
            unsafe { libc::close(*descriptor) };
        }
    }
    place.write(|file| {
        let mut watched = Watched { file, parent };
        write(plan, &mut watched, seal)?;
        // Syncing may take long.
        file.sync_all().map_err(io("sync"))?;
        watched.look().map_err(io("finish"))
    })
}

fn failed() -> SnapshotError {
    SnapshotError::Io { step: "finish", source: system::Error::from_raw_os_error(libc::EIO) }
}

/// Writes as long as the parent is there.
struct Watched<'a> {
    file: &'a File,
    parent: libc::pid_t,
}

impl Watched<'_> {
    fn look(&self) -> system::Result<()> {
        // SAFETY: a call without arguments that cannot fail.
        let parent = unsafe { libc::getppid() };
        if parent == self.parent {
            return Ok(());
        }
        Err(system::Error::from_raw_os_error(libc::ESRCH))
    }
}

impl Write for Watched<'_> {
    fn write(&mut self, bytes: &[u8]) -> system::Result<usize> {
        self.look()?;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> system::Result<()> {
        Ok(())
    }
}

fn report(writer: &OwnedFd, outcome: &Outcome<()>) {
    let (step, code) = match outcome {
        Ok(()) => (FINE, 0),
        Err(SnapshotError::Io { step, source }) => {
            let step = STEPS.iter().position(|one| one == step).unwrap_or(1);
            (step as u8, source.raw_os_error().unwrap_or(libc::EFBIG))
        }
        Err(_) => (1, libc::EIO),
    };
    let mut bytes = [step; REPORT];
    bytes[1..].copy_from_slice(&code.to_le_bytes());
    // SAFETY: the bytes are there, as many as are said. Nobody may be there to read them.
    unsafe { libc::write(writer.as_raw_fd(), bytes.as_ptr().cast(), REPORT) };
}

impl Writer {
    /// What came of it; `None` while it is not over.
    pub(super) fn outcome(&mut self, wait: bool) -> Option<Outcome<()>> {
        if !wait && !is_readable(&self.report) {
            return None;
        }
        let mut bytes = [0; REPORT];
        let told = self.report.read_exact(&mut bytes).is_ok();
        // It has said all, or is gone: this takes no time.
        let status = self.reap(0);
        if !told {
            self.place.clear();
            return Some(Err(SnapshotError::Io { step: "finish", source: died(status) }));
        }
        let [step, code @ ..] = bytes;
        if step == FINE {
            return Some(Ok(()));
        }
        let source = system::Error::from_raw_os_error(i32::from_le_bytes(code));
        let step = STEPS.get(usize::from(step)).copied().unwrap_or("write");
        Some(Err(SnapshotError::Io { step, source }))
    }

    /// Sees the process off; its status, unless somebody else did.
    fn reap(&mut self, options: i32) -> Option<i32> {
        let status = wait_for(self.process, options);
        self.is_reaped |= !matches!(status, Ok(None));
        status.ok().flatten()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if !self.is_reaped && wait_for(self.process, libc::WNOHANG) == Ok(None) {
            LEFT.lock().unwrap_or_else(PoisonError::into_inner).push(self.process);
        }
    }
}

fn see_off() {
    let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
    left.retain(|process| wait_for(*process, libc::WNOHANG) == Ok(None));
}

/// The status of a process that has ended, `None` of one that has not, an error for one that is none of
/// ours any more.
fn wait_for(process: libc::pid_t, options: i32) -> Result<Option<i32>, ()> {
    let mut status = 0;
    loop {
        // SAFETY: the status is there to be written to.
        match unsafe { libc::waitpid(process, &raw mut status, options) } {
            0 => return Ok(None),
            -1 if system::Error::last_os_error().raw_os_error() == Some(libc::EINTR) => {}
            -1 => return Err(()),
            _ => return Ok(Some(status)),
        }
    }
}

fn died(status: Option<i32>) -> system::Error {
    let words = match status {
        Some(status) if libc::WIFSIGNALED(status) => {
            format!("the process that wrote it was ended by signal {}", libc::WTERMSIG(status))
        }
        _ => "the process that wrote it ended without a word".to_owned(),
    };
    system::Error::other(words)
}

fn is_readable(file: &File) -> bool {
    let mut asked = libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one structure, as is said.
    unsafe { libc::poll(&raw mut asked, 1, 0) > 0 }
}

fn own_number() -> libc::pid_t {
    // SAFETY: a call without arguments that cannot fail.
    unsafe { libc::getpid() }
}

/// Blocks all signals of this thread; gives the mask that was.
fn block_signals() -> libc::sigset_t {
    let mut all = MaybeUninit::uninit();
    let mut before = MaybeUninit::uninit();
    // SAFETY: both sets are written to before they are read.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::sigemptyset(before.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        before.assume_init()
    }
}

fn restore_signals(before: &libc::sigset_t) {
    // SAFETY: a set that this thread had.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, std::ptr::null_mut()) };
}

fn set_alarm() {
    let mut alarm = MaybeUninit::uninit();
    // SAFETY: the set is written to before it is read; the others are numbers.
    unsafe {
        libc::signal(libc::SIGALRM, libc::SIG_DFL);
        libc::sigemptyset(alarm.as_mut_ptr());
        libc::sigaddset(alarm.as_mut_ptr(), libc::SIGALRM);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, alarm.as_ptr(), std::ptr::null_mut());
        libc::alarm(LONGEST);
    }
}

/// Where memory runs out, this process goes and not its parent.
fn offer_to_the_oom_killer() {
    #[cfg(target_os = "linux")]
    let _ = File::options()
        .write(true)
        .open("/proc/self/oom_score_adj")
        .and_then(|mut file| file.write_all(b"1000"));
}

/// Closes all descriptors but those that are kept, of which `kept` gives the first from a number on. The
/// standard ones lead nowhere then, so that no file gets their numbers.
fn close_others(kept: impl Fn(i32) -> Option<i32>) {
    // SAFETY: the path is a text of C's. Descriptors that are closed here are used by nobody: this
    // process has one thread, which knows which ones it needs.
    unsafe {
        let nowhere = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        for standard in 0..3 {
            if nowhere > 2 && kept(standard) != Some(standard) {
                libc::dup2(nowhere, standard);
            }
        }
    }
    let mut first = 3;
    while let Some(next) = kept(first) {
        close_range(first, Some(next));
        first = next + 1;
    }
    close_range(first, None);
}

/// Closes the descriptors from `first` to before `end`, or all from `first` on.
fn close_range(first: i32, end: Option<i32>) {
    if end == Some(first) {
        return;
    }
    #[cfg(target_os = "linux")]
    {
        let last = end.map_or(u32::MAX, |end| end as u32 - 1);
        // SAFETY: as for `close_others`. A system that does not know the call says so.
        let closed = unsafe { libc::syscall(libc::SYS_close_range, first as u32, last, 0_u32) };
        if closed == 0 {
            return;
        }
    }
    // SAFETY: asks for a number.
    let most = unsafe { libc::sysconf(libc::_SC_OPEN_MAX) }.clamp(256, 1 << 16) as i32;
    for descriptor in first..end.unwrap_or(most) {
        // SAFETY: as for `close_others`.
        unsafe { libc::close(descriptor) };
    }
}
