//! `ReserveOps`: reservations and their ends.

use super::stock::{Scale, expect, pool};
use crate::micro::benchmark::{Benchmark, Work, on};
use tidemark_pool::selector::WideTree;
use tidemark_pool::{Pool, Refusal, Repeats};

/// Later than all events here. Microseconds since 1970.
const LATER: u64 = 1 << 60;

pub(super) fn suite() -> Vec<Benchmark> {
    let ends: [(&str, &str, bool, End); 3] = [
        ("confirm", "confirming it", true, |pool, number| pool.confirm(number)),
        ("cancel", "cancelling it: it is in stock again", false, |pool, number| pool.cancel(number)),
        ("expire", "letting its time be over: it is in stock again", false, |pool, number| {
            let expired = pool.expire_one(number);
            assert_eq!(expired, Some(number), "the reservation is open, and its time is over");
            Ok(())
        }),
    ];
    let open = [(false, "", "none"), (true, "_100k_open", "100,000")];
    let rows = ends.into_iter().flat_map(|(name, how, is_taken, end)| {
        open.map(|(is_among_others, suffix, others)| {
            let measures = format!(
                "setting aside a draw among 1,000 items and {how}, both together, while {others} others are open"
            );
            Benchmark::new(format!("ReserveOps.{name}{suffix}"), measures, move |sizes| {
                let others = if is_among_others { 10 * sizes.batch } else { 0 };
                cycle(pool(Scale::THOUSAND.items.min(sizes.items))?, others, is_taken, end)
            })
            .of("reservation")
        })
    });
    rows.collect()
}

/// Ends the reservation of this number, whose deadline follows from the number.
type End = fn(&mut Pool<WideTree>, u64) -> Result<(), Refusal>;

fn cycle(mut pool: Pool<WideTree>, others: u64, is_taken: bool, end: End) -> anyhow::Result<Work> {
    for _ in 0..others {
        pool.reserve(1, Repeats::Allowed, LATER)?;
    }
    let (work, done) = on(1, pool, move |pool, _| {
        let until = pool.next_draw();
        let number = pool.reserve(1, Repeats::Allowed, until)?.number();
        end(pool, number)
    })?;
    Ok(work.checked(move || {
        let (pool, calls) = done.finish()?;
        let open = pool.reservations().len() as u64;
        anyhow::ensure!(open == others, "{open} reservations are open where {others} should be");
        expect(&pool, others + calls, others + if is_taken { calls } else { 0 })
    }))
}
