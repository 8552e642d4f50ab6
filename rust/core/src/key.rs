//! Keyed hashing: what stands in the state instead of users and values.
//!
//! # The hash
//! A value becomes a 128-bit *block*, and a block is encrypted with ten AES rounds under round keys
//! of its own (drawn independently, one set for attributes and one for users):
//!
//! ```text
//! integer, float, bool     block = (the 64-bit word, its kind)            no hashing needed, injective
//! text, bytes              block = chain(16-byte pieces) ^ (length, kind)
//! chain                    s = R4(s ^ piece), R4 = four AES rounds under five secret keys
//! attribute                h = E_attribute(block)                          128 bits
//! level of a hierarchy     h = E_attribute(block ^ h of the level above)   the whole path counts
//! user in an attribute     e = low 64 bits of E_user(block ^ (0, the attribute's stored 64 bits))
//! ```
//!
//! Four AES rounds with independent keys map two different inputs to a given difference with
//! probability at most 2^-113, so nobody who lacks the keys can make two texts collide, and ten
//! rounds hide the rest. `e` depends on the attribute: without the keys, the entries of one person
//! under two attributes have nothing in common.
//!
//! # Two attributes taken for one
//! could release too early, so it must be less likely than 1e-6 in 1e12 observations with 10M
//! attributes live. A slot stores 64 + 22 bits of `h` of its own (and 8 more that the levels of one
//! observation share). Each observation is compared with at most all 1e7 live attributes:
//!
//! ```text
//! plain attributes      1e12 * 1e7 / 2^94 = 5.0e-10
//! three levels      3 * 1e12 * 1e7 / 2^86 = 3.9e-7
//! ```
//!
//! Two users taken for one inside an attribute (64 bits) make a crowd look smaller: that only veils.

mod cipher;

use crate::column::{Column, Role, Value};
use crate::secret::Secret;
#[cfg(target_arch = "x86_64")]
use cipher::Hardware;
use cipher::{Cipher, Portable, Rounds, has_aes, words};
use zeroize::{Zeroize, ZeroizeOnDrop};

const CHAIN: usize = 4;

/// Turns values into the bits that the state may hold.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(crate) struct Hasher {
    attribute: Cipher,
    user: Cipher,
    chain: [u128; CHAIN + 1],
    hardware: bool,
}

/// Runs a generic body with the machine's AES instructions where it has them.
macro_rules! dispatch {
    ($self:ident, $body:ident ( $($arg:expr),* )) => {{
        #[cfg(target_arch = "x86_64")]
        if $self.hardware {
            // SAFETY: `hardware` is only true where the CPU said that it has AES.
            return unsafe { accelerated::$body($self, $($arg),*) };
        }
        $self.$body::<Portable>($($arg),*)
    }};
    ($self:ident, $body:ident ::<$($kind:ident),*> ( $($arg:expr),* )) => {{
        #[cfg(target_arch = "x86_64")]
        if $self.hardware {
            // SAFETY: as above.
            return unsafe { accelerated::$body::<$($kind),*>($self, $($arg),*) };
        }
        $self.$body::<Portable, $($kind),*>($($arg),*)
    }};
}

impl Hasher {
    pub(crate) fn new(secret: &Secret) -> Self {
        let mut chain = secret.derive::<{ 16 * (CHAIN + 1) }>("hash: chain");
        let mut attribute = secret.derive("hash: attribute");
        let mut user = secret.derive("hash: user");
        let hasher = Self {
            attribute: Cipher::new(&attribute),
            user: Cipher::new(&user),
            chain: words(&chain),
            hardware: has_aes(),
        };
        chain.zeroize();
        attribute.zeroize();
        user.zeroize();
        hasher
    }

    /// The blocks of some rows, counted from `start`; `valid` loses the rows that hold none.
    pub(crate) fn blocks<C: Column + ?Sized>(
        &self,
        column: &C,
        role: Role,
        start: usize,
        rows: &[u32],
        out: &mut [u128],
        valid: &mut [bool],
    ) {
        dispatch!(self, column_blocks::<C>(column, role, start, rows, out, valid))
    }

    pub(crate) fn block(&self, value: Value<'_>, role: Role) -> Option<u128> {
        dispatch!(self, one_block(value, role))
    }

    /// The block of an integer, in either role.
    #[inline(always)]
    pub(crate) fn integer(word: i64) -> u128 {
        block(word as u64, Kind::Integer)
    }

    /// Attribute blocks become attribute hashes; `above` are the hashes of the level above.
    pub(crate) fn attributes(&self, blocks: &mut [u128], above: Option<&[u128]>) {
        dispatch!(self, attribute_hashes(blocks, above))
    }

    /// User blocks become the entries that stand under the given attributes.
    pub(crate) fn users(&self, blocks: &[u128], attributes: &[u128], out: &mut [u64]) {
        dispatch!(self, user_entries(blocks, attributes, out))
    }

    /// User blocks become words of their own, under no attribute.
    pub(crate) fn user_words(&self, blocks: &mut [u128]) {
        dispatch!(self, user_hashes(blocks))
    }

    /// The words of some rows whose users and attributes are integers, in one go: `take` gets the row,
    /// the user's word, and the hash of the attribute under a tweak.
    pub(crate) fn row_words<F: FnMut(u32, u128, u128)>(
        &self,
        users: &[i64],
        attributes: &[i64],
        rows: &[u32],
        tweak: u128,
        take: F,
    ) {
        dispatch!(self, row_hashes::<F>(users, attributes, rows, tweak, take))
    }

    /// Users and plain attributes that are integers, hashed in one go: `take` gets the number of each
    /// row whose attribute is wanted, the attribute's hash, and the user's entry under it.
    pub(crate) fn words<W: Fn(u128) -> bool, F: FnMut(usize, u128, u64)>(
        &self,
        users: &[i64],
        attributes: &[i64],
        is_wanted: W,
        take: F,
    ) {
        dispatch!(self, word_hashes::<W, F>(users, attributes, is_wanted, take))
    }

    /// The hash of one plain attribute, and the block of one user: side by side, they take hardly
    /// longer than one.
    pub(crate) fn pair(&self, attribute: Value<'_>, user: Value<'_>) -> Option<(u128, u128)> {
        dispatch!(self, one_pair(attribute, user))
    }

    pub(crate) fn user(&self, block: u128, attribute_high: u64) -> u64 {
        let mut entry = [0];
        self.users(&[block], &[u128::from(attribute_high) << 64], &mut entry);
        entry[0]
    }

    #[inline(always)]
    fn column_blocks<R: Rounds, C: Column + ?Sized>(
        &self,
        column: &C,
        role: Role,
        start: usize,
        rows: &[u32],
        out: &mut [u128],
        valid: &mut [bool],
    ) {
        for (row, (block, valid)) in rows.iter().zip(out.iter_mut().zip(valid)) {
            let value = column.value(start.wrapping_add(*row as usize));
            match value.and_then(|value| self.one_block::<R>(value, role)) {
                Some(found) => *block = found,
                None => {
                    *block = 0;
                    *valid = false;
                }
            }
        }
    }

    #[inline(always)]
    fn one_block<R: Rounds>(&self, value: Value<'_>, role: Role) -> Option<u128> {
        let value = match role {
            Role::Attribute => value,
            Role::User => value.as_user()?,
        };
        Some(match value {
            Value::Integer(word) => block(word as u64, Kind::Integer),
            Value::Unsigned(word) => match i64::try_from(word) {
                Ok(word) => block(word as u64, Kind::Integer),
                Err(_) => block(word, Kind::Unsigned),
            },
            Value::Float(number) if number.is_nan() => return None,
            // Adding zero turns -0.0 into 0.0: a reader sees one number.
            Value::Float(number) => block((number + 0.0).to_bits(), Kind::Float),
            Value::Bool(truth) => block(u64::from(truth), Kind::Bool),
            Value::Text(bytes) => self.chain::<R>(bytes) ^ block(bytes.len() as u64, Kind::Text),
            Value::Bytes(bytes) => self.chain::<R>(bytes) ^ block(bytes.len() as u64, Kind::Bytes),
            Value::Digits(bytes) => {
                self.chain::<R>(bytes) ^ block(bytes.len() as u64, Kind::Digits)
            }
            Value::Prepared(block) => block,
        })
    }

    #[inline(always)]
    fn one_pair<R: Rounds>(&self, attribute: Value<'_>, user: Value<'_>) -> Option<(u128, u128)> {
        let attribute = self.one_block::<R>(attribute, Role::Attribute)?;
        let user = self.one_block::<R>(user, Role::User)?;
        Some((self.attribute.encrypt::<R>(attribute), user))
    }

    /// The pieces may overlap: with the length in the block, they still spell only one text.
    #[inline(always)]
    fn chain<R: Rounds>(&self, bytes: &[u8]) -> u128 {
        let n = bytes.len();
        let mut state = 0;
        if n > 16 {
            let mut rest = bytes;
            while rest.len() > 16 {
                state = self.absorb::<R>(state, read16(&rest[..16]));
                rest = &rest[16..];
            }
            self.absorb::<R>(state, read16(&bytes[n - 16..]))
        } else if n >= 8 {
            let (low, high) = (read8(&bytes[..8]), read8(&bytes[n - 8..]));
            self.absorb::<R>(state, u128::from(low) | u128::from(high) << 64)
        } else if n >= 4 {
            let (low, high) = (read4(&bytes[..4]), read4(&bytes[n - 4..]));
            self.absorb::<R>(state, u128::from(low) | u128::from(high) << 64)
        } else {
            for (place, byte) in bytes.iter().enumerate() {
                state |= u128::from(*byte) << (8 * place);
            }
            self.absorb::<R>(0, state)
        }
    }

    #[inline(always)]
    fn absorb<R: Rounds>(&self, state: u128, piece: u128) -> u128 {
        let mut state = state ^ piece ^ self.chain[0];
        for key in &self.chain[1..] {
            state = R::round(state, *key);
        }
        state
    }

    #[inline(always)]
    fn attribute_hashes<R: Rounds>(&self, blocks: &mut [u128], above: Option<&[u128]>) {
        if let Some(above) = above {
            blocks.iter_mut().zip(above).for_each(|(block, above)| *block ^= above);
        }
        for block in blocks {
            *block = self.attribute.encrypt::<R>(*block);
        }
    }

    #[inline(always)]
    fn row_hashes<R: Rounds, F: FnMut(u32, u128, u128)>(
        &self,
        users: &[i64],
        attributes: &[i64],
        rows: &[u32],
        tweak: u128,
        mut take: F,
    ) {
        for row in rows {
            let (user, attribute) = (users[*row as usize], attributes[*row as usize]);
            let user = self.user.encrypt::<R>(block(user as u64, Kind::Integer));
            let attribute = block(attribute as u64, Kind::Integer) ^ tweak;
            take(*row, user, self.attribute.encrypt::<R>(attribute));
        }
    }

    #[inline(always)]
    fn user_hashes<R: Rounds>(&self, blocks: &mut [u128]) {
        for block in blocks {
            *block = self.user.encrypt::<R>(*block);
        }
    }

    #[inline(always)]
    fn user_entries<R: Rounds>(&self, blocks: &[u128], attributes: &[u128], out: &mut [u64]) {
        for ((block, attribute), entry) in blocks.iter().zip(attributes).zip(out) {
            *entry = self.user.encrypt::<R>(*block ^ (*attribute & HIGH)) as u64;
        }
    }

    /// Attributes first, then users, a few rows at a time: within each loop the rows are
    /// independent, so that the CPU works on a dozen of them at once. (One loop for both, where each
    /// user waits for its attribute, took twice as long.)
    #[inline(always)]
    fn word_hashes<R: Rounds, W: Fn(u128) -> bool, F: FnMut(usize, u128, u64)>(
        &self,
        users: &[i64],
        attributes: &[i64],
        is_wanted: W,
        mut take: F,
    ) {
        const ROWS: usize = 64;
        let mut wanted = [(0_u128, 0_i64, 0_usize); ROWS];
        let mut row = 0;
        for (users, attributes) in users.chunks(ROWS).zip(attributes.chunks(ROWS)) {
            let mut count = 0;
            for (user, attribute) in users.iter().zip(attributes) {
                let hash = self.attribute.encrypt::<R>(block(*attribute as u64, Kind::Integer));
                // At most as many as there are rows in the chunk.
                wanted[count % ROWS] = (hash, *user, row);
                count += usize::from(is_wanted(hash));
                row += 1;
            }
            for (hash, user, row) in &wanted[..count] {
                let user = block(*user as u64, Kind::Integer);
                take(*row, *hash, self.user.encrypt::<R>(user ^ (hash & HIGH)) as u64);
            }
        }
    }
}

/// The same bodies, compiled for CPUs with AES instructions.
#[cfg(target_arch = "x86_64")]
mod accelerated {
    use super::{Column, Hardware, Hasher, Role, Value};

    #[target_feature(enable = "aes")]
    pub(super) fn column_blocks<C: Column + ?Sized>(
        hasher: &Hasher,
        column: &C,
        role: Role,
        start: usize,
        rows: &[u32],
        out: &mut [u128],
        valid: &mut [bool],
    ) {
        hasher.column_blocks::<Hardware, C>(column, role, start, rows, out, valid);
    }

    #[target_feature(enable = "aes")]
    pub(super) fn one_block(hasher: &Hasher, value: Value<'_>, role: Role) -> Option<u128> {
        hasher.one_block::<Hardware>(value, role)
    }

    #[target_feature(enable = "aes")]
    pub(super) fn one_pair(
        hasher: &Hasher,
        attribute: Value<'_>,
        user: Value<'_>,
    ) -> Option<(u128, u128)> {
        hasher.one_pair::<Hardware>(attribute, user)
    }

    #[target_feature(enable = "aes")]
    pub(super) fn attribute_hashes(hasher: &Hasher, blocks: &mut [u128], above: Option<&[u128]>) {
        hasher.attribute_hashes::<Hardware>(blocks, above);
    }

    #[target_feature(enable = "aes")]
    pub(super) fn row_hashes<F: FnMut(u32, u128, u128)>(
        hasher: &Hasher,
        users: &[i64],
        attributes: &[i64],
        rows: &[u32],
        tweak: u128,
        take: F,
    ) {
        hasher.row_hashes::<Hardware, F>(users, attributes, rows, tweak, take);
    }

    #[target_feature(enable = "aes")]
    pub(super) fn user_hashes(hasher: &Hasher, blocks: &mut [u128]) {
        hasher.user_hashes::<Hardware>(blocks);
    }

    #[target_feature(enable = "aes")]
    pub(super) fn word_hashes<W: Fn(u128) -> bool, F: FnMut(usize, u128, u64)>(
        hasher: &Hasher,
        users: &[i64],
        attributes: &[i64],
        is_wanted: W,
        take: F,
    ) {
        hasher.word_hashes::<Hardware, W, F>(users, attributes, is_wanted, take);
    }

    #[target_feature(enable = "aes")]
    pub(super) fn user_entries(
        hasher: &Hasher,
        blocks: &[u128],
        attributes: &[u128],
        out: &mut [u64],
    ) {
        hasher.user_entries::<Hardware>(blocks, attributes, out);
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Integer = 1,
    Unsigned,
    Float,
    Bool,
    Text,
    Bytes,
    Digits,
}

/// The bits of an attribute's hash that a slot stores whole, and that its users are mixed with.
const HIGH: u128 = (u64::MAX as u128) << 64;

/// What stands above the coarsest level: keeps levels apart from plain attributes.
pub(crate) const ABOVE_LEVELS: u128 = 1 << 127;

/// What a missing level adds to the path of the levels below it.
pub(crate) const MISSING_LEVEL: u128 = 0;

#[inline(always)]
fn block(word: u64, kind: Kind) -> u128 {
    u128::from(word) | (kind as u128) << 64
}

#[inline(always)]
fn read16(bytes: &[u8]) -> u128 {
    u128::from(read8(&bytes[..8])) | u128::from(read8(&bytes[8..16])) << 64
}

#[inline(always)]
fn read8(bytes: &[u8]) -> u64 {
    u64::from(read4(&bytes[..4])) | u64::from(read4(&bytes[4..8])) << 32
}

#[inline(always)]
fn read4(bytes: &[u8]) -> u32 {
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

#[cfg(test)]
mod tests;
