//! Sample benchmarks, rows and reports for tests.

use super::benchmark::{Benchmark, each};
use super::group::Group;
use super::options::Mode;
use super::report::MicroResults;
use super::row::Row;
use super::runner::Outcome;
use crate::machine::Machine;
use std::time::SystemTime;

pub(crate) fn benchmark(name: &str) -> Benchmark {
    Benchmark::new(name, format!("what {name} measures"), |_| each(|_| ()))
}

pub(crate) fn row<'a>(benchmark: &'a Benchmark, mode: Mode, samples: &[f64]) -> Row<'a> {
    let outcome =
        Outcome { name: benchmark.name().to_owned(), samples: vec![samples.to_vec()], ..Outcome::default() };
    let group = benchmark.group().map(|name| Group { name: name.to_owned(), baseline: "P.a".to_owned() });
    Row { benchmark, outcome, mode, group }
}

pub(crate) fn report(rows: Vec<Row<'_>>) -> MicroResults<'_> {
    let machine = Machine { cores: 2, processor: "a processor".into(), kernel: "a kernel".into() };
    let epoch = SystemTime::UNIX_EPOCH;
    MicroResults {
        start: epoch,
        end: epoch,
        is_interrupted: false,
        rows,
        failures: Vec::new(),
        machine,
        verbose: false,
    }
}
