//! What stands in the output instead of a user id.
//!
//! A pseudonym is AES-128-CMAC of the id under a key of its own, cut to 100 bits and spelled in 20
//! small letters and digits. Without the key nobody can tell whose it is, also not by trying ids.
//! Two of a billion users share one with a chance of 4e-13. The ids that the gate counts by are
//! something else, under other keys: pseudonyms may change while a crowd must not.

use crate::column::Value;
use crate::secret::Secret;
use aes::Aes128;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use std::io::Write;
use zeroize::Zeroize;

/// Five bits a letter: none that is easily taken for another.
const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

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

fn letters(bits: u128) -> [u8; LENGTH] {
    let mut spelled = [0; LENGTH];
    // Two words of 50 bits: numbers of 128 take twice as long.
    let words = [(bits >> 78) as u64, (bits >> 28) as u64];
    for (ten, word) in spelled.chunks_exact_mut(10).zip(words) {
        for (letter, place) in ten.iter_mut().zip(0..) {
            *letter = LETTERS[(word >> (45 - 5 * place)) as usize % 32];
        }
    }
    spelled
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
        assert_eq!(&letters(u128::MAX), b"99999999999999999999");
        assert_eq!(&letters(1 << 28), b"aaaaaaaaaaaaaaaaaaab");
        assert_eq!(&letters((1 << 28) - 1), b"aaaaaaaaaaaaaaaaaaaa");
    }
}
