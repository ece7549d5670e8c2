//! `core`: series in memory.

use super::options::TimeSeriesOptions;
use super::points::{Lookups, append_all, columns, expect_all, series};
use super::row::{Findings, Row, Work};
use anyhow::Context;
use std::hint::black_box;
use tidemark_series::{Function, Options, Series};

pub(super) fn rows(options: &TimeSeriesOptions) -> Vec<Row> {
    let ingests = [
        (Ingest::Single, "segment_ingest", "appending points one by one"),
        (Ingest::Bulk, "segment_ingest_bulk", "appending all points at once, as columns"),
        (Ingest::Sealed, "segment_ingest_sealed", "appending points one by one, and compressing all of them"),
    ];
    let queries = [
        (Query::Raw, "segment_point_query", "looking up random points that are not compressed"),
        (Query::Sealed, "sealed_point_query", "looking up random points in compressed blocks"),
        (
            Query::Lens,
            "segment_lens_query",
            "looking up random points through a lens, degrees Fahrenheit as Celsius",
        ),
    ];
    let (points, lookups, keep) = (options.ingest_points, options.queries, !options.like_tau);
    let mut rows: Vec<Row> = ingests
        .into_iter()
        .map(|(how, name, measures)| Row {
            name: format!("core/{name}"),
            measures: measures.to_owned(),
            operation: "point",
            operations: points,
            iterations: options.iterations,
            start: Box::new(move || Ok(Box::new(Ingesting::new(how, points)))),
        })
        .collect();
    rows.extend(queries.into_iter().map(|(how, name, measures)| Row {
        name: format!("core/{name}"),
        measures: measures.to_owned(),
        operation: "lookup",
        operations: lookups,
        iterations: options.iterations,
        start: Box::new(move || Ok(Box::new(Querying::new(how, points, lookups, keep)))),
    }));
    rows.push(parallel(options));
    rows
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ingest {
    Single,
    Bulk,
    Sealed,
}

/// A series that gets points.
struct Ingesting {
    how: Ingest,
    points: u64,
    columns: (Vec<i64>, Vec<f64>),
    series: Option<Series<f64>>,
}

impl Ingesting {
    fn new(how: Ingest, points: u64) -> Self {
        let columns = if how == Ingest::Bulk { columns(points) } else { Default::default() };
        Ingesting { how, points, columns, series: None }
    }
}

impl Work for Ingesting {
    fn prepare(&mut self, _iteration: u64) -> anyhow::Result<()> {
        self.series = Some(Series::new(Options::default()));
        Ok(())
    }

    fn run(&mut self) -> anyhow::Result<()> {
        // A local variable, so that the series can live in registers, as in a program's loop.
        let mut series = self.series.take().context("the series is made before")?;
        match self.how {
            Ingest::Bulk => {
                let (times, values) = black_box((&self.columns.0, &self.columns.1));
                series.extend(times, values)?;
            }
            Ingest::Single => append_all(&mut series, self.points)?,
            Ingest::Sealed => {
                append_all(&mut series, self.points)?;
                series.seal();
            }
        }
        self.series = Some(black_box(series));
        Ok(())
    }

    fn check(&mut self) -> anyhow::Result<Findings> {
        let series = self.series.as_ref().context("the series is made before")?;
        expect_all(series, self.points)?;
        Ok(Findings {
            bytes_per_point: Some(series.bytes() as f64 / self.points as f64),
            ..Findings::default()
        })
    }

    fn release(&mut self) {
        self.series = None;
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Query {
    Raw,
    Sealed,
    Lens,
}

/// A series that is looked into.
struct Querying {
    how: Query,
    points: u64,
    lookups: Lookups,
    /// Whether the series serves all iterations.
    keep: bool,
    series: Option<Series<f64>>,
}

fn celsius(fahrenheit: f64) -> f64 {
    (fahrenheit - 32.0) * 5.0 / 9.0
}

impl Querying {
    fn new(how: Query, points: u64, lookups: u64, keep: bool) -> Self {
        let seen = if how == Query::Lens { celsius } else { |value| value };
        Querying { how, points, lookups: Lookups::draw(lookups, points, seen), keep, series: None }
    }
}

impl Work for Querying {
    fn prepare(&mut self, _iteration: u64) -> anyhow::Result<()> {
        if self.series.is_none() {
            let mut series = series(self.points)?;
            if self.how == Query::Sealed {
                series.seal_all();
            }
            self.series = Some(series);
        }
        Ok(())
    }

    fn run(&mut self) -> anyhow::Result<()> {
        let series = black_box(self.series.as_ref()).context("the series is made before")?;
        if self.how == Query::Lens {
            let lens = series.through(celsius);
            return self.lookups.run(|time| lens.get(time));
        }
        self.lookups.run(|time| series.get(time))
    }

    fn check(&mut self) -> anyhow::Result<Findings> {
        let series = self.series.as_ref().context("the series is made before")?;
        Ok(Findings {
            bytes_per_point: Some(series.bytes() as f64 / self.points as f64),
            ..Findings::default()
        })
    }

    fn release(&mut self) {
        if !self.keep {
            self.series = None;
        }
    }
}

fn parallel(options: &TimeSeriesOptions) -> Row {
    let (count, points) = (options.parallel_series, options.parallel_points);
    Row {
        name: "core/parallel_ingest".to_owned(),
        measures: format!(
            "starting {count} threads, each of which appends {points} points to a series of its own, and joining them"
        ),
        operation: "point",
        operations: u64::from(count) * points,
        iterations: options.iterations,
        start: Box::new(move || Ok(Box::new(Parallel { count, points, made: Vec::new() }))),
    }
}

/// Series that grow in parallel.
struct Parallel {
    count: u32,
    points: u64,
    made: Vec<Series<f64>>,
}

impl Work for Parallel {
    fn prepare(&mut self, _iteration: u64) -> anyhow::Result<()> {
        Ok(())
    }

    fn run(&mut self) -> anyhow::Result<()> {
        let points = self.points;
        self.made = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.count).map(|_| scope.spawn(move || series(points))).collect();
            let join =
                |thread: std::thread::ScopedJoinHandle<'_, _>| thread.join().expect("it does not panic");
            threads.into_iter().map(join).collect::<anyhow::Result<_>>()
        })?;
        Ok(())
    }

    fn check(&mut self) -> anyhow::Result<Findings> {
        self.made.iter().try_for_each(|series| expect_all(series, self.points))?;
        Ok(Findings::default())
    }

    fn release(&mut self) {
        self.made.clear();
    }
}
