//! The answers, in a file that outlives its writer.
//!
//! A worker records the next operation, performs it, and records the answer. A killed process loses
//! none of these writes: the pages belong to the system. So at most one operation per worker is in
//! doubt, and the file identifies it.
//!
//! ```text
//! worker 0: │ under way │ key 0 │ key 1 │ ...   worker 1: │ under way │ key 0 │ ...
//! ```

use crate::counter::settings::Settings;
use anyhow::{Context, ensure};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Bytes of a line: a power of two, so that no line spans two pages and each is written as a whole.
const LINE: usize = 32;
/// Maximum number of lines: each is read at the end.
const LINES_MAX: usize = 1 << 24;

/// Four words.
type Line = [u64; 4];

/// The file; removed on drop.
#[derive(Debug)]
pub(super) struct Notebook {
    path: PathBuf,
    workers: usize,
    keys: usize,
}

/// A worker's writer for its part of the file.
#[derive(Debug)]
pub(super) struct Pen {
    file: File,
    /// Start of its part, in lines.
    begin: usize,
    number: u64,
    answered: Vec<Answered>,
}

/// Answers for a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Answered {
    /// Units.
    pub(super) admitted: u64,
    /// Units.
    pub(super) given_back: u64,
    /// Plus operations that may have been done and were not answered.
    pub(super) doubtful_up: u64,
    /// Minus operations that may have been done and were not answered.
    pub(super) doubtful_down: u64,
}

/// The record of a killed run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Notes {
    /// Answers by key.
    pub(super) keys: Vec<Answered>,
    /// Answered operations.
    pub(super) operations: u64,
}

impl Answered {
    /// Returns the units, net of refunds.
    pub(super) fn net(&self) -> i128 {
        i128::from(self.admitted) - i128::from(self.given_back)
    }
}

impl Notebook {
    /// Creates an empty file for a run with these settings.
    pub(super) fn create(settings: &Settings) -> anyhow::Result<Self> {
        static NOTEBOOKS: AtomicU32 = AtomicU32::new(0);
        let lines = settings.workers.saturating_mul(settings.keys + 1);
        ensure!(lines <= LINES_MAX, "-goroutines times -keys must be less than {LINES_MAX} with --kill");
        let name = format!("tidemark-lab-{}-{}.notes", std::process::id(), NOTEBOOKS.fetch_add(1, Relaxed));
        let path = std::env::temp_dir().join(name);
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        let file = file.with_context(|| format!("cannot create {}", path.display()))?;
        let notebook = Notebook { path, workers: settings.workers, keys: settings.keys };
        file.set_len((lines * LINE) as u64)
            .with_context(|| format!("cannot write {}", notebook.path.display()))?;
        Ok(notebook)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the record after all writers have ended.
    pub(super) fn read(&self) -> anyhow::Result<Notes> {
        let bytes =
            std::fs::read(&self.path).with_context(|| format!("cannot read {}", self.path.display()))?;
        let (parts, wanted) = (self.keys + 1, self.workers * (self.keys + 1) * LINE);
        ensure!(
            bytes.len() == wanted,
            "{} has {} bytes where {wanted} were made for {} workers and {} keys; what was answered is not known",
            self.path.display(),
            bytes.len(),
            self.workers,
            self.keys
        );
        let lines: Vec<Line> = bytes.chunks_exact(LINE).map(line).collect();
        let mut notes = Notes { keys: vec![Answered::default(); self.keys], operations: 0 };
        for part in lines.chunks_exact(parts) {
            let ([number, key, is_minus, _], lines) = (&part[0], &part[1..]);
            let mut last = 0;
            for (answered, [at, admitted, given_back, _]) in notes.keys.iter_mut().zip(lines) {
                answered.admitted += admitted;
                answered.given_back += given_back;
                last = last.max(*at);
            }
            notes.operations += last;
            // It has begun one more than was answered.
            if *number > last {
                let answered = notes
                    .keys
                    .get_mut(*key as usize)
                    .with_context(|| format!("{} names key {key} of {}", self.path.display(), self.keys))?;
                answered.doubtful_up += u64::from(*is_minus == 0);
                answered.doubtful_down += u64::from(*is_minus != 0);
            }
        }
        Ok(notes)
    }
}

impl Drop for Notebook {
    fn drop(&mut self) {
        // Best effort: cleaning the temporary folder removes the rest.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Pen {
    pub(super) fn open(path: &Path, settings: &Settings, worker: usize) -> anyhow::Result<Self> {
        let file = OpenOptions::new().write(true).open(path);
        Ok(Pen {
            file: file.with_context(|| format!("cannot open {}", path.display()))?,
            begin: worker * (settings.keys + 1),
            number: 0,
            answered: vec![Answered::default(); settings.keys],
        })
    }

    /// Records an operation before it starts.
    pub(super) fn begin(&mut self, key: usize, is_minus: bool) -> io::Result<()> {
        self.number += 1;
        self.write(self.begin, [self.number, key as u64, u64::from(is_minus), 0])
    }

    /// Records the answer: the key moved by so many units.
    pub(super) fn end(&mut self, key: usize, moved: i64) -> io::Result<()> {
        let answered = &mut self.answered[key];
        if moved < 0 {
            answered.given_back += moved.unsigned_abs();
        } else {
            answered.admitted += moved.unsigned_abs();
        }
        let line = [self.number, answered.admitted, answered.given_back, 0];
        self.write(self.begin + 1 + key, line)
    }

    fn write(&self, at: usize, line: Line) -> io::Result<()> {
        let mut bytes = [0; LINE];
        for (place, word) in bytes.chunks_exact_mut(8).zip(line) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        self.file.write_all_at(&bytes, (at * LINE) as u64)
    }
}

fn line(bytes: &[u8]) -> Line {
    std::array::from_fn(|word| u64::from_le_bytes(bytes[word * 8..][..8].try_into().expect("eight bytes")))
}

#[cfg(test)]
mod tests {
    use super::{Answered, Notebook, Notes, Pen, Settings};

    #[test]
    fn what_was_answered_is_there_and_what_was_not_is_in_doubt() {
        let settings = Settings { workers: 3, keys: 2, ..Settings::harness() };
        let notebook = Notebook::create(&settings).unwrap();
        let pens = [0, 1, 2].map(|worker| Pen::open(notebook.path(), &settings, worker).unwrap());
        let [mut first, mut second, _idle] = pens;
        for (key, moved) in [(0, 1), (1, 1), (0, 1), (0, -1), (1, 0)] {
            first.begin(key, moved < 0).unwrap();
            first.end(key, moved).unwrap();
        }
        first.begin(1, false).unwrap();
        second.begin(0, true).unwrap();
        // As after a kill: nothing is closed or written afterwards.
        let expected = [
            Answered { admitted: 2, given_back: 1, doubtful_up: 0, doubtful_down: 1 },
            Answered { admitted: 1, given_back: 0, doubtful_up: 1, doubtful_down: 0 },
        ];
        assert_eq!(notebook.read().unwrap(), Notes { keys: expected.to_vec(), operations: 5 });
        let path = notebook.path().to_owned();
        drop(notebook);
        assert!(!path.exists());
    }

    #[test]
    fn one_that_would_be_too_large_is_refused() {
        let settings = Settings { workers: 4_096, keys: 50_000_000, ..Settings::harness() };
        assert!(Notebook::create(&settings).unwrap_err().to_string().contains("-keys"));
    }
}
