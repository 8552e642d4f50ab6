//! Lines made at random, with what must be found in them.

use super::*;
use proptest::prelude::*;

/// A value, with the ways of writing it left open.
#[derive(Clone, Debug)]
enum Json {
    Plain(&'static str),
    Number(String),
    Text(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

fn json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        prop::sample::select(vec!["true", "false", "null", "{}", "[]", "\"\""])
            .prop_map(Json::Plain),
        "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,12})?([eE][+-]?[0-9]{1,3})?".prop_map(Json::Number),
        any::<String>().prop_map(Json::Text),
        "[a-zA-Z0-9./: -]{0,40}".prop_map(Json::Text),
    ];
    leaf.prop_recursive(3, 16, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::Array),
            members(inner, 6).prop_map(Json::Object),
        ]
    })
}

fn members(
    value: impl Strategy<Value = Json>,
    most: usize,
) -> impl Strategy<Value = Vec<(String, Json)>> {
    let name = prop_oneof!["[abc]", "a|ts|uid|host|user|net", "[a-z_]{10,40}", any::<String>()];
    let vec = prop::collection::vec((name, value), 0..=most);
    vec.prop_map(|members| {
        let mut names = std::collections::HashSet::new();
        members.into_iter().filter(|(name, _)| names.insert(name.clone())).collect()
    })
}

/// Writes values with the spaces and escapes that `choices` asks for.
struct Writer<'a> {
    out: String,
    choices: std::iter::Cycle<std::slice::Iter<'a, u8>>,
}

impl Writer<'_> {
    fn choice(&mut self) -> u8 {
        self.choices.next().copied().unwrap_or(0)
    }

    fn space(&mut self) {
        let spaces = ["", "", "", " ", "\t", "\r", "  "];
        let choice = usize::from(self.choice()) % spaces.len();
        self.out.push_str(spaces[choice]);
    }

    fn text(&mut self, text: &str) {
        let mut quoted = Vec::new();
        if !self.choice().is_multiple_of(4) {
            quote_json(text.as_bytes(), &mut quoted);
            self.out.push_str(std::str::from_utf8(&quoted).unwrap());
            return;
        }
        self.out.push('"');
        for unit in text.encode_utf16() {
            self.out.push_str(&format!("\\u{unit:04X}"));
        }
        self.out.push('"');
    }

    /// Writes a value; the part of the line it is.
    fn value(&mut self, value: &Json) -> (usize, usize) {
        let start = self.out.len();
        match value {
            Json::Plain(text) => self.out.push_str(text),
            Json::Number(text) => self.out.push_str(text),
            Json::Text(text) => self.text(text),
            Json::Array(values) => {
                self.out.push('[');
                for (i, value) in values.iter().enumerate() {
                    self.out.push_str(if i > 0 { "," } else { "" });
                    self.space();
                    self.value(value);
                    self.space();
                }
                self.out.push(']');
            }
            Json::Object(members) => {
                self.object(members);
            }
        }
        (start, self.out.len())
    }

    /// Writes an object; where its values are.
    fn object(&mut self, members: &[(String, Json)]) -> Vec<(usize, usize)> {
        let mut places = Vec::new();
        self.out.push('{');
        self.space();
        for (i, (name, value)) in members.iter().enumerate() {
            self.out.push_str(if i > 0 { "," } else { "" });
            self.space();
            self.text(name);
            self.space();
            self.out.push(':');
            self.space();
            places.push(self.value(value));
            self.space();
        }
        self.out.push('}');
        places
    }
}

/// A line and where the values of its members are.
fn write(members: &[(String, Json)], choices: &[u8]) -> (String, Vec<(usize, usize)>) {
    let mut writer = Writer { out: String::new(), choices: choices.iter().cycle() };
    writer.space();
    let places = writer.object(members);
    writer.space();
    (writer.out, places)
}

fn path(path: &str) -> Vec<String> {
    path.split('.').map(String::from).collect()
}

fn paths() -> Vec<Vec<String>> {
    ["ts", "uid", "user.a", "user.b.c", "net.host"].map(path).to_vec()
}

fn scan(line: &str) -> Result<Vec<Cell>, Failure> {
    let mut cells = [Cell::default(); 5];
    JsonScanner::new(&paths(), false).scan(line.as_bytes(), &mut cells).map(|()| cells.to_vec())
}

fn spans(cells: &[Cell]) -> Vec<(usize, usize)> {
    cells.iter().map(|cell| (cell.start as usize, cell.end as usize)).collect()
}

/// Where a path leads, from the values themselves; `None` if it does not.
fn lookup<'a>(members: &'a [(String, Json)], path: &[String]) -> Option<&'a Json> {
    let (name, deeper) = path.split_first()?;
    let (_, value) = members.iter().find(|(key, _)| key == name)?;
    match value {
        _ if deeper.is_empty() => Some(value),
        Json::Object(members) => lookup(members, deeper),
        _ => None,
    }
}

fn decoded(raw: &[u8]) -> String {
    let mut out = Vec::new();
    unescape_json(raw, &mut out);
    String::from_utf8(out).unwrap()
}

fn check(value: Option<&Json>, cell: &Cell, line: &[u8]) {
    let raw = std::str::from_utf8(cell.of(line)).unwrap();
    match (value, cell.kind) {
        (None, Kind::Absent) => assert!(raw.is_empty()),
        (Some(Json::Plain(text)), kind) => {
            let kinds =
                [Kind::True, Kind::False, Kind::Null, Kind::Object, Kind::Array, Kind::Text];
            assert!(kinds.contains(&kind));
            assert_eq!(*text, raw);
        }
        (Some(Json::Number(text)), kind) => {
            assert_eq!(text, raw);
            let is_integer = raw.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit());
            assert_eq!(kind, if is_integer { Kind::Integer } else { Kind::Number });
        }
        (Some(Json::Text(text)), Kind::Text) => assert_eq!(format!("\"{text}\""), raw),
        (Some(Json::Text(text)), Kind::EscapedText) => assert_eq!(*text, decoded(raw.as_bytes())),
        (Some(Json::Array(_)), Kind::Array) => assert!(raw.starts_with('[') && raw.ends_with(']')),
        (Some(Json::Object(_)), Kind::Object) => assert!(raw.starts_with('{')),
        other => panic!("{other:?} for {raw}"),
    }
}

proptest! {
    #[test]
    fn every_path_and_member_is_found(
        lines in prop::collection::vec((members(json(), 20), prop::collection::vec(any::<u8>(), 0..30)), 1..6),
    ) {
        // One scanner for all lines, and each line twice: what it learns must change nothing.
        let mut scanner = JsonScanner::new(&paths(), true);
        let mut cells = [Cell::default(); 5];
        for (members, choices) in lines.iter().chain(&lines) {
            let (line, places) = write(members, choices);
            prop_assert_eq!(scanner.scan(line.as_bytes(), &mut cells), Ok(()));
            for (path, cell) in paths().iter().zip(&cells) {
                check(lookup(members, path), cell, line.as_bytes());
            }
            let ours = ["ts", "uid", "user", "net"];
            let mut rest = scanner.rest().iter();
            for ((name, value), place) in members.iter().zip(places) {
                if !ours.contains(&name.as_str()) {
                    let (key, found) = rest.next().unwrap();
                    prop_assert_eq!(&decoded(key.of(line.as_bytes())), name);
                    prop_assert_eq!((found.start as usize, found.end as usize), place);
                    check(Some(value), found, line.as_bytes());
                }
            }
            prop_assert!(rest.next().is_none());
        }
    }

    #[test]
    fn a_line_that_is_cut_off_says_so(members in members(json(), 6), choices: Vec<u8>) {
        let (line, _) = write(&members, &choices);
        let (full, whole) = (line.trim_end_matches([' ', '\t', '\r']).len(), scan(&line));
        let mut scanner = JsonScanner::new(&paths(), true);
        let mut cells = [Cell::default(); 5];
        for end in (0..line.len()).filter(|end| line.is_char_boundary(*end)) {
            let part = &line.as_bytes()[..end];
            let outcome = scanner.scan(part, &mut cells);
            if end < full {
                prop_assert_eq!(outcome, Err((Problem::CutOff, end)));
                prop_assert!(cells.iter().all(|cell| cell.kind == Kind::Absent));
                // Nothing was learned that would take the whole line otherwise.
                prop_assert_eq!(scanner.scan(line.as_bytes(), &mut cells).is_ok(), whole.is_ok());
            } else {
                prop_assert_eq!(outcome, Ok(()));
            }
        }
    }

    #[test]
    fn a_scanner_that_has_learned_answers_as_a_new_one(
        members in members(json(), 20), choices: Vec<u8>,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
    ) {
        let (line, _) = write(&members, &choices);
        let mut scanner = JsonScanner::new(&paths(), true);
        let mut cells = [Cell::default(); 5];
        prop_assert_eq!(scanner.scan(line.as_bytes(), &mut cells), Ok(()));
        let mut changed = line.clone().into_bytes();
        for (place, byte) in changes {
            // Mostly bytes that mean something.
            let signs = b"\"\\{}[],:0-.eunt \x00\x1f";
            let at = place.index(changed.len());
            changed[at] = signs.get(usize::from(byte % 32)).copied().unwrap_or(byte);
            let mut fresh = JsonScanner::new(&paths(), true);
            let mut fresh_cells = [Cell::default(); 5];
            let expected = fresh.scan(&changed, &mut fresh_cells);
            let before = scanner.scan(line.as_bytes(), &mut cells);
            prop_assert_eq!(before, Ok(()));
            prop_assert_eq!(scanner.scan(&changed, &mut cells).is_ok(), expected.is_ok());
            if expected.is_ok() {
                prop_assert_eq!(cells, fresh_cells);
                prop_assert_eq!(scanner.rest(), fresh.rest());
            }
            if changed.contains(&0) {
                prop_assert_eq!(expected.map_err(|(problem, _)| problem), Err(Problem::NulByte));
            }
        }
    }

    #[test]
    fn a_key_that_is_there_twice_is_refused_wherever_it_is(
        members in members(json(), 20), choices: Vec<u8>, at: prop::sample::Index, depth in 0..4_usize,
    ) {
        prop_assume!(!members.is_empty());
        let mut twice = members.clone();
        twice.push((at.get(&members).0.clone(), Json::Plain("1")));
        for _ in 0..depth {
            twice = vec![("x".into(), Json::Array(vec![Json::Object(twice)]))];
        }
        let (line, _) = write(&twice, &choices);
        prop_assert_eq!(scan(&line).map_err(|(problem, _)| problem), Err(Problem::DuplicateKey));
    }
}

#[test]
fn what_is_no_object_is_told_apart() {
    for (line, failure) in [
        ("", (Problem::CutOff, 0)),
        ("  ", (Problem::CutOff, 2)),
        ("42", (Problem::NotAnObject, 0)),
        (" [1, {}] ", (Problem::NotAnObject, 1)),
        ("\"x", (Problem::CutOff, 2)),
        ("[1", (Problem::CutOff, 2)),
        ("nul", (Problem::CutOff, 3)),
        ("nonsense", (Problem::Syntax, 1)),
        ("NaN", (Problem::Syntax, 0)),
        ("{} {}", (Problem::Syntax, 3)),
        ("{},", (Problem::Syntax, 2)),
        ("1 2", (Problem::Syntax, 2)),
        ("{}\n", (Problem::Syntax, 2)),
        ("\u{feff}{}", (Problem::Syntax, 0)),
        ("{\"a\":1,}", (Problem::Syntax, 7)),
        ("{,\"a\":1}", (Problem::Syntax, 1)),
        ("{\"a\" 1}", (Problem::Syntax, 5)),
        ("{\"a\":1 \"b\":2}", (Problem::Syntax, 7)),
        ("{a:1}", (Problem::Syntax, 1)),
        ("{'a':1}", (Problem::Syntax, 1)),
        ("{\"a\":NaN}", (Problem::Syntax, 5)),
        ("{\"a\":-Infinity}", (Problem::Syntax, 6)),
        ("{\"a\":+1}", (Problem::Syntax, 5)),
        ("{\"a\":[1,]}", (Problem::Syntax, 8)),
        ("{\"a\":\"b\u{1}\"}", (Problem::Syntax, 7)),
        ("{\"a\":1}\0", (Problem::NulByte, 7)),
        ("{\"a\":\"\\ud800\"}", (Problem::NotUtf8, 6)),
        ("{\"a\":1,\"a\":2}", (Problem::DuplicateKey, 7)),
        ("{\"host\":1,\"ho\\u0073t\":2}", (Problem::DuplicateKey, 10)),
        ("{\"a\":{\"b\":1,\"b\":2}}", (Problem::DuplicateKey, 12)),
    ] {
        assert_eq!(scan(line), Err(failure), "{line}");
    }
    for line in ["{}", " { } ", "\t{\"a\":{}}\r"] {
        assert!(scan(line).is_ok(), "{line}");
    }
}

#[test]
fn nesting_has_a_limit_on_and_off_the_paths() {
    let nested = |depth: usize, key: &str| {
        let open = format!("{{\"{key}\":").repeat(depth - 1) + "{}";
        open + &"}".repeat(depth - 1)
    };
    let deep_path = vec!["k".to_string(); 200];
    for paths in [paths(), vec![deep_path]] {
        let mut scanner = JsonScanner::new(&paths, true);
        let mut cells = [Cell::default(); 5];
        for _ in 0..2 {
            let deepest = nested(128, "k");
            assert_eq!(scanner.scan(deepest.as_bytes(), &mut cells), Ok(()));
            let deeper = nested(129, "k");
            let failure = Err((Problem::TooDeep, 128 * 5));
            assert_eq!(scanner.scan(deeper.as_bytes(), &mut cells), failure);
        }
    }
    let arrays = format!("{{\"a\":{}{}}}", "[".repeat(128), "]".repeat(128));
    assert_eq!(scan(&arrays), Err((Problem::TooDeep, 5 + 127)));
}

#[test]
fn keys_are_compared_as_they_read() {
    let line = r#"{"t\u0073":1,"u\u0073er":{"\u0061":"x","b":{"c":[1]}},"net":5}"#;
    let cells = scan(line).unwrap();
    let raw: Vec<&[u8]> = cells.iter().map(|cell| cell.of(line.as_bytes())).collect();
    assert_eq!(raw, [&b"1"[..], b"", b"\"x\"", b"[1]", b""]);
    assert_eq!(cells[4].kind, Kind::Absent);
}

#[test]
fn many_keys_and_many_layouts_are_taken() {
    let mut scanner = JsonScanner::new(&paths(), true);
    let mut cells = [Cell::default(); 5];
    // More keys, branches and lines than are learned, again and again.
    for round in 0..3_000 {
        let keys = 1 + round % 90;
        let members: Vec<String> =
            (0..keys)
                .map(|i| {
                    if i == keys / 2 {
                        "\"ts\":7".into()
                    } else {
                        format!("\"k{}\":{i}", i * round)
                    }
                })
                .collect();
        let is_twice = round == 0 && keys > 2;
        let line = format!("{{{}}}", members.join(","));
        let outcome = scanner.scan(line.as_bytes(), &mut cells);
        assert_eq!(outcome.is_err(), is_twice, "{line}");
        assert_eq!(cells[0].of(line.as_bytes()), b"7");
        assert_eq!(scanner.rest().len(), keys - 1);
        let again = format!("{{{},\"ts\":7}}", members.join(","));
        let failure = Err((Problem::DuplicateKey, line.len()));
        assert_eq!(scanner.scan(again.as_bytes(), &mut cells), failure);
    }
}

#[test]
fn wrong_use_does_not_panic() {
    let odd = [vec![], vec!["a".to_string()], path("a.b"), path("a"), path("")];
    let mut scanner = JsonScanner::new(&odd, false);
    assert_eq!(scanner.scan(br#"{"a":{"b":1},"":2}"#, &mut []), Ok(()));
    let mut cells = [Cell::default(); 5];
    assert_eq!(scanner.scan(br#"{"a":{"b":1},"":2}"#, &mut cells), Ok(()));
    assert_eq!(spans(&cells), [(0, 0), (5, 12), (0, 0), (0, 0), (16, 17)]);
}
