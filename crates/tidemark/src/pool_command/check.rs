//! `tidemark pool check`: whether a file is a catalogue, and the odds that it gives.

use crate::counted::counted;
use crate::name::printable;
use anyhow::{Context, anyhow};
use clap::Args;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tidemark_pool::file::{CatalogueFile, FileError, FileFormat, Origin, TEXT_BYTES_MAX};
use tidemark_pool::selector::WideTree;
use tidemark_pool::{Catalogue, Mode, Odds, SoldOut, Stock, Urn};

/// Arguments of `tidemark pool check`.
#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// Catalogue: JSON, YAML or TOML, also a configuration of the original
    file: PathBuf,
    /// json, yaml or toml [default: what the file's name says]
    #[arg(long)]
    format: Option<FileFormat>,
    /// How many items are shown; 0 shows all
    #[arg(long, default_value_t = 100)]
    items: usize,
}

/// Shows the catalogue of the file, or what is wrong with it.
pub(super) fn run(args: &CheckArgs) -> anyhow::Result<ExitCode> {
    let file = read_by(&args.file, args.format, CatalogueFile::parse_served)?;
    let mut out = BufWriter::new(io::stdout().lock());
    show(&file, if args.items == 0 { usize::MAX } else { args.items }, &mut out)?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the catalogue of a file that no server has to read.
pub(super) fn read(path: &Path) -> anyhow::Result<CatalogueFile> {
    read_by(path, None, CatalogueFile::parse_bytes)
}

fn read_by(
    path: &Path,
    format: Option<FileFormat>,
    parse: impl Fn(&[u8], FileFormat) -> Result<CatalogueFile, FileError>,
) -> anyhow::Result<CatalogueFile> {
    let failed = || format!("cannot read {}", path.display());
    let file = File::open(path).with_context(failed)?;
    let format = match format {
        Some(format) => format,
        None => FileFormat::from_path(path).with_context(|| format!("{}: say --format", path.display()))?,
    };
    let mut bytes = Vec::new();
    file.take(TEXT_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).with_context(failed)?;
    parse(&bytes, format).map_err(|error| anyhow!("{}: {error}", path.display()))
}

fn show(file: &CatalogueFile, most: usize, out: &mut impl Write) -> io::Result<()> {
    let CatalogueFile { catalogue, origin, unused } = file;
    let whose = if *origin == Origin::Original { "a configuration of the original" } else { "a catalogue" };
    writeln!(
        out,
        "good: {whose} of {}, {}, {}",
        counted(catalogue.items().len() as u64, "item"),
        mode(catalogue),
        sold_out(catalogue)
    )?;
    let rules = catalogue.rules();
    for (count, what, which) in [
        (catalogue.tables().len(), "table", " besides the first"),
        (catalogue.schedule().releases().len(), "release", " of what is still to come"),
        (rules.limits().len(), "limit", " for each user"),
        (rules.guarantees().len(), "guarantee", ""),
    ] {
        if count > 0 {
            writeln!(out, "{}{which}", counted(count as u64, what))?;
        }
    }
    for setting in unused {
        writeln!(out, "{setting}")?;
    }
    let urn = Urn::<WideTree>::new(catalogue);
    let odds = Odds::of(&urn);
    writeln!(out, "{:>14} {:>20} {:>20}  ID", "ODDS", "WEIGHT", "QUANTITY")?;
    for entry in urn.entries().take(most) {
        let quantity = match (entry.leads_to, entry.stock) {
            (Some(table), _) => format!("table {}", printable(table.as_bytes())),
            (None, Stock::Limited(quantity)) => quantity.to_string(),
            (None, Stock::Unlimited) => "unlimited".to_owned(),
        };
        let share = odds.share_of(&urn, &entry) * 100.0;
        writeln!(
            out,
            "{share:>12.6} % {:>20} {quantity:>20}  {}",
            entry.weight,
            printable(entry.id.as_bytes())
        )?;
    }
    if odds.share_of_nothing() > 0.0 {
        let share = odds.share_of_nothing() * 100.0;
        writeln!(
            out,
            "{share:>12.6} % {:>20} {:>20}  nothing, in place of what is sold out",
            odds.nothing(),
            ""
        )?;
    }
    match urn.len().saturating_sub(most) {
        0 => Ok(()),
        more => writeln!(out, "and {more} more: --items 0 shows all"),
    }
}

fn mode(catalogue: &Catalogue) -> &'static str {
    match catalogue.mode() {
        Mode::FixedOdds => "odds are fixed",
        Mode::PerUnit => "each unit is a ticket",
    }
}

fn sold_out(catalogue: &Catalogue) -> String {
    match catalogue.sold_out() {
        SoldOut::Renormalise => "what is sold out makes the others likelier".to_owned(),
        SoldOut::NoPrize => "what is sold out leads to nothing".to_owned(),
        SoldOut::Fallback(id) => format!("what is sold out leads to the item {}", printable(id.as_bytes())),
    }
}
