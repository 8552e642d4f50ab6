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
    pub fn of(&self, user: Value<'_>) -> Option<Pseudonym> {
        let mut made = Vec::new();
        self.of_all(std::iter::once(Some(user)), &mut made);
        made.pop().flatten()
    }

    /// The pseudonyms of many users, in their order. Encrypting eight at a time takes little longer
    /// than one.
    pub fn of_all<'a>(
        &self,
        users: impl Iterator<Item = Option<Value<'a>>>,
        out: &mut Vec<Option<Pseudonym>>,
    ) {
        let mut blocks: Vec<aes::Block> = Vec::with_capacity(users.size_hint().0);
        out.clear();
        for user in users {
            let block = user.and_then(|user| self.last_block(user));
            out.push(block.map(|_| Pseudonym::default()));
            blocks.push(block.unwrap_or_default().to_be_bytes().into());
        }
        self.cipher.encrypt_blocks(&mut blocks);
        for (made, block) in out.iter_mut().zip(blocks) {
            if let Some(made) = made {
                *made = Pseudonym::new(u128::from_be_bytes(block.into()));
            }
        }
    }

    fn last_block(&self, user: Value<'_>) -> Option<u128> {
        let mut digits = [0_u8; 24];
        let text = match user.as_user()? {
            Value::Text(bytes) | Value::Bytes(bytes) | Value::Digits(bytes) => bytes,
            Value::Integer(number) => spell(&mut digits, number),
            Value::Unsigned(number) => spell(&mut digits, number),
            Value::Float(_) | Value::Bool(_) | Value::Prepared(_) => return None,
        };
        Some(self.before_last(text))
    }

    /// CMAC as in RFC 4493, up to what is encrypted last. (The crate for it gives the same and takes
    /// five times as long on an id, most of it for copying a state.)
    fn before_last(&self, text: &[u8]) -> u128 {
        let (blocks, rest) = text.as_chunks::<16>();
        let (blocks, last) = match blocks.split_last() {
            Some((last, before)) if rest.is_empty() => {
                (before, u128::from_be_bytes(*last) ^ self.last[0])
            }
            _ => (blocks, filled(rest) ^ self.last[1]),
        };
        let before = blocks
            .iter()
            .fold(0, |state, block| encrypt(&self.cipher, state ^ u128::from_be_bytes(*block)));
        before ^ last
    }
}

/// Fewer than sixteen bytes as a block: a one bit and zeros behind them.
fn filled(rest: &[u8]) -> u128 {
    let bytes = rest.iter().fold(1_u128, |block, byte| block << 8 | u128::from(*byte));
    // The leading one marked where the bytes begin; it is shifted out as they move to the front.
    let behind = 8 * (16 - rest.len() as u32);
    let front = if rest.is_empty() { 0 } else { bytes << behind };
    front | 1 << (behind - 1)
}

/// A pseudonym: its letters, in words of eight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pseudonym([u64; 3]);

impl Pseudonym {
    /// The first hundred bits, five a letter.
    fn new(bits: u128) -> Self {
        Self([88, 48, 8].map(|shift| eight_letters((bits >> shift) as u64)))
    }

    /// Appends the letters.
    #[inline(always)]
    pub fn put(&self, out: &mut Vec<u8>) {
        let [first, second, third] = self.0;
        let end = out.len() + LENGTH;
        out.extend_from_slice(&first.to_be_bytes());
        out.extend_from_slice(&second.to_be_bytes());
        out.extend_from_slice(&third.to_be_bytes());
        out.truncate(end);
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

    fn of(value: Value) -> Option<String> {
        Pseudonyms::new(&Secret::new([7; 32])).of(value).map(spelled)
    }

    fn spelled(pseudonym: Pseudonym) -> String {
        let mut out = b"<".to_vec();
        pseudonym.put(&mut out);
        String::from_utf8(out.split_off(1)).unwrap()
    }

    fn letters(bits: u128) -> String {
        spelled(Pseudonym::new(bits))
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
            let pseudonyms = Pseudonyms::new(&Secret::new([7; 32]));
            let last = pseudonyms.before_last(&text[..len]);
            assert_eq!(encrypt(&pseudonyms.cipher, last), wanted);
        }
    }

    #[test]
    fn another_key_gives_another() {
        let other = Pseudonyms::new(&Secret::new([8; 32])).of(Value::Text(b"7")).unwrap();
        assert_ne!(spelled(other), of(Value::Integer(7)).unwrap());
    }

    #[test]
    fn the_letters_are_the_first_hundred_bits() {
        assert_eq!(letters(u128::MAX), "77777777777777777777");
        assert_eq!(letters(1 << 28), "aaaaaaaaaaaaaaaaaaab");
        assert_eq!(letters((1 << 28) - 1), "aaaaaaaaaaaaaaaaaaaa");
        let all: u128 = (0..25).fold(0, |bits, five| bits << 5 | five) << 3;
        assert_eq!(letters(all), "abcdefghijklmnopqrst");
        let last: u128 = (12..32).fold(0, |bits, five| bits << 5 | five) << 28;
        assert_eq!(letters(last), "mnopqrstuvwxyz234567");
    }
}
