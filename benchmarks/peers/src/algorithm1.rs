//! Algorithm 1 of the paper, as one would write it down: a hash table of attributes, and for each
//! a list of its users in order of time, a hash table from users to their places in that list, and
//! a counter.
//!
//! The hash tables are the standard library's with its standard hash (SipHash with random keys):
//! like the gate's hash, one whose collisions cannot be made on purpose. The lists are doubly
//! linked by index and share one vector: a vector for each attribute took a quarter to a third
//! more memory where attributes are many, and a fifth more or less time, here and there. As
//! printed, an attribute once seen is never freed, and time is taken to be in order.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

const NONE: u32 = u32::MAX;

pub struct Algorithm1 {
    z: usize,
    window: i64,
    attributes: HashMap<i64, Crowd>,
    nodes: Nodes,
}

/// The users of one attribute.
#[derive(Default)]
struct Crowd {
    places: HashMap<i64, u32>,
    ends: Ends,
    count: usize,
}

impl Algorithm1 {
    pub fn new(z: usize, window: i64) -> Self {
        Self { z, window, attributes: HashMap::new(), nodes: Nodes::default() }
    }

    /// Decides one observation: true if it is released.
    pub fn observe(&mut self, time: i64, user: i64, attribute: i64) -> bool {
        let crowd = self.attributes.entry(attribute).or_default();
        match crowd.places.entry(user) {
            Entry::Vacant(entry) => {
                let place = self.nodes.take(time, user);
                self.nodes.link_newest(&mut crowd.ends, place);
                entry.insert(place);
                crowd.count += 1;
            }
            Entry::Occupied(entry) => self.nodes.renew(&mut crowd.ends, *entry.get(), time),
        }
        let oldest = time.saturating_sub(self.window);
        while let Some(user) = self.nodes.evict_before(&mut crowd.ends, oldest) {
            crowd.places.remove(&user);
            crowd.count -= 1;
        }
        crowd.count >= self.z
    }

    pub fn attributes(&self) -> usize {
        self.attributes.len()
    }

    pub fn live_pairs(&self, now: i64) -> usize {
        let oldest = now.saturating_sub(self.window);
        let crowds = self.attributes.values();
        crowds.map(|crowd| self.nodes.count_since(&crowd.ends, oldest)).sum()
    }
}

/// The newest and the oldest place of one list.
struct Ends {
    newest: u32,
    oldest: u32,
}

impl Default for Ends {
    fn default() -> Self {
        Self { newest: NONE, oldest: NONE }
    }
}

/// The nodes of all lists. A free node points at the next free one with `older`.
struct Nodes {
    nodes: Vec<Node>,
    free: u32,
}

struct Node {
    time: i64,
    user: i64,
    newer: u32,
    older: u32,
}

impl Default for Nodes {
    fn default() -> Self {
        Self { nodes: Vec::new(), free: NONE }
    }
}

impl Nodes {
    fn take(&mut self, time: i64, user: i64) -> u32 {
        let node = Node { time, user, newer: NONE, older: NONE };
        let place = self.free;
        if place == NONE {
            self.nodes.push(node);
            return (self.nodes.len() - 1) as u32;
        }
        self.free = self.nodes[place as usize].older;
        self.nodes[place as usize] = node;
        place
    }

    /// Sets a user's time and moves it to the newest end.
    fn renew(&mut self, ends: &mut Ends, place: u32, time: i64) {
        self.nodes[place as usize].time = time;
        if place != ends.newest {
            self.unlink(ends, place);
            self.link_newest(ends, place);
        }
    }

    /// Frees the oldest node if it is from before `time`, and gives its user.
    fn evict_before(&mut self, ends: &mut Ends, time: i64) -> Option<i64> {
        let place = ends.oldest;
        if place == NONE || self.nodes[place as usize].time >= time {
            return None;
        }
        self.unlink(ends, place);
        self.nodes[place as usize].older = self.free;
        self.free = place;
        Some(self.nodes[place as usize].user)
    }

    fn count_since(&self, ends: &Ends, time: i64) -> usize {
        let mut count = 0;
        let mut place = ends.newest;
        while place != NONE && self.nodes[place as usize].time >= time {
            count += 1;
            place = self.nodes[place as usize].older;
        }
        count
    }

    fn link_newest(&mut self, ends: &mut Ends, place: u32) {
        self.nodes[place as usize].newer = NONE;
        self.nodes[place as usize].older = ends.newest;
        if ends.newest == NONE {
            ends.oldest = place;
        } else {
            self.nodes[ends.newest as usize].newer = place;
        }
        ends.newest = place;
    }

    fn unlink(&mut self, ends: &mut Ends, place: u32) {
        let Node { newer, older, .. } = self.nodes[place as usize];
        if newer == NONE {
            ends.newest = older;
        } else {
            self.nodes[newer as usize].older = older;
        }
        if older == NONE {
            ends.oldest = newer;
        } else {
            self.nodes[older as usize].newer = newer;
        }
    }
}
