//! What stands in the output instead of a user id.
//!
//! A pseudonym is AES-128-CMAC of the id under a key of its own, cut to 100 bits and spelled in 20
//! letters of base 32 (a to z, 2 to 7). Without the key nobody can tell whose it is, also not by trying ids.
//! Two of a billion users share one with a chance of 4e-13. The ids that the gate counts by are
//! something else, under other keys: pseudonyms may change while a crowd must not.

use crate::column::Value;
use crate::secret::Secret;
use aes::Aes128;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use std::io::Write;
use zeroize::Zeroize;

/// Letters in a pseudonym.
pub const LENGTH: usize = 20;

/// Makes pseudonyms under one key.
#[derive(Clone)]
pub struct Pseudonyms {
    cipher: Aes128,
    /// What the last block is mixed with: if it is whole, and if it had to be filled up.
    last: [u128; 2],
}

impl Pseudonyms {
    pub fn new(secret: &Secret) -> Self {
        let mut key: [u8; 16] = secret.derive("pseudonyms");
        let cipher = Aes128::new(&key.into());
        key.zeroize();
        let whole = double(encrypt(&cipher, 0));
        Self { cipher, last: [whole, double(whole)] }
    }

    /// The pseudonym of a user; `None` where the value cannot be one. The same person has the same
    /// one however the id was written: 7, "7" and 7.0 are one.
    pub fn of(&self, user: Value<'_>) -> Option<[u8; LENGTH]> {
        let mut digits = [0_u8; 24];
        let text = match user.as_user()? {
            Value::Text(bytes) | Value::Bytes(bytes) | Value::Digits(bytes) => bytes,
            Value::Integer(number) => spell(&mut digits, number),
            Value::Unsigned(number) => spell(&mut digits, number),
            Value::Float(_) | Value::Bool(_) | Value::Prepared(_) => return None,
        };
        Some(letters(self.mac(text)))
    }

    /// CMAC as in RFC 4493. (The crate for it gives the same and takes five times as long on an id,
    /// most of it for copying a state.)
    fn mac(&self, text: &[u8]) -> u128 {
        let (blocks, rest) = text.as_chunks::<16>();
        let (blocks, last) = match blocks.split_last() {
            Some((last, before)) if rest.is_empty() => {
                (before, u128::from_be_bytes(*last) ^ self.last[0])
            }
            _ => {
                let mut filled = [0; 16];
                filled[..rest.len()].copy_from_slice(rest);
                filled[rest.len()] = 0x80;
                (blocks, u128::from_be_bytes(filled) ^ self.last[1])
            }
        };
        let before = blocks
            .iter()
            .fold(0, |state, block| encrypt(&self.cipher, state ^ u128::from_be_bytes(*block)));
        encrypt(&self.cipher, before ^ last)
    }
}

fn encrypt(cipher: &Aes128, block: u128) -> u128 {
    let mut block = block.to_be_bytes().into();
    cipher.encrypt_block(&mut block);
    u128::from_be_bytes(block.into())
}

/// Times x in the field of 2^128 elements.
fn double(block: u128) -> u128 {
    block << 1 ^ if block >> 127 == 1 { 0x87 } else { 0 }
}

fn spell(digits: &mut [u8; 24], number: impl std::fmt::Display) -> &[u8] {
    let mut rest = &mut digits[..];
    // A 64-bit number has 20 characters at most.
    let _ = write!(rest, "{number}");
    let left = rest.len();
    &digits[..24 - left]
}

/// The first hundred bits, five a letter, eight letters at a time.
fn letters(bits: u128) -> [u8; LENGTH] {
    let mut spelled = [0; 24];
    for (eight, shift) in spelled.chunks_exact_mut(8).zip([88, 48, 8]) {
        eight.copy_from_slice(&eight_letters((bits >> shift) as u64));
    }
    let mut first = [0; LENGTH];
    first.copy_from_slice(&spelled[..LENGTH]);
    first
}

/// The low forty bits of a word as letters.
fn eight_letters(word: u64) -> [u8; 8] {
    // Each step halves the groups of bits and moves the upper halves up: 40, 20, 10, 5 bits.
    let word = (word & 0xFFFFF) | (word & 0xFF_FFF0_0000) << 12;
    let word = (word & 0x0000_03FF_0000_03FF) | (word & 0x000F_FC00_000F_FC00) << 6;
    let word = (word & 0x001F_001F_001F_001F) | (word & 0x03E0_03E0_03E0_03E0) << 3;
    // One bit in each byte whose value is a digit's: 26 and above.
    let digits = (word + 0x6666_6666_6666_6666) >> 7 & 0x0101_0101_0101_0101;
    let offset = u64::from(b'a') * 0x0101_0101_0101_0101;
    (word + offset - digits * u64::from(b'a' + 26 - b'2')).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: Value) -> Option<String> {
        let found = Pseudonyms::new(&Secret::new([7; 32])).of(value)?;
        Some(String::from_utf8(found.to_vec()).unwrap())
    }

    #[test]
    fn one_person_has_one() {
        let seven = of(Value::Text(b"7")).unwrap();
        assert_eq!(of(Value::Integer(7)).unwrap(), seven);
        assert_eq!(of(Value::Float(7.0)).unwrap(), seven);
        assert_ne!(of(Value::Text(b"07")).unwrap(), seven);
        assert_ne!(of(Value::Text(b"")).unwrap(), of(Value::Text(b"\0")).unwrap());
        assert_eq!(of(Value::Bool(true)), None);
        assert_eq!(of(Value::Unsigned(u64::MAX)), of(Value::Text(b"18446744073709551615")));
    }

    #[test]
    fn the_code_is_that_of_the_library() {
        use cmac::{Cmac, Mac};
        let key: [u8; 16] = Secret::new([7; 32]).derive("pseudonyms");
        let text: Vec<u8> = (0..100_u8).map(|byte| byte.wrapping_mul(7)).collect();
        for len in 0..text.len() {
            let mut mac = <Cmac<Aes128> as cmac::KeyInit>::new(&key.into());
            mac.update(&text[..len]);
            let wanted = u128::from_be_bytes(mac.finalize().into_bytes().into());
            assert_eq!(Pseudonyms::new(&Secret::new([7; 32])).mac(&text[..len]), wanted);
        }
    }

    #[test]
    fn another_key_gives_another() {
        let other = Pseudonyms::new(&Secret::new([8; 32])).of(Value::Text(b"7")).unwrap();
        assert_ne!(other.to_vec(), of(Value::Integer(7)).unwrap().into_bytes());
    }

    #[test]
    fn the_letters_are_the_first_hundred_bits() {
        assert_eq!(&letters(u128::MAX), b"77777777777777777777");
        assert_eq!(&letters(1 << 28), b"aaaaaaaaaaaaaaaaaaab");
        assert_eq!(&letters((1 << 28) - 1), b"aaaaaaaaaaaaaaaaaaaa");
        let all: u128 = (0..25).fold(0, |bits, five| bits << 5 | five) << 3;
        assert_eq!(&letters(all), b"abcdefghijklmnopqrst");
        let last: u128 = (12..32).fold(0, |bits, five| bits << 5 | five) << 28;
        assert_eq!(&letters(last), b"mnopqrstuvwxyz234567");
    }
}
