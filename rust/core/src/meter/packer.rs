//! Columns of what left, made into loads: all that needs the columns, and nothing that needs the meter.

use super::Released;
use super::entry::Mark;
use super::lens::{Desk, Lens, Seen, Sight};
use super::lines::Release;
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
    memo: Memo,
    rows: Vec<u32>,
    desk: Desk,
    sights: Vec<Sight>,
    sheet: Sheet,
}

/// Places of values that came a moment ago: most values of a stream are a few. Found by the value itself, which
/// need not be hashed then. Holds values as they came in, so that it lasts as long as the columns that they
/// stand in: one call.
#[derive(Default)]
struct Memo {
    /// Each value has one place here, and the last one to come there stays. With it the place of its word.
    known: Vec<(i64, u32)>,
    /// Places in use; those of `known` are counted from `base`, and what is below was forgotten.
    places: usize,
    base: u32,
}

impl Memo {
    /// Forgets everything, values too.
    fn clear(&mut self) {
        self.known.fill((0, 0));
        (self.places, self.base) = (0, 1);
    }

    /// Places begin anew.
    fn begin(&mut self) {
        self.known.resize(1 << BITS, (0, 0));
        match self.base.checked_add(self.places as u32) {
            Some(base) if base < u32::MAX / 2 => (self.places, self.base) = (0, base.max(1)),
            _ => self.clear(),
        }
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

/// Columns of integers, and the rows of them that left.
#[derive(Clone, Copy)]
struct Integers<'a> {
    times: &'a [i64],
    users: &'a [i64],
    values: &'a [i64],
    rows: &'a [u32],
    tweak: u128,
}

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
        self.memo.begin();
        let outcome = self.pack_rounds(columns, rotate, lens, &mut take);
        self.memo.clear();
        outcome
    }

    fn pack_rounds(
        &mut self,
        Columns { times, users, fields }: Columns,
        rotate: Option<i64>,
        lens: &Lens,
        take: &mut impl FnMut(&mut Load) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let all = times.len();
        let integers = integers(users, fields).filter(|_| all >= LONG);
        for start in (0..all).step_by(ROUND) {
            let span = start..all.min(start + ROUND);
            let (period, is_sorted) = one_period(&times[span.clone()], rotate);
            if let (Some((users, values, released)), Some(period)) = (integers, period) {
                // The shortest way.
                self.flush_sights(take)?;
                let begins = self.sheet.period != period || self.memo.places >= MOST_PLACES;
                if begins || self.sheet.is_full() {
                    self.flush_sheet(take)?;
                }
                if begins {
                    (self.sheet.period, self.sheet.is_first) = (period, true);
                    self.memo.begin();
                }
                let (users, values) = (&users[span.clone()], &values[span.clone()]);
                let mut rows = std::mem::take(&mut self.rows);
                choose(span.len(), released.rows.map(|rows| &rows[span.clone()]), &mut rows);
                let (times, tweak) = (&times[span], released.field.tweak());
                let seen = Integers { times, users, values, rows: &rows, tweak };
                self.write(seen, is_sorted, lens);
                self.rows = rows;
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

    /// Writes what left of columns of integers onto the sheet.
    fn write(&mut self, seen: Integers, is_sorted: bool, lens: &Lens) {
        let Integers { times, users, rows, .. } = seen;
        let latest = match rows.last() {
            None => return,
            Some(last) if is_sorted => times[*last as usize],
            Some(last) => {
                rows.iter().map(|row| times[*row as usize]).fold(times[*last as usize], i64::max)
            }
        };
        self.sheet.reserve();
        for rows in rows.chunks(GROUP) {
            let places = self.places(Integers { rows, ..seen }, lens);
            let (mut who, mut words) = ([0; GROUP], [0; GROUP]);
            let (who, words) = (&mut who[..rows.len()], &mut words[..rows.len()]);
            for (user, row) in who.iter_mut().zip(rows) {
                *user = users[*row as usize];
            }
            lens.hasher().integer_words(who, words);
            let releases = words.iter().zip(places);
            let releases = releases.map(|(word, place)| Release::new(Mark::new(*word), place));
            self.sheet.push(latest, self.memo.places, releases);
        }
    }

    /// The places of the values of some rows.
    fn places(&mut self, seen: Integers, lens: &Lens) -> [u32; GROUP] {
        let (Self { memo, sheet, .. }, Integers { values, rows, tweak, .. }) = (self, seen);
        let (mut places, mut unknown, mut count) = ([0; GROUP], [0; GROUP], 0_usize);
        for (at, row) in rows.iter().enumerate() {
            let value = values[*row as usize];
            let (known, place) = memo.known[Memo::home(value)];
            places[at] = place.wrapping_sub(memo.base);
            unknown[count % GROUP] = at;
            count = count.wrapping_add(usize::from((known != value) | (place < memo.base)));
        }
        let unknown = &unknown[..count];
        let mut words = [0; GROUP];
        for (word, at) in words.iter_mut().zip(unknown) {
            *word = Hasher::integer(values[rows[*at] as usize]) ^ tweak;
        }
        lens.hasher().attributes(&mut words[..count], None);
        for (word, at) in words.into_iter().zip(unknown) {
            let value = values[rows[*at] as usize];
            places[*at] = memo.places as u32;
            memo.known[Memo::home(value)] = (value, memo.base + memo.places as u32);
            memo.places += 1;
            sheet.words.push(word);
        }
        places
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
    // Without a branch for each.
    let is_sorted =
        times.iter().zip(&times[1..]).fold(true, |sorted, (one, next)| sorted & (one <= next));
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

/// The columns of one field, where they are integers and nothing is missing.
fn integers<'a>(
    users: &'a dyn Column,
    fields: &'a [Released<'a>],
) -> Option<(&'a [i64], &'a [i64], &'a Released<'a>)> {
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
