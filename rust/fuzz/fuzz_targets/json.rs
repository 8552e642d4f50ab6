//! Lines of JSON against serde_json: taken or refused by both, with the same values at our paths.
//!
//! Where the two differ, and are meant to:
//! - A line feed is no white space here: the input is cut into lines at each.
//! - Keys that are there twice: serde_json is told to refuse them (`Strict`).
//! - Nesting past 128 is refused here; serde_json has no limit set.
//! - A number past the range of f64 is refused by serde_json; here it is a number.

#![no_main]

use std::fmt;

use libfuzzer_sys::fuzz_target;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use zveil_core::text::{Cell, JsonScanner, Kind, Problem, unescape_json};

/// A value in whose objects no key is there twice.
enum Strict {
    Null,
    Bool(bool),
    Signed(i64),
    Unsigned(u64),
    Float(f64),
    Text(String),
    Array,
    Object(Vec<(String, Strict)>),
}

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Values;
        impl<'de> Visitor<'de> for Values {
            type Value = Strict;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("JSON")
            }

            fn visit_unit<E>(self) -> Result<Strict, E> {
                Ok(Strict::Null)
            }

            fn visit_bool<E>(self, value: bool) -> Result<Strict, E> {
                Ok(Strict::Bool(value))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Strict, E> {
                Ok(Strict::Signed(value))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Strict, E> {
                Ok(Strict::Unsigned(value))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Strict, E> {
                Ok(Strict::Float(value))
            }

            fn visit_str<E>(self, value: &str) -> Result<Strict, E> {
                Ok(Strict::Text(value.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Strict, A::Error> {
                while values.next_element::<Strict>()?.is_some() {}
                Ok(Strict::Array)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Strict, A::Error> {
                let mut all: Vec<(String, Strict)> = Vec::new();
                while let Some((name, value)) = members.next_entry::<String, Strict>()? {
                    if all.iter().any(|(earlier, _)| *earlier == name) {
                        return Err(A::Error::custom("twice"));
                    }
                    all.push((name, value));
                }
                Ok(Strict::Object(all))
            }
        }
        deserializer.deserialize_any(Values)
    }
}

impl Strict {
    fn read(line: &[u8]) -> Result<Self, serde_json::Error> {
        let mut deserializer = serde_json::Deserializer::from_slice(line);
        deserializer.disable_recursion_limit();
        let value = Self::deserialize(&mut deserializer)?;
        deserializer.end().map(|()| value)
    }

    fn at(&self, path: &[String]) -> Option<&Self> {
        let Some((name, deeper)) = path.split_first() else { return Some(self) };
        let Strict::Object(members) = self else { return None };
        members.iter().find(|(key, _)| key == name)?.1.at(deeper)
    }
}

fn paths() -> Vec<Vec<String>> {
    ["a", "b.a", "b.b.a", "ts", "host", ""]
        .map(|path| path.split('.').map(String::from).collect())
        .to_vec()
}

fn check(cell: &Cell, line: &[u8], value: Option<&Strict>) {
    let raw = std::str::from_utf8(cell.of(line)).unwrap();
    match (cell.kind, value) {
        (Kind::Absent, None) | (Kind::Null, Some(Strict::Null)) => {}
        (Kind::True, Some(Strict::Bool(true))) | (Kind::False, Some(Strict::Bool(false))) => {}
        (Kind::Object, Some(Strict::Object(_))) | (Kind::Array, Some(Strict::Array)) => {
            assert!(Strict::read(raw.as_bytes()).is_ok());
        }
        (Kind::Text, Some(Strict::Text(text))) => assert_eq!(&raw[1..raw.len() - 1], text),
        (Kind::EscapedText, Some(Strict::Text(text))) => {
            let mut decoded = Vec::new();
            unescape_json(raw.as_bytes(), &mut decoded);
            assert_eq!(decoded, text.as_bytes());
        }
        (Kind::Integer, Some(Strict::Signed(number))) => assert_eq!(raw.parse(), Ok(*number)),
        (Kind::Integer, Some(Strict::Unsigned(number))) => assert_eq!(raw.parse(), Ok(*number)),
        (Kind::Integer | Kind::Number, Some(Strict::Float(number))) => {
            assert_eq!(raw.parse(), Ok(*number));
        }
        _ => panic!("{:?} is not what serde_json found", cell.kind),
    }
}

fuzz_target!(|data: &[u8]| {
    let paths = paths();
    // One scanner for all lines: what it has learned of them must not change its answers.
    let mut scanner = JsonScanner::new(&paths, true);
    let mut cells = vec![Cell::default(); paths.len()];
    for line in data.split(|byte| *byte == b'\n') {
        let outcome = scanner.scan(line, &mut cells);
        let mut fresh = JsonScanner::new(&paths, true);
        let mut fresh_cells = vec![Cell::default(); paths.len()];
        assert_eq!(fresh.scan(line, &mut fresh_cells).is_ok(), outcome.is_ok());
        assert_eq!((&cells, scanner.rest()), (&fresh_cells, fresh.rest()));
        if std::str::from_utf8(line).is_err() {
            continue; // the caller would not have asked
        }
        let expected = Strict::read(line);
        match (outcome, expected) {
            (Err((Problem::TooDeep, _)), _) => {}
            (_, Err(error)) if error.to_string().starts_with("number out of range") => {}
            (Ok(()), Ok(value)) => {
                assert!(matches!(value, Strict::Object(_)));
                for (cell, path) in cells.iter().zip(&paths) {
                    check(cell, line, value.at(path));
                }
            }
            (Err((Problem::NotAnObject, _)), Ok(value)) => {
                assert!(!matches!(value, Strict::Object(_)));
            }
            (Err((problem, at)), Err(error)) => {
                assert!(at <= line.len());
                let is_twice = error.to_string().starts_with("twice");
                assert!(problem != Problem::CutOff || error.is_eof() || is_twice, "{error}");
            }
            (outcome, expected) => panic!("{outcome:?}, but {:?}", expected.err()),
        }
    }
});
