//! A threshold that nobody outside knows: z, and a few users more.
//!
//! An observer of a first release knows that exactly z users are there, and whoever sends z - 1 users
//! of their own unmasks the next. With noise an attribute needs z + n users, where n is drawn for it
//! from 0 to some bound: never fewer than z, so nothing is released that would not be without.
//!
//! The draw is a keyed function of the attribute and the period. Asking again gives the same
//! answer, in a rerun too, so neither many windows nor many runs average it away; without the key it
//! cannot be told from chance.

use crate::secret::Secret;
use aes::Aes128;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use zeroize::Zeroize;

/// How many users more than z an attribute may need, and for how long a draw holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoiseSettings {
    pub most: usize,
    /// In nanoseconds, counted from 1970; `None` for always.
    pub period: Option<i64>,
}

pub(crate) struct Noise {
    settings: NoiseSettings,
    cipher: Aes128,
}

impl Noise {
    pub(crate) fn new(settings: NoiseSettings, secret: &Secret) -> Self {
        let mut key: [u8; 16] = secret.derive("noise");
        let cipher = Aes128::new(&key.into());
        key.zeroize();
        Self { settings, cipher }
    }

    /// How many users more than z an attribute, by its hash, needs at this clock.
    pub(crate) fn more(&self, attribute: u64, clock: i64) -> usize {
        let period = self.settings.period.map_or(0, |period| clock.div_euclid(period));
        let mut block = (u128::from(attribute) << 64 | u128::from(period as u64)).to_be_bytes();
        self.cipher.encrypt_block((&mut block).into());
        let drawn = u128::from_be_bytes(block) >> 64;
        // Scaled, not taken modulo: all are as likely, to one part in 2^64 / most.
        ((drawn * (self.settings.most as u128 + 1)) >> 64) as usize
    }

    /// The last clock for which the draw holds.
    pub(crate) fn until(&self, clock: i64) -> i64 {
        let Some(period) = self.settings.period else { return i64::MAX };
        let left = period - 1 - clock.rem_euclid(period);
        clock.saturating_add(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(most: usize, period: Option<i64>) -> Noise {
        Noise::new(NoiseSettings { most, period }, &Secret::new([7; 32]))
    }

    #[test]
    fn every_draw_is_within_its_bound_and_each_is_as_likely() {
        let noise = noise(4, None);
        let mut counts = [0_u32; 5];
        for attribute in 0..50_000 {
            counts[noise.more(attribute, 0)] += 1;
        }
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_draw_holds_for_its_period_and_not_past_it() {
        let noise = noise(1_000, Some(60));
        for clock in [i64::MIN + 1, -61, -60, -1, 0, 59, 60, 1_700_000_000, i64::MAX] {
            let until = noise.until(clock);
            assert!(until >= clock);
            assert_eq!(noise.more(5, clock), noise.more(5, until));
        }
        let draws: std::collections::HashSet<_> =
            (0..100).map(|number| noise.more(5, number * 60)).collect();
        assert!(draws.len() > 80);
    }
}
