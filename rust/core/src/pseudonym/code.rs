//! The code of an id: AES-128-CMAC under a key of its own.

use crate::column::Value;
use aes::Aes128;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use std::io::Write;
use zeroize::{Zeroize, Zeroizing};

/// Makes codes under one key. (The cipher clears its own memory.)
pub(super) struct Coder {
    cipher: Aes128,
    /// What the last block is mixed with: if it is whole, and if it had to be filled up.
    last: [u128; 2],
}

impl Drop for Coder {
    fn drop(&mut self) {
        self.last.zeroize();
    }
}

impl Coder {
    pub(super) fn new(key: &Zeroizing<[u8; 16]>) -> Self {
        let cipher = Aes128::new((&**key).into());
        let whole = double(encrypt(&cipher, 0));
        Self { cipher, last: [whole, double(whole)] }
    }

    /// The codes of many users, in their order; `None` where a value cannot be a user. Encrypting
    /// eight at a time takes little longer than one.
    pub(super) fn of_all<'a>(
        &self,
        users: impl Iterator<Item = Option<Value<'a>>>,
        mut take: impl FnMut(Option<u128>),
    ) {
        let mut blocks: Vec<aes::Block> = Vec::with_capacity(users.size_hint().0);
        let mut known = Vec::with_capacity(users.size_hint().0);
        for user in users {
            let block = user.and_then(|user| self.last_block(user));
            known.push(block.is_some());
            blocks.push(block.unwrap_or_default().to_be_bytes().into());
        }
        self.cipher.encrypt_blocks(&mut blocks);
        for (block, known) in blocks.into_iter().zip(known) {
            take(known.then(|| u128::from_be_bytes(block.into())));
        }
    }

    #[inline(always)]
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
    #[inline(always)]
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

/// Fewer than sixteen bytes as a block: a one bit and zeros behind them. Two pieces that overlap make
/// up most of them, where a byte at a time took as long as encrypting.
#[inline(always)]
fn filled(rest: &[u8]) -> u128 {
    let behind = 8 * 16_usize.saturating_sub(rest.len()) as u32;
    let bytes = if let (Some(first), Some(last)) = (rest.first_chunk(), rest.last_chunk()) {
        u128::from(u64::from_be_bytes(*first)) << 64
            | u128::from(u64::from_be_bytes(*last)).wrapping_shl(behind)
    } else if let (Some(first), Some(last)) = (rest.first_chunk(), rest.last_chunk()) {
        u128::from(u32::from_be_bytes(*first)) << 96
            | u128::from(u32::from_be_bytes(*last)).wrapping_shl(behind)
    } else {
        let few = rest.iter().fold(0_u128, |block, byte| block << 8 | u128::from(*byte));
        few.checked_shl(behind).unwrap_or(0)
    };
    bytes | 1 << (behind - 1)
}

pub(super) fn encrypt(cipher: &Aes128, block: u128) -> u128 {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_is_that_of_the_library() {
        use cmac::{Cmac, Mac};
        let key = [7; 16];
        let text: Vec<u8> = (0..100_u8).map(|byte| byte.wrapping_mul(7)).collect();
        for len in 0..text.len() {
            let mut mac = <Cmac<Aes128> as cmac::KeyInit>::new(&key.into());
            mac.update(&text[..len]);
            let wanted = u128::from_be_bytes(mac.finalize().into_bytes().into());
            let coder = Coder::new(&key.into());
            assert_eq!(encrypt(&coder.cipher, coder.before_last(&text[..len])), wanted);
        }
    }
}
