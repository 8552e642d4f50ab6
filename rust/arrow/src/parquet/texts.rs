//! A column of text or bytes, written: words once and numbers of them, or all values one by one.
//!
//! ```text
//! values ─→ numbers of words ─→ pages of numbers ─┐
//!              └ dictionary: words that leave ────┼─→ column chunk
//! values, where words hardly repeat ─→ pages ─────┘
//! ```
//!
//! A dictionary holds a word from its first use by a row that leaves. So whatever else the column's own
//! dictionary had, nothing of it comes into the file.

use super::chunk::{Chunk, Finished};
use super::interner::{Interner, Mark};
use super::packing::{bits_for, put_levels, put_numbers};
use super::sink::Unwritable;
use super::words::{Left, Words, is_same};
use ahash::RandomState;
use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::{BooleanBufferBuilder, NullBuffer};
use arrow_schema::DataType;
use parquet::basic::Encoding;
use parquet::schema::types::ColumnDescPtr;
use std::ops::Range;

/// Rows between two looks at the size of a page.
const STRIDE: usize = 1024;
const PAGE_ROWS: usize = 1 << 16;
const PAGE_BYTES: usize = 1 << 20;
/// A larger dictionary does not fit caches, and every reader has to hold it.
const DICTIONARY_BYTES: usize = 4 << 20;
/// A dictionary is gone on with if a chunk is as small as this beside one without.
const WORTH_WORDS: f64 = 0.8;
/// Chunks after which it is tried again.
const TRIED_AGAIN: u32 = 16;
const UNKNOWN: u32 = u32::MAX;

/// Writes the chunks of one column, one behind the other.
pub(super) struct Texts {
    random: RandomState,
    /// None: values are written one by one.
    words: Option<Interner>,
    /// The list whose words the dictionary has, by the same numbers and nothing else: the usual case.
    adopted: Option<u64>,
    known: Known,
    page: Page,
    chunk: Chunk,
    /// Bytes of all values with their lengths: what the chunk would take without words.
    plain_bytes: usize,
    /// Chunks to come that are written without words.
    without: u32,
}

/// Numbers that words of the column's own dictionary have in the written one.
struct Known {
    of: Of,
    numbers: Vec<u32>,
}

enum Of {
    Nothing,
    Array(ArrayRef),
    List(u64),
}

/// Rows that are in no page yet.
#[derive(Default)]
struct Page {
    numbers: Vec<u32>,
    plain: Vec<u8>,
    /// Which rows have a value, from the first page's row without one on.
    present: Option<BooleanBufferBuilder>,
    rows: usize,
}

impl Texts {
    pub(super) fn new() -> Self {
        Self {
            random: RandomState::new(),
            words: Some(Interner::new()),
            adopted: None,
            known: Known { of: Of::Nothing, numbers: Vec::new() },
            page: Page::default(),
            chunk: Chunk::default(),
            plain_bytes: 0,
            without: 0,
        }
    }

    /// Bytes held for the chunk so far, about: more than it is going to have.
    pub(super) fn size(&self) -> usize {
        let words = self.words.as_ref().map_or(0, Interner::size);
        words + self.chunk.size() + self.page.plain.len() + 2 * self.page.numbers.len()
    }

    pub(super) fn put(&mut self, left: &Left) -> Result<(), Unwritable> {
        match left {
            Left::Values(values) => self.put_values(values, None),
            Left::Hashed { values, hashes } => self.put_values(values, Some(hashes)),
            Left::Coded { codes, nulls, words, list } => {
                if self.adopts(words, *list) {
                    return self.put_numbers(codes, nulls.as_ref());
                }
                if !matches!(&self.known.of, Of::List(other) if other == list) {
                    self.known.forget(Of::List(*list));
                }
                self.known.make_room(words.len());
                self.put_coded(codes, nulls.as_ref(), |number| words.get(number), None)
            }
        }
    }

    fn put_values(&mut self, values: &ArrayRef, hashes: Option<&[u128]>) -> Result<(), Unwritable> {
        self.index();
        let nulls = values.nulls();
        if hashes.is_some_and(|hashes| hashes.len() != hashed_length(values)) {
            return Err(Unwritable);
        }
        match values.data_type() {
            DataType::Utf8View => {
                let texts = values.as_string_view();
                self.put_rows(texts.len(), nulls, |row| texts.value(row).as_bytes(), hashes)
            }
            DataType::BinaryView => {
                let texts = values.as_binary_view();
                self.put_rows(texts.len(), nulls, |row| texts.value(row), hashes)
            }
            DataType::LargeUtf8 => {
                let texts = values.as_string::<i64>();
                self.put_rows(texts.len(), nulls, |row| texts.value(row).as_bytes(), hashes)
            }
            DataType::Dictionary(_, _) => {
                let coded = values.as_dictionary_opt::<Int32Type>().ok_or(Unwritable)?;
                let words = coded.values();
                if !matches!(&self.known.of, Of::Array(other) if is_same(other, words)) {
                    self.known.forget(Of::Array(ArrayRef::clone(words)));
                }
                self.known.make_room(words.len());
                // A negative number would be far beyond the last word, which is never looked up.
                let codes: Vec<u32> = coded.keys().values().iter().map(|key| *key as u32).collect();
                if let Some(words) = words.as_string_opt::<i32>() {
                    self.put_coded(&codes, nulls, |number| words.value(number).as_bytes(), hashes)
                } else {
                    let words = words.as_binary_opt::<i32>().ok_or(Unwritable)?;
                    self.put_coded(&codes, nulls, |number| words.value(number), hashes)
                }
            }
            _ => Err(Unwritable),
        }
    }

    /// Takes over a list of words if there are no others; whether its numbers are the dictionary's.
    fn adopts(&mut self, list: &Words, number: u64) -> bool {
        let Some(words) = &mut self.words else { return false };
        if words.len() == 0 {
            self.adopted = Some(number);
        }
        if self.adopted != Some(number) {
            self.index();
            return false;
        }
        (words.len()..list.len()).for_each(|at| _ = words.append(list.get(at)));
        true
    }

    /// Words that were taken over are not the only ones any more.
    fn index(&mut self) {
        if let (Some(_), Some(words)) = (self.adopted.take(), &mut self.words) {
            words.index(|word| Mark::of_bytes(self.random.hash_one(word)));
        }
    }

    /// Numbers of the dictionary itself.
    fn put_numbers(
        &mut self,
        numbers: &[u32],
        nulls: Option<&NullBuffer>,
    ) -> Result<(), Unwritable> {
        for stride in strides(numbers.len()) {
            self.page.take(nulls, stride, |page, row| page.numbers.push(numbers[row]));
            self.end_full_page()?;
        }
        // Their words are in the dictionary however large it is.
        self.look()
    }

    /// Values that come one by one.
    fn put_rows<'w>(
        &mut self,
        rows: usize,
        nulls: Option<&NullBuffer>,
        word: impl Fn(usize) -> &'w [u8],
        hashes: Option<&[u128]>,
    ) -> Result<(), Unwritable> {
        for stride in strides(rows) {
            if let Some(words) = &mut self.words {
                let random = &self.random;
                self.page.take(nulls, stride, |page, row| {
                    let mark = match hashes {
                        Some(hashes) => Mark::of_gate(hashes[row]),
                        None => Mark::of_bytes(random.hash_one(word(row))),
                    };
                    page.numbers.push(words.number(mark, || word(row)));
                });
            } else {
                self.page.take(nulls, stride, |page, row| page.put(word(row)));
            }
            self.look()?;
        }
        Ok(())
    }

    /// Numbers of words; `hashes` are by word.
    fn put_coded<'w>(
        &mut self,
        codes: &[u32],
        nulls: Option<&NullBuffer>,
        word: impl Fn(usize) -> &'w [u8],
        hashes: Option<&[u128]>,
    ) -> Result<(), Unwritable> {
        for stride in strides(codes.len()) {
            if let Some(words) = &mut self.words {
                let (random, known) = (&self.random, &mut self.known.numbers);
                self.page.take(nulls, stride, |page, row| {
                    let code = codes[row] as usize;
                    let mut number = known[code];
                    if number == UNKNOWN {
                        let mark = match hashes {
                            Some(hashes) => Mark::of_gate(hashes[code]),
                            None => Mark::of_bytes(random.hash_one(word(code))),
                        };
                        number = words.number(mark, || word(code));
                        known[code] = number;
                    }
                    page.numbers.push(number);
                });
            } else {
                self.page.take(nulls, stride, |page, row| page.put(word(codes[row] as usize)));
            }
            self.look()?;
        }
        Ok(())
    }

    /// Ends the page if it is large enough, and the dictionary.
    fn look(&mut self) -> Result<(), Unwritable> {
        if self.words.as_ref().is_some_and(|words| words.page().len() > DICTIONARY_BYTES) {
            self.end_page()?;
            self.end_words();
        }
        self.end_full_page()
    }

    fn end_full_page(&mut self) -> Result<(), Unwritable> {
        if self.page.plain.len() >= PAGE_BYTES || self.page.rows >= PAGE_ROWS {
            self.end_page()?;
        }
        Ok(())
    }

    fn end_page(&mut self) -> Result<(), Unwritable> {
        let Page { numbers, plain, present, rows } = &mut self.page;
        if *rows == 0 {
            return Ok(());
        }
        let mut body = Vec::with_capacity(plain.len() + 3 * numbers.len() + 64);
        let bitmap = present.as_ref().map(BooleanBufferBuilder::as_slice);
        put_levels(*rows, bitmap, &mut body);
        let encoding = if let Some(words) = &self.words {
            // By the length of words, not of values: good enough to judge by.
            self.plain_bytes += numbers.len() * words.page().len() / words.len().max(1);
            let bits = bits_for(words.len());
            body.push(bits);
            put_numbers(numbers, bits, &mut body);
            Encoding::RLE_DICTIONARY
        } else {
            body.extend_from_slice(plain);
            Encoding::PLAIN
        };
        self.chunk.add(body, *rows, encoding)?;
        numbers.clear();
        plain.clear();
        (*present, *rows) = (None, 0);
        Ok(())
    }

    /// The rest of the chunk is written without words; and chunks to come if they did not pay.
    fn end_words(&mut self) {
        let Some(words) = self.words.take() else { return };
        self.adopted = None;
        let taken = (words.page().len() + self.chunk.size()) as f64;
        if taken > WORTH_WORDS * self.plain_bytes as f64 {
            self.without = TRIED_AGAIN;
        }
        let count = words.len();
        self.chunk.set_words(words.into_page(), count);
        self.known.forget(Of::Nothing);
    }

    /// Ends the chunk; what is put next begins another one.
    pub(super) fn end(&mut self, column: ColumnDescPtr) -> Result<Finished, Unwritable> {
        self.end_page()?;
        self.end_words();
        self.plain_bytes = 0;
        if self.without == 0 {
            self.words = Some(Interner::new());
        } else {
            self.without -= 1;
        }
        self.chunk.end(column)
    }
}

impl Known {
    fn forget(&mut self, of: Of) {
        self.of = of;
        self.numbers.clear();
    }

    fn make_room(&mut self, words: usize) {
        if self.numbers.len() < words {
            self.numbers.resize(words, UNKNOWN);
        }
    }
}

impl Page {
    /// Takes some rows, those without a value as well; `put` is called for the others.
    #[inline(always)]
    fn take(
        &mut self,
        nulls: Option<&NullBuffer>,
        rows: Range<usize>,
        mut put: impl FnMut(&mut Self, usize),
    ) {
        let (before, count) = (self.rows, rows.len());
        self.rows += count;
        let nulls = nulls.map(|nulls| nulls.slice(rows.start, count));
        if let Some(nulls) = nulls.filter(|nulls| nulls.null_count() > 0) {
            let present = self.present.get_or_insert_with(|| all(before));
            present.append_buffer(nulls.inner());
            nulls.valid_indices().for_each(|row| put(self, rows.start + row));
        } else {
            if let Some(present) = &mut self.present {
                present.append_n(count, true);
            }
            rows.for_each(|row| put(self, row));
        }
    }

    #[inline(always)]
    fn put(&mut self, value: &[u8]) {
        self.plain.extend_from_slice(&(value.len() as u32).to_le_bytes());
        self.plain.extend_from_slice(value);
    }
}

fn all(rows: usize) -> BooleanBufferBuilder {
    let mut present = BooleanBufferBuilder::new(PAGE_ROWS);
    present.append_n(rows, true);
    present
}

fn strides(rows: usize) -> impl Iterator<Item = Range<usize>> {
    (0..rows).step_by(STRIDE).map(move |start| start..rows.min(start + STRIDE))
}

/// How many hashes a column has: one for each row, or for each word of a dictionary.
fn hashed_length(values: &ArrayRef) -> usize {
    values.as_any_dictionary_opt().map_or(values.len(), |coded| coded.values().len())
}
