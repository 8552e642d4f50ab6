//! How lines were built before. Those of a stream are mostly built alike: all that lies between two
//! values is recognized by one comparison, and the key in it needs no search for its role nor for
//! the same key before it.
//!
//! A tree for each object that is looked into. A node is a link, the bytes from behind one value to
//! the next, after the links above it:
//!
//! ```text
//! object ─→ {"ts": ─→ ,"uid": ─→ ,"host":
//!                  └→ ,"user": ─→ ,"host":     a line in which they came so
//! ```
//!
//! The keys on a way down are all different, which was seen to when the node was added. So an
//! object whose links are such a way holds none twice.

use std::ops::Range;

use super::super::block::Block;
use super::super::{Cell, Kind};
use super::keys::Keys;
use super::value::plain_value;

/// What to do with the member under a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Other,
    /// Its value goes into this cell.
    Cell(u32),
    /// Look into this object.
    Inside(u32),
}

/// Bounds on what is learned, so that keys which never come again cost neither memory nor time.
const MOST_NODES: u32 = 1024;
const MOST_BRANCHES: u8 = 8;
const MOST_KEYS: u16 = 64;
const LONGEST_LINK: usize = 64;
/// After so many links that found no room, all is forgotten: the stream may have changed.
const MOST_STRANGERS: u32 = 4096;

const NONE: u32 = u32::MAX;

/// What is looked at of a line in one go: a link of two blocks, and a value of three.
const WINDOW: usize = 96;
const LONGEST_SKIMMED: usize = 32;
/// The end of an object and its line.
const LF: u32 = u32::from_le_bytes(*b"}\n\0\0");
const CR_LF: u32 = u32::from_le_bytes(*b"}\r\n\0");

pub(super) struct Node {
    /// The first bytes of the link, and which of them count.
    head: u128,
    mask: u128,
    /// The last bytes of a link that is longer than a block.
    tail: u128,
    pub(super) len: u32,
    /// Where its key lies in the link, quotes included.
    pub(super) key: u32,
    pub(super) key_len: u32,
    pub(super) role: Role,
    start: u32,
    above: u32,
    below: u32,
    beside: u32,
    depth: u16,
    branches: u8,
}

pub(super) struct Layout {
    nodes: Vec<Node>,
    /// The links of all nodes.
    text: Vec<u8>,
    objects: u32,
    strangers: u32,
}

impl Layout {
    pub(super) fn new(objects: usize) -> Self {
        let objects = objects as u32;
        let mut layout = Self { nodes: Vec::new(), text: Vec::new(), objects, strangers: 0 };
        layout.forget();
        layout
    }

    /// The node of an object has its number.
    fn forget(&mut self) {
        self.text.clear();
        self.strangers = 0;
        self.nodes.clear();
        for _ in 0..self.objects {
            self.nodes.push(Node::new(&[], 0, Role::Other));
        }
    }

    /// Between two lines, when no node is in use.
    #[inline(always)]
    pub(super) fn begin_line(&mut self) {
        if self.strangers > MOST_STRANGERS {
            self.forget();
        }
    }

    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    /// The node of the link that begins at `at`, if it followed these links before.
    #[inline(always)]
    pub(super) fn follow(&self, from: u32, line: &[u8], at: usize) -> Option<(u32, &Node)> {
        let mut number = self.nodes.get(from as usize)?.below;
        let mut node = self.nodes.get(number as usize)?;
        let head = Block::at(line, at).0;
        loop {
            if (head ^ node.head) & node.mask == 0
                && (node.len as usize <= Block::LEN || self.ends_alike(node, line, at))
            {
                return Some((number, node));
            }
            number = node.beside;
            node = self.nodes.get(number as usize)?;
        }
    }

    /// Goes along known links as long as plain strings and numbers follow them. Gives the place it
    /// came to, behind a value, and the node of that value's link.
    ///
    /// Nothing fails here. Whatever is not as usual is left to those who can say what it is, so that
    /// the loop most lines are spent in is short.
    #[inline(never)]
    pub(super) fn glide(
        &self,
        line: &[u8],
        mut at: usize,
        mut from: u32,
        cells: &mut [Cell],
        mut rest: Option<&mut Vec<(Cell, Cell)>>,
    ) -> (usize, u32) {
        while let Some((number, node)) = self.follow(from, line, at) {
            let start = at + node.len as usize;
            let Some((end, kind)) = plain_value(line, start) else { break };
            let found = Cell::new(start, end, kind);
            match node.role {
                Role::Cell(cell) => {
                    if let Some(cell) = cells.get_mut(cell as usize) {
                        *cell = found;
                    }
                }
                Role::Other => {
                    if let Some(rest) = &mut rest {
                        let key = at + node.key as usize;
                        let name = Cell::new(key, key + node.key_len as usize, Kind::Text);
                        rest.push((name, found));
                    }
                }
                Role::Inside(_) => {}
            }
            (at, from) = (end, number);
        }
        (at, from)
    }

    /// Goes along the known links of a whole line, of the outermost object, at the beginning of a text;
    /// gives where it ends, at its line break. As in [`glide`](Self::glide), all that is not as usual
    /// is left to others: then it gives nothing.
    ///
    /// No link and no plain value holds a line break, so that it never goes on into the next line.
    #[inline(always)]
    pub(super) fn skim(&self, text: &[u8], cells: &mut [Cell]) -> Option<usize> {
        let mut at = 0;
        let mut above = self.nodes.first()?;
        loop {
            // Of a fixed length, so that hardly any place in it need be checked.
            let window: &[u8; WINDOW] = text.get(at..)?.first_chunk()?;
            let head = u128::from_le_bytes(*window.first_chunk()?);
            let mut number = above.below;
            let node = loop {
                let Some(node) = self.nodes.get(number as usize) else {
                    // No known link: if it is a line that ends here, it has one member at least.
                    return match head as u32 & 0xFF_FFFF {
                        end if end & 0xFFFF == LF && at > 0 => Some(at + 1),
                        CR_LF if at > 0 => Some(at + 2),
                        _ => None,
                    };
                };
                if (head ^ node.head) & node.mask == 0
                    && (node.len as usize <= Block::LEN || node.ends_in(window))
                {
                    break node;
                }
                number = node.beside;
            };
            let start = node.len as usize;
            if start > LONGEST_SKIMMED {
                return None;
            }
            let (end, kind) = match plain_value(window, start) {
                Some(found) => found,
                None => long_value(text, at, start)?,
            };
            if let Role::Cell(cell) = node.role
                && let Some(cell) = cells.get_mut(cell as usize)
            {
                *cell = Cell::new(at + start, at + end, kind);
            }
            at += end;
            above = node;
        }
    }

    /// For a link longer than a block.
    #[inline(never)]
    fn ends_alike(&self, node: &Node, line: &[u8], at: usize) -> bool {
        let len = node.len as usize;
        if len <= 2 * Block::LEN {
            return Block::at(line, at + len - Block::LEN).0 == node.tail;
        }
        let link = self.text.get(node.start as usize..node.start as usize + len);
        link.is_some() && line.get(at..at + len) == link
    }

    fn way_up(&self, from: u32) -> impl Iterator<Item = &Node> {
        let mut number = from;
        std::iter::from_fn(move || {
            let node = self.nodes.get(number as usize).filter(|node| node.depth > 0)?;
            number = node.above;
            Some(node)
        })
    }

    /// Whether a key (with its quotes, no escape in it) is on the way down to a node.
    pub(super) fn holds(&self, from: u32, key: &[u8]) -> bool {
        self.way_up(from).any(|node| {
            let start = (node.start + node.key) as usize;
            self.text.get(start..start + node.key_len as usize) == Some(key)
        })
    }

    /// Learns a link that follows those down to `from`, which do not hold its key; `None` where there
    /// is no room. The key lies at `key` in the link.
    pub(super) fn learn(
        &mut self,
        from: u32,
        link: &[u8],
        key: Range<usize>,
        role: Role,
    ) -> Option<u32> {
        let number = self.nodes.len() as u32;
        let node = self.nodes.get_mut(from as usize)?;
        if number >= self.objects + MOST_NODES
            || node.branches >= MOST_BRANCHES
            || node.depth >= MOST_KEYS
            || link.len() > LONGEST_LINK
        {
            self.strangers += 1;
            return None;
        }
        node.branches += 1;
        let mut new = Node::new(link, self.text.len() as u32, role);
        (new.key, new.key_len) = (key.start as u32, key.len() as u32);
        (new.above, new.depth) = (from, node.depth + 1);
        // Behind the branches that are there: what was learned first is likely the usual.
        let mut place = &mut node.below;
        while *place != NONE {
            let next = *place as usize;
            place = &mut self.nodes.get_mut(next)?.beside;
        }
        *place = number;
        self.text.extend_from_slice(link);
        self.nodes.push(new);
        Some(number)
    }

    /// Puts the keys down to a node into a list, for an object that leaves the known ways.
    pub(super) fn list(&self, from: u32, keys: &mut Keys) {
        for node in self.way_up(from) {
            let inside = (node.start + node.key) as usize + 1;
            keys.push_learned(&self.text, inside, node.key_len as usize - 2);
        }
    }
}

/// A value that may be longer than a window that begins at `at`; where it ends, counted from there.
#[cold]
fn long_value(text: &[u8], at: usize, start: usize) -> Option<(usize, Kind)> {
    let (end, kind) = plain_value(text, at + start)?;
    Some((end - at, kind))
}

impl Node {
    /// Whether a link that is longer than a block ends as the text does: none that is longer than two.
    #[inline(always)]
    fn ends_in(&self, window: &[u8; WINDOW]) -> bool {
        let from = (self.len as usize).wrapping_sub(Block::LEN);
        from <= Block::LEN && Block::at(window, from).0 == self.tail
    }

    /// A node for itself, with the link that lies at `start` of the text.
    fn new(link: &[u8], start: u32, role: Role) -> Self {
        let past = Block::LEN.saturating_sub(link.len()) as u32;
        Self {
            head: Block::at(link, 0).0,
            mask: u128::MAX.checked_shr(8 * past).unwrap_or(0),
            tail: Block::at(link, link.len().saturating_sub(Block::LEN)).0,
            len: link.len() as u32,
            key: 0,
            key_len: 0,
            role,
            start,
            above: NONE,
            below: NONE,
            beside: NONE,
            depth: 0,
            branches: 0,
        }
    }
}
