//! `MemoryOps`: memory that a pool keeps.

use super::stock::{Scale, catalogue, with_secrets};
use crate::micro::benchmark::{Benchmark, Work};
use crate::micro::kept::kept_bytes;
use tidemark_pool::selector::{Alias, WideTree};
use tidemark_pool::{Mode, Pool, Selector, SoldOut};

pub(super) fn suite() -> Vec<Benchmark> {
    vec![
        row::<WideTree>("item", "").at_most(32.0).in_summary(),
        row::<Alias>("item_alias", " found by an alias table"),
    ]
}

fn row<S: Selector + 'static>(name: &str, how: &str) -> Benchmark {
    let measures = format!("what a pool keeps for each of 1,000,000 items{how}, without the bytes of its id");
    Benchmark::new(format!("MemoryOps.{name}_1m"), measures, |sizes| {
        let items = Scale::MILLION.items.min(sizes.items);
        let catalogue = catalogue(items, Mode::FixedOdds, SoldOut::Renormalise)?;
        let ids: usize = catalogue.items().iter().map(|item| item.id.len()).sum();
        let rest = sizes.idle_time / 10;
        Work::amounts(items, move || {
            let kept = kept_bytes(rest, || Ok::<Pool<S>, _>(with_secrets(&catalogue)))?;
            Ok(kept - ids as f64)
        })
    })
    .in_unit("B/item")
}
