//! Numbers of values that came a moment ago: most values of a stream are a few.

use super::entry::Mark;
use super::lens::{Field, Lens};
use super::lines::Release;
use super::part::GROUP;
use super::period::Period;
use super::table::Full;
use crate::key::Hasher;
use crate::memory::Budget;

/// Values that there is room for, as a power of two.
const BITS: u32 = 12;

/// Finds a value's number by the value itself, which need not be hashed then. Holds values as they came
/// in, so that it lasts as long as the columns that they stand in: one call.
#[derive(Default)]
pub(super) struct Memo {
    /// Each value has one place, and the last one to come there stays. Numbers are counted from 1.
    known: Vec<(i64, u32)>,
    period: i64,
}

impl Memo {
    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.known.fill((0, 0));
    }

    /// Numbers are those of one period.
    pub(super) fn turn_to(&mut self, period: i64) {
        if self.period != period {
            self.clear();
            self.period = period;
        }
        self.known.resize(1 << BITS, (0, 0));
    }

    #[inline(always)]
    fn place(value: i64) -> usize {
        ((value as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - BITS)) as usize
    }
}

/// Columns of integers, and the rows of them that left.
#[derive(Clone, Copy)]
pub(super) struct Integers<'a> {
    pub(super) users: &'a [i64],
    pub(super) values: &'a [i64],
    pub(super) rows: &'a [u32],
    pub(super) field: Field,
}

impl Period {
    /// Takes in what left of columns of integers, as [`Period::count`] would what is seen of them.
    pub(super) fn count_integers(
        &mut self,
        seen: Integers,
        memo: &mut Memo,
        lens: &Lens,
        budget: &mut Budget,
    ) -> Result<(), Full> {
        for rows in seen.rows.chunks(GROUP) {
            let numbers = self.numbers(rows, seen, memo, lens, budget)?;
            let mut words = [0; GROUP];
            let words = &mut words[..rows.len()];
            for (word, row) in words.iter_mut().zip(rows) {
                *word = Hasher::integer(seen.users[*row as usize]);
            }
            lens.hasher().user_words(words);
            words.iter().for_each(|word| self.prefetch_log(Mark::new(*word)));
            for (word, number) in words.iter().zip(numbers) {
                self.put_release(Release::new(Mark::new(*word), number), lens, budget)?;
            }
        }
        Ok(())
    }

    /// The numbers of the values of some rows.
    fn numbers(
        &mut self,
        rows: &[u32],
        Integers { values, field, .. }: Integers,
        memo: &mut Memo,
        lens: &Lens,
        budget: &mut Budget,
    ) -> Result<[u32; GROUP], Full> {
        let (mut numbers, mut unknown, mut count) = ([0; GROUP], [0; GROUP], 0_usize);
        for (at, row) in rows.iter().enumerate() {
            let value = values[*row as usize];
            let (known, number) = memo.known[Memo::place(value)];
            numbers[at] = number.wrapping_sub(1);
            unknown[count % GROUP] = at;
            count = count.wrapping_add(usize::from((known != value) | (number == 0)));
        }
        let unknown = &unknown[..count];
        let mut words = [0; GROUP];
        for (word, at) in words.iter_mut().zip(unknown) {
            *word = Hasher::integer(values[rows[*at] as usize]) ^ field.tweak();
        }
        lens.hasher().attributes(&mut words[..count], None);
        for (word, at) in words.into_iter().zip(unknown) {
            let (value, number) = (values[rows[*at] as usize], self.number(word, budget)?);
            numbers[*at] = number;
            memo.known[Memo::place(value)] = (value, number + 1);
        }
        Ok(numbers)
    }
}
