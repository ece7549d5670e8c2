//! `tidemark log`: inspects and repairs the files of a log.

use std::fmt;
use std::io::{self, BufRead, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Arc;

use crate::counted::counted;
use crate::private_file::private_file;
use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use tidemark_changes::Selection;
use tidemark_lab::wall_time::rfc3339_us;
use tidemark_log::tools::{self, Cut, Inspection, Records, SegmentReport, SegmentState};
use tidemark_log::{FileStorage, Format, Lsn, Storage};

/// Inspect and repair a log's files
#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// Data directory of the server
    #[arg(long, global = true, default_value = "./tidemark-data", env = "TIDEMARK_DIR")]
    dir: PathBuf,

    #[command(subcommand)]
    command: LogCommand,
}

#[derive(Debug, Subcommand)]
enum LogCommand {
    /// List segments and snapshots with what they hold
    Inspect,
    /// Read everything and fail if anything is damaged
    Verify,
    /// Write records as commands, or in any format of the log
    Export(ExportArgs),
    /// Set aside what is damaged, so that the server starts again
    Repair(ConfirmArgs),
    /// Set aside every record after an LSN
    Truncate(TruncateArgs),
}

#[derive(Debug, Args)]
struct ExportArgs {
    /// First LSN
    #[arg(long, default_value_t = 1)]
    from: u64,
    /// Last LSN [default: the end of the log]
    #[arg(long)]
    to: Option<u64>,
    /// commands, as CHANGES sends them, in lines of JSON; or records in a format of the log: jsonl,
    /// text or binary
    #[arg(long, default_value_t = ExportFormat::Commands)]
    format: ExportFormat,
    /// File to write [default: standard output]
    #[arg(long)]
    output: Option<PathBuf>,
}

/// What is written for each record.
#[derive(Debug, Clone, Copy)]
enum ExportFormat {
    /// Its `CHANGES` events; nothing if it changes no data.
    Commands,
    /// The whole record, with its payload as logged.
    Records(Format),
}

impl fmt::Display for ExportFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Commands => f.write_str("commands"),
            Self::Records(format) => format.fmt(f),
        }
    }
}

impl FromStr for ExportFormat {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "commands" => Ok(Self::Commands),
            _ => text
                .parse()
                .map(Self::Records)
                .map_err(|_| "the format must be commands, jsonl, text or binary"),
        }
    }
}

#[derive(Debug, Args)]
struct TruncateArgs {
    /// The last LSN to keep
    #[arg(long)]
    after: u64,
    #[command(flatten)]
    confirm: ConfirmArgs,
}

#[derive(Debug, Args)]
struct ConfirmArgs {
    /// Do it without asking
    #[arg(long)]
    yes: bool,
}

/// Runs one of the subcommands.
pub(crate) fn run(args: LogArgs) -> anyhow::Result<ExitCode> {
    let files = FileStorage::existing(&args.dir)
        .with_context(|| format!("cannot read the directory {}; give it with --dir", args.dir.display()))?;
    let storage: Arc<dyn Storage> = Arc::new(files);
    match args.command {
        LogCommand::Inspect => inspect(&read(&storage, &args.dir)?),
        LogCommand::Verify => verify(&read(&storage, &args.dir)?),
        LogCommand::Export(export) => run_export(&storage, &export),
        LogCommand::Repair(confirm) => repair(&storage, &confirm),
        LogCommand::Truncate(truncate) => run_truncate(&storage, &truncate),
    }
}

fn inspect(inspection: &Inspection) -> anyhow::Result<ExitCode> {
    print_inspection(inspection)?;
    Ok(ExitCode::SUCCESS)
}

fn verify(inspection: &Inspection) -> anyhow::Result<ExitCode> {
    check_start(inspection)?;
    for snapshot in &inspection.snapshots {
        if let Err(error) = &snapshot.content {
            bail!("{error}; an older snapshot is used if the log reaches back to it");
        }
    }
    let gaps = inspection.segments.iter().filter_map(SegmentReport::gap).count();
    let mut out = io::stdout().lock();
    writeln!(out, "{}: good", content(inspection))?;
    if gaps > 0 {
        writeln!(out, "{} after unclean stops: see `tidemark log inspect`", counted(gaps as u64, "gap"))?;
    }
    writeln!(out, "{}: good", counted(inspection.snapshots.len() as u64, "snapshot"))?;
    let listed = inspection.block_files.iter().filter(|file| !file.snapshots.is_empty());
    let blocks: Vec<u64> = listed.filter_map(|file| Some(file.content.as_ref().ok()?.0)).collect();
    if !blocks.is_empty() {
        let (files, blocks) = (blocks.len() as u64, blocks.iter().sum());
        writeln!(out, "{} of {}: good", counted(files, "block file"), counted(blocks, "block"))?;
    }
    if let Some(SegmentState::Torn(bytes)) = inspection.segments.last().map(|segment| segment.state.clone()) {
        let bytes = counted(bytes, "byte");
        writeln!(out, "{bytes} of unfinished writes at the end; the next start cuts them off")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Fails if the server would refuse to start from these files, with the server's error.
fn check_start(inspection: &Inspection) -> anyhow::Result<()> {
    if let Some(damage) = inspection.damage() {
        bail!("{damage}");
    }
    if let Some(missing) = &inspection.missing {
        bail!("{missing}");
    }
    if let Some(error) = &inspection.no_base {
        bail!("{error}");
    }
    Ok(())
}

/// Describes the records in words.
fn content(inspection: &Inspection) -> String {
    let (first, last) = (inspection.first_lsn(), inspection.last_lsn());
    let records: u64 = inspection.segments.iter().map(SegmentReport::records).sum();
    let segments = counted(inspection.segments.len() as u64, "segment");
    match records {
        0 => format!("no records in {segments}"),
        1 => format!("1 record ({first}) in {segments}"),
        records => format!("{records} records ({first} to {last}) in {segments}"),
    }
}

fn run_export(storage: &Arc<dyn Storage>, args: &ExportArgs) -> anyhow::Result<ExitCode> {
    let (from, to) = (Lsn(args.from), Lsn(args.to.unwrap_or(u64::MAX)));
    if from > to {
        bail!("--from {from} comes after --to {to}: no record can lie between them");
    }
    let bar = progress_bar(storage);
    let mut advance = |bytes| bar.inc(bytes);
    let mut write = |output: &mut dyn Write| match args.format {
        ExportFormat::Commands => export_commands(storage, from, to, output, &mut advance),
        ExportFormat::Records(format) => tools::export(storage, from, to, format, output, &mut advance)
            .map(|count| format!("{} exported as {format}", counted(count, "record")))
            .map_err(anyhow::Error::from),
    };
    let said = if let Some(path) = &args.output {
        let file = private_file(path).with_context(|| format!("cannot make {}", path.display()))?;
        let said = write(&mut BufWriter::new(&file))?;
        file.sync_all().with_context(|| format!("cannot finish {}", path.display()))?;
        said
    } else {
        match write(&mut BufWriter::new(io::stdout().lock())) {
            // The reader of the output, such as `head`, has closed it.
            Err(error) if is_closed_output(&error) => return Ok(ExitCode::SUCCESS),
            other => other?,
        }
    };
    bar.finish_and_clear();
    eprintln!("{said}");
    Ok(ExitCode::SUCCESS)
}

fn is_closed_output(error: &anyhow::Error) -> bool {
    let output = error.downcast_ref::<tools::ToolError>();
    matches!(output, Some(tools::ToolError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe)
}

/// Writes what `CHANGES` would send for the records, one line of JSON each. Returns a description
/// of what was exported.
fn export_commands(
    storage: &Arc<dyn Storage>,
    from: Lsn,
    to: Lsn,
    output: &mut dyn Write,
    progress: &mut dyn FnMut(u64),
) -> anyhow::Result<String> {
    let mut records = Records::open(storage, from, to)?;
    let (all, mut exported, mut skipped) = (Selection::default(), 0_u64, 0_u64);
    while let Some(batch) = records.next_batch(progress)? {
        for record in batch {
            // The length of a line is bounded by the record, which has a limit of its own.
            let line = tidemark_changes::Format::Json.encode(&record, &all, usize::MAX).context(
                "the log is not a server's, or another version's; `--format jsonl` writes its records as they are",
            )?;
            let Some(mut line) = line else {
                skipped += 1;
                continue;
            };
            line.push(b'\n');
            output.write_all(&line).map_err(tools::ToolError::Output)?;
            exported += 1;
        }
    }
    output.flush().map_err(tools::ToolError::Output)?;
    records.check_end()?;
    let skipped = format!(
        "{} no data",
        if skipped == 1 { "1 changes".to_owned() } else { format!("{skipped} change") }
    );
    Ok(format!("{} exported as commands; {skipped}", counted(exported, "record")))
}

fn repair(storage: &Arc<dyn Storage>, confirm: &ConfirmArgs) -> anyhow::Result<ExitCode> {
    let bar = progress_bar(storage);
    let plan = tools::plan_repair(storage, &mut |bytes| bar.inc(bytes))?;
    bar.finish_and_clear();
    let Some(cut) = plan else {
        println!("nothing is damaged or missing");
        return Ok(ExitCode::SUCCESS);
    };
    carry_out(storage, &cut, confirm)
}

fn run_truncate(storage: &Arc<dyn Storage>, args: &TruncateArgs) -> anyhow::Result<ExitCode> {
    let bar = progress_bar(storage);
    let cut = tools::plan_truncate(storage, Lsn(args.after), &mut |bytes| bar.inc(bytes))?;
    bar.finish_and_clear();
    carry_out(storage, &cut, &args.confirm)
}

/// Describes the change, asks, carries it out, and verifies the result.
fn carry_out(storage: &Arc<dyn Storage>, cut: &Cut, confirm: &ConfirmArgs) -> anyhow::Result<ExitCode> {
    match cut.last_lsn {
        Lsn::ZERO => println!("afterwards there are no records"),
        last => println!("afterwards the last record is {last}"),
    }
    if let Some(missing) = &cut.missing {
        let (first, last) = (missing.last.next(), missing.durable);
        println!("records {first} to {last} are missing; the server starts without them");
    }
    if let Some((first, last)) = cut.lost {
        println!("records {first} to {last} are set aside; the server loses those of them that are readable");
    }
    for (name, _) in &cut.headers {
        println!("to be rewritten: the header of {}", storage.path(name));
    }
    for name in &cut.files {
        println!("to be set aside: {}", storage.path(name));
    }
    if let Some((name, offset)) = &cut.part {
        println!(
            "to be cut:       {} at byte {offset}; the rest is kept in a file of its own",
            storage.path(name)
        );
    }
    if !confirm.yes && !ask("continue?")? {
        println!("nothing was changed");
        return Ok(ExitCode::FAILURE);
    }
    for name in cut.apply(&**storage)? {
        println!("kept as {}", storage.path(&name));
    }
    let bar = progress_bar(storage);
    let left = tools::inspect(storage, &mut |bytes| bar.inc(bytes))?;
    bar.finish_and_clear();
    check_start(&left).context("the server does not start from what is left")?;
    let usable = left.snapshots.iter().rev().find(|snapshot| snapshot.content.is_ok());
    let base =
        usable.map_or_else(String::new, |snapshot| format!(", and a snapshot at record {}", snapshot.lsn));
    println!("done; what is left: {}{base}; `tidemark serve` starts from here", content(&left));
    Ok(ExitCode::SUCCESS)
}

fn ask(question: &str) -> anyhow::Result<bool> {
    if !io::stdin().is_terminal() {
        bail!("this changes files; say --yes to do it without being asked");
    }
    print!("{question} [y/N] ");
    io::stdout().flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn read(storage: &Arc<dyn Storage>, dir: &Path) -> anyhow::Result<Inspection> {
    let bar = progress_bar(storage);
    let inspection = tools::inspect(storage, &mut |bytes| bar.inc(bytes))?;
    bar.finish_and_clear();
    let is_empty =
        inspection.segments.is_empty() && inspection.snapshots.is_empty() && inspection.spares == 0;
    if is_empty && inspection.missing.is_none() {
        bail!("there is no log in {}; give its directory with --dir", dir.display());
    }
    Ok(inspection)
}

/// Returns a progress bar over the bytes of all segments; hidden if standard error is no terminal.
fn progress_bar(storage: &Arc<dyn Storage>) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let names = storage.list().unwrap_or_default();
    let segments = names.iter().filter(|name| name.starts_with("segment-"));
    let bytes = segments.filter_map(|name| storage.open(name).and_then(|file| file.len()).ok()).sum();
    let style = ProgressStyle::with_template("{bar:40} {binary_bytes} of {binary_total_bytes}, {eta} left");
    ProgressBar::new(bytes).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn print_inspection(inspection: &Inspection) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for segment in &inspection.segments {
        if let Some(gap) = segment.gap() {
            writeln!(out, "    gap: {} to {} are lost, or were never used", gap.first, gap.last)?;
        }
        let format = segment.format.map_or_else(|| "unreadable".to_owned(), |format| format.to_string());
        let records = match segment.records() {
            0 => "no records".to_owned(),
            count => format!("records {} to {} ({count})", segment.first_lsn, segment.last_lsn),
        };
        writeln!(
            out,
            "{}  {format}  {records}  {} of {} bytes  since {}",
            segment.name,
            segment.used_bytes,
            segment.file_bytes,
            rfc3339_us(segment.created_us),
        )?;
        match &segment.state {
            SegmentState::Whole => {}
            SegmentState::Torn(bytes) => {
                let bytes = counted(*bytes, "byte");
                writeln!(out, "    {bytes} of unfinished writes; the next start cuts them off")?;
            }
            SegmentState::Damaged(damage) => writeln!(out, "    {damage}")?,
        }
    }
    for snapshot in &inspection.snapshots {
        write!(out, "snapshot at record {}", snapshot.lsn)?;
        if let Some(base) = snapshot.base {
            write!(out, " on that at record {base}")?;
        }
        match &snapshot.content {
            Ok((frames, bytes)) => {
                writeln!(out, "  {}  {}", counted(*frames as u64, "frame"), counted(*bytes, "byte"))?;
            }
            Err(error) => writeln!(out, "  {error}")?,
        }
    }
    for file in &inspection.block_files {
        write!(out, "{}", file.name)?;
        match &file.content {
            Ok((blocks, bytes)) => {
                write!(out, "  {}  {}", counted(*blocks, "block"), counted(*bytes, "byte"))?;
            }
            // While a server writes it, it ends anywhere.
            Err(_) if file.snapshots.is_empty() => write!(out, "  not complete")?,
            Err(error) => write!(out, "  {error}")?,
        }
        let snapshots: Vec<String> = file.snapshots.iter().map(ToString::to_string).collect();
        match snapshots.as_slice() {
            [] => writeln!(out, "  of no snapshot; the next start removes it")?,
            [one] => writeln!(out, "  of the snapshot at record {one}")?,
            several => writeln!(out, "  of the snapshots at records {}", several.join(", "))?,
        }
    }
    writeln!(out, "{}", counted(inspection.spares as u64, "spare segment"))?;
    if let Some(missing) = &inspection.missing {
        writeln!(out, "{missing}")?;
    }
    if let Some(error) = &inspection.no_base {
        writeln!(out, "{error}")?;
    }
    Ok(())
}
