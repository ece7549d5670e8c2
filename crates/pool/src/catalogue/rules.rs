//! Rules about users: how often a user may draw and win, and what is guaranteed after misses.

use crate::catalogue::nesting::Layout;
use std::fmt;
use std::ops::Range;

/// Maximum number of limits, and of guarantees.
pub const RULES_MAX: usize = 16;

/// Maximum number of items that one rule names.
pub const RULE_ITEMS_MAX: usize = 1024;

/// Maximum window of a limit: ten years, in milliseconds.
pub const WINDOW_MS_MAX: u64 = 3653 * 24 * 3600 * 1000;

/// Maximum number of draws of a guarantee, and maximum step.
pub const GUARANTEE_MAX: u64 = 1_000_000_000;

/// How often a user may draw or win. A [`Catalogue`](crate::Catalogue) names items by id, a
/// [`Pool`](crate::Pool) by number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit<I = Box<str>> {
    /// Maximum count: at least 1.
    pub max: u64,
    /// Length of a window in milliseconds; windows are aligned to 1970 UTC. `None`: the limit never
    /// resets.
    pub per_ms: Option<u64>,
    /// Items whose wins are counted, all together. `None`: all draws count, whatever they give.
    pub wins_of: Option<Vec<I>>,
}

/// A guarantee: after a number of consecutive draws that gave none of some items, the next draw is
/// among these items alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guarantee<I = Box<str>> {
    /// Number of draws.
    pub after: u64,
    /// The items.
    pub of: Vec<I>,
    /// Whose draws are counted.
    pub scope: Scope,
    /// Whether the odds of the items grow before that.
    pub soft: Option<Soft>,
}

/// Whose draws a guarantee counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Scope {
    /// Each user's own.
    #[default]
    User,
    /// All draws of the pool.
    Pool,
}

/// Growing odds: from one draw on, the weights of the items are multiplied, by 1 + `step` in that
/// draw, 1 + 2 `step` in the next, and so on. Draws are counted from 1 after the last that gave one
/// of the items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Soft {
    /// First draw with changed odds.
    pub from: u64,
    /// Growth of the factor with each draw.
    pub step: u64,
}

impl Soft {
    /// Returns the multiple of the weights that is added in the draw after this many misses, if
    /// any.
    pub(crate) fn times(self, misses: u64) -> Option<u64> {
        // The next draw is one more than the misses.
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
    /// For each guarantee, the items that its items lead to, as sorted ranges.
    behind: Vec<Vec<Range<u32>>>,
}

/// Error in rules. Rules are numbered from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RuleError {
    /// There are more rules than [`RULES_MAX`].
    #[error("there are {count} {what}s, at most {RULES_MAX} are possible: leave some out")]
    TooMany {
        /// Kind of the rules.
        what: RuleKind,
        /// Number of rules.
        count: usize,
    },
    /// A value is out of range.
    #[error("{what} {number}: {name} is {value}, and must be {min} to {max}")]
    OutOfRange {
        /// Kind of the rule.
        what: RuleKind,
        /// Number of the rule.
        number: usize,
        /// What the value is.
        name: &'static str,
        /// The value.
        value: u64,
        /// Minimum.
        min: u64,
        /// Maximum.
        max: u64,
    },
    /// A rule names an item twice.
    #[error("{what} {number} names an item twice: name each once")]
    Twice {
        /// Kind of the rule.
        what: RuleKind,
        /// Number of the rule.
        number: usize,
    },
    /// A rule names an item that is not in the catalogue.
    #[error("{what} {number} names the item {id:?}, which is not there: name items of the catalogue")]
    UnknownItem {
        /// Kind of the rule.
        what: RuleKind,
        /// Number of the rule.
        number: usize,
        /// The unknown id.
        id: Box<str>,
    },
}

/// Kind of a rule.
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
    /// Creates rules from limits and guarantees.
    ///
    /// # Errors
    /// The first error in them.
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
    /// Returns the limits.
    pub fn limits(&self) -> &[Limit<I>] {
        &self.limits
    }

    /// Returns the guarantees. If several are due, the first takes precedence.
    pub fn guarantees(&self) -> &[Guarantee<I>] {
        &self.guarantees
    }

    /// Returns whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.limits.is_empty() && self.guarantees.is_empty()
    }

    /// Returns the number of items that all rules name, with repetitions: a draw may have to check
    /// each.
    pub fn named(&self) -> usize {
        let limits = self.limits.iter().map(|limit| limit.wins_of.as_ref().map_or(0, Vec::len));
        limits.chain(self.guarantees.iter().map(|guarantee| guarantee.of.len())).sum()
    }

    /// Returns whether each draw must name a user.
    pub fn need_users(&self) -> bool {
        !self.limits.is_empty() || self.guarantees.iter().any(|guarantee| guarantee.scope == Scope::User)
    }

    /// Returns whether a limit has a window, so that the time of a draw matters.
    pub(crate) fn are_timed(&self) -> bool {
        self.limits.iter().any(|limit| limit.per_ms.is_some())
    }

    /// Returns the items that rules name, each with the kind and number of its rule.
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
    /// Resolves the rules against nested tables; `None` if they name items they must not name.
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

    /// Returns whether an item fulfils a guarantee: it is one of its items, or they lead to it.
    /// O(log items).
    pub(crate) fn gives(&self, guarantee: usize, item: u32) -> bool {
        let behind = self.behind.get(guarantee).map_or(&[][..], |ranges| ranges);
        let place = behind.partition_point(|items| items.end <= item);
        let is_behind = || behind.get(place).is_some_and(|items| items.contains(&item));
        self.guarantees[guarantee].of.binary_search(&item).is_ok() || is_behind()
    }
}

impl Rules {
    /// Converts ids to sorted item numbers; `None` if an id does not exist.
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
