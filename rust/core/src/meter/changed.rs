//! Users who changed since someone looked.

use super::entry::Mark;
use super::lines::User;

/// Who is not in the class of what they have by now.
pub(super) enum Changed {
    /// Users, and the fingerprints that they are counted with; 0 for one who is not yet.
    Some(Vec<(Mark, u128)>),
    Many,
}

impl Default for Changed {
    fn default() -> Self {
        Self::Some(Vec::new())
    }
}

/// Users who changed since the last look, of whom it is remembered what they had.
const MOST_CHANGED: usize = 1 << 16;

impl Changed {
    /// A user had this before.
    #[cold]
    pub(super) fn note(&mut self, user: &mut User, before: u128) {
        if let Self::Some(changed) = self
            && user.has_changed == 0
        {
            user.has_changed = 1;
            if changed.len() < MOST_CHANGED {
                changed.push((user.mark(), before));
            } else {
                *self = Self::Many;
            }
        }
    }
}
