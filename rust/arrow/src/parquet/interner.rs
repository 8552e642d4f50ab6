//! Words of a dictionary that is written: each once, numbered by its first use.

/// Where a word may be. Of a gate's hash all of it counts, so that words need not be compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    hash: u64,
    check: u32,
    /// Two words never have the same.
    is_sure: bool,
}

impl Mark {
    /// 96 bits of a gate's hash. In 10^12 rows, beside dictionaries of 10^6 words, two words are taken
    /// for one with a chance of 10^18 / 2^96 = 1.3e-11.
    #[inline(always)]
    pub(super) fn of_gate(hash: u128) -> Self {
        Self { hash: hash as u64, check: (hash >> 64) as u32, is_sure: true }
    }

    #[inline(always)]
    pub(super) fn of_bytes(hash: u64) -> Self {
        Self { hash, check: 0, is_sure: false }
    }
}

#[derive(Clone, Copy)]
struct Place {
    hash: u64,
    check: u32,
    number: u32,
}

const NONE: u32 = u32::MAX;
const EMPTY: Place = Place { hash: 0, check: 0, number: NONE };
const FEWEST: usize = 1 << 10;

/// The words of a column chunk, as its dictionary page has them.
pub(super) struct Interner {
    page: Vec<u8>,
    /// Where each word begins in the page.
    starts: Vec<u32>,
    places: Vec<Place>,
}

impl Interner {
    pub(super) fn new() -> Self {
        Self { page: Vec::new(), starts: Vec::new(), places: vec![EMPTY; FEWEST] }
    }

    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }

    /// Each word behind its length.
    pub(super) fn page(&self) -> &[u8] {
        &self.page
    }

    /// Bytes held, about.
    pub(super) fn size(&self) -> usize {
        self.page.len() + 4 * self.starts.len() + size_of::<Place>() * self.places.len()
    }

    pub(super) fn into_page(self) -> Vec<u8> {
        self.page
    }

    /// Adds a word that is not there yet, to be found by its number only; see [`Interner::index`].
    pub(super) fn append(&mut self, word: &[u8]) -> u32 {
        let number = self.starts.len() as u32;
        self.starts.push(self.page.len() as u32);
        self.page.extend_from_slice(&(word.len() as u32).to_le_bytes());
        self.page.extend_from_slice(word);
        number
    }

    /// Makes words that were appended, and nothing else was done yet, such that they are found.
    pub(super) fn index(&mut self, mark: impl Fn(&[u8]) -> Mark) {
        self.places = vec![EMPTY; FEWEST.max((2 * self.len()).next_power_of_two())];
        for number in 0..self.len() as u32 {
            let Mark { hash, check, .. } = mark(self.word(number));
            self.settle(Place { hash, check, number });
        }
    }

    /// The number of a word; `word` is asked only where it must be.
    #[inline(always)]
    pub(super) fn number<'w>(&mut self, mark: Mark, word: impl Fn() -> &'w [u8]) -> u32 {
        let mask = self.places.len() - 1;
        let mut at = mark.hash as usize & mask;
        loop {
            let place = self.places[at];
            if place.number == NONE {
                return self.add(mark, word());
            }
            let is_found = place.hash == mark.hash
                && place.check == mark.check
                && (mark.is_sure || self.word(place.number) == word());
            if is_found {
                return place.number;
            }
            at = at.wrapping_add(1) & mask;
        }
    }

    fn word(&self, number: u32) -> &[u8] {
        let start = self.starts[number as usize] as usize;
        let next = self.starts.get(number as usize + 1).copied();
        &self.page[start + 4..next.map_or(self.page.len(), |next| next as usize)]
    }

    #[cold]
    #[inline(never)]
    fn add(&mut self, mark: Mark, word: &[u8]) -> u32 {
        let number = self.append(word);
        if 2 * self.starts.len() > self.places.len() {
            let larger = vec![EMPTY; 2 * self.places.len()];
            for place in std::mem::replace(&mut self.places, larger) {
                if place.number != NONE {
                    self.settle(place);
                }
            }
        }
        self.settle(Place { hash: mark.hash, check: mark.check, number });
        number
    }

    fn settle(&mut self, place: Place) {
        let mask = self.places.len() - 1;
        let mut at = place.hash as usize & mask;
        while self.places[at].number != NONE {
            at = (at + 1) & mask;
        }
        self.places[at] = place;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_has_a_number_by_its_first_use() {
        let words: Vec<String> = (0..5_000).map(|n| format!("word-{}", n % 3_000)).collect();
        for is_sure in [false, true] {
            let mut interner = Interner::new();
            for (at, word) in words.iter().enumerate() {
                let n = (at % 3_000) as u64;
                // Some marks of bytes are the same for several words.
                let mark = if is_sure {
                    Mark::of_gate(u128::from(n) << 64 | u128::from(n % 7))
                } else {
                    Mark::of_bytes(n / 4)
                };
                assert_eq!(u64::from(interner.number(mark, || word.as_bytes())), n);
            }
            assert_eq!(interner.len(), 3_000);
            assert_eq!(interner.page().len(), words[..3_000].iter().map(|w| 4 + w.len()).sum());
            assert_eq!(interner.word(2_999), b"word-2999");
        }
    }
}
