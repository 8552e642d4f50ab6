//! The registered domain of a host name, by the rules of the public-suffix list.

use super::Labels;
use super::punycode::encode;
use super::word::Words;

/// The rules, handed in as the text of the list. It is no part of the program: it changes weekly.
#[derive(Debug)]
pub struct Suffixes {
    /// By name, those that lead to a rule too.
    rules: Words<Rule>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Rule {
    /// `co.uk`: this is a suffix.
    exact: bool,
    /// `*.ck`: with any label before it, it is one.
    wildcard: bool,
    /// `!www.ck`: it is not, in spite of that.
    exception: bool,
}

/// A name of more bytes is none; before it is written in ASCII it may be shorter.
const LONGEST: usize = 253;
/// What each byte of a name is in its one form; zero where it is part of none.
const LETTERS: [u8; 256] = {
    let mut letters = [0; 256];
    let mut byte = 0;
    while byte < 128_u8 {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.') {
            letters[byte as usize] = byte.to_ascii_lowercase();
        }
        byte += 1;
    }
    letters
};
const PRIVATE: &str = "===BEGIN PRIVATE DOMAINS===";

impl Suffixes {
    /// Reads the list. `private`: suffixes that companies gave out count too, as in browsers; then
    /// `ada.github.io` is a domain of its own, and otherwise `github.io` is.
    pub fn read(list: &str, private: bool) -> Self {
        let mut suffixes = Self { rules: Words::default() };
        for line in list.lines() {
            if line.starts_with("//") {
                if !private && line.contains(PRIVATE) {
                    break;
                }
                continue;
            }
            let Some(rule) = line.split_whitespace().next() else { continue };
            let (name, found) = if let Some(name) = rule.strip_prefix('!') {
                (name, Rule { exception: true, ..Rule::default() })
            } else if let Some(name) = rule.strip_prefix("*.") {
                // What is below others is no domain of anybody's, and so are they.
                (name, Rule { wildcard: true, exact: true, ..Rule::default() })
            } else {
                (rule, Rule { exact: true, ..Rule::default() })
            };
            let mut ascii = Vec::new();
            if canonical(name.as_bytes(), &mut ascii).is_some() {
                suffixes.add(&ascii, found);
            }
        }
        suffixes
    }

    fn add(&mut self, name: &[u8], found: Rule) {
        for (at, _) in name.iter().enumerate().filter(|(at, _)| begins_label(name, *at)) {
            let rule = self.rules.entry(name[at..].into()).or_default();
            if at == 0 {
                rule.exact |= found.exact;
                rule.wildcard |= found.wildcard;
                rule.exception |= found.exception;
            }
        }
    }

    pub(super) fn climb(&self, host: &[u8], labels: &mut Labels) {
        let start = labels.text.len();
        let found =
            canonical(host, labels.text).and_then(|()| self.registered(&labels.text[start..]));
        match found {
            Some(at) => labels.places.push(Some(start + at..labels.text.len())),
            None => {
                labels.text.truncate(start);
                labels.miss(1);
            }
        }
    }

    /// Where the registered domain begins: one label before the longest suffix.
    fn registered(&self, name: &[u8]) -> Option<usize> {
        let last = memchr::memrchr(b'.', name).map_or(0, |dot| dot + 1);
        // An address; no name ends in a number.
        if is_number(&name[last..]) {
            return None;
        }
        // Without any rule the last label is the suffix.
        let mut suffix = last;
        let mut at = last;
        let mut above = Rule::default();
        loop {
            let rule = self.rules.get(&name[at..]);
            if above.wildcard {
                suffix = at;
            }
            match rule {
                Some(rule) if rule.exception => return Some(at),
                Some(rule) if rule.exact => suffix = at,
                _ => {}
            }
            let Some(rule) = rule.filter(|_| at > 0) else { break };
            above = *rule;
            at = memchr::memrchr(b'.', &name[..at - 1]).map_or(0, |dot| dot + 1);
        }
        let before = suffix.checked_sub(1)?;
        Some(memchr::memrchr(b'.', &name[..before]).map_or(0, |dot| dot + 1))
    }
}

fn begins_label(name: &[u8], at: usize) -> bool {
    at == 0 || name[at - 1] == b'.'
}

/// Decimal, or hexadecimal as some programs take it.
fn is_number(label: &[u8]) -> bool {
    let hex = label.strip_prefix(b"0x");
    label.iter().all(u8::is_ascii_digit)
        || hex.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
}

/// Appends the one form of a host name: lower case, ASCII, no dot at the end, no port. `None` for what
/// is none.
fn canonical(host: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let host = match memchr::memrchr(b':', host) {
        Some(colon) if host[colon + 1..].iter().all(u8::is_ascii_digit) => &host[..colon],
        _ => host,
    };
    let start = out.len();
    if host.len() > 4 * LONGEST {
        return None;
    }
    let is_spelled = if host.is_ascii() {
        // All in one go: this is what most names are.
        let (mut is_spelled, mut before) = (true, b'.');
        out.extend(host.iter().map(|byte| {
            let letter = LETTERS[usize::from(*byte)];
            is_spelled &= letter != 0 && (letter != b'.' || before != b'.');
            before = letter;
            letter
        }));
        is_spelled
    } else {
        let lower = std::str::from_utf8(host).ok()?.to_lowercase();
        // Dots of other scripts part labels too.
        let labels = lower.split(['.', '\u{3002}', '\u{ff0e}', '\u{ff61}']);
        for (number, label) in labels.enumerate() {
            if number > 0 {
                out.push(b'.');
            }
            encode(label, out)?;
        }
        let name = &out[start..];
        let is_doubled = name.first() == Some(&b'.') || name.windows(2).any(|pair| pair == b"..");
        !is_doubled && name.iter().all(|byte| LETTERS[usize::from(*byte)] != 0)
    };
    // A dot may end it, but for one behind another.
    if out.len() > start && out.last() == Some(&b'.') {
        out.pop();
    }
    let is_long_enough = (1..=LONGEST).contains(&(out.len() - start));
    (is_spelled && is_long_enough).then_some(())
}
