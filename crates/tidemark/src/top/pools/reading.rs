//! The state of a server's pools at one moment.

use super::verdict::Verdict;
use crate::answer::{field, number, share};
use tidemark_server::resp::Value;

/// A summary of a pool.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Summary {
    pub(super) key: Vec<u8>,
    pub(super) draws: u64,
    pub(super) reservations: u64,
    pub(super) epoch: u64,
    pub(super) items: u64,
    /// Draws a second, after two readings.
    pub(super) rate: Option<f64>,
}

/// A pool with its items.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pool {
    pub(super) summary: Summary,
    pub(super) version: u64,
    /// Time up to which the schedule was applied. Milliseconds since 1970.
    pub(super) released_until: u64,
    /// Odds of getting nothing.
    pub(super) nothing: f64,
    pub(super) items: Vec<Item>,
    /// Whether draws cannot be compared with the odds: the pool has more items than are read, or
    /// rules by which the odds depend on the user.
    pub(super) is_beyond: bool,
    pub(super) verdict: Verdict,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Item {
    pub(super) id: Vec<u8>,
    /// `None` for an item that never runs out.
    pub(super) left: Option<u64>,
    /// Units drawn and not given back.
    pub(super) drawn: u64,
    pub(super) odds: f64,
}

/// All that is shown.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reading {
    pub(super) count: usize,
    /// Whether these are all pools.
    pub(super) is_all: bool,
    pub(super) draws: u64,
    pub(super) rate: Option<f64>,
    pub(super) reservations: u64,
    pub(super) pools: Vec<Pool>,
}

impl Summary {
    /// Reads the reply to `POOL.STATE`; `None` if there is no pool.
    pub(super) fn of(key: &[u8], state: &Value) -> Option<Self> {
        Some(Self {
            key: key.to_vec(),
            draws: number(state, "draws")?,
            reservations: number(state, "reservations")?,
            epoch: number(state, "epoch")?,
            items: number(state, "items")?,
            rate: None,
        })
    }
}

impl Pool {
    /// Reads the replies to `POOL.STATE` and `POOL.ODDS` of one moment; `None` if a field is
    /// missing.
    pub(super) fn of(before: Summary, state: &Value, odds: &Value) -> Option<Self> {
        let summary = Summary { rate: before.rate, ..Summary::of(&before.key, state)? };
        let entries = field(state, "entries")?.as_elements()?;
        let shares = field(odds, "entries")?.as_elements()?;
        // An entry that leads to a table is never drawn itself.
        let leads = |entry: &Value| {
            field(entry, "leads-to").is_some_and(|table| !matches!(table.plain(), Value::Null))
        };
        let pairs = entries.iter().zip(shares).filter(|(entry, _)| !leads(entry));
        let items: Option<Vec<Item>> = pairs.map(|(entry, share)| item(entry, share)).collect();
        Some(Self {
            summary,
            version: number(state, "version")?,
            released_until: number(state, "released-until")?,
            nothing: share(field(odds, "nothing")?)?,
            items: items?,
            is_beyond: field(state, "next")?.as_integer().is_some() || has_rules(state),
            verdict: Verdict::default(),
        })
    }

    /// Returns the number of items that are sold out.
    pub(super) fn sold_out(&self) -> usize {
        self.items.iter().filter(|item| item.left == Some(0)).count()
    }

    /// Returns the items, most informative first: those with the smallest share left, then the
    /// sold-out ones, then the unlimited ones.
    pub(super) fn most_informative(&self) -> Vec<&Item> {
        let mut items: Vec<&Item> = self.items.iter().collect();
        items.sort_by(|one, other| one.rank().total_cmp(&other.rank()));
        items
    }

    /// Returns an item's share of all draws, without those that were given back.
    pub(super) fn share(&self, item: &Item) -> f64 {
        if self.summary.draws == 0 { 0.0 } else { item.drawn as f64 / self.summary.draws as f64 }
    }
}

impl Item {
    /// Returns what is left as a share of the initial stock; `None` for an item that never runs
    /// out.
    pub(super) fn fullness(&self) -> Option<f64> {
        let left = self.left?;
        let all = left.saturating_add(self.drawn);
        Some(if all == 0 { 0.0 } else { left as f64 / all as f64 })
    }

    fn rank(&self) -> f64 {
        match (self.left, self.fullness()) {
            (Some(0), _) => 2.0,
            (_, Some(fullness)) => fullness,
            (_, None) => 3.0,
        }
    }
}

/// Returns whether the pool has rules about users.
fn has_rules(state: &Value) -> bool {
    let some = |name| field(state, name).and_then(Value::as_elements).is_some_and(|rules| !rules.is_empty());
    some("limits") || some("guarantees")
}

fn item(entry: &Value, odds: &Value) -> Option<Item> {
    let left = field(entry, "left")?;
    Some(Item {
        id: field(entry, "id")?.as_bytes()?.to_vec(),
        left: if matches!(left.plain(), Value::Null) {
            None
        } else {
            Some(u64::try_from(left.as_integer()?).ok()?)
        },
        drawn: number(entry, "drawn")?,
        odds: share(field(odds, "odds")?)?,
    })
}

#[cfg(test)]
mod tests {
    use crate::top::pools::test_pool::pool;

    #[test]
    fn what_is_nearly_gone_says_most() {
        let items = [
            ("mug", None, 10, 0.5),
            ("car", Some(0), 3, 0.0),
            ("hat", Some(5), 5, 0.2),
            ("pen", Some(1), 9, 0.3),
        ];
        let pool = pool(&items, 0.0, 27);
        let ids: Vec<&[u8]> = pool.most_informative().iter().map(|item| &*item.id).collect();
        assert_eq!(ids, [&b"pen"[..], b"hat", b"car", b"mug"]);
        assert_eq!(pool.sold_out(), 1);
        assert_eq!(pool.items[2].fullness(), Some(0.5));
    }
}
