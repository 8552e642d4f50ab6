//! A meter that takes in beside whoever feeds it, on a core of its own.

use super::clerk::Clerk;
use super::lens::{Lens, Sight};
use super::packer::{Columns, Packer};
use super::sheet::Load;
use super::{Meter, Released};
use crate::column::{Column, Prepares, Role, Value};
use crate::crew::has_cores;
use crate::error::Error;
use crate::gate::Gate;
use std::sync::Arc;

/// Bytes of releases that may be on their way, and which share of the meter's limit, if that is less.
const MOST_WAITING: usize = 16 << 20;
const SHARE: usize = 4;
/// With fewer rows, to wake somebody takes longer than to do it.
const FEW: usize = 1 << 12;

/// A [`Meter`] with a thread of its own. Who brings releases chooses them and names their values; the thread hashes
/// users and takes in, in the order in which they came. Only [`LiveMeter::meter`] leads to the meter, and waits until
/// all is taken in: every answer is that of a meter without the thread.
///
/// Where there is one core only, and for a few rows, all is done at once.
pub struct LiveMeter {
    /// While the clerk does not have it.
    home: Option<Box<Meter>>,
    clerk: Option<Clerk>,
    packer: Packer,
    /// The meter's, which they stay.
    lens: Arc<Lens>,
    rotate: Option<i64>,
    /// Bytes that may wait.
    most: usize,
    /// Whether there is a thread at all; by what the machine has, if nothing was said.
    is_beside: Option<bool>,
}

impl LiveMeter {
    pub fn new(meter: Meter) -> Self {
        Self {
            lens: Arc::clone(meter.lens()),
            rotate: meter.settings.rotate,
            most: 0,
            home: Some(Box::new(meter)),
            clerk: None,
            packer: Packer::default(),
            is_beside: None,
        }
    }

    /// Says whether there are threads, whatever the machine has.
    #[cfg(test)]
    pub(super) fn beside(mut meter: Meter, is_beside: bool) -> Self {
        meter.tools.crew = crate::crew::Crew::new(1 + usize::from(is_beside));
        Self { is_beside: Some(is_beside), ..Self::new(meter) }
    }

    /// Makes the words of what leaves, for [`LiveMeter::take_in`].
    pub fn lens(&self) -> &Arc<Lens> {
        &self.lens
    }

    /// The meter, when everything is taken in that was brought.
    pub fn meter(&mut self) -> Result<&mut Meter, Error> {
        let mut meter = match (self.home.take(), &self.clerk) {
            (Some(meter), _) => meter,
            (None, Some(clerk)) => clerk.dismiss()?,
            (None, None) => return Err(Error::Lost),
        };
        meter.tools.on_two = true;
        Ok(self.home.insert(meter))
    }

    /// The meter, if it was asked for and nothing has been brought since.
    pub fn settled(&self) -> Option<&Meter> {
        self.home.as_deref()
    }

    /// As [`Meter::add`].
    pub fn add(
        &mut self,
        times: &[i64],
        users: &dyn Column,
        fields: &[Released],
    ) -> Result<(), Error> {
        if let Some(meter) = self.in_place(times.len().saturating_mul(fields.len()))? {
            return meter.add(times, users, fields);
        }
        let (lens, mut packer) = (Arc::clone(&self.lens), std::mem::take(&mut self.packer));
        let columns = Columns { times, users, fields };
        let outcome = packer.pack(columns, self.rotate, &lens, |load| self.send(load));
        self.packer = packer;
        outcome
    }

    /// As [`Meter::count`], of several lists in their order; time is where the gates are afterwards.
    pub(crate) fn count<'a>(
        &mut self,
        seen: impl Iterator<Item = Vec<Sight>>,
        count: usize,
        gates: impl IntoIterator<Item = &'a Gate>,
    ) -> Result<(), Error> {
        if let Some(meter) = self.in_place(count)? {
            seen.for_each(|sights| meter.count(&sights));
            meter.follow(gates);
            return Ok(());
        }
        for sights in seen.filter(|sights| !sights.is_empty()) {
            self.send(&mut Load::Sights(sights))?;
        }
        self.follow(gates)
    }

    /// As [`Meter::follow`].
    pub fn follow<'a>(&mut self, gates: impl IntoIterator<Item = &'a Gate>) -> Result<(), Error> {
        let clock = gates.into_iter().map(|gate| gate.admission.clock).max();
        clock.map_or(Ok(()), |clock| self.advance(clock))
    }

    /// As [`Meter::advance`].
    pub fn advance(&mut self, time: i64) -> Result<(), Error> {
        match self.in_place(0)? {
            Some(meter) => meter.advance(time),
            None => self.send(&mut Load::Time(time))?,
        }
        Ok(())
    }

    /// The meter, if so many rows are to be taken in at once: there is nothing to be waited for, and it would
    /// not be worth while to hand them over, or there is nobody to.
    fn in_place(&mut self, rows: usize) -> Result<Option<&mut Meter>, Error> {
        if self.home.is_none() && rows < FEW {
            self.home = self.clerk.as_ref().ok_or(Error::Lost)?.dismiss_if_idle()?;
        }
        if self.home.is_some() && rows >= FEW && self.is_beside() {
            self.hand_over();
        }
        Ok(self.home.as_deref_mut())
    }

    fn is_beside(&self) -> bool {
        self.is_beside.unwrap_or_else(has_cores)
    }

    /// The clerk has the meter then, unless there is no thread to be had.
    fn hand_over(&mut self) {
        if !self.clerk.as_ref().is_some_and(Clerk::is_here) {
            self.clerk = Clerk::start();
        }
        if let Some(clerk) = &self.clerk
            && let Some(mut meter) = self.home.take()
        {
            // Whoever brings releases needs the other core.
            meter.tools.on_two = false;
            let limit = meter.settings.memory_limit.map_or(usize::MAX, |limit| limit / SHARE);
            self.most = limit.min(MOST_WAITING);
            clerk.employ(meter);
        }
    }

    fn send(&mut self, load: &mut Load) -> Result<(), Error> {
        self.clerk.as_ref().ok_or(Error::Lost)?.send(load, self.most)
    }
}

impl Prepares for LiveMeter {
    fn prepare(&self, value: Value, role: Role) -> Option<Value<'static>> {
        self.lens.prepare(value, role)
    }
}

#[cfg(test)]
mod tests;
