//! Rules about who draws: how often a user may draw and win, and what follows many draws without a prize.

use crate::catalogue::nesting::Layout;
use std::fmt;
use std::ops::Range;

/// The most limits of a pool, and the most guarantees.
pub const RULES_MAX: usize = 16;

/// The most items that one rule names.
pub const RULE_ITEMS_MAX: usize = 1024;

/// The longest window of a limit: ten years. Milliseconds.
pub const WINDOW_MS_MAX: u64 = 3653 * 24 * 3600 * 1000;

/// The most draws after which something is guaranteed, and the steepest step.
pub const GUARANTEE_MAX: u64 = 1_000_000_000;

/// How often a user may draw, or win. Items are named by their ids in a [`Catalogue`](crate::Catalogue), by their numbers in a
/// [`Pool`](crate::Pool).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit<I = Box<str>> {
    /// How often: at least once.
    pub max: u64,
    /// In each window of so many milliseconds, the first of which began with 1970 UTC; `None`: for ever.
    pub per_ms: Option<u64>,
    /// Of which items the wins are counted, all together; `None`: all draws are, whatever they give.
    pub wins_of: Option<Vec<I>>,
}

/// After so many draws in a row that gave none of some items, the next draw is among these items alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guarantee<I = Box<str>> {
    /// After how many draws.
    pub after: u64,
    /// The items.
    pub of: Vec<I>,
    /// Whose draws are counted.
    pub scope: Scope,
    /// Whether the items become likelier before that.
    pub soft: Option<Soft>,
}

/// Whose draws count for a guarantee.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Scope {
    /// Each user's own.
    #[default]
    User,
    /// All draws of the pool.
    Pool,
}

/// From a draw on, counted from 1 behind the last that gave one of the items, their weights are multiplied: in that draw by 1 + `step`,
/// in the next by 1 + 2 `step`, and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Soft {
    /// The first draw whose odds are other than usual.
    pub from: u64,
    /// By how much the factor grows with each draw.
    pub step: u64,
}

impl Soft {
    /// How many times more the weights count in the draw behind so many in vain, if they do.
    pub(crate) fn times(self, misses: u64) -> Option<u64> {
        // The draw that comes is one more than were in vain.
        let draw = misses.saturating_add(1);
        (draw >= self.from).then(|| (draw - self.from).saturating_add(1).saturating_mul(self.step))
    }
}

/// All rules of a pool, checked.
///
/// ```
/// use tidemark_pool::{Guarantee, Limit, Rules, Scope};
///
/// const DAY_MS: u64 = 24 * 3600 * 1000;
/// let daily = Limit { max: 3, per_ms: Some(DAY_MS), wins_of: None };
/// let one_car = Limit { max: 1, per_ms: None, wins_of: Some(vec!["car".into()]) };
/// let pity = Guarantee { after: 89, of: vec!["car".into()], scope: Scope::User, soft: None };
/// let rules: Rules = Rules::new(vec![daily, one_car], vec![pity]).unwrap();
/// assert!(rules.need_users());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules<I = Box<str>> {
    limits: Vec<Limit<I>>,
    guarantees: Vec<Guarantee<I>>,
    /// Of each guarantee the items that its own lead to, as ranges in their order.
    behind: Vec<Vec<Range<u32>>>,
}

/// What is wrong with rules. They count from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RuleError {
    /// More rules than [`RULES_MAX`].
    #[error("there are {count} {what}s, at most {RULES_MAX} are possible: leave some out")]
    TooMany {
        /// Of what kind they are.
        what: RuleKind,
        /// How many there are.
        count: usize,
    },
    /// A number that is out of range.
    #[error("{what} {number}: {name} is {value}, and must be {min} to {max}")]
    OutOfRange {
        /// What kind of rule it is.
        what: RuleKind,
        /// Which one.
        number: usize,
        /// What the number is of.
        name: &'static str,
        /// The number.
        value: u64,
        /// The smallest that is possible.
        min: u64,
        /// The largest that is possible.
        max: u64,
    },
    /// An item is named twice.
    #[error("{what} {number} names an item twice: name each once")]
    Twice {
        /// What kind of rule it is.
        what: RuleKind,
        /// Which one.
        number: usize,
    },
    /// An item is named that the catalogue does not have.
    #[error("{what} {number} names the item {id:?}, which is not there: name items of the catalogue")]
    UnknownItem {
        /// What kind of rule it is.
        what: RuleKind,
        /// Which one.
        number: usize,
        /// What was named.
        id: Box<str>,
    },
}

/// A kind of rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleKind {
    /// A [`Limit`].
    Limit,
    /// A [`Guarantee`].
    Guarantee,
}

impl fmt::Display for RuleKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Limit => "limit",
            Self::Guarantee => "guarantee",
        })
    }
}

impl<I> Default for Rules<I> {
    fn default() -> Self {
        Self { limits: Vec::new(), guarantees: Vec::new(), behind: Vec::new() }
    }
}

impl<I: Ord> Rules<I> {
    /// Rules of these limits and guarantees.
    ///
    /// # Errors
    /// The first thing that is wrong with them.
    pub fn new(limits: Vec<Limit<I>>, guarantees: Vec<Guarantee<I>>) -> Result<Self, RuleError> {
        for (what, count) in [(RuleKind::Limit, limits.len()), (RuleKind::Guarantee, guarantees.len())] {
            if count > RULES_MAX {
                return Err(RuleError::TooMany { what, count });
            }
        }
        for (number, limit) in (1..).zip(&limits) {
            limit.check(number)?;
        }
        for (number, guarantee) in (1..).zip(&guarantees) {
            guarantee.check(number)?;
        }
        Ok(Self { limits, guarantees, behind: Vec::new() })
    }
}

impl<I> Rules<I> {
    /// The limits.
    pub fn limits(&self) -> &[Limit<I>] {
        &self.limits
    }

    /// The guarantees. Where several are due at once, the first goes first.
    pub fn guarantees(&self) -> &[Guarantee<I>] {
        &self.guarantees
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.limits.is_empty() && self.guarantees.is_empty()
    }

    /// How many items they name, each as often as it is named: what a draw may have to look at.
    pub fn named(&self) -> usize {
        let limits = self.limits.iter().map(|limit| limit.wins_of.as_ref().map_or(0, Vec::len));
        limits.chain(self.guarantees.iter().map(|guarantee| guarantee.of.len())).sum()
    }

    /// Whether a draw must say whose it is.
    pub fn need_users(&self) -> bool {
        !self.limits.is_empty() || self.guarantees.iter().any(|guarantee| guarantee.scope == Scope::User)
    }

    /// Whether it matters when something is drawn.
    pub(crate) fn are_timed(&self) -> bool {
        self.limits.iter().any(|limit| limit.per_ms.is_some())
    }

    /// The items that rules name, each with its rule.
    pub(crate) fn items(&self) -> impl Iterator<Item = (RuleKind, usize, &I)> {
        let limits = (1..).zip(&self.limits).flat_map(|(number, limit)| {
            limit.wins_of.iter().flatten().map(move |item| (RuleKind::Limit, number, item))
        });
        let guarantees = (1..).zip(&self.guarantees).flat_map(|(number, guarantee)| {
            guarantee.of.iter().map(move |item| (RuleKind::Guarantee, number, item))
        });
        limits.chain(guarantees)
    }
}

impl Rules<u32> {
    /// The same, of a pool with these tables besides the first; `None` if they name items of tables that they cannot name.
    pub(crate) fn over(mut self, layout: Option<&Layout>, renormalises: bool) -> Option<Self> {
        let Some(layout) = layout else { return Some(self) };
        let leads = |item: &u32| layout.lead(*item).is_some();
        let is_limited = self.limits.iter().flat_map(|limit| limit.wins_of.iter().flatten()).any(leads);
        let mut guaranteed = self.guarantees.iter().flat_map(|guarantee| &guarantee.of);
        if is_limited
            || guaranteed.any(|item| layout.table_of(*item).is_some() || (leads(item) && !renormalises))
        {
            return None;
        }
        let behind = |guarantee: &Guarantee<u32>| {
            layout.below(guarantee.of.iter().filter_map(|item| layout.lead(*item)))
        };
        self.behind = self.guarantees.iter().map(behind).collect();
        Some(self)
    }

    /// Whether an item is one that a guarantee is for, or that those lead to. O(log items).
    pub(crate) fn gives(&self, guarantee: usize, item: u32) -> bool {
        let behind = self.behind.get(guarantee).map_or(&[][..], |ranges| ranges);
        let place = behind.partition_point(|items| items.end <= item);
        let is_behind = || behind.get(place).is_some_and(|items| items.contains(&item));
        self.guarantees[guarantee].of.binary_search(&item).is_ok() || is_behind()
    }
}

impl Rules {
    /// The same of the numbers of the items, in their order; `None` if one is not there.
    pub(crate) fn resolve(&self, find: impl Fn(&str) -> Option<u32>) -> Option<Rules<u32>> {
        let numbers = |ids: &[Box<str>]| {
            let mut numbers = ids.iter().map(|id| find(id)).collect::<Option<Vec<u32>>>()?;
            numbers.sort_unstable();
            Some(numbers)
        };
        let limits = self.limits.iter().map(|limit| {
            let Limit { max, per_ms, wins_of } = limit;
            let wins_of = match wins_of {
                Some(ids) => Some(numbers(ids)?),
                None => None,
            };
            Some(Limit { max: *max, per_ms: *per_ms, wins_of })
        });
        let guarantees = self.guarantees.iter().map(|guarantee| {
            let Guarantee { after, of, scope, soft } = guarantee;
            Some(Guarantee { after: *after, of: numbers(of)?, scope: *scope, soft: *soft })
        });
        Some(Rules {
            limits: limits.collect::<Option<_>>()?,
            guarantees: guarantees.collect::<Option<_>>()?,
            behind: Vec::new(),
        })
    }
}

impl<I: Ord> Limit<I> {
    fn check(&self, number: usize) -> Result<(), RuleError> {
        let check = |name, value, max| in_range(RuleKind::Limit, number, name, value, max);
        check("its number", self.max, crate::AMOUNT_MAX)?;
        check("its window in milliseconds", self.per_ms.unwrap_or(1), WINDOW_MS_MAX)?;
        self.wins_of.as_ref().map_or(Ok(()), |items| check_items(RuleKind::Limit, number, items))
    }
}

impl<I: Ord> Guarantee<I> {
    fn check(&self, number: usize) -> Result<(), RuleError> {
        let check = |name, value, max| in_range(RuleKind::Guarantee, number, name, value, max);
        check("its number of draws", self.after, GUARANTEE_MAX)?;
        if let Some(Soft { from, step }) = self.soft {
            check("the draw from which its odds grow", from, self.after)?;
            check("its step", step, GUARANTEE_MAX)?;
        }
        check_items(RuleKind::Guarantee, number, &self.of)
    }
}

fn check_items<I: Ord>(what: RuleKind, number: usize, items: &[I]) -> Result<(), RuleError> {
    in_range(what, number, "its number of items", items.len() as u64, RULE_ITEMS_MAX as u64)?;
    let mut sorted: Vec<&I> = items.iter().collect();
    sorted.sort_unstable();
    let is_twice = sorted.windows(2).any(|pair| pair[0] == pair[1]);
    if is_twice { Err(RuleError::Twice { what, number }) } else { Ok(()) }
}

fn in_range(
    what: RuleKind,
    number: usize,
    name: &'static str,
    value: u64,
    max: u64,
) -> Result<(), RuleError> {
    if (1..=max).contains(&value) {
        return Ok(());
    }
    Err(RuleError::OutOfRange { what, number, name, value, min: 1, max })
}
