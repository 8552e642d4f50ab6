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

use crate::column::{Column, Role, Value, may_be_number};
use crate::secret::Secret;
#[cfg(target_arch = "x86_64")]
use cipher::Hardware;
use cipher::{Cipher, Means, Portable, Rounds, encrypt_rows, words};
use zeroize::{Zeroize, ZeroizeOnDrop};

const CHAIN: usize = 4;
/// Rows that are hashed together: enough for a CPU to work on many at once, and they stay at hand.
pub(crate) const ROWS: usize = 64;

/// Turns values into the bits that the state may hold.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(crate) struct Hasher {
    attribute: Cipher,
    user: Cipher,
    chain: [u128; CHAIN + 1],
    #[zeroize(skip)]
    means: Means,
}

/// Rows that were hashed together.
pub(crate) struct Hashed {
    pub(crate) attributes: [u128; ROWS],
    /// What stands for the user under the attribute, in the low half.
    pub(crate) users: [u128; ROWS],
    /// Which rows these are, where they were chosen.
    pub(crate) places: [u32; ROWS],
}

impl Default for Hashed {
    fn default() -> Self {
        Self { attributes: [0; ROWS], users: [0; ROWS], places: [0; ROWS] }
    }
}

/// Runs a generic body with the machine's AES instructions where it has them.
macro_rules! dispatch {
    ($self:ident, $body:ident ( $($arg:expr),* )) => {{
        #[cfg(target_arch = "x86_64")]
        if $self.means != Means::Portable {
            // SAFETY: by `Means::of_machine` the CPU has AES.
            return unsafe { accelerated::$body($self, $($arg),*) };
        }
        $self.$body::<Portable>($($arg),*)
    }};
    ($self:ident, $body:ident ::<$($kind:ident),*> ( $($arg:expr),* )) => {{
        #[cfg(target_arch = "x86_64")]
        if $self.means != Means::Portable {
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
            means: Means::of_machine(),
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
        dispatch!(self, one_block(&value, role))
    }

    /// The block of an integer, in either role.
    #[inline(always)]
    pub(crate) fn integer(word: i64) -> u128 {
        block(word as u64, Kind::Integer)
    }

    /// Attribute blocks become attribute hashes; `above` are the hashes of the level above.
    pub(crate) fn attributes(&self, blocks: &mut [u128], above: Option<&[u128]>) {
        if let Some(above) = above {
            blocks.iter_mut().zip(above).for_each(|(block, above)| *block ^= above);
        }
        self.attribute.encrypt_all(blocks, self.means);
    }

    /// User blocks become the entries that stand under the given attributes.
    pub(crate) fn users(&self, blocks: &[u128], attributes: &[u128], out: &mut [u64]) {
        let mut mixed = [0; ROWS];
        let rows = blocks.chunks(ROWS).zip(attributes.chunks(ROWS)).zip(out.chunks_mut(ROWS));
        for ((blocks, attributes), out) in rows {
            let mixed = &mut mixed[..out.len()];
            for ((block, attribute), mixed) in blocks.iter().zip(attributes).zip(&mut *mixed) {
                *mixed = block ^ (attribute & HIGH);
            }
            self.user.encrypt_all(mixed, self.means);
            out.iter_mut().zip(mixed).for_each(|(entry, mixed)| *entry = *mixed as u64);
        }
    }

    /// User blocks become words of their own, under no attribute.
    pub(crate) fn user_words(&self, blocks: &mut [u128]) {
        self.user.encrypt_all(blocks, self.means);
    }

    /// The same of users that are integers.
    pub(crate) fn integer_words(&self, users: &[i64], out: &mut [u128]) {
        self.user.encrypt_words(Kind::Integer as u64, users, out, self.means);
    }

    /// The words of some rows whose users and attributes are integers, in one go: `take` gets the row,
    /// the user's word, and the hash of the attribute under a tweak.
    pub(crate) fn row_words(
        &self,
        users: &[i64],
        attributes: &[i64],
        rows: &[u32],
        tweak: u128,
        mut take: impl FnMut(u32, u128, u128),
    ) {
        let (mut who, mut what) = ([0; ROWS], [0; ROWS]);
        for rows in rows.chunks(ROWS) {
            let (who, what) = (&mut who[..rows.len()], &mut what[..rows.len()]);
            for ((row, user), attribute) in rows.iter().zip(&mut *who).zip(&mut *what) {
                *user = Self::integer(users[*row as usize]);
                *attribute = Self::integer(attributes[*row as usize]) ^ tweak;
            }
            self.user.encrypt_all(who, self.means);
            self.attribute.encrypt_all(what, self.means);
            for ((row, user), attribute) in rows.iter().zip(who).zip(what) {
                take(*row, *user, *attribute);
            }
        }
    }

    /// Users and plain attributes that are integers, at most [`ROWS`] of them, hashed in one go: the hashes of the
    /// attributes, and the users' entries under them.
    #[inline(always)]
    pub(crate) fn words(&self, users: &[i64], attributes: &[i64], hashed: &mut Hashed) {
        let all = users.len().min(attributes.len()).min(ROWS);
        let done = encrypt_rows(
            (&self.attribute, &self.user),
            Kind::Integer as u64,
            (&attributes[..all], &users[..all]),
            (&mut hashed.attributes, &mut hashed.users),
            self.means,
        );
        if done < all {
            let integer = Kind::Integer as u64;
            let (words, out) = (&attributes[done..all], &mut hashed.attributes[done..all]);
            self.attribute.encrypt_words(integer, words, out, self.means);
            let rows = hashed.users[done..all].iter_mut().zip(&hashed.attributes[done..all]);
            for ((block, hash), user) in rows.zip(&users[done..all]) {
                *block = Self::integer(*user) ^ (hash & HIGH);
            }
            self.user.encrypt_all(&mut hashed.users[done..all], self.means);
        }
    }

    /// The same for those rows alone whose attribute is wanted. Gives how many they are; `hashed` has their places.
    pub(crate) fn wanted_words(
        &self,
        users: &[i64],
        attributes: &[i64],
        is_wanted: impl Fn(u128) -> bool,
        hashed: &mut Hashed,
    ) -> usize {
        let all = users.len().min(attributes.len()).min(ROWS);
        let out = &mut hashed.attributes[..all];
        self.attribute.encrypt_words(Kind::Integer as u64, &attributes[..all], out, self.means);
        let mut count = 0_usize;
        for (at, user) in users[..all].iter().enumerate() {
            // At most as many as there are rows: what stands there was looked at.
            let (hash, to) = (hashed.attributes[at], count % ROWS);
            hashed.attributes[to] = hash;
            hashed.users[to] = Self::integer(*user) ^ (hash & HIGH);
            hashed.places[to] = at as u32;
            count = count.wrapping_add(usize::from(is_wanted(hash)));
        }
        self.user.encrypt_all(&mut hashed.users[..count], self.means);
        count
    }

    /// The hash of one plain attribute.
    #[inline(always)]
    pub(crate) fn attribute(&self, value: &Value<'_>) -> Option<u128> {
        dispatch!(self, one_attribute(value))
    }

    /// What stands for one user under an attribute, by its hash.
    #[inline(always)]
    pub(crate) fn user_under(&self, value: &Value<'_>, hash: u128) -> Option<u64> {
        dispatch!(self, one_user_under(value, hash))
    }

    /// What stands for a user under an attribute, by their block and its hash's high half.
    #[inline(always)]
    pub(crate) fn user(&self, block: u128, attribute_high: u64) -> u64 {
        dispatch!(self, one_user(block, u128::from(attribute_high) << 64))
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
            match value.and_then(|value| self.one_block::<R>(&value, role)) {
                Some(found) => *block = found,
                None => {
                    *block = 0;
                    *valid = false;
                }
            }
        }
    }

    /// What comes most is read where it lies: a value that is copied, and read again at once in pieces of other
    /// sizes, makes the CPU wait as long as its hash takes.
    #[inline(always)]
    fn one_block<R: Rounds>(&self, value: &Value<'_>, role: Role) -> Option<u128> {
        match value {
            Value::Integer(word) => Some(block(*word as u64, Kind::Integer)),
            Value::Text(bytes) if role == Role::Attribute || !may_be_number(bytes) => {
                Some(self.spelled::<R>(bytes, Kind::Text))
            }
            _ => self.other_block::<R>(*value, role),
        }
    }

    #[inline(always)]
    fn other_block<R: Rounds>(&self, value: Value<'_>, role: Role) -> Option<u128> {
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
            Value::Text(bytes) => self.spelled::<R>(bytes, Kind::Text),
            Value::Bytes(bytes) => self.spelled::<R>(bytes, Kind::Bytes),
            Value::Digits(bytes) => self.spelled::<R>(bytes, Kind::Digits),
            Value::Prepared(block) => block,
        })
    }

    #[inline(always)]
    fn one_attribute<R: Rounds>(&self, value: &Value<'_>) -> Option<u128> {
        Some(self.attribute.encrypt::<R>(self.one_block::<R>(value, Role::Attribute)?))
    }

    #[inline(always)]
    fn one_user_under<R: Rounds>(&self, value: &Value<'_>, hash: u128) -> Option<u64> {
        Some(self.one_user::<R>(self.one_block::<R>(value, Role::User)?, hash & HIGH))
    }

    #[inline(always)]
    fn one_user<R: Rounds>(&self, block: u128, high: u128) -> u64 {
        self.user.encrypt::<R>(R::xor(block, high)) as u64
    }

    #[inline(always)]
    fn spelled<R: Rounds>(&self, bytes: &[u8], kind: Kind) -> u128 {
        R::xor(self.chain::<R>(bytes), block(bytes.len() as u64, kind))
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
        let mut state = R::xor(state, R::xor(piece, self.chain[0]));
        for key in &self.chain[1..] {
            state = R::round(state, *key);
        }
        state
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
    pub(super) fn one_block(hasher: &Hasher, value: &Value<'_>, role: Role) -> Option<u128> {
        hasher.one_block::<Hardware>(value, role)
    }

    #[target_feature(enable = "aes")]
    pub(super) fn one_attribute(hasher: &Hasher, value: &Value<'_>) -> Option<u128> {
        hasher.one_attribute::<Hardware>(value)
    }

    #[target_feature(enable = "aes")]
    pub(super) fn one_user_under(hasher: &Hasher, value: &Value<'_>, hash: u128) -> Option<u64> {
        hasher.one_user_under::<Hardware>(value, hash)
    }

    #[target_feature(enable = "aes")]
    pub(super) fn one_user(hasher: &Hasher, block: u128, high: u128) -> u64 {
        hasher.one_user::<Hardware>(block, high)
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
    bytes.first_chunk().map_or(0, |bytes| u128::from_le_bytes(*bytes))
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
