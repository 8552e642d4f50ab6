//! Ten AES rounds under keys of their own, by the machine's instructions where it has them.

use super::read16;
use zeroize::{Zeroize, ZeroizeOnDrop};

const ROUNDS: usize = 10;

/// Ten AES rounds under independent round keys.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(super) struct Cipher([u128; ROUNDS + 1]);

/// One AES round (SubBytes, ShiftRows, MixColumns, AddRoundKey) by whatever the machine has.
pub(super) trait Rounds {
    fn round(block: u128, key: u128) -> u128;
}

pub(super) struct Portable;

impl Rounds for Portable {
    fn round(block: u128, key: u128) -> u128 {
        let mut state = block.to_le_bytes().into();
        aes::hazmat::cipher_round(&mut state, &key.to_le_bytes().into());
        u128::from_le_bytes(state.into())
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) struct Hardware;

#[cfg(target_arch = "x86_64")]
impl Rounds for Hardware {
    #[inline(always)]
    fn round(block: u128, key: u128) -> u128 {
        use core::arch::x86_64::{__m128i, _mm_aesenc_si128};
        // SAFETY: u128 and __m128i are sixteen plain bytes, and `Hardware` is only named in
        // functions that are called after the CPU was asked for AES (`Hasher::hardware`).
        unsafe {
            core::mem::transmute::<__m128i, u128>(_mm_aesenc_si128(
                core::mem::transmute::<u128, __m128i>(block),
                core::mem::transmute::<u128, __m128i>(key),
            ))
        }
    }
}

impl Cipher {
    pub(super) fn new(material: &[u8; 16 * (ROUNDS + 1)]) -> Self {
        Self(words(material))
    }

    #[inline(always)]
    pub(super) fn encrypt<R: Rounds>(&self, block: u128) -> u128 {
        let mut state = block ^ self.0[0];
        for key in &self.0[1..] {
            state = R::round(state, *key);
        }
        state
    }
}

pub(super) fn words<const N: usize>(bytes: &[u8]) -> [u128; N] {
    let mut out = [0; N];
    for (word, piece) in out.iter_mut().zip(bytes.chunks_exact(16)) {
        *word = read16(piece);
    }
    out
}

pub(super) fn has_aes() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("aes");
    #[cfg(not(target_arch = "x86_64"))]
    false
}
