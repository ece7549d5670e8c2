//! `SubjectOps`: ordering of two subjects.

use crate::circuit::rig::{By, Rig};
use crate::micro::benchmark::{Benchmark, each};
use std::hint::black_box;
use tidemark_circuit::{Conduit, Subject, name};

pub(super) fn suite() -> Vec<Benchmark> {
    let mut all = Vec::new();
    all.extend(Benchmark::with_batch(
        "SubjectOps.subject_compare",
        "which of the subjects of two conduits of one circuit comes first",
        |_| {
            let [a, b, _] = subjects()?;
            each(move |_| black_box(&a).cmp(black_box(&b)))
        },
    ));
    all.extend(Benchmark::with_batch(
        "SubjectOps.subject_compare_same",
        "comparing a subject with itself",
        |_| {
            let [a, ..] = subjects()?;
            each(move |_| black_box(&a).cmp(black_box(&a)))
        },
    ));
    all.push(Benchmark::new(
        "SubjectOps.subject_compare_three_way",
        "three comparisons between the subjects of three conduits",
        |_| {
            let [a, b, c] = subjects()?;
            each(move |_| {
                let (a, b, c) = (black_box(&a), black_box(&b), black_box(&c));
                (a.cmp(b), b.cmp(c), c.cmp(a))
            })
        },
    ));
    all
}

/// The subjects of three conduits.
fn subjects() -> anyhow::Result<[Subject; 3]> {
    let rig = Rig::new(By::Waiters)?;
    let subject = |conduit: Conduit<u64>| conduit.subject().clone();
    Ok([
        subject(rig.named(name!("conduitA")).conduit()?),
        subject(rig.named(name!("conduitB")).conduit()?),
        subject(rig.named(name!("conduitC")).conduit()?),
    ])
}
