//! `tidemark series import`.

mod collector;
mod sender;
mod source;
mod tally;

use super::link::{Interrupted, Link};
use crate::counted::counted;
use crate::server_args::DatabaseArgs;
use anyhow::bail;
use clap::{Args, ValueEnum};
use collector::Collector;
use sender::Sender;
use source::Source;
use std::path::PathBuf;
use std::process::ExitCode;
use tally::Tally;
use tidemark_lab::output;
use tidemark_tables::{Format, Mapping, Nulls, ReadError, Row, Template, TimeFormat, Unit};

/// Arguments of `tidemark series import`.
#[derive(Args)]
#[command(disable_help_flag = true, after_help = AFTER_HELP)]
pub(super) struct ImportArgs {
    /// Files; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// parquet, csv or jsonl [default: what the file's extension says]
    #[arg(long)]
    format: Option<Format>,
    /// Key of the series of a row; {COLUMN} stands for the row's text in a column
    #[arg(long, default_value = "{key}", value_name = "TEMPLATE")]
    key: Template,
    /// Column of times [default: `time`, or `time_s`, `time_ms`, `time_us`, `time_ns`]
    #[arg(long, value_name = "COLUMN")]
    time: Option<String>,
    /// What the column of times has: unix-s, unix-ms, unix-us, unix-ns or rfc3339 [default: what its
    /// type or its name says]
    #[arg(long, value_name = "FORMAT")]
    time_format: Option<TimeFormat>,
    /// Column of values
    #[arg(long, default_value = "value", value_name = "COLUMN")]
    value: String,
    /// Label of the series of a row, such as room={room} or kind=temperature [default: every column
    /// `label_NAME`]
    #[arg(long = "label", value_name = "NAME=TEMPLATE", value_parser = parse_label)]
    labels: Vec<(Vec<u8>, Template)>,
    /// Unit of new series: ns, us, ms or s [default: that of the file's times, ms for texts]
    #[arg(long)]
    unit: Option<Unit>,
    /// What a row without a value is: nan or skip
    #[arg(long, value_enum, default_value_t)]
    nulls: NullsWord,
    /// Character between the fields of CSV
    #[arg(long, default_value = ",", value_parser = parse_delimiter)]
    delimiter: u8,
    /// What becomes of a second point at a time: block, first, last, min, max or sum
    #[arg(long, value_enum, default_value_t)]
    on_duplicate: Policy,
    /// Leave out rows that cannot be read, and say how many
    #[arg(long)]
    skip_bad: bool,
    #[command(flatten)]
    at: DatabaseArgs,
}

const AFTER_HELP: &str = "\
Without flags, it takes what `tidemark series export` writes. With `--on-duplicate last` (the default), importing a file
twice leaves what importing it once does. The first row that cannot be read ends the import; what was read before is in.
A series that exists keeps its labels and options; times are converted to its unit.
Exit codes: 0 every point was taken; 1 it failed or points were refused, and the last line says why; 2 the command line
is wrong.";

/// What a row without a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum NullsWord {
    /// NaN
    #[default]
    Nan,
    /// No point
    Skip,
}

/// What becomes of a second point at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Policy {
    /// It is refused
    Block,
    /// It is left out
    First,
    /// It replaces the first
    #[default]
    Last,
    /// The lower value stays
    Min,
    /// The higher value stays
    Max,
    /// The sum stays
    Sum,
}

impl Policy {
    /// Returns the word of the command.
    fn word(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::First => "first",
            Self::Last => "last",
            Self::Min => "min",
            Self::Max => "max",
            Self::Sum => "sum",
        }
    }
}

fn parse_label(text: &str) -> Result<(Vec<u8>, Template), String> {
    let (name, template) = text.split_once('=').ok_or("write NAME=TEMPLATE")?;
    if name.is_empty() || template.is_empty() {
        return Err("write NAME=TEMPLATE".to_owned());
    }
    Ok((name.as_bytes().to_vec(), template.parse().map_err(|error| format!("{error}"))?))
}

fn parse_delimiter(text: &str) -> Result<u8, &'static str> {
    match text.as_bytes() {
        b"\\t" => Ok(b'\t'),
        [byte] if !matches!(byte, b'"' | b'\n' | b'\r') => Ok(*byte),
        _ => Err("it must be one ASCII character, or \\t"),
    }
}

/// Bad rows that are shown.
const SHOWN_BAD: u64 = 10;
/// Rows between two looks at the signals.
const ROWS_PER_LOOK: u64 = 4096;

/// Imports.
pub(super) fn run(args: &ImportArgs) -> anyhow::Result<ExitCode> {
    let mapping = Mapping {
        key: args.key.clone(),
        time: args.time.clone(),
        time_format: args.time_format,
        value: args.value.clone(),
        labels: args.labels.clone(),
        unit: args.unit,
        nulls: match args.nulls {
            NullsWord::Nan => Nulls::Nan,
            NullsWord::Skip => Nulls::Skip,
        },
    };
    // All files are looked at before the first point is sent.
    let mut sources = Vec::new();
    for path in &args.files {
        sources.push(Source::open(path, args.format, args.delimiter, &mapping)?);
    }
    let link = Link::connect(&args.at.target(), args.at.timeout, true)?;
    let mut collector = Collector::new(Sender::new(link, args.on_duplicate.word()));
    let mut skipped = 0;
    let mut result = Ok(());
    for source in sources {
        result = read(source, &mut collector, args.skip_bad, &mut skipped);
        if result.is_err() {
            break;
        }
    }
    // What was read before an error is sent; after a signal or an error of the connection, only what is there is said.
    let is_readers = result.as_ref().err().is_none_or(anyhow::Error::is::<Refusal>);
    let finished = if is_readers { collector.finish() } else { Ok(()) };
    let tally = collector.into_tally();
    tally.print()?;
    if skipped > 0 {
        output::report(format_args!("{} left out", counted(skipped, "bad row")));
    }
    finished?;
    if let Err(error) = result {
        return Err(if error.is::<Interrupted>() {
            Interrupted("; import the files again to complete them").into()
        } else {
            error
        });
    }
    end(&tally)
}

fn end(tally: &Tally) -> anyhow::Result<ExitCode> {
    match tally.refused() {
        0 => Ok(ExitCode::SUCCESS),
        refused => bail!("the server refused {}", counted(refused, "point")),
    }
}

/// A row or a file that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Refusal(String);

/// Reads one file.
fn read(mut source: Source, collector: &mut Collector, skips: bool, skipped: &mut u64) -> anyhow::Result<()> {
    let unit = source.reader.unit();
    let (mut row, mut rows) = (Row::default(), 0_u64);
    loop {
        rows += 1;
        if rows.is_multiple_of(ROWS_PER_LOOK) {
            source.progress();
            collector.check_interrupt()?;
        }
        let bad = match source.reader.next_row(&mut row) {
            Ok(true) => match collector.add(&row, unit)? {
                Ok(()) => continue,
                Err(reason) => format!("{}: {reason}", source.reader.place()),
            },
            Ok(false) => return Ok(()),
            Err(ReadError::Row(bad)) => bad.to_string(),
            Err(other) => bail!(Refusal(format!("{}: {other}", source.name))),
        };
        let bad = format!("{}: {bad}", source.name);
        if !skips {
            bail!(Refusal(bad));
        }
        *skipped += 1;
        if *skipped <= SHOWN_BAD {
            source.above_progress(&bad);
        }
    }
}
