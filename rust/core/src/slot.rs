//! One attribute in the table: 32 bytes that say which it is and what is known about its users.

use crate::crowd::NO_CERTIFICATE;
use crate::memory::Plain;
use crate::slab::{Block, Entry};

/// The two low bits of `check` say what a slot holds.
const STATE: u32 = 0b11;
const SINGLE: u32 = 1;
const CROWD: u32 = 2;

/// One attribute.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Slot {
    pub(crate) hash: u64,
    check: u32,
    /// When it was last touched, counted as in `expiry` (24 bits), and the credit (8 bits).
    touched: u32,
    a: u64,
    b: u64,
}

// SAFETY: plain integers, 32 bytes without padding.
unsafe impl Plain for Slot {}

/// What a slot says about its users.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Held {
    Nobody,
    /// A single user, inline.
    Single(Entry),
    Crowd(Crowd),
}

/// Several users, in a block of the slab.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crowd {
    pub(crate) block: Block,
    pub(crate) len: usize,
    /// Each entry is of another user.
    pub(crate) distinct: bool,
    /// Up to this time, z users are known to be in the window.
    pub(crate) certificate: i64,
}

/// An attribute as the table knows it: the bits that tell it apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) hash: u64,
    /// Selector of the shard (8 bits), check (22 bits), two zero bits where a slot has its state.
    pub(crate) check: u32,
}

impl Key {
    /// No attribute: a level that is not there. Real keys have two zero bits here.
    pub(crate) const MISSING: Self = Self { hash: 0, check: u32::MAX };

    /// The selector comes from the coarsest level, so that all levels share a shard.
    #[inline(always)]
    pub(crate) fn new(hash: u128, coarsest: u128) -> Self {
        let selector = (coarsest as u32) & 0xFF00_0000;
        let check = (hash as u32) & 0x00FF_FFFC;
        Self { hash: (hash >> 64) as u64, check: selector | check }
    }

    #[inline(always)]
    pub(crate) fn selector(self) -> usize {
        (self.check >> 24) as usize
    }
}

impl Slot {
    pub(crate) const BYTES: usize = 32;

    /// A new attribute, with its first user.
    #[inline(always)]
    pub(crate) fn new(key: Key, epoch: u32, entry: Entry) -> Self {
        let mut slot = Self { hash: key.hash, check: key.check, touched: epoch << 8, a: 0, b: 0 };
        slot.hold_single(entry);
        slot
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.check & STATE == 0
    }

    /// When it was last touched: the low 24 bits of the epoch.
    #[inline(always)]
    pub(crate) fn epoch(&self) -> u32 {
        self.touched >> 8
    }

    #[inline(always)]
    pub(crate) fn touch(&mut self, epoch: u32) {
        self.touched = epoch << 8 | self.credit();
    }

    /// How many entries may still be appended to the crowd before anyone must look at it: there is
    /// room for them, and with a certificate they are released up to its time, without one veiled.
    #[inline(always)]
    fn credit(&self) -> u32 {
        self.touched & 0xFF
    }

    /// Gives the crowd, as it is held, some credit. Only changes to the crowd take it away.
    #[inline(always)]
    pub(crate) fn grant(&mut self, credit: usize) {
        self.touched = self.touched & !0xFF | credit.min(0xFF) as u32;
    }

    /// Whether `spend` would answer.
    #[inline(always)]
    pub(crate) fn can_spend(&self, time: i64) -> bool {
        let certificate = self.a as i64;
        (self.credit() != 0) & ((time <= certificate) | (certificate == NO_CERTIFICATE))
    }

    /// Whether `spend` would answer that it is released.
    #[inline(always)]
    pub(crate) fn is_certain(&self, time: i64) -> bool {
        (self.credit() != 0) & (time <= self.a as i64)
    }

    /// Where the next entry of a crowd goes.
    #[inline(always)]
    pub(crate) fn end(&self) -> (Block, usize) {
        let shape = (self.b >> 32) as u32;
        let block = Block { class: (shape >> 26) as u8, number: self.b as u32 };
        (block, (shape & 0x01FF_FFFF) as usize)
    }

    /// Takes one of the credit, if the answer at this time is known: where the new entry goes, and
    /// whether it is released.
    #[inline(always)]
    pub(crate) fn spend(&mut self, time: i64, epoch: u32) -> Option<(Block, usize, bool)> {
        if !self.can_spend(time) {
            return None;
        }
        // No branch on the answer itself: it could not be predicted.
        let released = time <= self.a as i64;
        let (block, at) = self.end();
        self.b = self.b.wrapping_add(1 << 32);
        self.touched = epoch << 8 | self.credit().wrapping_sub(1);
        Some((block, at, released))
    }

    #[inline(always)]
    pub(crate) fn is(&self, key: Key) -> bool {
        // A key has zeros where a slot that is taken has its state: they differ by 1, 2 or 3.
        self.hash == key.hash && (self.check ^ key.check).wrapping_sub(1) < STATE
    }

    pub(crate) fn key(&self) -> Key {
        Key { hash: self.hash, check: self.check & !STATE }
    }

    #[inline(always)]
    pub(crate) fn held(&self) -> Held {
        match self.check & STATE {
            SINGLE => Held::Single(Entry { user: self.a, time: self.b as i64 }),
            CROWD => {
                let (block, len) = self.end();
                let distinct = self.b & 0x0200_0000 << 32 != 0;
                Held::Crowd(Crowd { block, len, distinct, certificate: self.a as i64 })
            }
            _ => Held::Nobody,
        }
    }

    #[inline(always)]
    pub(crate) fn hold_single(&mut self, entry: Entry) {
        self.grant(0);
        self.check = self.check & !STATE | SINGLE;
        self.a = entry.user;
        self.b = entry.time as u64;
    }

    /// Without credit.
    #[inline(always)]
    pub(crate) fn hold_crowd(&mut self, crowd: Crowd) {
        self.grant(0);
        let distinct = u32::from(crowd.distinct) << 25;
        let shape = u32::from(crowd.block.class) << 26 | distinct | crowd.len as u32;
        self.check = self.check & !STATE | CROWD;
        self.a = crowd.certificate as u64;
        self.b = u64::from(shape) << 32 | u64::from(crowd.block.number);
    }

    /// As it is kept. Of one that is empty, all zeros.
    pub(crate) fn bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.hash.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.check.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.touched.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.a.to_le_bytes());
        bytes[24..].copy_from_slice(&self.b.to_le_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let number = u128::from_le_bytes;
        let ([low, high], _) = bytes.as_chunks::<16>() else { return Self::default() };
        let (low, high) = (number(*low), number(*high));
        Self {
            hash: low as u64,
            check: (low >> 64) as u32,
            touched: (low >> 96) as u32,
            a: high as u64,
            b: (high >> 64) as u64,
        }
    }

    /// Whether a crowd of `capacity` may have this credit: entries are put there without a look.
    pub(crate) fn has_room_for_credit(&self, len: usize, capacity: usize) -> bool {
        len.checked_add(self.credit() as usize).is_some_and(|end| end <= capacity)
    }
}
