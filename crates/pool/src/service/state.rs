//! State of a pool, to be sent to another thread.

use crate::catalogue::item::Stock;
use crate::draw::secret::Commitment;
use crate::draw::selector::Selector;
use crate::pool::Pool;
use crate::record::frame::Chain;

/// State of a pool. All of it is in the log: no crash undoes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// Number of the next draw.
    pub next_draw: u64,
    /// Sum of the weights in force.
    pub total_weight: u64,
    /// Version of the catalogue: 1 at first, and one more with each change by an operator.
    pub version: u64,
    /// Index of the epoch of the next draw.
    pub epoch: u64,
    /// SHA-256 of the epoch's secret.
    pub commitment: Commitment,
    /// SHA-256 of the next epoch's secret.
    pub next_commitment: Commitment,
    /// Number of open reservations.
    pub reservations: usize,
    /// Time of the next release or lapse. Milliseconds since 1970-01-01 UTC.
    pub next_release_ms: Option<u64>,
    /// SHA-256 chain over the whole log.
    pub chain: Chain,
    /// Number of item numbers in use, including those of removed items.
    pub items_count: usize,
    /// The requested items, without removed ones.
    pub items: Vec<ItemState>,
    /// Number of the next item, if there are more.
    pub next: Option<u32>,
}

/// State of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemState {
    /// Its number.
    pub item: u32,
    /// Its id.
    pub id: Box<str>,
    /// Its weight in the catalogue.
    pub weight: u64,
    /// Its weight in the next draw, out of [`State::total_weight`].
    pub weight_in_force: u64,
    /// What is left.
    pub stock: Stock,
    /// Number of units drawn and not given back, including reserved ones.
    pub drawn: u64,
    /// Number of reserved units.
    pub held: u64,
    /// Number of units still to come by the schedule.
    pub to_come: u64,
}

impl State {
    /// Reads the state of a pool, with a range of its items. O(items requested).
    pub(super) fn of<S: Selector>(pool: &Pool<S>, chain: Chain, from: u32, count: usize) -> Self {
        let urn = pool.urn();
        let end = (from as usize).saturating_add(count).min(urn.len());
        let items = (from..end as u32).filter_map(|item| {
            let entry = urn.entry(item)?;
            Some(ItemState {
                item,
                id: entry.id.into(),
                weight: entry.weight,
                weight_in_force: entry.weight_in_force,
                stock: entry.stock,
                drawn: entry.drawn,
                held: pool.held(item),
                to_come: entry.to_come,
            })
        });
        Self {
            next_draw: pool.next_draw(),
            total_weight: urn.total_weight(),
            version: urn.version(),
            epoch: pool.epoch().index,
            commitment: pool.commitment(),
            next_commitment: pool.next_commitment(),
            reservations: pool.reservations().len(),
            next_release_ms: urn.next_release_ms(),
            chain,
            items_count: urn.len(),
            items: items.collect(),
            next: (end < urn.len()).then_some(end as u32),
        }
    }
}
