use super::*;
use proptest::prelude::*;

const LONG: usize = 1 << 20;

/// One step, with the fields as text.
fn step(data: &[u8], last: bool, max_line: usize) -> (CsvStep, Vec<String>) {
    let mut fields = vec![Cell::new(9, 99, Kind::Object)];
    let step = CsvScanner::new(b',').scan(data, last, max_line, &mut fields);
    (step, fields.iter().map(|cell| text(cell, data)).collect())
}

fn text(cell: &Cell, data: &[u8]) -> String {
    let raw = cell.of(data);
    let mut out = Vec::new();
    match cell.kind {
        Kind::EscapedText => unquote_csv(raw, &mut out),
        _ => out.extend_from_slice(raw),
    }
    assert_eq!(cell.kind == Kind::Null, raw.is_empty());
    assert_eq!(cell.kind == Kind::EscapedText, cell.quoted && raw.contains(&b'"'));
    String::from_utf8_lossy(&out).into_owned()
}

fn record(data: &str) -> Vec<String> {
    let (found, fields) = step(data.as_bytes(), false, LONG);
    assert_eq!(found, CsvStep::Record { end: data.len() }, "{data:?}");
    fields
}

#[test]
fn fields_are_found() {
    assert_eq!(record("a,b,c\n"), ["a", "b", "c"]);
    assert_eq!(record("a,b,c\r\n"), ["a", "b", "c"]);
    assert_eq!(record(",,\n"), ["", "", ""]);
    assert_eq!(record("\"\"\n"), [""]);
    assert_eq!(record("\"a,b\",\"c\nd\",\"e\"\"f\"\r\n"), ["a,b", "c\nd", "e\"f"]);
    assert_eq!(record("\"\"\"\",\"\"\n"), ["\"", ""]);
    assert_eq!(record("a\"b\"\",c\n"), ["a\"b\"\"", "c"]);
    assert_eq!(record(" \"a\" ,b\n"), [" \"a\" ", "b"]);
    assert_eq!(record("a\rb,\r\r\n"), ["a\rb", "\r"]);
    assert_eq!(record("a field of more than sixteen bytes,é\n").len(), 2);
}

#[test]
fn a_line_without_anything_is_blank() {
    assert_eq!(step(b"\nx", false, LONG), (CsvStep::Blank { end: 1 }, vec![]));
    assert_eq!(step(b"\r\nx", false, LONG), (CsvStep::Blank { end: 2 }, vec![]));
    assert_eq!(step(b"", true, LONG).0, CsvStep::Incomplete);
}

#[test]
fn the_end_of_the_data_ends_a_record_only_if_it_is_the_last() {
    for (data, fields) in
        [("a,b", &["a", "b"][..]), ("a,", &["a", ""]), ("a,\"b\"", &["a", "b"]), ("a\r", &["a\r"])]
    {
        assert_eq!(step(data.as_bytes(), false, LONG).0, CsvStep::Incomplete, "{data:?}");
        let (found, texts) = step(data.as_bytes(), true, LONG);
        assert_eq!(found, CsvStep::Record { end: data.len() });
        assert_eq!(texts, fields);
    }
}

#[test]
fn a_bad_record_costs_one_line() {
    for (data, problem, at, resume) in [
        ("a,\"b\"c\nd\n", Problem::Syntax, 5, 7),
        ("\"a\"\rb\nc\n", Problem::Syntax, 3, 6),
        ("a,\"b\nc\nd", Problem::CutOff, 2, 5),
        ("a,\"b", Problem::CutOff, 2, 4),
        ("\"a\"\r", Problem::Syntax, 3, 4),
        ("a\0b\nc\n", Problem::NulByte, 1, 4),
        ("\"a\n\0b\"\nc\n", Problem::NulByte, 3, 3),
        ("\"a\"\0\n", Problem::NulByte, 3, 5),
        ("0123456789A\nb", Problem::TooLong, 10, 12),
        ("0123456789A\r\nb", Problem::TooLong, 10, 13),
        ("\"a\n3456789abcdef", Problem::TooLong, 10, 3),
        ("0123456789A", Problem::TooLong, 10, 11),
    ] {
        let (found, _) = step(data.as_bytes(), true, 10);
        assert_eq!(found, CsvStep::Bad { problem, at, resume }, "{data:?}");
    }
    for data in ["0123456789", "0123456789\n", "0123456789\r\n", "\"01234567\"\r\n"] {
        let (found, _) = step(data.as_bytes(), true, 10);
        assert_eq!(found, CsvStep::Record { end: data.len() }, "{data:?}");
    }
    // A long record is given up before its end has come, if there is a line to go on with.
    for (data, resume) in [("0123456789ABCDEF\nx", 17), ("\"a\n3456789ABCDEF", 3)] {
        let (found, _) = step(data.as_bytes(), false, 10);
        assert_eq!(found, CsvStep::Bad { problem: Problem::TooLong, at: 10, resume }, "{data:?}");
    }
    // Until a line break comes nobody can say where to go on.
    for data in ["a,\"b\"c", "0123456789ABCDEF", "a\0b"] {
        assert_eq!(step(data.as_bytes(), false, 10).0, CsvStep::Incomplete, "{data:?}");
    }
}

/// The same, one byte after the other.
fn plainly(data: &[u8]) -> Vec<Result<Vec<String>, ()>> {
    let mut records = Vec::new();
    let mut start = 0;
    while start < data.len() {
        let (mut at, mut fields, mut is_bad) = (start, Vec::new(), false);
        loop {
            let mut field = Vec::new();
            if data.get(at) == Some(&b'"') {
                at += 1;
                loop {
                    match (data.get(at), data.get(at + 1)) {
                        (Some(b'"'), Some(b'"')) => {
                            field.push(b'"');
                            at += 2;
                        }
                        (Some(b'"'), _) => break at += 1,
                        (Some(0) | None, _) => break is_bad = true,
                        (Some(byte), _) => {
                            field.push(*byte);
                            at += 1;
                        }
                    }
                }
                let rest = data.get(at..).unwrap_or_default();
                let ends = [&b","[..], b"\n", b"\r\n"];
                is_bad |= !rest.is_empty() && !ends.iter().any(|end| rest.starts_with(end));
            } else {
                while data.get(at).is_some_and(|byte| !b",\n\0".contains(byte))
                    && !data[at..].starts_with(b"\r\n")
                {
                    field.push(data[at]);
                    at += 1;
                }
                is_bad |= data.get(at) == Some(&0);
            }
            fields.push(String::from_utf8_lossy(&field).into_owned());
            if is_bad || data.get(at) != Some(&b',') {
                break;
            }
            at += 1;
        }
        let line_end = data[start..].iter().position(|byte| *byte == b'\n');
        if is_bad {
            records.push(Err(()));
            start = line_end.map_or(data.len(), |end| start + end + 1);
            continue;
        }
        if at > start {
            records.push(Ok(fields));
        }
        at += usize::from(data.get(at) == Some(&b'\r'));
        start = at + 1;
    }
    records
}

fn all(data: &[u8]) -> Vec<Result<Vec<String>, ()>> {
    let mut records = Vec::new();
    let mut start = 0;
    while start < data.len() {
        let (found, fields) = step(&data[start..], true, LONG);
        start += match found {
            CsvStep::Record { end } => {
                records.push(Ok(fields));
                end
            }
            CsvStep::Blank { end } => end,
            CsvStep::Incomplete => panic!("more asked for at the end"),
            CsvStep::Bad { at, resume, .. } => {
                records.push(Err(()));
                assert!(at <= data.len() - start && resume > 0);
                resume
            }
        };
    }
    records
}

proptest! {
    #[test]
    fn what_is_quoted_is_read(
        records in prop::collection::vec(prop::collection::vec("[a-c,;\" \r\né]{0,20}|[a-z]{0,40}", 2..6), 0..6),
        crlf: bool,
    ) {
        let mut data = Vec::new();
        for record in &records {
            for (i, field) in record.iter().enumerate() {
                if i > 0 {
                    data.push(b',');
                }
                quote_csv(field.as_bytes(), b',', &mut data);
            }
            data.extend_from_slice(if crlf { b"\r\n" } else { b"\n" });
        }
        let expected: Vec<Result<Vec<String>, ()>> = records.into_iter().map(Ok).collect();
        prop_assert_eq!(all(&data), expected);
    }

    #[test]
    fn any_text_is_read_as_the_plain_way_reads_it(text in "[ab,\"\r\n\0]{0,60}|([a-z]{0,20},){3}\"?[a-z\n]{0,40}\"?") {
        prop_assert_eq!(all(text.as_bytes()), plainly(text.as_bytes()));
    }

    #[test]
    fn any_bytes_end(data: Vec<u8>, delimiter: u8, last: bool, max_line in 0..40_usize) {
        let mut fields = Vec::new();
        let mut start = 0;
        while start < data.len() {
            let mut scanner = CsvScanner::new(delimiter);
            start += match scanner.scan(&data[start..], last, max_line, &mut fields) {
                CsvStep::Record { end } | CsvStep::Blank { end } => end,
                CsvStep::Bad { resume, .. } => resume,
                CsvStep::Incomplete => { prop_assert!(!last); break }
            };
        }
    }

    /// More bytes may turn Incomplete into an answer, and never an answer into another.
    #[test]
    fn an_answer_stays(text in "[ab,\"\r\n]{0,40}", max_line in 0..30_usize) {
        let whole = step(text.as_bytes(), false, max_line);
        for end in 0..text.len() {
            let part = step(&text.as_bytes()[..end], false, max_line);
            prop_assert!(part.0 == CsvStep::Incomplete || part == whole, "{:?} {:?}", part, whole);
        }
    }
}
