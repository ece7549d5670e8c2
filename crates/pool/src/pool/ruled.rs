//! The rules of a pool, and what they have counted.

use super::people::People;
use crate::catalogue::nesting::Layout;
use crate::catalogue::rules::Rules;

/// Rules of a pool, and what they have counted.
#[derive(Debug, Clone)]
pub(super) struct Ruled {
    pub(super) rules: Rules<u32>,
    /// Consecutive misses of each pool-wide guarantee; 0 for the others.
    pub(super) tracks: Box<[u64]>,
    pub(super) people: People,
}

/// What the rules of a pool have counted for a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    /// For each limit the count and the end of its window; `None` if it has no window. Milliseconds
    /// since 1970. Once the window has ended, the count is 0.
    pub limits: Vec<(u64, Option<u64>)>,
    /// For each guarantee the number of consecutive draws that missed, capped at the number it
    /// requires. Pool-wide guarantees count the draws of all users.
    pub misses: Vec<u64>,
}

impl Ruled {
    pub(super) fn new(rules: Rules<u32>) -> Self {
        let tracks = vec![0; rules.guarantees().len()].into();
        Self { rules, tracks, people: People::default() }
    }

    /// Resolves the rules against the pool's nested tables. `None` if they name items they must not
    /// name.
    pub(super) fn over(
        mut self: Box<Self>,
        layout: Option<&Layout>,
        renormalises: bool,
    ) -> Option<Box<Self>> {
        self.rules = self.rules.over(layout, renormalises)?;
        Some(self)
    }
}
