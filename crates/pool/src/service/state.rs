//! How a pool stands, in a form that can be carried to another thread.

use crate::catalogue::item::Stock;
use crate::draw::secret::Commitment;
use crate::draw::selector::Selector;
use crate::pool::Pool;
use crate::record::frame::Chain;

/// How a pool stands. What it says is in the log: no crash takes it back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// The number of the next draw: as many have been made before it.
    pub next_draw: u64,
    /// The sum of the weights in force.
    pub total_weight: u64,
    /// How often items were changed by hand.
    pub version: u64,
    /// The epoch of the next draw.
    pub epoch: u64,
    /// SHA-256 of the epoch's secret.
    pub commitment: Commitment,
    /// SHA-256 of the next epoch's secret.
    pub next_commitment: Commitment,
    /// How many reservations are open.
    pub reservations: usize,
    /// When units come by the schedule next, or lapse. Milliseconds since 1970-01-01 UTC.
    pub next_release_ms: Option<u64>,
    /// SHA-256 over all that the pool's log has.
    pub chain: Chain,
    /// How many numbers of items there are; items that were removed keep theirs.
    pub items_count: usize,
    /// The items that were asked for, without those that were removed.
    pub items: Vec<ItemState>,
    /// Where the next items begin, if there are more.
    pub next: Option<u32>,
}

/// How an item stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemState {
    /// Its number.
    pub item: u32,
    /// Its id.
    pub id: Box<str>,
    /// What the catalogue gives it.
    pub weight: u64,
    /// Its odds in the next draw are this, divided by [`State::total_weight`].
    pub weight_in_force: u64,
    /// What is left.
    pub stock: Stock,
    /// How many have been drawn and not been given back, those included that are set aside.
    pub drawn: u64,
    /// How many are set aside.
    pub held: u64,
    /// How many are still to come by the schedule.
    pub to_come: u64,
}

impl State {
    /// How this pool stands, with some of its items. O(items that are wanted).
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
