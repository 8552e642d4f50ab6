//! Short ways beside long ones, on random lines: the same is read, and the same is written.

use super::plan::{Hierarchy, Output, Plan, TextFormat};
use super::read::{Extent, Reader, Trouble, Until};
use super::render::{Renderer, Written};
use super::rows::{Rows, value};
use super::time::TimeFormat;
use super::way::{Beside, Way};
use crate::batch::VEILED;
use crate::gate::Gate;
use crate::ladder::{Ladder, Segments, Step};
use crate::pseudonym::{Keyring, Named, PseudonymFormat};
use crate::secret::Secret;
use crate::settings::Settings;
use proptest::prelude::*;
use std::sync::Arc;

const CSV: TextFormat = TextFormat::Csv(b',');
const FIELDS: usize = 4;

/// With an attribute that has two labels above it, or none.
fn labelled_plan(format: TextFormat) -> Plan {
    let segments = Step::Segments(Segments::new(".", 2).unwrap());
    let ladder = Arc::new(Ladder::new(vec![segments]).unwrap());
    Plan { hierarchies: vec![Some(Hierarchy { ladder, position: None })], ..plan(format) }
}

pub(crate) fn plan(format: TextFormat) -> Plan {
    let names = ["ts", "uid", "host", "a.b"].map(String::from).to_vec();
    let mut plan = Plan::new(format, Output::Text(format), names, 1);
    plan.max_line = 150;
    plan.time_format = Some(TimeFormat::Seconds);
    plan
}

fn reader(plan: &Plan) -> Reader {
    let mut reader = Reader::new(plan);
    // Another order than that of the fields, and one more.
    let columns = vec![Some(0), Some(3), Some(1), Some(4)];
    reader.set_columns(None, 5, columns, FIELDS);
    reader
}

/// All that reading gives. Only what is known to be UTF-8 is read the short way.
fn read(
    plan: &Plan,
    text: &[u8],
    utf8: bool,
    most_rows: usize,
) -> (Vec<String>, u64, Vec<Trouble>) {
    let mut reader = reader(plan);
    let mut rows = Rows::default();
    let mut part = Extent { start: 0, end: text.len(), last: true, utf8, most_rows };
    let mut all = Vec::new();
    loop {
        rows.clear(1, plan.coarser());
        let (at, until) = reader.read(text, part, &mut rows);
        assert!(rows.len() <= most_rows);
        for row in 0..rows.len() {
            let user = value(rows.users[row], text, &rows.decoded);
            let host = value(rows.attributes[0][row], text, &rows.decoded);
            let (time, start) = (rows.times[row], rows.starts[row]);
            let labels = rows.coarser.iter().map(|labels| value(labels[row], text, &rows.decoded));
            let labels: Vec<_> = labels.collect();
            let cells = rows.cells_of(row, FIELDS);
            all.push(format!("{time} {start} {user:?} {host:?} {labels:?} {cells:?}"));
        }
        part.start = at;
        if until != Until::Enough {
            return (all, reader.lines, reader.troubles);
        }
    }
}

/// What is written, in the short way where there is one and in the general one.
fn written(format: TextFormat, text: &[u8], veiled: &[bool], named: bool) -> [Vec<u8>; 2] {
    let plan = plan(format);
    let mut rows = Rows::default();
    rows.clear(1, 0);
    let end = text.len();
    let part = Extent { start: 0, end, last: true, utf8: true, most_rows: usize::MAX };
    reader(&plan).read(text, part, &mut rows);
    let decisions: Vec<_> =
        (0..rows.len()).map(|row| if veiled[row % veiled.len()] { VEILED } else { 0 }).collect();
    let mut keys = Named::default();
    let mut keyring = Keyring::fixed(&Secret::new([7; 32]), PseudonymFormat::Base32);
    keyring.name(&rows.times, |_| true, &mut keys).unwrap();
    let renderer = Renderer::new(&plan);
    [&renderer, &renderer.general()].map(|renderer| {
        let mut out = Written::default();
        let decided = std::slice::from_ref(&decisions);
        let named = named.then_some(&keys);
        renderer.render(text, &rows, decided, plan.time_format, named, &mut out);
        out.text
    })
}

fn string() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "\"[a-z.0-9é]{0,40}\"",
        1 => "\"[a-z]{60,120}\"",
        1 => r#""[a-z\\"u0-9/]{0,6}""#,
    ]
}

fn json_value() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => string(),
        3 => "-?[0-9]{1,18}(\\.[0-9]{1,9})?([eE][0-9])?",
        1 => Just("true".to_owned()),
        1 => Just("null".to_owned()),
        1 => string().prop_map(|text| format!("{{\"b\":{text}}}")),
        1 => "[\\[\\]{}, :x]{0,3}",
    ]
}

fn json_line() -> impl Strategy<Value = String> {
    let space = prop_oneof![9 => Just(""), 1 => Just(" "), 1 => Just("\t")];
    let time = prop_oneof![9 => "1[0-9]{9}(\\.[0-9]{1,3})?", 1 => json_value()];
    let user = prop_oneof![3 => string(), 1 => json_value()];
    let key = prop_oneof![
        3 => Just("a"),
        1 => Just("a key longer than a block"),
        1 => Just("a key that is much longer than any two blocks would be"),
        1 => Just("uid"),
    ];
    let more = (key, json_value()).prop_map(|(key, value)| format!(",\"{key}\":{value}"));
    let more = prop_oneof![2 => Just(String::new()), 1 => more];
    let end = prop_oneof![9 => Just("}\n"), 1 => Just("}\r\n"), 1 => Just("\n"), 1 => Just("} \n")];
    (space, time, user, json_value(), more, end).prop_map(|(space, time, user, host, more, end)| {
        format!("{space}{{\"ts\":{time},\"uid\":{user},{space}\"host\":{host}{more}{end}")
    })
}

fn csv_line() -> impl Strategy<Value = String> {
    let field = prop_oneof![
        6 => "[a-zé]{0,25}",
        1 => "\"[a-z,\n]{0,5}(\"\")?\"",
        1 => "[a-z]{0,3}[\"\r\0 ][a-z]{0,3}",
    ];
    let time = prop_oneof![9 => "1[0-9]{9}(\\.[0-9]{1,3})?", 1 => field.clone()];
    let width = prop_oneof![12 => Just(4_usize), 1 => 0..6_usize];
    let end = prop_oneof![9 => Just("\n"), 1 => Just("\r\n"), 1 => Just("\n\n")];
    let fields = width.prop_flat_map(move |width| prop::collection::vec(field.clone(), width));
    (time, fields, end).prop_map(|(time, mut fields, end)| {
        fields.insert(0, time);
        format!("{}{end}", fields.join(","))
    })
}

/// Lines of a format, of which the last may be cut off anywhere, but not within a letter.
fn text() -> impl Strategy<Value = (TextFormat, String)> {
    let json = prop::collection::vec(json_line(), 1..60).prop_map(|lines| lines.concat());
    let csv = prop::collection::vec(csv_line(), 1..60).prop_map(|lines| lines.concat());
    let json = json.prop_map(|text| (TextFormat::Ndjson, text));
    let text = prop_oneof![json, csv.prop_map(|text| (CSV, text))];
    (text, 0..40_usize).prop_map(|((format, mut text), cut)| {
        let mut end = text.len() - cut.min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        (format, text)
    })
}

#[test]
fn nothing_behind_the_line_that_stops_it_counts() {
    let good = b"{\"ts\":1700000000,\"uid\":\"u\",\"host\":\"h\"}\n";
    let mut plan = plan(TextFormat::Ndjson);
    plan.stop_at_problem = true;
    let mut way = Way::new(plan, 1);
    let mut gate = Gate::new(Settings::new(1, 1), Secret::new([9; 32])).unwrap();
    // The line that stops it is begun in one piece and ends in another, with much behind it.
    let behind = good.repeat(100);
    let mut fed = 0;
    for piece in [&good[..], &good[..], b"{\"ts\":", &[b"?\n", &behind[..]].concat()] {
        fed += piece.len() as u64;
        way.feed(&mut [&mut gate], Beside::default(), piece, false).unwrap();
    }
    assert!(way.stopped);
    assert_eq!((way.tally.records, way.tally.lines), (2, 3));
    assert_eq!(way.tally.bad.iter().sum::<u64>(), 1);
    assert_eq!(way.consumed(), fed - behind.len() as u64);
}

#[test]
fn any_cut_of_the_bytes_gives_the_same() {
    let line = |number: usize| {
        let host = ["example.org", "a \\\"b", "", "x"][number % 4];
        format!("{{\"ts\":{},\"uid\":\"u{number}\",\"host\":\"{host}\"}}\n", 1_700_000_000 + number)
    };
    let text: String = (0..200).map(line).collect();
    let run = |size: usize| {
        let mut way = Way::new(plan(TextFormat::Ndjson), 1);
        let mut gate = Gate::new(Settings::new(2, i64::MAX), Secret::new([9; 32])).unwrap();
        let mut out = Vec::new();
        for piece in text.as_bytes().chunks(size).chain([&[][..]]) {
            let last = piece.is_empty();
            let written = way.feed(&mut [&mut gate], Beside::default(), piece, last).unwrap();
            for part in written {
                out.extend_from_slice(&part.text);
                way.reuse(part.text);
            }
        }
        assert_eq!(way.consumed(), text.len() as u64);
        out
    };
    let whole = run(text.len());
    for size in [1, 7, 64, 65, 100, 1000] {
        assert_eq!(run(size), whole, "{size}");
    }
}

proptest! {
    #[test]
    fn the_short_way_reads_what_the_long_one_reads(
        (format, text) in text(),
        most_rows in prop_oneof![Just(1_usize), Just(7), Just(usize::MAX)],
    ) {
        let text = text.as_bytes();
        for plan in [plan(format), labelled_plan(format)] {
            let [short, long] = [true, false].map(|utf8| read(&plan, text, utf8, most_rows));
            prop_assert_eq!(short, long);
        }
    }

    #[test]
    fn the_short_way_writes_what_the_general_one_writes(
        (format, text) in text(),
        veiled in prop::collection::vec(prop::bool::weighted(0.3), 1..20),
        named: bool,
    ) {
        let [short, general] = written(format, text.as_bytes(), &veiled, named);
        prop_assert_eq!(String::from_utf8_lossy(&short), String::from_utf8_lossy(&general));
    }
}
