//! Pools whose stock never runs out while they are measured, and checks of their books.

use crate::micro::benchmark::Found;
use tidemark_pool::{
    AMOUNT_MAX, Catalogue, CatalogueError, Item, Mode, Pool, Secret, Selector, SoldOut, Stock,
};

/// Numbers of items in catalogues, with their names in rows.
pub(super) const SCALES: [Scale; 4] = [Scale::FOUR, Scale::THOUSAND, Scale::HUNDRED_THOUSAND, Scale::MILLION];

/// Number of items in a catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scale {
    /// Suffix of a row's name.
    pub(super) name: &'static str,
    pub(super) items: u64,
}

impl Scale {
    pub(super) const FOUR: Self = Scale { name: "4", items: 4 };
    pub(super) const SIX: Self = Scale { name: "6", items: 6 };
    pub(super) const THOUSAND: Self = Scale { name: "1k", items: 1_000 };
    pub(super) const HUNDRED_THOUSAND: Self = Scale { name: "100k", items: 100_000 };
    pub(super) const MILLION: Self = Scale { name: "1m", items: 1_000_000 };
}

/// From this number of items on, quantities fit into 32 bits: large catalogues rarely have more of
/// each item, and larger quantities take more memory.
const MANY: u64 = 10_000;

/// Returns items with weights from 1 to 31, and stocks that all together fit into a raffle twice.
pub(super) fn items(count: u64) -> impl Iterator<Item = Item> {
    (0..count).map(move |item| Item::limited(item.to_string(), 1 + item % 31, quantity(count)))
}

/// Returns the quantity of each of so many items.
pub(super) fn quantity(items: u64) -> u64 {
    let most = AMOUNT_MAX / 64 / items;
    if items < MANY { most } else { most.min(4_000_000_000) }
}

pub(super) fn catalogue(items: u64, mode: Mode, sold_out: SoldOut) -> Result<Catalogue, CatalogueError> {
    Catalogue::with(self::items(items).collect(), mode, sold_out)
}

/// Creates a pool at fixed odds.
pub(super) fn pool<S: Selector>(items: u64) -> anyhow::Result<Pool<S>> {
    pool_of(items, Mode::FixedOdds, SoldOut::Renormalise)
}

pub(super) fn pool_of<S: Selector>(items: u64, mode: Mode, sold_out: SoldOut) -> anyhow::Result<Pool<S>> {
    Ok(with_secrets(&catalogue(items, mode, sold_out)?))
}

/// Creates a pool with fixed secrets: its draws are the same every time.
pub(super) fn with_secrets<S: Selector>(catalogue: &Catalogue) -> Pool<S> {
    Pool::new(catalogue, Secret::new([1; 32]), Secret::new([2; 32]))
}

/// Fails unless exactly `draws` draws were made, each of which took one unit.
pub(super) fn expect_draws<S: Selector>(pool: &Pool<S>, draws: u64) -> anyhow::Result<Vec<Found>> {
    expect(pool, draws, draws)
}

/// Fails unless exactly `draws` draws were made, which took `taken` units net of those given back.
pub(super) fn expect<S: Selector>(pool: &Pool<S>, draws: u64, taken: u64) -> anyhow::Result<Vec<Found>> {
    let made = pool.next_draw();
    anyhow::ensure!(made == draws, "{made} draws were made where {draws} should have been");
    let (mut drawn, whole) = (0, quantity(pool.urn().len() as u64));
    for entry in pool.urn().entries() {
        let left = Stock::Limited(whole - entry.drawn);
        anyhow::ensure!(
            entry.stock == left,
            "of item {} there is {:?} where it should be {left:?}",
            entry.id,
            entry.stock
        );
        drawn += entry.drawn;
    }
    anyhow::ensure!(drawn == taken, "{drawn} units are drawn where {taken} should be");
    Ok(Vec::new())
}

#[cfg(test)]
mod tests {
    use super::{expect, expect_draws, pool};
    use tidemark_pool::selector::WideTree;

    #[test]
    fn a_draw_that_is_missing_and_a_unit_that_is_gone_are_noticed() {
        let mut pool = pool::<WideTree>(4).unwrap();
        pool.draw().unwrap();
        assert!(expect_draws(&pool, 1).is_ok());
        let error = expect_draws(&pool, 2).unwrap_err().to_string();
        assert_eq!(error, "1 draws were made where 2 should have been");
        assert!(expect(&pool, 1, 0).is_err());
        pool.restock("0", -1).unwrap();
        assert!(expect_draws(&pool, 1).unwrap_err().to_string().contains("of item 0 there is Limited"));
    }
}
