//! Where the table goes: standard output, or a file that appears under its name when it is complete.

use anyhow::{Context, anyhow, bail};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;
use tidemark_tables::{Format, Layout, TableWriter, WriteError, csv_writer, jsonl_writer, parquet_writer};

/// The destination. A file that is not complete is removed when this is dropped.
pub(super) enum Destination {
    Stdout,
    File { file: NamedTempFile, path: PathBuf, replaces: bool },
}

impl Destination {
    /// Refuses a path that exists, unless it is a file to be replaced.
    pub(super) fn check(path: Option<&Path>, replaces: bool) -> anyhow::Result<()> {
        if let Some((path, known)) = path.and_then(|path| Some((path, std::fs::symlink_metadata(path).ok()?)))
        {
            if !known.is_file() {
                bail!("{} is no file; to write there, redirect standard output", path.display());
            }
            if !replaces {
                bail!("{} exists; give --force to replace it", path.display());
            }
        }
        Ok(())
    }

    /// Opens standard output, or a new file beside `path`.
    pub(super) fn open(path: Option<&Path>, replaces: bool) -> anyhow::Result<Self> {
        let Some(path) = path else { return Ok(Self::Stdout) };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let file = tempfile::Builder::new()
            .prefix(".tidemark-")
            .suffix(".partial")
            .tempfile_in(folder)
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self::File { file, path: path.to_owned(), replaces })
    }

    /// Returns a writer of a table.
    pub(super) fn writer(&self, format: Format, layout: &Layout) -> anyhow::Result<Box<dyn TableWriter>> {
        let (output, path): (Box<dyn Write + Send>, _) = match self {
            Self::Stdout => (Box::new(io::stdout()), None),
            Self::File { file, path, .. } => {
                let file = file.as_file().try_clone();
                (Box::new(file.with_context(|| format!("cannot write {}", path.display()))?), Some(path))
            }
        };
        let writer = match format {
            Format::Csv => Ok(csv_writer(layout, output)),
            Format::Jsonl => jsonl_writer(layout, output),
            Format::Parquet => parquet_writer(layout, output),
        };
        writer.map_err(|error| failed(error, path.map(PathBuf::as_path)))
    }

    /// Makes the file appear under its name.
    pub(super) fn complete(self) -> anyhow::Result<()> {
        let Self::File { file, path, replaces } = self else { return Ok(()) };
        file.as_file().sync_all().with_context(|| format!("cannot write {}", path.display()))?;
        let kept = if replaces { file.persist(&path) } else { file.persist_noclobber(&path) };
        match kept {
            Ok(_) => Ok(()),
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {
                bail!("{} was made meanwhile; give --force to replace it", path.display())
            }
            Err(error) => Err(error.error).with_context(|| format!("cannot write {}", path.display())),
        }
    }
}

/// Says which file an error is about. A closed pipe stays an error of input and output, which ends the program quietly.
pub(super) fn failed(error: WriteError, path: Option<&Path>) -> anyhow::Error {
    match (error, path) {
        (WriteError::Io(error), None) if error.kind() == io::ErrorKind::BrokenPipe => error.into(),
        (WriteError::Io(error), Some(path)) => anyhow!("cannot write {}: {error}", path.display()),
        (WriteError::Io(error), None) => anyhow!("cannot write to standard output: {error}"),
        (other, _) => other.into(),
    }
}
