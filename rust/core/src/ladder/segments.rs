//! The first segments of a path: `/a/b/c` → `/a/b` → `/a`.

use super::Labels;
use crate::error::Error;
use memchr::memmem::Finder;

/// Cuts paths at a separator.
///
/// Levels are counted from the root, or `b` would stand in one place of the tree under `a/b/c` and in
/// another under `a/b`. Empty segments are left out, and a separator at the beginning is kept. A path
/// that has no more segments than a level is its own label there.
#[derive(Debug)]
pub struct Segments {
    separator: Vec<u8>,
    finder: Box<Finder<'static>>,
    levels: usize,
}

impl Segments {
    pub fn new(separator: &str, levels: usize) -> Result<Self, Error> {
        let rule = "expected a separator of at least one letter, and at least one level";
        if separator.is_empty() || levels == 0 {
            let (rule, got) = (rule.to_owned(), format!("{separator:?} and {levels}"));
            return Err(Error::Setting { parameter: "segments", rule, got });
        }
        let finder = Box::new(Finder::new(separator).into_owned());
        Ok(Self { separator: separator.into(), finder, levels })
    }

    pub(super) fn levels(&self) -> usize {
        self.levels
    }

    pub(super) fn climb(&self, path: &[u8], labels: &mut Labels) {
        let separator = &self.separator[..];
        let is_rooted = path.starts_with(separator);
        let start = labels.text.len();
        if is_rooted {
            labels.text.extend_from_slice(separator);
        }
        // The finest label once, and where each of its segments ends: the coarser ones lie in it.
        let mut ends = Vec::with_capacity(self.levels);
        let mut rest = Some(path);
        while let (Some(path), true) = (rest, ends.len() < self.levels) {
            let cut = self.finder.find(path);
            let segment = &path[..cut.unwrap_or(path.len())];
            rest = cut.map(|at| &path[at + separator.len()..]);
            if segment.is_empty() {
                continue;
            }
            if !ends.is_empty() {
                labels.text.extend_from_slice(separator);
            }
            labels.text.extend_from_slice(segment);
            ends.push(labels.text.len());
        }
        if ends.is_empty() && is_rooted {
            ends.push(labels.text.len());
        }
        let Some(last) = ends.last() else { return labels.miss(self.levels) };
        for level in (0..self.levels).rev() {
            labels.places.push(Some(start..*ends.get(level).unwrap_or(last)));
        }
    }
}
