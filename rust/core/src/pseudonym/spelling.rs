//! How a pseudonym is spelled.

use std::io::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

/// What pseudonyms look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PseudonymFormat {
    /// 100 bits of the code in 20 letters (a to z, 2 to 7). Two of a billion users share one with a
    /// chance of 4e-13.
    Base32,
    /// All 128 bits in 32 digits.
    Hex,
    /// 122 bits as a UUID of version 8, the one whose content is up to its maker.
    Uuid,
    /// Addresses leave as addresses that share a prefix as long as the true ones do; other ids as
    /// letters.
    CryptoPan,
}

impl PseudonymFormat {
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "base32" => Self::Base32,
            "hex" => Self::Hex,
            "uuid" => Self::Uuid,
            "crypto-pan" => Self::CryptoPan,
            _ => return None,
        })
    }
}

/// A pseudonym, ready to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pseudonym {
    Base32(u128),
    Hex(u128),
    Uuid(u128),
    V4(u32),
    V6(u128),
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";
const LETTERS: usize = 20;
/// Room for letters and quotes: what is copied in one go.
const ROOM: usize = 32;

impl Pseudonym {
    /// The usual one, within quotes if wanted, and how many bytes that is; `None` for those that are
    /// rare.
    #[inline(always)]
    pub(crate) fn letters<const QUOTED: bool>(&self) -> Option<([u8; ROOM], usize)> {
        match *self {
            Self::Base32(bits) => Some(letters::<QUOTED>(bits)),
            _ => None,
        }
    }

    /// Appends it. No spelling needs quoting in JSON or CSV.
    #[inline(always)]
    pub fn put(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Base32(bits) => put_letters(bits, out),
            Self::Hex(bits) => out.extend_from_slice(&digits(bits)),
            Self::Uuid(bits) => put_uuid(bits, out),
            // Writing to memory does not fail.
            Self::V4(bits) => _ = write!(out, "{}", Ipv4Addr::from_bits(bits)),
            Self::V6(bits) => _ = write!(out, "{}", Ipv6Addr::from_bits(bits)),
        }
    }
}

/// The first hundred bits, five a letter: two copies of eight letters, and four more.
#[inline(always)]
fn letters<const QUOTED: bool>(bits: u128) -> ([u8; ROOM], usize) {
    let mut out = [0; ROOM];
    let first = usize::from(QUOTED);
    for (number, shift) in [88, 48, 8].into_iter().enumerate() {
        let at = first + 8 * number;
        out[at..at + 8].copy_from_slice(&eight_letters((bits >> shift) as u64).to_be_bytes());
    }
    if QUOTED {
        out[0] = b'"';
        out[1 + LETTERS] = b'"';
    }
    (out, LETTERS + 2 * first)
}

/// The first hundred bits, five a letter.
#[inline(always)]
fn put_letters(bits: u128, out: &mut Vec<u8>) {
    let end = out.len() + LETTERS;
    for shift in [88, 48, 8] {
        out.extend_from_slice(&eight_letters((bits >> shift) as u64).to_be_bytes());
    }
    out.truncate(end);
}

fn digits(bits: u128) -> [u8; 32] {
    let mut out = [0; 32];
    for (pair, byte) in out.chunks_exact_mut(2).zip(bits.to_be_bytes()) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
    out
}

/// RFC 9562: four bits say the version and two the variant; the others are the code's own.
fn put_uuid(bits: u128, out: &mut Vec<u8>) {
    let fixed = 0xF << 76 | 0x3 << 62;
    let digits = digits(bits & !fixed | 0x8 << 76 | 0x2 << 62);
    for (number, part) in [0..8, 8..12, 12..16, 16..20, 20..32].into_iter().enumerate() {
        if number > 0 {
            out.push(b'-');
        }
        out.extend_from_slice(&digits[part]);
    }
}

/// The low forty bits of a word as letters.
fn eight_letters(word: u64) -> u64 {
    // Each step halves the groups of bits and moves the upper halves up: 40, 20, 10, 5 bits.
    let word = (word & 0xFFFFF) | (word & 0xFF_FFF0_0000) << 12;
    let word = (word & 0x0000_03FF_0000_03FF) | (word & 0x000F_FC00_000F_FC00) << 6;
    let word = (word & 0x001F_001F_001F_001F) | (word & 0x03E0_03E0_03E0_03E0) << 3;
    // One bit in each byte whose value is a digit's: 26 and above.
    let digits = (word + 0x6666_6666_6666_6666) >> 7 & 0x0101_0101_0101_0101;
    let offset = u64::from(b'a') * 0x0101_0101_0101_0101;
    word + offset - digits * u64::from(b'a' + 26 - b'2')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelled(pseudonym: Pseudonym) -> String {
        let mut out = b"<".to_vec();
        pseudonym.put(&mut out);
        String::from_utf8(out.split_off(1)).unwrap()
    }

    #[test]
    fn the_letters_are_the_first_hundred_bits() {
        let letters = |bits| {
            let pseudonym = Pseudonym::Base32(bits);
            let (quoted, end) = pseudonym.letters::<true>().unwrap();
            let (bare, bare_end) = pseudonym.letters::<false>().unwrap();
            let plain = spelled(pseudonym);
            assert_eq!(quoted[..end], *format!("\"{plain}\"").as_bytes());
            assert_eq!(bare[..bare_end], *plain.as_bytes());
            plain
        };
        assert_eq!(letters(u128::MAX), "77777777777777777777");
        assert_eq!(letters(1 << 28), "aaaaaaaaaaaaaaaaaaab");
        assert_eq!(letters((1 << 28) - 1), "aaaaaaaaaaaaaaaaaaaa");
        let all: u128 = (0..25).fold(0, |bits, five| bits << 5 | five) << 3;
        assert_eq!(letters(all), "abcdefghijklmnopqrst");
        let last: u128 = (12..32).fold(0, |bits, five| bits << 5 | five) << 28;
        assert_eq!(letters(last), "mnopqrstuvwxyz234567");
    }

    #[test]
    fn the_digits_are_all_bits() {
        let bits = 0x0123_4567_89ab_cdef_0f1e_2d3c_4b5a_6978;
        assert_eq!(spelled(Pseudonym::Hex(bits)), "0123456789abcdef0f1e2d3c4b5a6978");
        assert_eq!(spelled(Pseudonym::Hex(1)), "00000000000000000000000000000001");
    }

    #[test]
    fn a_uuid_says_its_version_and_variant() {
        let all = spelled(Pseudonym::Uuid(u128::MAX));
        assert_eq!(all, "ffffffff-ffff-8fff-bfff-ffffffffffff");
        assert_eq!(spelled(Pseudonym::Uuid(0)), "00000000-0000-8000-8000-000000000000");
    }
}
