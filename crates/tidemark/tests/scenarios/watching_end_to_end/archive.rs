//! Copies of the log's segments, for the judge, which needs them after the server has removed them.
//!
//! The server removes a segment when the older of its two kept snapshots covers it. A copy that is
//! taken before every snapshot is therefore complete: the segment's last record precedes an earlier
//! snapshot.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Copied segments of one log.
pub(crate) struct Archive {
    of: PathBuf,
    copies: TempDir,
    /// Segments that were followed by another one when they were copied, so they are never written
    /// again.
    complete: BTreeSet<String>,
}

impl Archive {
    pub(crate) fn new(of: &Path) -> Self {
        let copies = tempfile::tempdir().expect("a directory");
        Self { of: of.to_owned(), copies, complete: BTreeSet::new() }
    }

    /// Copies all segments that exist.
    pub(crate) fn collect(&mut self) {
        let mut segments: Vec<String> = names_in(&self.of);
        segments.retain(|name| name.starts_with("segment-"));
        segments.sort();
        let Some(last) = segments.pop() else { return };
        for name in segments {
            if !self.complete.contains(&name) && self.copy(&name) {
                self.complete.insert(name);
            }
        }
        self.copy(&last);
    }

    /// Copies the rest of a log that is no longer written; returns the directory with the whole
    /// log.
    pub(crate) fn complete(&mut self) -> &Path {
        self.complete.clear();
        self.collect();
        self.copy("END");
        self.copies.path()
    }

    /// Copies a file; returns whether it existed.
    fn copy(&self, name: &str) -> bool {
        match std::fs::copy(self.of.join(name), self.copies.path().join(name)) {
            Ok(_) => true,
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            Err(error) => panic!("{name} cannot be copied: {error}"),
        }
    }
}

/// Returns the LSNs of the snapshots in a directory, oldest first.
pub(crate) fn snapshots_in(directory: &Path) -> Vec<u64> {
    let lsn = |name: &String| name.strip_prefix("snapshot-")?.strip_suffix(".tide")?.parse().ok();
    let mut lsns: Vec<u64> = names_in(directory).iter().filter_map(lsn).collect();
    lsns.sort_unstable();
    lsns
}

fn names_in(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("the data directory");
    entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}
