//! What is sent: named files with their sizes and digests.

use std::collections::BTreeSet;
use std::fmt;
use std::io;

use tidemark_log::storage::{StorageFile, read_full};
use xxhash_rust::xxh3::Xxh3;

use super::fields::{Fields, put_bytes};

/// Most files of one snapshot.
pub const FILES_MAX: usize = 1024;

/// Longest name of a file.
const NAME_BYTES_MAX: usize = 96;

/// Longest description that goes with the files.
pub const META_BYTES_MAX: usize = 64 << 10;

/// Bytes that a digest reads at a time.
const READ_BYTES: usize = 1 << 20;

/// Name of a file of a snapshot, or of a block file. Never a path, and never another file of a
/// directory.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileName(String);

impl FileName {
    /// Accepts the names of the files that a snapshot consists of. The error says what is wrong.
    pub fn new(name: &str) -> Result<Self, InvalidName> {
        let stem = name.strip_prefix("snapshot-").or_else(|| name.strip_prefix("blocks-"));
        let stem = stem.and_then(|stem| stem.strip_suffix(".tide"));
        let is_plain = |stem: &str| {
            !stem.is_empty() && stem.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        };
        if name.len() <= NAME_BYTES_MAX && stem.is_some_and(is_plain) {
            Ok(Self(name.to_owned()))
        } else {
            Err(InvalidName(name.chars().take(NAME_BYTES_MAX).collect()))
        }
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the place of the file when names are given: what a snapshot refers to comes before it, and
    /// a full snapshot before one that is based on it.
    pub(super) fn rank(&self) -> u8 {
        match self.0.starts_with("blocks-") {
            true => 0,
            false if !self.0.contains("-on-") => 1,
            false => 2,
        }
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

/// A name that no file of a snapshot has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the name of a snapshot or block file")]
pub struct InvalidName(String);

/// XXH3 of a file's content, 128 bits: tells files apart and finds damage. It protects against no forger:
/// members trust each other.
pub(super) type Digest = u128;

/// A file to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileEntry {
    pub(super) name: FileName,
    pub(super) bytes: u64,
    pub(super) digest: Digest,
}

/// All files of a snapshot, and what the receiver needs to know of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileList {
    pub(super) meta: Vec<u8>,
    pub(super) files: Vec<FileEntry>,
}

impl FileList {
    /// Returns the name of a transfer of these files: the digest of the list.
    pub(super) fn transfer(&self) -> u128 {
        xxhash_rust::xxh3::xxh3_128(&self.encode())
    }

    pub(super) fn total_bytes(&self) -> u64 {
        self.files.iter().fold(0, |sum, file| sum.saturating_add(file.bytes))
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_bytes(&mut bytes, &self.meta);
        bytes.extend_from_slice(&(self.files.len() as u32).to_le_bytes());
        for file in &self.files {
            put_bytes(&mut bytes, file.name.0.as_bytes());
            bytes.extend_from_slice(&file.bytes.to_le_bytes());
            bytes.extend_from_slice(&file.digest.to_le_bytes());
        }
        bytes
    }

    /// Reads what [`encode`](Self::encode) wrote and checks the limits. The error is one sentence.
    pub(super) fn decode(fields: &mut Fields<'_>) -> Result<Self, String> {
        let cut = "the list of files is cut";
        let meta = fields.bytes().ok_or(cut)?.to_vec();
        let count = fields.u32().ok_or(cut)? as usize;
        if meta.len() > META_BYTES_MAX || count > FILES_MAX {
            return Err(format!(
                "{count} files and a description of {} bytes are more than the limits of {FILES_MAX} files and \
                 {META_BYTES_MAX} bytes",
                meta.len()
            ));
        }
        let mut names = BTreeSet::new();
        let mut files = Vec::new();
        for _ in 0..count {
            let name = fields.bytes().ok_or(cut)?;
            let name = FileName::new(&String::from_utf8_lossy(name)).map_err(|error| error.to_string())?;
            let bytes = fields.u64().ok_or(cut)?;
            let digest = fields.u128().ok_or(cut)?;
            if !names.insert(name.clone()) {
                return Err(format!("the file {name} is listed twice"));
            }
            files.push(FileEntry { name, bytes, digest });
        }
        Ok(Self { meta, files })
    }
}

/// Returns the digest of a file's first `bytes` bytes, or `None` if it has another size.
pub(super) fn digest_of(file: &dyn StorageFile, bytes: u64) -> io::Result<Option<Digest>> {
    if file.len()? != bytes {
        return Ok(None);
    }
    let mut hasher = Xxh3::new();
    let mut buffer = vec![0; READ_BYTES.min(bytes.max(1) as usize)];
    let mut offset = 0;
    while offset < bytes {
        let wanted = buffer.len().min((bytes - offset) as usize);
        if read_full(file, &mut buffer[..wanted], offset)? < wanted {
            return Ok(None);
        }
        hasher.update(&buffer[..wanted]);
        offset += wanted as u64;
    }
    Ok(Some(hasher.digest128()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_those_of_snapshot_and_block_files() {
        let good = [
            "snapshot-00000000000000000012.tide",
            "snapshot-00000000000000000012-on-00000000000000000007.tide",
            "blocks-00000000000000000003.tide",
        ];
        for name in good {
            assert_eq!(FileName::new(name).expect(name).as_str(), name);
        }
        let bad = [
            "",
            "vote",
            "LOCK",
            "blocks-.tide",
            "../snapshot-1.tide",
            "snapshot-../../etc/passwd.tide",
            "snapshot-1.tide/../vote",
            "snapshot-1\0.tide",
            "snapshot-1.tide.tmp",
            "/blocks-1.tide",
            "snapshot-é.tide",
        ];
        for name in bad {
            assert!(FileName::new(name).is_err(), "{name:?}");
        }
        let long = format!("snapshot-{}.tide", "1".repeat(NAME_BYTES_MAX));
        assert!(FileName::new(&long).is_err());
    }

    #[test]
    fn a_snapshot_gets_its_name_after_what_it_refers_to() {
        let mut names = ["snapshot-9-on-7.tide", "snapshot-7.tide", "blocks-1.tide"]
            .map(|name| FileName::new(name).expect(name));
        names.sort_by_key(FileName::rank);
        assert_eq!(names.map(|name| name.0), ["blocks-1.tide", "snapshot-7.tide", "snapshot-9-on-7.tide"]);
    }

    proptest! {
        #[test]
        fn a_list_is_read_as_it_is_written(
            meta in proptest::collection::vec(any::<u8>(), 0..40),
            files in proptest::collection::btree_map(0_u32..1000, (any::<u64>(), any::<u128>()), 0..9),
        ) {
            let files = files.into_iter().map(|(number, (bytes, digest))| {
                let name = FileName::new(&format!("blocks-{number}.tide")).expect("a name");
                FileEntry { name, bytes, digest }
            });
            let list = FileList { meta, files: files.collect() };
            let bytes = list.encode();
            prop_assert_eq!(FileList::decode(&mut Fields::new(&bytes)), Ok(list));
            for cut in 0..bytes.len() {
                prop_assert!(FileList::decode(&mut Fields::new(&bytes[..cut])).is_err());
            }
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = FileList::decode(&mut Fields::new(&bytes));
        }
    }
}
