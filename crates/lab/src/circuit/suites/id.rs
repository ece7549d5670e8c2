//! `IdOps`: identities.

use crate::micro::benchmark::{Benchmark, each};
use std::hint::black_box;
use tidemark_circuit::Subject;

pub(super) fn suite() -> Vec<Benchmark> {
    let mut all = Vec::new();
    all.extend(Benchmark::with_batch("IdOps.id_from_subject", "the identity of a subject", |_| {
        each(|_| black_box(Subject::cortex()).id())
    }));
    all.extend(Benchmark::with_batch("IdOps.id_toString", "an identity as a text of its own", |_| {
        let id = Subject::cortex().id();
        each(move |_| black_box(id).to_string())
    }));
    all
}
