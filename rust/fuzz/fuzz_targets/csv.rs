//! CSV against the csv crate, where the two mean the same by it; and what must hold for any bytes.
//!
//! Compared are only texts that are taken as a whole. Where the two differ, and are meant to:
//! - A CR alone ends a record there, and is data here.
//! - A byte order mark is dropped there; here it is the caller's business.
//! - Text behind a closing quote, and a quote that never closes, are taken there and refused here.

#![no_main]

use libfuzzer_sys::fuzz_target;
use zveil_core::text::{Cell, CsvScanner, CsvStep, Kind, unquote_csv};

fn field(cell: &Cell, record: &[u8]) -> Vec<u8> {
    let raw = cell.of(record);
    assert_eq!(raw.len() as u32, cell.end - cell.start);
    let mut text = Vec::new();
    match cell.kind {
        Kind::EscapedText => unquote_csv(raw, &mut text),
        Kind::Text | Kind::Null => text.extend_from_slice(raw),
        other => panic!("{other:?} in CSV"),
    }
    text
}

/// All records, or nothing if one is bad.
fn scanned(data: &[u8], delimiter: u8) -> Option<Vec<Vec<Vec<u8>>>> {
    let mut scanner = CsvScanner::new(delimiter);
    let (mut records, mut fields, mut shorter) = (Vec::new(), Vec::new(), Vec::new());
    let (mut rest, mut is_good) = (data, true);
    while !rest.is_empty() {
        let step = scanner.scan(rest, true, 64, &mut fields);
        let end = match step {
            CsvStep::Record { end } => {
                records.push(fields.iter().map(|cell| field(cell, rest)).collect());
                end
            }
            CsvStep::Blank { end } => end,
            CsvStep::Bad { at, resume, .. } => {
                is_good = false;
                assert!(at <= rest.len());
                resume
            }
            CsvStep::Incomplete => panic!("more asked for at the end"),
        };
        assert!(end > 0 && end <= rest.len());
        // With fewer bytes at hand the answer is the same, or to wait.
        for cut in [end / 2, end, end + 1].map(|cut| cut.min(rest.len())) {
            let early = scanner.scan(&rest[..cut], false, 64, &mut shorter);
            assert!(early == CsvStep::Incomplete || early == step);
            assert!(early == CsvStep::Incomplete || fields == shorter);
        }
        rest = &rest[end..];
    }
    is_good.then_some(records)
}

fuzz_target!(|data: &[u8]| {
    let Some((choice, data)) = data.split_first() else { return };
    let delimiter = [b',', b';', b'\t', b'|'][usize::from(choice % 4)];
    let Some(records) = scanned(data, delimiter) else { return };
    let is_return_alone =
        |(i, byte): (usize, &u8)| *byte == b'\r' && data.get(i + 1) != Some(&b'\n');
    if data.starts_with(b"\xEF\xBB\xBF") || data.iter().enumerate().any(is_return_alone) {
        return;
    }
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(delimiter)
        .from_reader(data);
    let expected: Vec<Vec<Vec<u8>>> = reader
        .byte_records()
        .map(|record| record.unwrap().iter().map(<[u8]>::to_vec).collect())
        .collect();
    assert_eq!(records, expected);
});
