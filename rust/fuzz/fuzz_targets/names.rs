//! Lists of names against a set of them: any text as a list, any as a value.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::collections::HashSet;
use zveil_core::NameList;

/// The names of a list, read in the plainest way.
fn names(text: &[u8]) -> Option<HashSet<Vec<u8>>> {
    let mut found = HashSet::new();
    let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
    for (number, line) in text.split(|byte| *byte == b'\n').enumerate() {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let mut parts = line.splitn(2, |byte| *byte == b',');
        let (first, second) = (parts.next()?, parts.next());
        let name = match second {
            None => first,
            Some(name) if first.iter().all(u8::is_ascii_digit) => name,
            Some(_) if number == 0 => continue,
            Some(_) => return None,
        };
        let name = name.strip_prefix(b"*.").or(name.strip_prefix(b".")).unwrap_or(name);
        let name = name.strip_suffix(b".").unwrap_or(name);
        if name.is_empty() || name.len() > 65_535 || name.iter().any(|b| b" \t,\"\0".contains(b)) {
            return None;
        }
        found.insert(name.to_ascii_lowercase());
    }
    (!found.is_empty()).then_some(found)
}

fuzz_target!(|data: (&[u8], Vec<&[u8]>)| {
    let (text, values) = data;
    let (list, expected) = (NameList::read(text).ok(), names(text));
    assert_eq!(list.as_ref().map(NameList::len), expected.as_ref().map(HashSet::len));
    let (Some(list), Some(expected)) = (list, expected) else { return };
    for value in values.into_iter().chain(text.split(|byte| *byte == b'\n')) {
        let mut name = value.strip_suffix(b".").unwrap_or(value).to_ascii_lowercase();
        if let Some(colon) = name.iter().position(|byte| *byte == b':')
            && name[colon + 1..].iter().all(u8::is_ascii_digit)
        {
            name.truncate(colon);
        }
        let starts = (0..=name.len()).filter(|at| *at == 0 || name[at - 1] == b'.');
        let is_in = name.len() <= 65_535 && starts.into_iter().any(|at| expected.contains(&name[at..]));
        assert_eq!(list.holds(value), is_in);
    }
});
