//! A column chunk of pages: packed where that pays, and with what Parquet's index says of it.

use super::packing::unpacked;
use super::sink::Unwritable;
use bytes::Bytes;
use parquet::basic::{Compression, Encoding, PageType};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::file::metadata::{ColumnChunkMetaData, PageEncodingStats};
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

/// The share of bytes that must be left for packing to be worth the time of whoever reads.
const WORTH_PACKING: f64 = 0.8;
/// Chunks after which packing is tried again that did not pay.
const TRIED_AGAIN: u32 = 16;

/// The bytes of a column chunk, and what is said of it.
pub(super) type Finished = (Bytes, ColumnCloseResult);

/// Pages of a chunk that is not ended.
#[derive(Default)]
pub(super) struct Chunk {
    words: Option<(Vec<u8>, usize)>,
    pages: Vec<Body>,
    size: usize,
    /// None until it is known.
    is_packed: Option<bool>,
    /// Chunks of words to come that are not packed.
    without: u32,
}

struct Body {
    bytes: Vec<u8>,
    /// What it has unpacked.
    length: usize,
    is_packed: bool,
    rows: usize,
    encoding: Encoding,
}

impl Chunk {
    pub(super) fn size(&self) -> usize {
        self.size + self.words.as_ref().map_or(0, |(words, _)| words.len())
    }

    /// Takes the words that pages of numbers are about, when there are going to be no more.
    pub(super) fn set_words(&mut self, page: Vec<u8>, count: usize) {
        if !self.pages.is_empty() {
            self.words = Some((page, count));
        }
    }

    pub(super) fn add(
        &mut self,
        bytes: Vec<u8>,
        rows: usize,
        encoding: Encoding,
    ) -> Result<(), Unwritable> {
        let length = bytes.len();
        let mut body = Body { bytes, length, is_packed: false, rows, encoding };
        // Pages of numbers wait for their words: these decide. Others are too large to wait.
        if encoding == Encoding::PLAIN && self.is_packed != Some(false) {
            let packed = pack(&body.bytes)?;
            if *self.is_packed.get_or_insert_with(|| is_worth(packed.len(), length)) {
                (body.bytes, body.is_packed) = (packed, true);
            }
        }
        self.size += body.bytes.len();
        self.pages.push(body);
        Ok(())
    }

    /// Ends it; what is added next is of another one.
    pub(super) fn end(&mut self, column: ColumnDescPtr) -> Result<Finished, Unwritable> {
        let without = self.without;
        let Self { words, pages, is_packed, .. } = std::mem::take(self);
        let mut numbers = pages.iter().filter(|page| page.encoding != Encoding::PLAIN);
        let numbers_size: usize = numbers.clone().map(|page| page.length).sum();
        let first = numbers.next().map_or(&[][..], |page| &page.bytes);
        let (is_packed, packs_numbers) = match (is_packed, &words) {
            (Some(false), _) | (None, None) => (false, false),
            (Some(true), _) => (true, is_worth(pack(first)?.len(), first.len())),
            (None, Some(_)) if without > 0 => {
                self.without = without - 1;
                (false, false)
            }
            (None, Some((words, _))) => {
                let share = pack(first)?.len() as f64 / first.len().max(1) as f64;
                let packs_numbers = share <= WORTH_PACKING;
                let numbers = numbers_size as f64 * if packs_numbers { share } else { 1.0 };
                let packed = pack(words)?.len() + numbers as usize;
                let is_packed = is_worth(packed, words.len() + numbers_size);
                if !is_packed {
                    self.without = TRIED_AGAIN;
                }
                (is_packed, packs_numbers)
            }
        };
        let mut out = Writing::new();
        if let Some((words, count)) = words {
            out.add_words(
                if is_packed { pack(&words)? } else { words.clone() },
                words.len(),
                count,
            )?;
        }
        for page in pages {
            let bytes = match (is_packed, page.is_packed) {
                (true, false) if packs_numbers => pack(&page.bytes)?,
                (true, false) => unpacked(&page.bytes),
                _ => page.bytes,
            };
            out.add(bytes, page.length, page.rows, page.encoding)?;
        }
        out.end(column, is_packed)
    }
}

fn pack(bytes: &[u8]) -> Result<Vec<u8>, Unwritable> {
    snap::raw::Encoder::new().compress_vec(bytes).map_err(|_| Unwritable)
}

fn is_worth(packed: usize, unpacked: usize) -> bool {
    packed as f64 <= WORTH_PACKING * unpacked as f64
}

/// Pages with their headers, one behind the other.
struct Writing {
    out: TrackedWrite<Vec<u8>>,
    uncompressed: usize,
    rows: usize,
    /// Where the first page of values is.
    data: usize,
    words: Option<usize>,
    pages: [i32; 2],
}

impl Writing {
    fn new() -> Self {
        let out = TrackedWrite::new(Vec::new());
        Self { out, uncompressed: 0, rows: 0, data: 0, words: None, pages: [0; 2] }
    }

    fn add_words(&mut self, bytes: Vec<u8>, length: usize, count: usize) -> Result<(), Unwritable> {
        let num_values = u32::try_from(count).map_err(|_| Unwritable)?;
        let (buf, encoding) = (Bytes::from(bytes), Encoding::PLAIN);
        let page = Page::DictionaryPage { buf, num_values, encoding, is_sorted: false };
        self.write(page, length)?;
        self.words = Some(0);
        self.data = self.out.bytes_written();
        Ok(())
    }

    fn add(
        &mut self,
        bytes: Vec<u8>,
        length: usize,
        rows: usize,
        encoding: Encoding,
    ) -> Result<(), Unwritable> {
        let page = Page::DataPage {
            buf: Bytes::from(bytes),
            num_values: u32::try_from(rows).map_err(|_| Unwritable)?,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        self.rows += rows;
        self.pages[usize::from(encoding == Encoding::PLAIN)] += 1;
        self.write(page, length)
    }

    fn write(&mut self, page: Page, length: usize) -> Result<(), Unwritable> {
        let page = CompressedPage::new(page, length);
        let written = SerializedPageWriter::new(&mut self.out).write_page(page)?;
        self.uncompressed += written.uncompressed_size;
        Ok(())
    }

    fn end(self, column: ColumnDescPtr, is_packed: bool) -> Result<Finished, Unwritable> {
        let bytes = Bytes::from(self.out.into_inner()?);
        let [numbers, plain] = self.pages;
        let page = |page_type, encoding, count| PageEncodingStats { page_type, encoding, count };
        let pages = [
            page(PageType::DICTIONARY_PAGE, Encoding::PLAIN, i32::from(self.words.is_some())),
            page(PageType::DATA_PAGE, Encoding::RLE_DICTIONARY, numbers),
            page(PageType::DATA_PAGE, Encoding::PLAIN, plain),
        ];
        let pages: Vec<_> = pages.into_iter().filter(|kind| kind.count > 0).collect();
        let mut encodings = vec![Encoding::PLAIN, Encoding::RLE];
        encodings.extend((numbers > 0).then_some(Encoding::RLE_DICTIONARY));
        let metadata = ColumnChunkMetaData::builder(column)
            .set_compression(if is_packed {
                Compression::SNAPPY
            } else {
                Compression::UNCOMPRESSED
            })
            .set_encodings(encodings)
            .set_page_encoding_stats(pages)
            .set_total_compressed_size(bytes.len() as i64)
            .set_total_uncompressed_size(self.uncompressed as i64)
            .set_num_values(self.rows as i64)
            .set_data_page_offset(self.data as i64)
            .set_dictionary_page_offset(self.words.map(|place| place as i64))
            .build()?;
        let close = ColumnCloseResult {
            bytes_written: bytes.len() as u64,
            rows_written: self.rows as u64,
            metadata,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        };
        Ok((bytes, close))
    }
}
