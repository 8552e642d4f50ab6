//! The secret of a gate, and the keys that come from it.

use crate::error::Error;
use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// The one secret of a gate. Everything else is derived from it, for one purpose each.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Secret([u8; 32]);

impl Secret {
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// A fresh one from the operating system.
    pub fn random() -> Result<Self, Error> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|_| Error::NoRandomness)?;
        Ok(Self(bytes))
    }

    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Key material for one purpose; other purposes tell nothing about it.
    pub(crate) fn derive<const N: usize>(&self, purpose: &str) -> [u8; N] {
        let mut out = [0; N];
        let kdf = Hkdf::<Sha256>::new(Some(b"zveil"), &self.0);
        // HKDF-SHA256 gives up to 8,160 bytes, and N is a constant far below that.
        if kdf.expand(purpose.as_bytes(), &mut out).is_err() {
            unreachable!("{N} bytes are within what HKDF-SHA256 gives");
        }
        out
    }

    /// The secret behind this one in a chain; from it there is no way back to this one.
    pub(crate) fn next(&self) -> Self {
        Self(self.derive("next"))
    }

    /// The secret of one of several periods of the same length; it tells nothing about the others.
    pub(crate) fn of_period(&self, length: i64, number: i64) -> Self {
        Self(self.derive(&format!("period {length} {number}")))
    }
}
