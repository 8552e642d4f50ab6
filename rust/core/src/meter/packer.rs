//! Columns of what left, made into loads: all that needs the columns, and nothing that needs the meter.

use super::Released;
use super::lens::{Desk, Lens, Seen, Sight};
use super::part::GROUP;
use super::sheet::{Load, ROOM, ROUND, Sheet};
use crate::column::Column;
use crate::error::Error;
use crate::key::Hasher;

/// Rows from which on it is worth while to remember what came a moment ago.
const LONG: usize = 1 << 14;
/// Values that are remembered, as a power of two.
const BITS: u32 = 13;
/// Places of values after which they are counted anew: their numbers lie in the cache of who takes in.
const MOST_PLACES: usize = 1 << 15;

/// Makes loads of columns.
#[derive(Default)]
pub(super) struct Packer {
    /// There from the first long columns of integers on.
    memo: Option<Box<Memo>>,
    rows: Vec<u32>,
    desk: Desk,
    sights: Vec<Sight>,
    sheet: Sheet,
}

/// Places of values that came a moment ago: most values of a stream are a few. Found by the value itself, which
/// need not be hashed then. Holds values as they came in, so that it lasts as long as the columns that they
/// stand in: one call.
struct Memo {
    /// Each value has one place here, and the last one to come there stays. With it the place of its word.
    known: [(i64, u32); 1 << BITS],
    /// Places in use; those of `known` are counted from `base`, and what is below was forgotten.
    places: usize,
    base: u32,
}

impl Default for Memo {
    fn default() -> Self {
        Self { known: [(0, 0); 1 << BITS], places: 0, base: 1 }
    }
}

impl Memo {
    /// Forgets everything, values too.
    fn clear(&mut self) {
        self.known.fill((0, 0));
        (self.places, self.base) = (0, 1);
    }

    /// Places begin anew.
    fn begin(&mut self) {
        match self.base.checked_add(self.places as u32) {
            Some(base) if base < u32::MAX / 2 => (self.places, self.base) = (0, base.max(1)),
            _ => self.clear(),
        }
    }

    /// Writes the rows that left onto a sheet, at most a round of rows. All are written, and those that did not leave are
    /// written over by the next: the CPU need not guess.
    fn write(&mut self, seen: Integers, sheet: &mut Sheet, lens: &Lens) {
        let (Self { known, places, base }, Integers { users, values, released, .. }) = (self, seen);
        let (mut to_users, mut to_places) = ([0; ROUND], [0; ROUND]);
        let (mut unknown, mut unknowns, mut count) = ([(0_u16, 0_u16); ROUND], 0_usize, 0_usize);
        for (((user, value), left), at) in users.iter().zip(values).zip(released).zip(0..) {
            let (found, place) = known[Memo::home(*value)];
            // Not more than there are rows in a round.
            to_users[count % ROUND] = *user;
            to_places[count % ROUND] = place.wrapping_sub(*base);
            unknown[unknowns % ROUND] = (at, count as u16);
            let left = usize::from(*left != 0);
            let is_unknown = usize::from((found != *value) | (place < *base));
            unknowns = unknowns.wrapping_add(left & is_unknown);
            count = count.wrapping_add(left);
        }
        for unknown in unknown[..unknowns].chunks(GROUP) {
            let mut words = [0; GROUP];
            for (word, (at, _)) in words.iter_mut().zip(unknown) {
                *word = Hasher::integer(values[usize::from(*at)]) ^ seen.tweak;
            }
            lens.hasher().attributes(&mut words[..unknown.len()], None);
            for (word, (at, to)) in words.into_iter().zip(unknown) {
                let value = values[usize::from(*at)];
                to_places[usize::from(*to)] = *places as u32;
                known[Memo::home(value)] = (value, *base + *places as u32);
                *places += 1;
                sheet.words.push(word);
            }
        }
        sheet.push(&to_users[..count], &to_places[..count]);
    }

    #[inline(always)]
    fn home(value: i64) -> usize {
        ((value as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - BITS)) as usize
    }
}

/// What left, as it is told.
#[derive(Clone, Copy)]
pub(super) struct Columns<'a> {
    pub(super) times: &'a [i64],
    pub(super) users: &'a dyn Column,
    pub(super) fields: &'a [Released<'a>],
}

/// Some rows of columns of integers, and which of them left.
#[derive(Clone, Copy)]
struct Integers<'a> {
    users: &'a [i64],
    values: &'a [i64],
    released: &'a [u8],
    tweak: u128,
}

/// Where nothing is said, all left.
const ALL: [u8; ROUND] = [1; ROUND];

impl Packer {
    /// Gives loads to `take`, in order, which leaves blank ones behind; their memory is used again.
    pub(super) fn pack(
        &mut self,
        columns: Columns,
        rotate: Option<i64>,
        lens: &Lens,
        mut take: impl FnMut(&mut Load) -> Result<(), Error>,
    ) -> Result<(), Error> {
        columns.check()?;
        self.sheet.is_first = true;
        let is_long = columns.times.len() >= LONG;
        let integers = integers(columns.users, columns.fields).filter(|_| is_long);
        if integers.is_some() {
            self.memo.get_or_insert_default().begin();
        }
        let outcome = self.pack_rounds(columns, integers, rotate, lens, &mut take);
        if let Some(memo) = self.memo.as_mut().filter(|_| integers.is_some()) {
            memo.clear();
        }
        outcome
    }

    fn pack_rounds(
        &mut self,
        Columns { times, users, fields }: Columns,
        integers: Option<OfOneField>,
        rotate: Option<i64>,
        lens: &Lens,
        take: &mut impl FnMut(&mut Load) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let all = times.len();
        for start in (0..all).step_by(ROUND) {
            let span = start..all.min(start + ROUND);
            let (period, is_sorted) = one_period(&times[span.clone()], rotate);
            if let (Some((users, values, released)), Some(period)) = (integers, period)
                && let Some(mut memo) = self.memo.take()
            {
                // The shortest way.
                self.flush_sights(take)?;
                let tweak = released.field.tweak();
                let begins = self.sheet.period != period || memo.places >= MOST_PLACES;
                if begins || self.sheet.is_full() {
                    self.flush_sheet(take)?;
                }
                if begins {
                    (self.sheet.period, self.sheet.is_first) = (period, true);
                    memo.begin();
                }
                let (users, values) = (&users[span.clone()], &values[span.clone()]);
                let released = released.rows.map_or(&ALL[..span.len()], |rows| &rows[span.clone()]);
                if let Some(latest) = latest(&times[span], released, is_sorted) {
                    let seen = Integers { users, values, released, tweak };
                    self.sheet.come_to(latest);
                    memo.write(seen, &mut self.sheet, lens);
                }
                self.memo = Some(memo);
                continue;
            }
            self.flush_sheet(take)?;
            let first = self.sights.len();
            for Released { field, values, rows: released } in fields {
                choose(span.len(), released.map(|rows| &rows[span.clone()]), &mut self.rows);
                let seen = Seen { times, users, values: *values, field: *field };
                lens.look(seen, (start, &self.rows), &mut self.desk, &mut self.sights);
            }
            if fields.len() > 1 && period.is_none() {
                // In the order of the records: what comes later may end the period of one before.
                self.sights[first..].sort_by_key(|sight| sight.row);
            }
            if self.sights.len() >= ROOM {
                self.flush_sights(take)?;
            }
        }
        self.flush_sheet(take)?;
        self.flush_sights(take)
    }

    fn flush_sheet(
        &mut self,
        take: &mut impl FnMut(&mut Load) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if self.sheet.is_empty() {
            return Ok(());
        }
        let period = self.sheet.period;
        let mut load = Load::Sheet(std::mem::take(&mut self.sheet));
        take(&mut load)?;
        if let Load::Sheet(sheet) = load {
            self.sheet = sheet;
            self.sheet.clear();
        }
        (self.sheet.period, self.sheet.is_first) = (period, false);
        Ok(())
    }

    fn flush_sights(
        &mut self,
        take: &mut impl FnMut(&mut Load) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if self.sights.is_empty() {
            return Ok(());
        }
        let mut load = Load::Sights(std::mem::take(&mut self.sights));
        take(&mut load)?;
        if let Load::Sights(sights) = load {
            self.sights = sights;
            self.sights.clear();
        }
        Ok(())
    }
}

impl Columns<'_> {
    fn check(&self) -> Result<(), Error> {
        let all = self.times.len();
        for Released { values, rows, .. } in self.fields {
            let told = rows.map_or(all, <[u8]>::len);
            if self.users.len() != all || values.len() != all || told != all {
                let (times, users, attributes) = (all.min(told), self.users.len(), values.len());
                return Err(Error::Lengths { times, users, attributes });
            }
        }
        Ok(())
    }
}

/// The period that all times are in, if there is one: then their order makes no difference. And whether they
/// are in order, which is told sooner than the first and the last of them.
fn one_period(times: &[i64], rotate: Option<i64>) -> (Option<i64>, bool) {
    let (Some(first), Some(last)) = (times.first(), times.last()) else { return (None, true) };
    // Without a branch for each, and without a comparison, which not every CPU has for two of them at once: the highest bit
    // of a difference tells which is larger, unless that was too large; then the difference has it wrong.
    let back = times.iter().zip(&times[1..]).fold(0, |back, (one, next)| {
        let difference = next.wrapping_sub(*one);
        back | difference ^ ((next ^ one) & (difference ^ next))
    });
    let is_sorted = back >= 0;
    let (earliest, latest) = if is_sorted {
        (*first, *last)
    } else {
        times.iter().fold((*first, *last), |(from, to), time| (from.min(*time), to.max(*time)))
    };
    let of = |time: i64| rotate.map_or(0, |length| time.div_euclid(length));
    // The smallest number is no time.
    let is_one = earliest != i64::MIN && of(earliest) == of(latest);
    (is_one.then(|| of(latest)), is_sorted)
}

/// The largest time of rows that left; `None` if none did.
fn latest(times: &[i64], released: &[u8], is_sorted: bool) -> Option<i64> {
    let mut left =
        times.iter().zip(released).filter(|(_, left)| **left != 0).map(|(time, _)| *time);
    if is_sorted { left.next_back() } else { left.max() }
}

/// Users and values, and the field itself.
type OfOneField<'a> = (&'a [i64], &'a [i64], &'a Released<'a>);

/// The columns of one field, where they are integers and nothing is missing.
fn integers<'a>(users: &'a dyn Column, fields: &'a [Released<'a>]) -> Option<OfOneField<'a>> {
    let [field] = fields else { return None };
    Some((users.words()?, field.values.words()?, field))
}

/// The rows that left.
fn choose(all: usize, released: Option<&[u8]>, rows: &mut Vec<u32>) {
    // Often all of them did.
    let Some(released) =
        released.filter(|rows| !rows.iter().fold(true, |all, row| all & (*row != 0)))
    else {
        rows.clear();
        return rows.extend(0..all as u32);
    };
    rows.resize(all, 0);
    let mut count = 0;
    for (row, left) in released.iter().enumerate() {
        rows[count] = row as u32;
        count += usize::from(*left != 0);
    }
    rows.truncate(count);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_two_times_are_in_order_or_not() {
        let times = [i64::MIN, i64::MIN + 1, -9, -1, 0, 1, 9, i64::MAX - 1, i64::MAX];
        for one in times {
            for next in times {
                let (period, is_sorted) = one_period(&[one, one, next], None);
                assert_eq!(is_sorted, one <= next, "{one} {next}");
                assert_eq!(period.is_some(), one.min(next) > i64::MIN);
            }
        }
        assert_eq!(one_period(&[5, 9, 7], Some(5)), (Some(1), false));
        assert_eq!(one_period(&[5, 10, 7], Some(5)), (None, false));
    }
}
