//! Ten AES rounds under keys of their own, by the machine's instructions where it has them.

use super::read16;
use zeroize::{Zeroize, ZeroizeOnDrop};

const ROUNDS: usize = 10;

/// Ten AES rounds under independent round keys.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(super) struct Cipher([u128; ROUNDS + 1]);

/// What the machine has for AES.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Means {
    /// Nothing that is known of here.
    Portable,
    #[cfg(target_arch = "x86_64")]
    Hardware,
    /// Four blocks in one instruction. (At once they take half as long as one after the other.)
    #[cfg(target_arch = "x86_64")]
    Wide,
}

impl Means {
    pub(super) fn of_machine() -> Self {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("aes") {
            let is_wide = std::arch::is_x86_feature_detected!("vaes")
                && std::arch::is_x86_feature_detected!("avx512f");
            return if is_wide { Self::Wide } else { Self::Hardware };
        }
        Self::Portable
    }
}

/// What hashes are made of, by whatever the machine has.
pub(super) trait Rounds {
    /// One AES round: SubBytes, ShiftRows, MixColumns, AddRoundKey.
    fn round(block: u128, key: u128) -> u128;

    /// Exclusive or, where rounds are done: a block need not go elsewhere and back for it, which takes as long as a round.
    #[inline(always)]
    fn xor(one: u128, other: u128) -> u128 {
        one ^ other
    }
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
        // functions that are called after the CPU was asked for AES (`Means`).
        unsafe {
            core::mem::transmute::<__m128i, u128>(_mm_aesenc_si128(
                core::mem::transmute::<u128, __m128i>(block),
                core::mem::transmute::<u128, __m128i>(key),
            ))
        }
    }

    #[inline(always)]
    fn xor(one: u128, other: u128) -> u128 {
        use core::arch::x86_64::{__m128i, _mm_xor_si128};
        // SAFETY: as above, and every x86-64 has this instruction.
        unsafe {
            core::mem::transmute::<__m128i, u128>(_mm_xor_si128(
                core::mem::transmute::<u128, __m128i>(one),
                core::mem::transmute::<u128, __m128i>(other),
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
        let mut state = R::xor(block, self.0[0]);
        for key in &self.0[1..] {
            state = R::round(state, *key);
        }
        state
    }

    /// Encrypts each of the blocks by itself.
    #[inline(always)]
    pub(super) fn encrypt_all(&self, blocks: &mut [u128], means: Means) {
        match means {
            Means::Portable => {
                blocks.iter_mut().for_each(|block| *block = self.encrypt::<Portable>(*block));
            }
            // SAFETY: by `Means::of_machine` the CPU has the instructions.
            #[cfg(target_arch = "x86_64")]
            Means::Hardware => unsafe { accelerated::encrypt_all(self, blocks) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Means::Wide => unsafe {
                let (chunks, rest) = blocks.as_chunks_mut();
                if !chunks.is_empty() {
                    accelerated::encrypt_wide(self, chunks);
                }
                accelerated::encrypt_all(self, rest);
            },
        }
    }

    /// Encrypts words of one kind as the blocks that they are.
    #[inline(always)]
    pub(super) fn encrypt_words(&self, kind: u64, words: &[i64], out: &mut [u128], means: Means) {
        let done = match means {
            // From words to blocks without a detour through memory.
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Means::Wide => unsafe { accelerated::encrypt_words(self, kind, words, out) },
            _ => 0,
        };
        let out = &mut out[done..];
        for (block, word) in out.iter_mut().zip(&words[done..]) {
            *block = u128::from(word.cast_unsigned()) | u128::from(kind) << 64;
        }
        self.encrypt_all(out, means);
    }
}

/// Attributes that are words of one kind, and users under these, mixed with the high half of what became of their attribute:
/// as many of the first rows as there is a way for that is faster than one after the other. Gives their number.
#[inline(always)]
pub(super) fn encrypt_rows(
    ciphers: (&Cipher, &Cipher),
    kind: u64,
    columns: (&[i64], &[i64]),
    out: (&mut [u128], &mut [u128]),
    means: Means,
) -> usize {
    match means {
        // SAFETY: by `Means::of_machine` the CPU has the instructions.
        #[cfg(target_arch = "x86_64")]
        Means::Wide => unsafe { accelerated::encrypt_rows(ciphers, kind, columns, out) },
        _ => 0,
    }
}

#[cfg(target_arch = "x86_64")]
mod accelerated {
    use super::{Cipher, Hardware, ROUNDS};
    use core::arch::x86_64::{
        __m128i, __m512i, _mm512_aesenc_epi128, _mm512_broadcast_i32x4, _mm512_loadu_si512,
        _mm512_maskz_mov_epi64, _mm512_permutex2var_epi64, _mm512_set_epi64, _mm512_set1_epi64,
        _mm512_storeu_si512, _mm512_xor_si512,
    };

    /// Blocks that are on their way together, four to a register: the CPU need not wait for one of them.
    const TOGETHER: usize = 16;

    #[target_feature(enable = "aes")]
    pub(super) fn encrypt_all(cipher: &Cipher, blocks: &mut [u128]) {
        blocks.iter_mut().for_each(|block| *block = cipher.encrypt::<Hardware>(*block));
    }

    /// The same, sixteen at a time.
    #[target_feature(enable = "vaes,avx512f")]
    pub(super) fn encrypt_wide(cipher: &Cipher, blocks: &mut [[u128; TOGETHER]]) {
        let keys = broadcast(&cipher.0);
        for sixteen in blocks {
            let place = sixteen.as_ptr().cast::<__m512i>();
            // SAFETY: sixteen blocks are four times 64 bytes, which need not be aligned.
            let state = [0, 1, 2, 3].map(|at| unsafe { _mm512_loadu_si512(place.add(at)) });
            put(sixteen, encrypted(state, &keys));
        }
    }

    #[target_feature(enable = "vaes,avx512f")]
    fn encrypted(state: [__m512i; 4], keys: &[__m512i; ROUNDS + 1]) -> [__m512i; 4] {
        let mut state = state.map(|four| _mm512_xor_si512(four, keys[0]));
        for key in &keys[1..] {
            state = state.map(|four| _mm512_aesenc_epi128(four, *key));
        }
        state
    }

    #[target_feature(enable = "vaes,avx512f")]
    pub(super) fn encrypt_words(
        cipher: &Cipher,
        kind: u64,
        words: &[i64],
        out: &mut [u128],
    ) -> usize {
        let (keys, kind) = (broadcast(&cipher.0), _mm512_set1_epi64(kind.cast_signed()));
        let (words, _) = words.as_chunks();
        for (words, out) in words.iter().zip(out.as_chunks_mut().0) {
            put(out, encrypted(blocks(words, kind), &keys));
        }
        words.len() * TOGETHER
    }

    #[target_feature(enable = "vaes,avx512f")]
    pub(super) fn encrypt_rows(
        (attribute, user): (&Cipher, &Cipher),
        kind: u64,
        (attributes, users): (&[i64], &[i64]),
        (hashes, entries): (&mut [u128], &mut [u128]),
    ) -> usize {
        let (attribute, user) = (broadcast(&attribute.0), broadcast(&user.0));
        let kind = _mm512_set1_epi64(kind.cast_signed());
        let (attributes, _) = attributes.as_chunks();
        let rows = attributes.iter().zip(users.as_chunks().0);
        let out = hashes.as_chunks_mut().0.iter_mut().zip(entries.as_chunks_mut().0);
        for ((attributes, users), (hashes, entries)) in rows.zip(out) {
            let hashed = encrypted(blocks(attributes, kind), &attribute);
            put(hashes, hashed);
            let mut mixed = blocks(users, kind);
            for (mixed, hash) in mixed.iter_mut().zip(hashed) {
                *mixed = _mm512_xor_si512(*mixed, _mm512_maskz_mov_epi64(0b1010_1010, hash));
            }
            put(entries, encrypted(mixed, &user));
        }
        attributes.len() * TOGETHER
    }

    #[target_feature(enable = "avx512f")]
    fn broadcast(keys: &[u128; ROUNDS + 1]) -> [__m512i; ROUNDS + 1] {
        // SAFETY: sixteen plain bytes each.
        keys.map(|key| {
            _mm512_broadcast_i32x4(unsafe { core::mem::transmute::<u128, __m128i>(key) })
        })
    }

    /// Sixteen words, each with its kind beside it.
    #[target_feature(enable = "avx512f")]
    fn blocks(words: &[i64; TOGETHER], kind: __m512i) -> [__m512i; 4] {
        let place = words.as_ptr();
        // Each takes four words of the first operand, and eight times the kind of the second.
        let low = _mm512_set_epi64(8, 3, 8, 2, 8, 1, 8, 0);
        let high = _mm512_set_epi64(8, 7, 8, 6, 8, 5, 8, 4);
        // SAFETY: there are sixteen words.
        let eights = [0, 8].map(|at| unsafe { _mm512_loadu_si512(place.add(at).cast()) });
        [
            _mm512_permutex2var_epi64(eights[0], low, kind),
            _mm512_permutex2var_epi64(eights[0], high, kind),
            _mm512_permutex2var_epi64(eights[1], low, kind),
            _mm512_permutex2var_epi64(eights[1], high, kind),
        ]
    }

    #[target_feature(enable = "avx512f")]
    fn put(out: &mut [u128; TOGETHER], state: [__m512i; 4]) {
        let place = out.as_mut_ptr().cast::<__m512i>();
        for (at, four) in state.into_iter().enumerate() {
            // SAFETY: sixteen blocks are four times 64 bytes, which need not be aligned.
            unsafe { _mm512_storeu_si512(place.add(at), four) };
        }
    }
}

pub(super) fn words<const N: usize>(bytes: &[u8]) -> [u128; N] {
    let mut out = [0; N];
    for (word, piece) in out.iter_mut().zip(bytes.chunks_exact(16)) {
        *word = read16(piece);
    }
    out
}
