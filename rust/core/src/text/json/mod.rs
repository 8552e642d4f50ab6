//! One JSON object on a line: the places of the values that are looked for.

mod escape;
mod keys;
mod layout;
mod paths;
mod value;

#[cfg(test)]
mod tests;

pub use escape::{quote_json, unescape_json};

use super::{Cell, Kind, Problem};
use keys::Keys;
use layout::{Layout, Role};
use paths::Paths;
use value::{DEEPEST, Failure, byte, colon, key, space, unfit, value};

/// Finds values in lines of JSON and checks every byte of a line.
///
/// A line is taken if it is one object by RFC 8259 and no object in it holds a key twice: programs
/// differ in which of the two they believe, so that one could hide from the gate what another reads.
pub struct JsonScanner {
    paths: Paths,
    layout: Layout,
    keys: Keys,
    wants_rest: bool,
    rest: Vec<(Cell, Cell)>,
}

/// Where the keys of an object are followed to.
enum Way {
    /// So far they came as in an earlier line, down to this node.
    Known(u32),
    /// Not so: they are listed from here on and compared when the object ends.
    Listed(usize),
}

/// A member of an object: its raw key, what to do with it, and where its value begins.
struct Member {
    name: Cell,
    role: Role,
    value: usize,
}

/// What comes next in an object.
enum Next {
    Member(Member),
    /// The closing brace, here.
    End(usize),
}

impl JsonScanner {
    /// Looks for the values at these paths of keys. None is empty or begins with another: the caller
    /// has checked. `rest`: also collect the other top-level members.
    pub fn new(paths: &[Vec<String>], rest: bool) -> Self {
        let paths = Paths::new(paths);
        let layout = Layout::new(paths.objects());
        Self { paths, layout, keys: Keys::default(), wants_rest: rest, rest: Vec::new() }
    }

    /// Scans one line, which holds no line break and is UTF-8. `cells[i]` becomes the value at path
    /// i, [`Kind::Absent`] if it is not there.
    ///
    /// # Errors
    /// What is wrong, and the offset of the byte. The cells then are all absent.
    #[inline]
    pub fn scan(&mut self, line: &[u8], cells: &mut [Cell]) -> Result<(), (Problem, usize)> {
        cells.fill(Cell::default());
        self.rest.clear();
        self.keys.clear();
        self.layout.begin_line();
        self.line(line, cells).map_err(|failure| self.refuse(line, cells, failure))
    }

    /// Scans lines from the beginning of a text on, as long as each is built like one before it and of
    /// plain strings and numbers: then nobody need look for its end first, nor go over it again. `ends`
    /// gets where each ends, at its line break. The first line that is not so, or is longer than
    /// `longest`, is left to [`scan`](Self::scan), and nothing is said about it.
    ///
    /// `cells` have room for the values of as many lines as are wanted, `width` for each, all absent.
    /// The other members, which [`rest`](Self::rest) tells of a single line, are passed over.
    #[inline(never)]
    pub(crate) fn skim(
        &self,
        text: &[u8],
        longest: usize,
        width: usize,
        cells: &mut [Cell],
        ends: &mut Vec<u32>,
    ) {
        let mut at = 0;
        for cells in cells.chunks_exact_mut(width) {
            let Some(len) = self.layout.skim(&text[at..], cells).filter(|len| *len <= longest)
            else {
                return cells.fill(Cell::default());
            };
            at += len;
            ends.push(at as u32);
            at += 1;
        }
    }

    /// The other top-level members of the last line scanned, in their order: the raw key with its
    /// quotes and the raw value. A member that a path leads into is not among them, whether or not
    /// the value was found inside.
    pub fn rest(&self) -> &[(Cell, Cell)] {
        &self.rest
    }

    #[cold]
    fn refuse(&mut self, line: &[u8], cells: &mut [Cell], failure: Failure) -> Failure {
        cells.fill(Cell::default());
        self.rest.clear();
        // A NUL byte is valid nowhere, so it has failed here or would have later. It is told first:
        // it mostly means that a file was not written to its end, or is no text at all.
        memchr::memchr(0, line).map_or(failure, |at| (Problem::NulByte, at))
    }

    #[inline(always)]
    fn line(&mut self, line: &[u8], cells: &mut [Cell]) -> Result<(), Failure> {
        if line.len() > u32::MAX as usize {
            return Err((Problem::TooLong, u32::MAX as usize));
        }
        let start = space(line, 0);
        if byte(line, start) != b'{' {
            return Err(self.no_object(line, start));
        }
        let end = space(line, self.object(line, start, 0, 1, cells)?);
        if end == line.len() { Ok(()) } else { Err((Problem::Syntax, end)) }
    }

    #[cold]
    fn no_object(&mut self, line: &[u8], start: usize) -> Failure {
        match value(line, start, 0, &mut self.keys) {
            Ok((end, _)) if space(line, end) == line.len() => (Problem::NotAnObject, start),
            Ok((end, _)) => (Problem::Syntax, space(line, end)),
            Err(failure) => failure,
        }
    }

    /// Goes through an object that is looked into, from its brace on; the place behind it.
    #[inline(always)]
    fn object(
        &mut self,
        line: &[u8],
        start: usize,
        object: u32,
        depth: u32,
        cells: &mut [Cell],
    ) -> Result<usize, Failure> {
        if depth > DEEPEST {
            return Err((Problem::TooDeep, start));
        }
        let rest = (self.wants_rest && object == 0).then_some(&mut self.rest);
        let (at, node) = self.layout.glide(line, start, object, cells, rest);
        if at > start && byte(line, at) == b'}' {
            return Ok(at + 1);
        }
        self.walk(line, start, at, node, object, depth, cells)
    }

    /// The same from `at` on, to where known links led, member by member.
    #[inline(never)]
    #[allow(clippy::too_many_arguments)]
    fn walk(
        &mut self,
        line: &[u8],
        start: usize,
        mut at: usize,
        node: u32,
        object: u32,
        depth: u32,
        cells: &mut [Cell],
    ) -> Result<usize, Failure> {
        let mut way = Way::Known(node);
        loop {
            let member;
            if let Way::Known(from) = way
                && let Some((number, node)) = self.layout.follow(from, line, at)
            {
                let key = at + node.key as usize;
                let name = Cell::new(key, key + node.key_len as usize, Kind::Text);
                // This line may have more space before its values than those before it.
                let value = space(line, at + node.len as usize);
                member = Member { name, role: node.role, value };
                way = Way::Known(number);
            } else {
                match self.stranger(line, at, at == start, object, &mut way)? {
                    Next::Member(found) => member = found,
                    Next::End(brace) => {
                        at = brace;
                        break;
                    }
                }
            }
            at = self.member(line, member, object, depth, cells)?;
            if let Way::Known(from) = way {
                let rest = (self.wants_rest && object == 0).then_some(&mut self.rest);
                let (further, node) = self.layout.glide(line, at, from, cells, rest);
                (at, way) = (further, Way::Known(node));
            }
        }
        if let Way::Listed(first) = way {
            self.keys.end(first, line, self.layout.text())?;
        }
        Ok(at + 1)
    }

    /// Takes the value of a member; the place behind it.
    #[inline(always)]
    fn member(
        &mut self,
        line: &[u8],
        member: Member,
        object: u32,
        depth: u32,
        cells: &mut [Cell],
    ) -> Result<usize, Failure> {
        let start = member.value;
        if let Role::Inside(inner) = member.role
            && byte(line, start) == b'{'
        {
            return self.object(line, start, inner, depth + 1, cells);
        }
        let (end, kind) = value(line, start, depth, &mut self.keys)?;
        let found = Cell::new(start, end, kind);
        match member.role {
            Role::Cell(number) => {
                if let Some(cell) = cells.get_mut(number as usize) {
                    *cell = found;
                }
            }
            Role::Other if self.wants_rest && object == 0 => self.rest.push((member.name, found)),
            _ => {}
        }
        Ok(end)
    }

    /// Goes from behind a value (or from the opening brace) to the next where no known link does:
    /// learns the link, or lists its key where that is not possible.
    #[inline(never)]
    fn stranger(
        &mut self,
        line: &[u8],
        start: usize,
        is_first: bool,
        object: u32,
        way: &mut Way,
    ) -> Result<Next, Failure> {
        let mut at = space(line, start + usize::from(is_first));
        match byte(line, at) {
            b'}' => return Ok(Next::End(at)),
            b',' if !is_first => at = space(line, at + 1),
            _ if !is_first => return Err(unfit(line, at)),
            _ => {}
        }
        let (end, escaped) = key(line, at)?;
        let value = space(line, colon(line, end)?);
        let kind = if escaped { Kind::EscapedText } else { Kind::Text };
        let name = Cell::new(at, end, kind);
        if let Way::Known(from) = *way {
            // Only keys without escapes are learned: for those, equal bytes are equal keys.
            if !escaped {
                let raw = name.of(line);
                if self.layout.holds(from, raw) {
                    return Err((Problem::DuplicateKey, at));
                }
                let role = self.paths.role(object, &raw[1..raw.len() - 1]);
                let link = &line[start..value];
                let learned = self.layout.learn(from, link, at - start..end - start, role);
                if let Some(number) = learned {
                    *way = Way::Known(number);
                    return Ok(Next::Member(Member { name, role, value }));
                }
            }
            *way = Way::Listed(self.keys.begin());
            self.layout.list(from, &mut self.keys);
        }
        self.keys.push(line, at, end, escaped);
        let role = self.paths.role(object, self.keys.last(line));
        Ok(Next::Member(Member { name, role, value }))
    }
}
