//! What comes in: values of users and attributes, one or a column of them.

/// One value, borrowed from wherever it lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    Integer(i64),
    Unsigned(u64),
    Float(f64),
    Bool(bool),
    /// UTF-8.
    Text(&'a [u8]),
    Bytes(&'a [u8]),
    /// An integer past 64 bits, in decimal digits.
    Digits(&'a [u8]),
    /// A value hashed before by what [`Prepares`], in the same role.
    Prepared(u128),
}

/// A value counts differently as a user than as an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Keeps its type: 1 and "1" are two values, as a reader of the output sees two.
    Attribute,
    /// One person, one form: 1, "1" and 1.0 are the same user, or a person might count twice.
    User,
}

/// A column of values. `None` is a missing one.
pub trait Column: Sync {
    fn len(&self) -> usize;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn value(&self, row: usize) -> Option<Value<'_>>;

    /// False if it is known that no value is missing, and none is such that it could not be a user's.
    fn may_miss(&self) -> bool {
        true
    }

    /// All the values, where none is missing and each is a 64-bit integer: the fastest way through.
    fn words(&self) -> Option<&[i64]> {
        None
    }

    /// All the values as they were hashed before, where none is missing; of a dictionary its words, and
    /// for each row the number of its word.
    fn prepared(&self) -> Option<(&[u128], Option<&[i32]>)> {
        None
    }

    /// Hashes some rows. Provided here so that the loop is compiled for each kind of column.
    #[doc(hidden)]
    fn blocks(&self, into: Blocks<'_>) {
        into.fill(self);
    }
}

/// Hashes values once that are going to come many times, such as a dictionary's: what it gives is
/// good for itself alone.
pub trait Prepares {
    fn prepare(&self, value: Value, role: Role) -> Option<Value<'static>>;
}

/// Values that a gate has hashed in one role: a column for that gate alone.
#[derive(Clone, Debug, Default)]
pub struct Prepared {
    pub(crate) blocks: Vec<u128>,
    pub(crate) valid: Vec<bool>,
    pub(crate) misses: bool,
}

impl Prepared {
    /// What stands for each value: two values have the same with a chance of less than 2^-100, and
    /// nobody without the gate's secret can make two that do. Anything where a value is missing.
    pub fn hashes(&self) -> &[u128] {
        &self.blocks
    }
}

impl Column for Prepared {
    fn len(&self) -> usize {
        self.blocks.len()
    }

    #[inline(always)]
    fn value(&self, row: usize) -> Option<Value<'_>> {
        if self.misses && !*self.valid.get(row)? {
            return None;
        }
        self.blocks.get(row).copied().map(Value::Prepared)
    }

    fn may_miss(&self) -> bool {
        self.misses
    }

    fn prepared(&self) -> Option<(&[u128], Option<&[i32]>)> {
        (!self.misses).then_some((&self.blocks, None))
    }
}

/// Rows to be hashed: made by the gate, filled by [`Column::blocks`].
pub struct Blocks<'a> {
    pub(crate) hasher: &'a crate::key::Hasher,
    pub(crate) role: Role,
    /// Numbers of rows, counted from `start`.
    pub(crate) start: usize,
    pub(crate) rows: &'a [u32],
    pub(crate) out: &'a mut [u128],
    pub(crate) valid: &'a mut [bool],
}

impl Blocks<'_> {
    fn fill<C: Column + ?Sized>(self, column: &C) {
        if let Some((blocks, numbers)) = column.prepared() {
            return self.gather(blocks, numbers);
        }
        self.hasher.blocks(column, self.role, self.start, self.rows, self.out, self.valid);
    }
}

impl Blocks<'_> {
    /// Words of large dictionaries are not in the nearest cache: in a loop as short as this one the CPU
    /// waits for a dozen of them at once.
    fn gather(self, blocks: &[u128], numbers: Option<&[i32]>) {
        let rows = self.rows.iter().map(|row| self.start.wrapping_add(*row as usize));
        for (row, (out, valid)) in rows.zip(self.out.iter_mut().zip(self.valid)) {
            let place = match numbers {
                Some(numbers) => numbers.get(row).map_or(usize::MAX, |number| *number as usize),
                None => row,
            };
            match blocks.get(place) {
                Some(block) => *out = *block,
                None => (*out, *valid) = (0, false),
            }
        }
    }
}

impl<'a> Value<'a> {
    /// The one form of this value as a user id, or `None` where it cannot be one.
    #[inline(always)]
    pub(crate) fn as_user(self) -> Option<Value<'a>> {
        /// Up to here every whole number has a float of its own.
        const EXACT: f64 = (1_u64 << 53) as f64;
        match self {
            Value::Text(bytes) | Value::Bytes(bytes) => Some(text_user(bytes)),
            Value::Digits(bytes) => Some(Value::Text(bytes)),
            Value::Float(number) if number.fract() == 0.0 && number.abs() <= EXACT => {
                Some(Value::Integer(number as i64))
            }
            Value::Float(_) | Value::Bool(_) => None,
            integer => Some(integer),
        }
    }
}

#[inline(always)]
fn text_user(bytes: &[u8]) -> Value<'_> {
    if may_be_number(bytes) { decimal(bytes) } else { Value::Text(bytes) }
}

/// False for text that is no integer of 64 bits, by a short look.
#[inline(always)]
pub(crate) fn may_be_number(bytes: &[u8]) -> bool {
    matches!(bytes.first(), Some(b'0'..=b'9' | b'-')) && bytes.len() <= 20
}

/// Text that is an integer as a program would print it counts as that integer.
fn decimal(bytes: &[u8]) -> Value<'_> {
    let (negative, digits) = match bytes {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let canonical = match digits {
        [] => false,
        [b'0'] => !negative,
        [b'0', ..] => false,
        digits => digits.iter().all(u8::is_ascii_digit),
    };
    if !canonical {
        return Value::Text(bytes);
    }
    let magnitude = digits.iter().fold(0_i128, |sum, digit| sum * 10 + i128::from(digit - b'0'));
    let number = if negative { -magnitude } else { magnitude };
    if let Ok(number) = i64::try_from(number) {
        Value::Integer(number)
    } else if let Ok(number) = u64::try_from(number) {
        Value::Unsigned(number)
    } else {
        Value::Text(bytes)
    }
}

/// Values in a slice are a column.
impl Column for [Value<'_>] {
    fn len(&self) -> usize {
        <[Value<'_>]>::len(self)
    }

    fn value(&self, row: usize) -> Option<Value<'_>> {
        self.get(row).copied()
    }
}

impl Column for [Option<Value<'_>>] {
    fn len(&self) -> usize {
        <[Option<Value<'_>>]>::len(self)
    }

    fn value(&self, row: usize) -> Option<Value<'_>> {
        self.get(row).copied().flatten()
    }
}

impl Column for [i64] {
    fn len(&self) -> usize {
        <[i64]>::len(self)
    }

    #[inline(always)]
    fn value(&self, row: usize) -> Option<Value<'_>> {
        self.get(row).copied().map(Value::Integer)
    }

    fn may_miss(&self) -> bool {
        false
    }

    fn words(&self) -> Option<&[i64]> {
        Some(self)
    }
}
