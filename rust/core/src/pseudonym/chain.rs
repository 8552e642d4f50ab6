//! A one-way chain of keys: each period's is made from the one before, and none from one behind.
//!
//! ```text
//! K₀ ─HKDF→ K₁ ─HKDF→ K₂ ─HKDF→ K₃          held: from the oldest period in which an event may
//!  gone      gone      ╰─ held ─╯                  still come, to the newest one
//! ```

use super::maker::Maker;
use super::spelling::PseudonymFormat;
use crate::error::Error;
use crate::secret::Secret;
use std::collections::VecDeque;
use std::sync::Arc;

/// Steps that are taken at once at most: about a second's work.
const MOST_STEPS: i64 = 1_000_000;

/// The keys of some periods that follow each other. A key that goes is overwritten.
pub(super) struct Chain {
    /// The period of the first key; `None` before the first event of all.
    first: Option<i64>,
    /// At least one. Boxed: what grows moves, and leaves its old place as it was.
    keys: VecDeque<Box<Held>>,
}

struct Held {
    secret: Secret,
    /// Made once it is needed.
    maker: Option<Arc<Maker>>,
}

impl Held {
    fn new(secret: Secret) -> Box<Self> {
        Box::new(Self { secret, maker: None })
    }

    fn next(&self) -> Box<Self> {
        Self::new(self.secret.next())
    }
}

impl Chain {
    pub(super) fn new(secret: Secret, first: Option<i64>) -> Self {
        Self { first, keys: VecDeque::from([Held::new(secret)]) }
    }

    pub(super) fn first(&self) -> Option<i64> {
        self.first
    }

    pub(super) fn first_key(&self) -> &Secret {
        &self.keys[0].secret
    }

    /// Holds the keys from the `oldest` period to the `newest`, and no older ones. It never goes
    /// back: keys that are gone stay gone. A chain that has not begun begins with the oldest.
    pub(super) fn reach(&mut self, oldest: i64, newest: i64) -> Result<(), Error> {
        let mut first = self.first.unwrap_or(oldest);
        let held = self.keys.len() as i64;
        if newest.saturating_sub(first.saturating_add(held)) > MOST_STEPS {
            return Err(Error::Jump { most: MOST_STEPS });
        }
        while first < oldest {
            if self.keys.len() == 1 {
                self.keys[0] = self.keys[0].next();
            } else {
                self.keys.pop_front();
            }
            first += 1;
        }
        while first + (self.keys.len() as i64) <= newest {
            let next = self.keys[self.keys.len() - 1].next();
            self.keys.push_back(next);
        }
        self.first = Some(first);
        Ok(())
    }

    /// What makes pseudonyms in a period; `None` if its key is gone, or not there yet.
    pub(super) fn maker(&mut self, period: i64, format: PseudonymFormat) -> Option<Arc<Maker>> {
        let place = usize::try_from(period.checked_sub(self.first?)?).ok()?;
        let held = self.keys.get_mut(place)?;
        let maker = held.maker.get_or_insert_with(|| Arc::new(Maker::new(&held.secret, format)));
        Some(Arc::clone(maker))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::Value;
    use crate::pseudonym::Pseudonym;

    fn name(chain: &mut Chain, period: i64) -> Option<Pseudonym> {
        chain.maker(period, PseudonymFormat::Base32)?.of(Value::Text(b"ada"))
    }

    #[test]
    fn any_way_forward_gives_the_same_keys() {
        let new = || Chain::new(Secret::new([7; 32]), Some(10));
        let mut stepped = new();
        let mut names = Vec::new();
        for period in 10..60 {
            stepped.reach(period, period).unwrap();
            assert_eq!(stepped.keys.len(), 1);
            names.push(name(&mut stepped, period).unwrap());
        }
        for (oldest, newest) in [(10, 59), (30, 31), (59, 59), (12, 40)] {
            let mut jumped = new();
            jumped.reach(oldest, newest).unwrap();
            for period in 0..70 {
                let wanted = (oldest..=newest).contains(&period);
                let wanted = wanted.then(|| names[period as usize - 10]);
                assert_eq!(name(&mut jumped, period), wanted);
            }
        }
        let distinct: std::collections::HashSet<_> =
            names.iter().map(|name| format!("{name:?}")).collect();
        assert_eq!(distinct.len(), names.len());
    }

    #[test]
    fn it_never_goes_back() {
        let mut chain = Chain::new(Secret::new([7; 32]), None);
        assert_eq!(name(&mut chain, 0), None);
        chain.reach(5, 6).unwrap();
        chain.reach(2, 3).unwrap();
        assert_eq!(chain.first(), Some(5));
        assert_eq!(name(&mut chain, 4), None);
        assert!(name(&mut chain, 5).is_some());
        assert!(name(&mut chain, i64::MIN).is_none());
    }

    #[test]
    fn a_jump_has_an_end() {
        let mut chain = Chain::new(Secret::new([7; 32]), Some(0));
        assert!(matches!(chain.reach(i64::MAX - 1, i64::MAX), Err(Error::Jump { .. })));
        chain.reach(0, 1).unwrap();
        assert_eq!(chain.first(), Some(0));
    }
}
