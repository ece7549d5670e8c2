//! Copies of the log's segments, for a judge who needs them after the server has let them go.
//!
//! A segment goes when the older of the two snapshots that are kept covers it. Whoever copies before every snapshot has had it
//! in hand since then: complete, because the snapshot before was behind it.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// See the module's documentation.
pub(crate) struct Archive {
    of: PathBuf,
    copies: TempDir,
    /// Segments behind which there was another one when they were copied: nothing is written to them any more.
    complete: BTreeSet<String>,
}

impl Archive {
    pub(crate) fn new(of: &Path) -> Self {
        let copies = tempfile::tempdir().expect("a directory");
        Self { of: of.to_owned(), copies, complete: BTreeSet::new() }
    }

    /// Copies what there is.
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

    /// Copies the rest of a log that nobody writes to any more; where all of it is.
    pub(crate) fn complete(&mut self) -> &Path {
        self.complete.clear();
        self.collect();
        self.copy("END");
        self.copies.path()
    }

    /// Whether the file was there.
    fn copy(&self, name: &str) -> bool {
        match std::fs::copy(self.of.join(name), self.copies.path().join(name)) {
            Ok(_) => true,
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            Err(error) => panic!("{name} cannot be copied: {error}"),
        }
    }
}

/// The records up to which the snapshots of a directory go, oldest first.
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
