//! `tidemark pool import`: recovers the stock from the original's working directory, including what
//! the original itself would lose, and makes a pool that continues from there.

use super::check;
use crate::server_args::DatabaseArgs;
use anyhow::{Context, bail, ensure};
use clap::{Args, ValueEnum};
use std::fs::File;
use std::io::{self, BufReader, Read as _, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tidemark_lab::client::Client;
use tidemark_pool::Catalogue;
use tidemark_pool::file::{CatalogueFile, FileFormat};
use tidemark_pool::original::{
    Basis, Given, OriginalItem, ReadError, Recovered, Recovery, Snapshot, file_number,
};

/// Arguments of `tidemark pool import`.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub(super) struct ImportArgs {
    /// The original's working directory, with wal.NNN and snapshot.json
    directory: PathBuf,
    /// The original's configuration: what there was before the first draw
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// What the stock is computed from [default: what the report recommends]
    #[arg(long, value_enum)]
    basis: Option<BasisWord>,
    /// Use snapshot.json even if its hash is wrong
    #[arg(long)]
    accept_changed_snapshot: bool,
    /// Make the pool even if records may be missing: then more may be left in it than there is
    #[arg(long)]
    accept_gaps: bool,
    /// Only say what there is
    #[arg(long, conflicts_with = "output")]
    dry_run: bool,
    /// Write a catalogue (json, yaml or toml, as the name says) in place of making a pool
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Key of the pool that is made
    #[arg(long, required_unless_present_any = ["dry_run", "output"])]
    key: Option<String>,
    #[command(flatten)]
    at: DatabaseArgs,
}

/// What the stock is computed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum BasisWord {
    /// snapshot.json and the records behind it
    Snapshot,
    /// The configuration's catalogue and all records
    History,
}

/// Longest `snapshot.json`. Bytes.
const SNAPSHOT_BYTES_MAX: u64 = 4 << 30;

/// Reads the directory, reports, and makes the pool.
pub(super) fn run(args: &ImportArgs) -> anyhow::Result<ExitCode> {
    let (recovered, unread) = recover(args)?;
    let mut out = io::stdout().lock();
    write!(out, "{}", recovered.report)?;
    let basis = match args.basis {
        Some(BasisWord::Snapshot) => Some(Basis::Snapshot),
        Some(BasisWord::History) => Some(Basis::History),
        None => recovered.recommended,
    };
    let stocks = basis.and_then(|basis| Some((basis, recovered.stocks(basis)?)));
    if let Some((basis, stocks)) = stocks {
        let word = if basis == Basis::Snapshot { "snapshot" } else { "history" };
        writeln!(out, "stock by the {word}:")?;
        write!(out, "{stocks}")?;
    }
    writeln!(out, "the next draw has the number {}", recovered.last_request.saturating_add(1))?;
    out.flush()?;
    if let Some(error) = unread {
        bail!("not all files could be read, so what is left is not known: {error}");
    }
    if args.dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    ensure!(
        args.accept_gaps || !recovered.report.has_gaps(),
        "records may be missing, as said above, and then prizes that were drawn would be there again: restore the files, or give --accept-gaps"
    );
    let (_, stocks) =
        stocks.context("it is not known what is left: give the original's configuration with --config")?;
    let catalogue = stocks.catalogue().context("what is left is no catalogue")?;
    let first_draw = recovered.last_request.saturating_add(1);
    match (&args.output, &args.key) {
        (Some(path), _) => write_file(path, &catalogue, first_draw, &mut out)?,
        (None, Some(key)) => create(args, key, &catalogue, first_draw, &mut out)?,
        (None, None) => bail!("name the pool with --key"),
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads the directory; also returns why a file could not be read to its end.
fn recover(args: &ImportArgs) -> anyhow::Result<(Recovered, Option<ReadError>)> {
    let directory = &args.directory;
    let configuration = args.config.as_deref().map(configuration).transpose()?;
    let files = log_files(directory)?;
    let snapshot = snapshot(directory)?;
    ensure!(
        !files.is_empty() || snapshot.is_some(),
        "there is neither wal.NNN nor a readable snapshot.json in {}",
        directory.display()
    );
    let given = Given {
        snapshot,
        accept_changed_snapshot: args.accept_changed_snapshot,
        configuration,
        ..Given::default()
    };
    let (mut recovery, mut unread) = (Recovery::new(given)?, None);
    for (number, path) in files {
        let file = File::open(&path).with_context(|| format!("cannot read {}", path.display()))?;
        match recovery.read(number, BufReader::new(file)) {
            // The report names files that are not the original's.
            Ok(()) | Err(ReadError::Magic { .. }) => {}
            Err(error) => unread = Some(error),
        }
    }
    Ok((recovery.finish(), unread))
}

/// Returns the files of the log, by number.
fn log_files(directory: &Path) -> anyhow::Result<Vec<(u64, PathBuf)>> {
    let failed = || format!("cannot read the directory {}", directory.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).with_context(failed)? {
        let entry = entry.with_context(failed)?;
        if let Some(number) = entry.file_name().to_str().and_then(file_number) {
            files.push((number, entry.path()));
        }
    }
    files.sort_unstable();
    if let Some(pair) = files.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        bail!(
            "{} and {} have the same number: take one of them away",
            pair[0].1.display(),
            pair[1].1.display()
        );
    }
    Ok(files)
}

/// Reads `snapshot.json`, if there is a readable one; reports what is wrong with it.
fn snapshot(directory: &Path) -> anyhow::Result<Option<Snapshot>> {
    let path = directory.join("snapshot.json");
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    let mut bytes = Vec::new();
    file.take(SNAPSHOT_BYTES_MAX)
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read {}", path.display()))?;
    match Snapshot::parse(&bytes) {
        Ok(snapshot) => Ok(Some(snapshot)),
        Err(error) => {
            println!("{}: {error}", path.display());
            Ok(None)
        }
    }
}

fn configuration(path: &Path) -> anyhow::Result<Vec<OriginalItem>> {
    Ok(check::read(path)?.catalogue.items().iter().map(OriginalItem::from).collect())
}

fn write_file(
    path: &Path,
    catalogue: &Catalogue,
    first_draw: u64,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let format = FileFormat::from_path(path)?;
    let mut file = File::create_new(path).with_context(|| format!("cannot make {}", path.display()))?;
    let failed = || format!("cannot write {}", path.display());
    file.write_all(CatalogueFile::to_text(catalogue, format).as_bytes()).with_context(failed)?;
    file.sync_all().with_context(failed)?;
    let word = format.name().to_uppercase();
    writeln!(
        out,
        "written: {0}; POOL.CREATE key FROM {first_draw} {word} with what is in it makes the pool",
        path.display()
    )?;
    Ok(())
}

/// Makes the pool on a server, which refuses if the key has a value.
fn create(
    args: &ImportArgs,
    key: &str,
    catalogue: &Catalogue,
    first_draw: u64,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let target = args.at.target();
    let mut client = Client::connect(&target, args.at.timeout)?;
    let text = CatalogueFile::to_text(catalogue, FileFormat::Json);
    let answer =
        client.call(&["DURABLE", "POOL.CREATE", key, "FROM", &first_draw.to_string(), "JSON", &text])?;
    if let Some(error) = answer.as_error() {
        bail!("{target} makes no pool: {}", String::from_utf8_lossy(error));
    }
    writeln!(
        out,
        "made: the pool {} on {target}, from draw {first_draw} on",
        crate::name::printable(key.as_bytes())
    )?;
    for (name, value) in answer.as_pairs().unwrap_or_default() {
        if let (Some(b"commitment"), Some(value)) = (name.as_bytes(), value.as_bytes()) {
            writeln!(out, "publish its commitment before the next draw: {}", String::from_utf8_lossy(value))?;
        }
    }
    Ok(())
}
