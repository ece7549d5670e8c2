//! The files that are read.

use anyhow::{Context, anyhow, bail};
use indicatif::{ProgressBar, ProgressStyle};
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::Path;
use tidemark_lab::output;
use tidemark_tables::{Format, Mapping, RowReader, open_csv, open_jsonl, open_parquet};

/// A file that is read.
pub(super) struct Source {
    /// Name, for messages.
    pub(super) name: String,
    pub(super) reader: Box<dyn RowReader>,
    bar: ProgressBar,
}

impl Source {
    /// Opens a file, or standard input for `-`.
    pub(super) fn open(
        path: &Path,
        format: Option<Format>,
        delimiter: u8,
        mapping: &Mapping,
    ) -> anyhow::Result<Self> {
        let is_stdin = path.as_os_str() == "-";
        let name = if is_stdin { "standard input".to_owned() } else { path.display().to_string() };
        let format = match format.or_else(|| Format::of_path(path)) {
            Some(format) => format,
            None if is_stdin => bail!("say what standard input has with --format csv or jsonl"),
            None => bail!("the extension of {name} names no format; give --format parquet, csv or jsonl"),
        };
        let (input, bytes): (Box<dyn Read>, _) = if is_stdin {
            if format == Format::Parquet {
                bail!("Parquet cannot be read from standard input, because its end comes first; name a file");
            }
            (Box::new(io::stdin()), None)
        } else {
            let file = File::open(path).with_context(|| format!("cannot read {name}"))?;
            let about = file.metadata().with_context(|| format!("cannot read {name}"))?;
            if about.is_dir() {
                bail!("cannot read {name}: it is a directory");
            }
            if format == Format::Parquet {
                let reader = open_parquet(file, mapping).map_err(|error| anyhow!("{name}: {error}"))?;
                let bar =
                    progress_bar(reader.total(), "{bar:40} {human_pos} of {human_len} rows, {eta} left");
                return Ok(Self { name, reader, bar });
            }
            (Box::new(file), about.is_file().then_some(about.len()))
        };
        let reader = match format {
            Format::Csv => open_csv(input, delimiter, mapping),
            _ => open_jsonl(input, mapping),
        };
        let reader = reader.map_err(|error| anyhow!("{name}: {error}"))?;
        let bar = progress_bar(bytes, "{bar:40} {binary_bytes} of {binary_total_bytes}, {eta} left");
        Ok(Self { name, reader, bar })
    }

    /// Shows how much was read.
    pub(super) fn progress(&self) {
        self.bar.set_position(self.reader.position());
    }

    /// Writes a line to standard error, above the progress bar.
    pub(super) fn above_progress(&self, line: &str) {
        self.bar.suspend(|| output::report(line));
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Returns a progress bar; hidden if standard error is no terminal or the length is not known.
fn progress_bar(length: Option<u64>, template: &str) -> ProgressBar {
    let Some(length) = length.filter(|_| io::stderr().is_terminal()) else { return ProgressBar::hidden() };
    let style = ProgressStyle::with_template(template);
    ProgressBar::new(length).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
