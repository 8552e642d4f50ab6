//! One block on several threads.
//!
//! ```text
//! read ───────→ decided ──────────→ written
//! by anyone     by the one thread   by anyone
//!               that asks, in the
//!               order of the lines
//! ```
//!
//! The block is cut into parts of whole lines, small enough to stay in the cache. There are a few more
//! of them on their way than there are threads, so that hardly anybody waits; who would wait for the
//! next part to be read does what else there is to do.

use super::part::{Part, Parts};
use crate::text::read::Extent;
use crate::text::render::{Renderer, Written};
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Parts on their way for each thread.
pub(super) const FOR_EACH: usize = 3;

/// A part of the block, on its way.
pub(super) struct Load {
    number: usize,
    extent: Extent,
    pub(super) part: Box<Part>,
    /// What is written goes here.
    written: Written,
}

enum Job {
    Read(Load),
    Write(Load),
}

pub(super) struct Conveyor<'a> {
    block: &'a [u8],
    extents: &'a [Extent],
    renderer: &'a Renderer,
    floor: Mutex<Floor>,
    /// Something was put down, or all is over.
    moved: Condvar,
}

#[derive(Default)]
struct Floor {
    to_read: VecDeque<Load>,
    /// Read, to be decided; in any order.
    read: Vec<Load>,
    to_write: VecDeque<Load>,
    /// By the numbers of the parts.
    written: Vec<Option<Written>>,
    /// Nothing of the block is left for them.
    home: Parts,
    /// The first part that nobody was told to read.
    next: usize,
    /// Parts that are not done with.
    open: usize,
    /// Where reading got to in the last part.
    reached: usize,
    is_over: bool,
    /// A thread was lost.
    is_broken: bool,
}

impl<'a> Conveyor<'a> {
    pub(super) fn new(
        block: &'a [u8],
        extents: &'a [Extent],
        renderer: &'a Renderer,
        parts: Parts,
    ) -> Self {
        let mut floor = Floor { open: extents.len(), ..Floor::default() };
        floor.written.resize_with(extents.len(), || None);
        parts.into_iter().for_each(|part| floor.send(part, extents));
        let (floor, moved) = (Mutex::new(floor), Condvar::new());
        Self { block, extents, renderer, floor, moved }
    }

    /// Does what there is to do until all is over.
    pub(super) fn help(&self) {
        let lost = Lost(self);
        let mut floor = self.floor();
        while !floor.is_over {
            floor = match floor.job() {
                Some(job) => {
                    drop(floor);
                    self.work(job);
                    self.floor()
                }
                None => self.wait(floor),
            };
        }
        drop(floor);
        std::mem::forget(lost);
    }

    /// Gives a part to be decided when it is read.
    pub(super) fn take(&self, number: usize) -> Load {
        self.until(|floor| {
            let place = floor.read.iter().position(|load| load.number == number)?;
            Some(floor.read.swap_remove(place))
        })
    }

    /// Has a part written that is decided.
    pub(super) fn put(&self, mut load: Load, into: Written) {
        load.written = into;
        self.floor().to_write.push_back(load);
        self.moved.notify_all();
    }

    /// Is done with a part of which nothing is written.
    pub(super) fn put_away(&self, load: Load) {
        self.floor().put_away(load.part, self.extents);
        self.moved.notify_all();
    }

    /// Waits until everything is written.
    pub(super) fn finish(&self) {
        self.until(|floor| (floor.open == 0).then_some(()));
    }

    /// Sends everybody home.
    pub(super) fn close(&self) {
        self.floor().is_over = true;
        self.moved.notify_all();
    }

    /// What was written in the order of the lines, where reading got to, and the parts.
    pub(super) fn into_parts(self) -> (Vec<Written>, usize, Parts) {
        let floor = self.floor.into_inner().unwrap_or_else(PoisonError::into_inner);
        let loads = floor.to_read.into_iter().chain(floor.read).chain(floor.to_write);
        let mut parts = floor.home;
        parts.extend(loads.map(|load| load.part));
        (floor.written.into_iter().flatten().collect(), floor.reached, parts)
    }

    /// Does what there is to do until something is found on the floor.
    fn until<T>(&self, find: impl Fn(&mut Floor) -> Option<T>) -> T {
        let mut floor = self.floor();
        loop {
            assert!(!floor.is_broken, "a thread of this block was lost");
            if let Some(found) = find(&mut floor) {
                return found;
            }
            floor = match floor.job() {
                Some(job) => {
                    drop(floor);
                    self.work(job);
                    self.floor()
                }
                None => self.wait(floor),
            };
        }
    }

    fn work(&self, job: Job) {
        match job {
            Job::Read(mut load) => {
                // Whole lines: what is UTF-8 in all of them is in each.
                let text = &self.block[load.extent.start..load.extent.end];
                load.extent.utf8 = simdutf8::basic::from_utf8(text).is_ok();
                let (end, _) = load.part.read(self.block, load.extent);
                let mut floor = self.floor();
                if load.number + 1 == self.extents.len() {
                    floor.reached = end;
                }
                floor.read.push(load);
            }
            Job::Write(Load { number, part, mut written, .. }) => {
                part.write(self.renderer, self.block, &mut written);
                let mut floor = self.floor();
                floor.written[number] = Some(written);
                floor.put_away(part, self.extents);
            }
        }
        self.moved.notify_all();
    }

    fn floor(&self) -> MutexGuard<'_, Floor> {
        self.floor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'g>(&self, floor: MutexGuard<'g, Floor>) -> MutexGuard<'g, Floor> {
        self.moved.wait(floor).unwrap_or_else(PoisonError::into_inner)
    }
}

impl Floor {
    /// The next part has to be read before it can be decided: that comes first.
    fn job(&mut self) -> Option<Job> {
        let read = self.to_read.pop_front().map(Job::Read);
        read.or_else(|| self.to_write.pop_front().map(Job::Write))
    }

    fn put_away(&mut self, part: Box<Part>, extents: &[Extent]) {
        self.open -= 1;
        self.send(part, extents);
    }

    /// Has the next of the block read, or nothing more.
    fn send(&mut self, part: Box<Part>, extents: &[Extent]) {
        match extents.get(self.next) {
            Some(extent) => {
                let (number, extent, written) = (self.next, *extent, Written::default());
                self.to_read.push_back(Load { number, extent, part, written });
                self.next += 1;
            }
            None => self.home.push(part),
        }
    }
}

/// Dropped when a thread unwinds: nobody may wait for it.
struct Lost<'c, 'a>(&'c Conveyor<'a>);

impl Drop for Lost<'_, '_> {
    fn drop(&mut self) {
        let mut floor = self.0.floor();
        floor.is_broken = true;
        floor.is_over = true;
        self.0.moved.notify_all();
    }
}

/// Closes when it is dropped, whatever happens.
pub(super) struct Closing<'c, 'a>(pub(super) &'c Conveyor<'a>);

impl Drop for Closing<'_, '_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::plan::TextFormat;
    use crate::text::tests::plan;

    #[test]
    #[should_panic(expected = "was lost")]
    fn nobody_waits_for_a_thread_that_is_lost() {
        let (plan, whole) = (plan(TextFormat::Ndjson), b"{}\n");
        let renderer = Renderer::new(&plan);
        let extents = [Extent { start: 0, end: 3, last: true, utf8: true, most_rows: 9 }];
        let conveyor = Conveyor::new(whole, &extents, &renderer, vec![Box::new(Part::new(&plan))]);
        drop(Lost(&conveyor));
        conveyor.help();
        conveyor.take(0);
    }
}
