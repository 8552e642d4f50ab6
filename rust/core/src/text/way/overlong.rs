//! Lines that are too long to be held: dropped while they come.

use super::Way;
use crate::text::problem::Problem;
use crate::text::read::Trouble;

impl Way {
    /// What is behind the line that is being dropped.
    pub(super) fn skip<'b>(&mut self, data: &'b [u8]) -> &'b [u8] {
        if !self.skipping {
            return data;
        }
        match memchr::memchr(b'\n', data) {
            Some(end) => {
                self.skipping = false;
                &data[end + 1..]
            }
            None => &[],
        }
    }

    pub(super) fn drop_long_line(&mut self) {
        self.line += 1;
        self.tally.lines += 1;
        let column = self.plan.max_line as u64 + 1;
        self.tally.bad[Problem::TooLong as usize] += 1;
        self.trouble(Trouble { line: self.line, problem: Problem::TooLong, column });
        self.stopped |= self.plan.stop_at_problem;
        // A record of several lines: only the first is dropped, the others may be good.
        let rest = memchr::memchr(b'\n', &self.carry).map(|end| self.carry.split_off(end + 1));
        self.skipping = rest.is_none();
        self.carry = rest.unwrap_or_default();
    }
}
