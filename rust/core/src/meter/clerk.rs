//! The thread that takes in, while whoever brings releases goes on.
//!
//! ```text
//! brings: loads        ─→ queue, of bounded weight ─→ clerk: has the meter while there is any
//!                    ←─ memory to be used again ─┘
//! ```
//!
//! The meter itself goes to and fro: it is here while there is something to be taken in, and whoever wants to look at it
//! waits until all is, and takes it along. So nobody can see it half done, and a process that is forked while it
//! is held has all of it without this thread.

use super::Meter;
use super::lens::Sight;
use super::sheet::{Load, Sheet};
use crate::error::Error;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// Lists of sights whose memory is kept.
const MOST_SPARE: usize = 4;

#[derive(Default)]
struct Floor {
    /// Here, and nobody is at work with it.
    meter: Option<Box<Meter>>,
    loads: VecDeque<Load>,
    /// Of all loads that were not taken in: of the one at work too.
    weight: usize,
    /// Used up.
    sheets: Vec<Sheet>,
    sights: Vec<Vec<Sight>>,
    /// Somebody waits for the weight to come down to this.
    wanted: Option<usize>,
    is_over: bool,
    /// The thread was lost with the meter.
    is_lost: bool,
}

#[derive(Default)]
struct Shared {
    floor: Mutex<Floor>,
    /// There is something to do, or all is over.
    came: Condvar,
    /// There is as little left as somebody waits for, or there will never be.
    done: Condvar,
}

pub(super) struct Clerk {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// The process it belongs to: a fork has none of its parent's threads.
    process: u32,
}

impl Clerk {
    /// `None` where there is no thread to be had.
    pub(super) fn start() -> Option<Self> {
        let shared = Arc::<Shared>::default();
        let of_thread = Arc::clone(&shared);
        let named = thread::Builder::new().name("zveil-meter".to_owned());
        let thread = named.spawn(move || of_thread.work()).ok()?;
        Some(Self { shared, thread: Some(thread), process: std::process::id() })
    }

    /// Whether its thread is one of this process.
    pub(super) fn is_here(&self) -> bool {
        self.process == std::process::id()
    }

    /// Gives it the meter.
    pub(super) fn employ(&self, meter: Box<Meter>) {
        self.shared.floor().meter = Some(meter);
    }

    /// Has something taken in, once no more than `most` is waiting; leaves something blank behind.
    pub(super) fn send(&self, load: &mut Load, most: usize) -> Result<(), Error> {
        let weight = load.weight();
        let mut floor = self.until(most.saturating_sub(weight))?;
        let blank = match load {
            Load::Sheet(_) => Load::Sheet(floor.sheets.pop().unwrap_or_default()),
            _ => Load::Sights(floor.sights.pop().unwrap_or_default()),
        };
        match (std::mem::replace(load, blank), floor.loads.back_mut()) {
            (Load::Time(time), Some(Load::Time(last))) => *last = time.max(*last),
            (load, _) => {
                floor.weight += weight;
                floor.loads.push_back(load);
            }
        }
        drop(floor);
        self.shared.came.notify_one();
        Ok(())
    }

    /// The meter, when everything is taken in.
    pub(super) fn dismiss(&self) -> Result<Box<Meter>, Error> {
        self.until(0)?.meter.take().ok_or(Error::Lost)
    }

    /// The meter, if nothing waits to be taken in.
    pub(super) fn dismiss_if_idle(&self) -> Result<Option<Box<Meter>>, Error> {
        self.check()?;
        let mut floor = self.shared.floor();
        if floor.is_lost {
            return Err(Error::Lost);
        }
        Ok(if floor.weight == 0 { floor.meter.take() } else { None })
    }

    /// The weight of what was not taken in.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.shared.floor().weight
    }

    /// Waits until no more than this is left.
    fn until(&self, wanted: usize) -> Result<MutexGuard<'_, Floor>, Error> {
        self.check()?;
        let mut floor = self.shared.floor();
        while floor.weight > wanted && !floor.is_lost {
            floor.wanted = Some(wanted);
            floor = self.shared.done.wait(floor).unwrap_or_else(PoisonError::into_inner);
        }
        floor.wanted = None;
        if floor.is_lost { Err(Error::Lost) } else { Ok(floor) }
    }

    /// In a fork nobody would ever be done; what was at work there is half changed.
    fn check(&self) -> Result<(), Error> {
        if self.is_here() { Ok(()) } else { Err(Error::Lost) }
    }
}

impl Drop for Clerk {
    /// Waits for the load at work; nobody will ever see the rest.
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        if !self.is_here() {
            // Its locks may be held for ever.
            std::mem::forget((thread, Arc::clone(&self.shared)));
            return;
        }
        let mut floor = self.shared.floor();
        floor.is_over = true;
        floor.loads.clear();
        drop(floor);
        self.shared.came.notify_one();
        // It has said by now that it was lost, if it was.
        let _ = thread.join();
    }
}

impl Shared {
    fn floor(&self) -> MutexGuard<'_, Floor> {
        self.floor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let lost = Lost(self);
        let mut floor = self.floor();
        while !floor.is_over {
            let Some(load) = floor.loads.pop_front() else {
                floor = self.came.wait(floor).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            // It comes before anything is sent, and leaves when all is done.
            let Some(mut meter) = floor.meter.take() else { break };
            drop(floor);
            meter.take(&load);
            floor = self.floor();
            floor.meter = Some(meter);
            floor.put_away(load);
            if floor.wanted.is_some_and(|wanted| floor.weight <= wanted) {
                self.done.notify_one();
            }
        }
        if floor.is_over {
            std::mem::forget(lost);
        }
    }
}

impl Floor {
    fn put_away(&mut self, load: Load) {
        self.weight -= load.weight();
        match load {
            Load::Sheet(mut sheet) => {
                sheet.clear();
                self.sheets.push(sheet);
            }
            Load::Sights(mut sights) if self.sights.len() < MOST_SPARE => {
                sights.clear();
                self.sights.push(sights);
            }
            _ => {}
        }
    }
}

/// Dropped when the thread unwinds: nobody may wait for it.
struct Lost<'a>(&'a Shared);

impl Drop for Lost<'_> {
    fn drop(&mut self) {
        self.0.floor().is_lost = true;
        self.0.done.notify_all();
    }
}
