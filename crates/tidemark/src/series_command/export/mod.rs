//! `tidemark series export`.

mod destination;
mod header;
mod pages;
mod selection;

use super::link::Link;
use super::moment::{Length, Moment};
use crate::counted::counted;
use crate::name::printable;
use crate::server_args::DatabaseArgs;
use anyhow::{Context, bail, ensure};
use clap::Args;
use destination::Destination;
use header::Header;
use indicatif::{ProgressBar, ProgressStyle};
use pages::Pages;
use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::sync_channel;
use tidemark_lab::output;
use tidemark_tables::{Format, Layout, Points, SeriesRow, TableWriter, Unit, WriteError};

/// Arguments of `tidemark series export`.
#[derive(Args)]
#[command(disable_help_flag = true, after_help = AFTER_HELP)]
pub(super) struct ExportArgs {
    /// Keys of series and lenses
    #[arg(required_unless_present_any = ["filters", "pattern", "all"], conflicts_with_all = ["filters", "pattern", "all"])]
    keys: Vec<OsString>,
    /// Series whose labels match, such as room=hall; several must all match
    #[arg(short, long = "filter", value_name = "FILTER")]
    filters: Vec<String>,
    /// Series whose keys match this pattern
    #[arg(long = "match", value_name = "PATTERN", conflicts_with_all = ["filters", "all"])]
    pattern: Option<String>,
    /// All series
    #[arg(long, conflicts_with = "filters")]
    all: bool,
    /// First time: a number in the series' unit, a date or time (RFC 3339), an age such as -1h30m
    #[arg(long, default_value = "-", allow_hyphen_values = true)]
    from: Moment,
    /// Last time, which is included
    #[arg(long, default_value = "+", allow_hyphen_values = true)]
    to: Moment,
    /// One row for each bucket of time: avg, max, quantile:0.99 …; several, separated by commas, give
    /// a column each
    #[arg(long, requires = "bucket", value_name = "NAMES")]
    aggregation: Option<String>,
    /// Duration of a bucket: a number in the series' unit, or such as 5m
    #[arg(long, requires = "aggregation", value_name = "DURATION")]
    bucket: Option<Length>,
    /// Shift buckets so that one begins here
    #[arg(long, requires = "aggregation", value_name = "DURATION")]
    align: Option<Length>,
    /// Add the buckets without points
    #[arg(long, requires = "aggregation")]
    empty: bool,
    /// File to write; its extension names the format [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// parquet, csv or jsonl [default: what the file's extension says, or csv]
    #[arg(long)]
    format: Option<Format>,
    /// Replace the file if it exists
    #[arg(long, requires = "output")]
    force: bool,
    /// Write times of CSV and JSON Lines as RFC 3339
    #[arg(long)]
    dates: bool,
    /// Convert times to ns, us, ms or s; a time that is no whole number of it is an error
    #[arg(long)]
    unit: Option<Unit>,
    #[command(flatten)]
    at: DatabaseArgs,
}

const AFTER_HELP: &str = "\
A row is a point: key, time, value, and a column label_NAME for each label that any of the series has.
The file appears under its name when it is complete. Points that are newer than the last point of their series
when the export began are left out.
Exit codes: 0 done; 1 it failed, and the last line says why; 2 the command line is wrong.";

/// Pages that wait for the file.
const PAGES_WAITING: usize = 4;

/// Exports.
pub(super) fn run(args: &ExportArgs) -> anyhow::Result<ExitCode> {
    let format = match (args.format, &args.output) {
        (Some(format), _) => format,
        (None, Some(path)) => Format::of_path(path).with_context(|| {
            format!(
                "the extension of {} names no format; give --format parquet, csv or jsonl",
                path.display()
            )
        })?,
        (None, None) => Format::Csv,
    };
    ensure!(
        !(format == Format::Parquet && args.output.is_none() && io::stdout().is_terminal()),
        "Parquet is not for a terminal; name a file with --output"
    );
    ensure!(!(format == Format::Parquet && args.dates), "--dates is for texts; Parquet has timestamps");
    Destination::check(args.output.as_deref(), args.force)?;
    // Standard output may block for ever, and nothing has to be removed there.
    let mut link = Link::connect(&args.at.target(), args.at.timeout, args.output.is_some())?;
    let keys = selection::keys(args, &mut link)?;
    let headers = header::read(&mut link, &keys)?;
    let unit = common_unit(&headers, args.unit)?;
    let ranges = ranges(args, &mut link, &headers)?;
    let mut labels: Vec<Vec<u8>> =
        headers.iter().flat_map(|header| header.labels.iter().map(|(name, _)| name.clone())).collect();
    labels.sort_unstable();
    labels.dedup();
    let layout = Layout { unit, dates: args.dates, labels, values: value_columns(args) };
    // Signals are watched for by now.
    let destination = Destination::open(args.output.as_deref(), args.force)?;
    let writer = destination.writer(format, &layout)?;
    let points = transfer(args, &mut link, &headers, &ranges, &layout, writer)?;
    destination.complete()?;
    let (points, series) = (counted(points, "point"), headers.len());
    output::report(format_args!("{points} of {series} series exported as {format}"));
    Ok(ExitCode::SUCCESS)
}

/// Names the columns of values: those of several aggregators have their names.
fn value_columns(args: &ExportArgs) -> Vec<String> {
    match &args.aggregation {
        Some(names) if names.contains(',') => names.split(',').map(str::to_owned).collect(),
        _ => Layout::one_value(),
    }
}

/// Returns the unit of the table's times.
fn common_unit(headers: &[Header], wanted: Option<Unit>) -> anyhow::Result<Unit> {
    if let Some(unit) = wanted {
        return Ok(unit);
    }
    let Some(first) = headers.first() else { return Ok(Unit::Milliseconds) };
    if let Some(other) = headers.iter().find(|header| header.unit != first.unit) {
        bail!(
            "the unit of {} is {}, and that of {} is {}: export them separately, or give --unit",
            printable(&first.key),
            first.unit,
            printable(&other.key),
            other.unit
        );
    }
    Ok(first.unit)
}

/// A series or lens with the range that is read of it, in its own unit.
struct RangeOfSeries {
    from: i64,
    to: i64,
    buckets: Option<pages::BucketsOfSeries>,
}

fn ranges(args: &ExportArgs, link: &mut Link, headers: &[Header]) -> anyhow::Result<Vec<RangeOfSeries>> {
    let now = selection::now_nanoseconds(link)?;
    headers
        .iter()
        .map(|header| {
            let unit = header.unit;
            let whole = |length: Option<Length>, flag: &str| {
                length
                    .map(|length| {
                        length.in_unit(unit).with_context(|| {
                            let key = printable(&header.key);
                            format!("{flag} is no whole number of {unit}, the unit of {key}")
                        })
                    })
                    .transpose()
            };
            let buckets = match (&args.aggregation, whole(args.bucket, "--bucket")?) {
                (Some(names), Some(length)) => {
                    ensure!(length > 0, "--bucket must be longer than 0");
                    let align = whole(args.align, "--align")?.unwrap_or(0);
                    Some(pages::BucketsOfSeries {
                        names: names.clone(),
                        length,
                        align,
                        is_with_empty: args.empty,
                    })
                }
                _ => None,
            };
            let to = args.to.in_unit(unit, now, true).min(header.last.unwrap_or(-1));
            Ok(RangeOfSeries { from: args.from.in_unit(unit, now, false), to, buckets })
        })
        .collect()
}

/// Reads the points, and writes them on another thread; returns how many there were.
fn transfer(
    args: &ExportArgs,
    link: &mut Link,
    headers: &[Header],
    ranges: &[RangeOfSeries],
    layout: &Layout,
    writer: Box<dyn TableWriter>,
) -> anyhow::Result<u64> {
    let (sender, receiver) = sync_channel::<Option<(SeriesRow, Points)>>(PAGES_WAITING);
    let bar = progress_bar();
    let (points, written) = std::thread::scope(|scope| {
        let writing = scope.spawn(move || -> Result<(), WriteError> {
            let mut writer = writer;
            while let Ok(page) = receiver.recv() {
                match page {
                    Some((series, points)) => writer.write(&series, &points)?,
                    None => return writer.finish(),
                }
            }
            // Not all points have come.
            Ok(())
        });
        let mut read = || -> anyhow::Result<u64> {
            let mut points = 0;
            for (header, range) in headers.iter().zip(ranges) {
                let row = header.row(&layout.labels);
                let mut pages = Pages::new(&header.key, range.from, range.to, range.buckets.as_ref());
                while let Some(mut page) = pages.next(link)? {
                    convert(&mut page.times, header, layout.unit)?;
                    points += page.times.len() as u64;
                    bar.set_position(points);
                    // The thread has ended with an error, which is returned below.
                    if sender.send(Some((row.clone(), page))).is_err() {
                        return Ok(points);
                    }
                }
                link.check_interrupt()?;
            }
            let _ = sender.send(None);
            Ok(points)
        };
        let points = read();
        drop(sender);
        (points, writing.join())
    });
    bar.finish_and_clear();
    let written = written.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    let points = points?;
    written.map_err(|error| destination::failed(error, args.output.as_deref()))?;
    Ok(points)
}

/// Converts times into the unit of the table.
fn convert(times: &mut [i64], header: &Header, unit: Unit) -> anyhow::Result<()> {
    if header.unit == unit {
        return Ok(());
    }
    for time in times {
        *time = header.unit.convert(*time, unit).with_context(|| {
            let (key, own) = (printable(&header.key), header.unit);
            format!(
                "{key} has a point at {time} {own}, which is no whole number of {unit}, or too late for it"
            )
        })?;
    }
    Ok(())
}

/// Returns a progress bar that counts points; hidden if standard error is no terminal.
fn progress_bar() -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{human_pos} points, {per_sec}");
    ProgressBar::no_length().with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
}
