//! Costs of time series for their callers, by kind of data.
//!
//! [`crate::micro`] measures the rows; `data` has the data sets.

mod data;

pub use crate::micro::{Benchmark, Quantity, SelectionError, Sizes};

use crate::micro::benchmark::{Work, several};
use crate::micro::{self, MicroOptions};
use crate::random::Random;
use crate::report::Verdict;
use crate::scenario::{Console, Scenario};
use data::{DATA_SETS, DataSet, Points};
use std::hint::black_box;
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::time::Instant;
use tidemark_series::{Aggregation, Buckets, Direction, Options, Series, Window, Windows};

/// Flags of the laboratory of the costs of series.
#[derive(Clone, Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct SeriesCostOptions {
    #[command(flatten)]
    micro: MicroOptions,
}

/// What series cost their callers. `cargo bench` runs it, `tidemark bench` does not.
pub struct SeriesCostScenario;

impl Scenario for SeriesCostScenario {
    const NAME: &'static str = "series-cost";
    type Options = SeriesCostOptions;

    fn run(options: &SeriesCostOptions, console: &mut Console<'_>) -> anyhow::Result<Verdict> {
        micro::run::<Self>(&benchmarks(), &options.micro, &(), console)?;
        Ok(Verdict::passed())
    }
}

/// Runs the laboratory with the program's arguments, for `cargo bench`.
#[must_use]
pub fn main() -> ExitCode {
    micro::program::main::<SeriesCostScenario>("series", "What time series cost")
}

/// Returns all benchmarks, in the order in which they run.
#[must_use]
pub fn benchmarks() -> Vec<Benchmark> {
    let suites: [fn(DataSet) -> Benchmark; 9] =
        [append, extend, get_raw, get_sealed, seal, decode, average_of_60, average_of_10k, bytes];
    suites.into_iter().flat_map(|suite| DATA_SETS.map(suite)).collect()
}

/// Points of a series: 100,000, or some blocks.
fn count(sizes: &Sizes) -> u64 {
    sizes.items.clamp(3_000, 100_000)
}

fn row(
    name: &str,
    measures: &str,
    data: DataSet,
    start: impl Fn(Points) -> anyhow::Result<Work> + 'static,
) -> Benchmark {
    let measures = format!("{measures}; {}", data.describes);
    Benchmark::new(format!("SeriesOps.{name}_{}", data.name), measures, move |sizes| {
        start(data.points(count(sizes)))
    })
    .of("point")
}

fn filled(points: &Points) -> anyhow::Result<Series<f64>> {
    let mut series = Series::new(Options::default());
    series.extend(&points.times, &points.values)?;
    Ok(series)
}

fn sealed(points: &Points) -> anyhow::Result<Series<f64>> {
    let mut series = filled(points)?;
    series.seal_all();
    Ok(series)
}

fn append(data: DataSet) -> Benchmark {
    row("append", "appending a point behind the last", data, |points| {
        Work::calls(points.times.len() as u64, move || {
            let mut series = Series::new(Options::default());
            let clock = Instant::now();
            for (time, value) in black_box(&points.times).iter().zip(black_box(&points.values)) {
                series.append(*time, *value)?;
            }
            black_box(&series);
            let took = clock.elapsed();
            anyhow::ensure!(series.len() == points.times.len() as u64, "a point is missing");
            Ok(took)
        })
    })
    .in_summary()
}

fn extend(data: DataSet) -> Benchmark {
    row("extend", "appending 1,000 points at once, as columns; of each point", data, |points| {
        Work::calls(points.times.len() as u64, move || {
            let mut series = Series::new(Options::default());
            let clock = Instant::now();
            for (times, values) in points.times.chunks(1_000).zip(points.values.chunks(1_000)) {
                series.extend(black_box(times), black_box(values))?;
            }
            black_box(&series);
            let took = clock.elapsed();
            anyhow::ensure!(series.len() == points.times.len() as u64, "a point is missing");
            Ok(took)
        })
    })
}

/// Creates work of lookups of random points.
fn lookups(points: &Points, series: Series<f64>) -> anyhow::Result<Work> {
    let mut random = Random::new(42, 4);
    // A power of two, so that the next one is found without a division.
    let drawn: Vec<i64> =
        (0..1 << 14).map(|_| points.times[random.below(points.times.len() as u64) as usize]).collect();
    let found = drawn.iter().all(|time| series.get(*time).is_some());
    anyhow::ensure!(found, "a point is missing");
    several(1, move |number| series.get(drawn[number as usize % (1 << 14)]))
}

fn get_raw(data: DataSet) -> Benchmark {
    row("get_raw", "looking up a random point that is not compressed", data, |points| {
        let series = filled(&points)?;
        lookups(&points, series)
    })
    .of("lookup")
    .in_summary()
}

fn get_sealed(data: DataSet) -> Benchmark {
    row("get_sealed", "looking up a random point in a compressed block", data, |points| {
        let series = sealed(&points)?;
        lookups(&points, series)
    })
    .of("lookup")
}

fn seal(data: DataSet) -> Benchmark {
    row("seal", "compressing points to blocks; of each point", data, |points| {
        Work::calls(points.times.len() as u64, move || {
            let mut series = filled(&points)?;
            let clock = Instant::now();
            series.seal_all();
            black_box(&series);
            Ok(clock.elapsed())
        })
    })
    .in_summary()
}

fn decode(data: DataSet) -> Benchmark {
    row("decode", "reading all points of compressed blocks; of each point", data, |points| {
        let series = sealed(&points)?;
        Work::calls(series.len(), move || {
            let mut read = 0;
            let clock = Instant::now();
            series.for_each_run(|times, values| {
                read += black_box(times).len().min(black_box(values).len()) as u64;
            });
            let took = clock.elapsed();
            anyhow::ensure!(read == series.len(), "{read} of {} points were read", series.len());
            Ok(took)
        })
    })
}

fn average_of_60(data: DataSet) -> Benchmark {
    row("avg_60", "the mean of each 60 points, which are decoded; of each point", data, |points| {
        averages(&points, 60)
    })
}

fn average_of_10k(data: DataSet) -> Benchmark {
    row(
        "avg_10k",
        "the mean of each 10,000 points, most of them by the summaries of blocks; of each point",
        data,
        |points| averages(&points, 10_000),
    )
}

fn averages(points: &Points, bucket: i64) -> anyhow::Result<Work> {
    let series = sealed(points)?;
    let buckets = Buckets::new(points.step * bucket, 0);
    let buckets = buckets.ok_or_else(|| anyhow::anyhow!("buckets of {bucket} points"))?;
    let window = Window {
        buckets,
        aggregations: vec![Aggregation::Avg],
        empty: false,
        range: i64::MIN..=i64::MAX,
        before: None,
        after: None,
    };
    Work::calls(series.len(), move || {
        let (mut sum, mut count) = (0.0, 0_u64);
        let clock = Instant::now();
        let mut windows = Windows::new(&window, |_, results: &[f64]| {
            sum += results[0];
            count += 1;
            ControlFlow::Continue(())
        });
        series.read(i64::MIN..=i64::MAX, Direction::Forward, &mut windows);
        windows.finish();
        black_box(sum);
        let took = clock.elapsed();
        anyhow::ensure!(count >= series.len() / bucket as u64, "{count} buckets were returned");
        Ok(took)
    })
}

fn bytes(data: DataSet) -> Benchmark {
    row("bytes", "bytes of a point in compressed blocks, all included", data, |points| {
        Work::amounts(points.times.len() as u64, move || Ok(sealed(&points)?.bytes() as f64))
    })
    .in_unit("B/point")
    .in_summary()
}
