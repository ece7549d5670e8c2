//! `BankOps`, `PoolOps` and the new `ConduitOps` of the original's newer suite: lookup by name.

use crate::circuit::rig::{By, Rig};
use crate::micro::benchmark::{Benchmark, Work, each, several};
use std::hint::black_box;
use tidemark_circuit::{Conduit, Fault, Name, Pool, cortex, name};

/// Number of names for lookups.
const NAMES: usize = 128;

pub(super) fn suite() -> Vec<Benchmark> {
    vec![
        Benchmark::new("BankOps.get_cached", "looking up the conduit of one name, always the same", |_| {
            let rig = Rig::new(By::Pool)?;
            let bank = rig.bank::<u64>()?;
            bank.get(name!("bank.conduit"))?;
            each(move |_| {
                // Must live as long as the component that is looked up.
                let _ = &rig;
                bank.get(black_box(name!("bank.conduit"))).map(address)
            })
        }),
        varied("BankOps.get_varied_batch", "looking up the conduit of a name", |_| {
            let rig = Rig::new(By::Pool)?;
            let bank = rig.bank::<u64>()?;
            Ok(move |name| {
                let _ = &rig;
                bank.get(name).map(address)
            })
        }),
        control("BankOps"),
        varied("ConduitOps.get_varied_batch", "looking up the pipe of a name", |_| {
            let rig = Rig::new(By::Pool)?;
            let conduit: Conduit<u64> = rig.conduit()?;
            Ok(move |name| {
                let _ = &rig;
                Ok(address(conduit.get(name)))
            })
        }),
        control("ConduitOps"),
        Benchmark::new(
            "PoolOps.get_by_name",
            "looking up what a pool has for one name, always the same",
            |_| {
                let pool = pool();
                named(&pool)?;
                each(move |_| pool.get(black_box(name!("bench"))).copied().ok())
            },
        ),
        varied("PoolOps.get_varied_batch", "looking up what a pool has for a name", |_| {
            let pool = pool();
            Ok(move |name| pool.get(name).map(address).map_err(Clone::clone))
        }),
        varied(
            "PoolOps.derived_get_varied_batch",
            "looking up what a pool made of another has for a name",
            |_| {
                let pool = pool().derive(|name| *name);
                Ok(move |name| pool.get(name).map(address).map_err(Clone::clone))
            },
        ),
        control("PoolOps"),
    ]
}

/// A row of lookups of 128 existing names, one after the other.
fn varied<T, L>(name: &str, what: &str, prepare: fn(&[Name]) -> anyhow::Result<L>) -> Benchmark
where
    T: 'static,
    L: FnMut(Name) -> Result<*const T, Fault> + 'static,
{
    let measures = format!("{what}, 128 in turn that are all there; see get_varied_control_batch");
    Benchmark::new(name, measures, move |sizes| {
        let names = names()?;
        let mut look_up = prepare(&names)?;
        for name in &names {
            look_up(*name)?;
        }
        in_turn(sizes.batch, names, move |name| look_up(name).ok())
    })
}

/// Cost of iterating over the names alone.
fn control(suite: &str) -> Benchmark {
    Benchmark::new(
        format!("{suite}.get_varied_control_batch"),
        "going through 128 names in turn without looking them up, which is part of get_varied_batch",
        |sizes| in_turn(sizes.batch, names()?, |name| name),
    )
}

/// Creates calls that repeat an operation on these values in rotation.
pub(super) fn in_turn<T: Copy + 'static, R>(
    count: u64,
    of: Vec<T>,
    mut operation: impl FnMut(T) -> R + 'static,
) -> anyhow::Result<Work> {
    anyhow::ensure!(!of.is_empty(), "nothing to go through");
    let mut place = 0_usize;
    several(count, move |_| {
        for _ in 0..count {
            place = if place + 1 == of.len() { 0 } else { place + 1 };
            black_box(operation(black_box(of[place])));
        }
    })
}

fn names() -> anyhow::Result<Vec<Name>> {
    (0..NAMES).map(|number| Ok(Name::new(&format!("bank.conduit.{number}"))?)).collect()
}

fn pool() -> Pool<Name> {
    cortex().pool(|name| name)
}

/// Returns the component for the name that the rows use.
pub(super) fn named<T: Clone + Send + Sync + 'static>(pool: &Pool<T>) -> anyhow::Result<T> {
    Ok(pool.get(name!("bench")).map_err(Clone::clone)?.clone())
}

/// Returns a result for the black box.
pub(super) fn address<T>(found: &T) -> *const T {
    found
}
