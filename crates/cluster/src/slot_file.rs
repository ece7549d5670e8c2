//! A small file that no crash and no single damage loses: two slots with the same content.
//!
//! ```text
//! slot   crc u32 (of the rest), magic 4 B, sequence u64, length u32, content up to 64 B, zeros
//! file   slot 0 in the first 4 KiB, slot 1 in the next
//! ```
//!
//! A save writes and syncs one slot after the other. A torn write breaks a slot while the other has the
//! content before or this one; damage to one slot later loses nothing. The content is that of the valid
//! slot with the higher sequence; a new file has slots of sequence 0 without content.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const SLOT_BYTES: usize = 4096;
const HEADER_BYTES: usize = 20;
/// A file contains what its owner may read only, like the log beside it.
const FILE_MODE: u32 = 0o600;

/// Longest content. Bytes.
pub(crate) const CONTENT_BYTES_MAX: usize = 64;

/// What a slot file has; none before the first save.
pub(crate) type Content = Option<Vec<u8>>;

/// Name and kind of a slot file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotName {
    pub(crate) name: &'static str,
    pub(crate) magic: [u8; 4],
}

/// Durable content of at most 64 bytes. Saving costs two writes of 4 KiB, each with a sync.
#[derive(Debug)]
pub(crate) struct SlotFile {
    path: PathBuf,
    magic: [u8; 4],
    file: File,
    /// Sequence of the newest content; 0 before the first one.
    sequence: u64,
    /// Set when a save has failed: what the disk has is unknown until the next open.
    is_failed: bool,
}

/// Why a slot file cannot be opened.
#[derive(Debug)]
pub(crate) enum SlotError {
    Io(io::Error),
    /// Neither slot is valid. What the file had is lost.
    Damaged {
        path: PathBuf,
        what: &'static str,
    },
}

impl From<io::Error> for SlotError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// A valid slot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Slot {
    /// Counts the saves; 0 before the first one.
    sequence: u64,
    content: Vec<u8>,
}

impl SlotFile {
    /// Creates the file without content, durably. Replaces one that is there.
    pub(crate) fn create(directory: &Path, name: SlotName) -> io::Result<Self> {
        let SlotName { name, magic } = name;
        // The name appears with the whole file behind it: a crash leaves no file of another size.
        let (path, temporary) = (directory.join(name), directory.join(format!("{name}.tmp")));
        let mut options = OpenOptions::new();
        let file =
            options.read(true).write(true).create(true).truncate(true).mode(FILE_MODE).open(&temporary)?;
        let empty = Slot { sequence: 0, content: Vec::new() }.encode(magic);
        file.write_all_at(&[empty, empty].concat(), 0)?;
        file.sync_all()?;
        std::fs::rename(&temporary, &path)?;
        File::open(directory)?.sync_all()?;
        Ok(Self { path, magic, file, sequence: 0, is_failed: false })
    }

    /// Opens the file and returns the newest content, which is durable, or `None` without a file.
    pub(crate) fn open(directory: &Path, name: SlotName) -> Result<Option<(Self, Content)>, SlotError> {
        let SlotName { name, magic } = name;
        let path = directory.join(name);
        let file = match OpenOptions::new().read(true).write(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let mut bytes = vec![0; 2 * SLOT_BYTES];
        if file.metadata()?.len() != bytes.len() as u64 {
            return Err(SlotError::Damaged { path, what: "its size is not that of two slots" });
        }
        file.read_exact_at(&mut bytes, 0)?;
        let Some(newest) = newest(&bytes, magic) else {
            return Err(SlotError::Damaged { path, what: "neither of its slots is valid" });
        };
        // A killed process may have left a slot that is written and not synced.
        file.sync_data()?;
        let mut opened = Self { path, magic, file, sequence: newest.sequence, is_failed: false };
        for (index, slot) in bytes.chunks_exact(SLOT_BYTES).enumerate() {
            if Slot::read(slot, magic).as_ref() != Some(&newest) {
                opened.write(index, &newest)?;
            }
        }
        Ok(Some((opened, (newest.sequence > 0).then_some(newest.content))))
    }

    /// Returns the number of the file in its file system. A copy has another one.
    pub(crate) fn inode(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.ino())
    }

    /// Makes the content durable. After an error it is unknown whether this content or the one before is
    /// there, and every later save fails.
    ///
    /// # Panics
    /// If the content is longer than [`CONTENT_BYTES_MAX`].
    pub(crate) fn save(&mut self, content: &[u8]) -> io::Result<()> {
        assert!(content.len() <= CONTENT_BYTES_MAX, "a content of {} bytes", content.len());
        if self.is_failed {
            return Err(io::Error::other(format!("{}: an earlier save failed", self.path.display())));
        }
        // A sync that failed may have dropped the bytes: no later sync proves anything.
        self.is_failed = true;
        let slot = Slot { sequence: self.sequence + 1, content: content.to_vec() };
        self.write(0, &slot)?;
        self.write(1, &slot)?;
        self.sequence = slot.sequence;
        self.is_failed = false;
        Ok(())
    }

    fn write(&mut self, index: usize, slot: &Slot) -> io::Result<()> {
        self.file.write_all_at(&slot.encode(self.magic), (index * SLOT_BYTES) as u64)?;
        self.file.sync_data()
    }
}

impl Slot {
    fn encode(&self, magic: [u8; 4]) -> [u8; SLOT_BYTES] {
        let mut slot = [0; SLOT_BYTES];
        slot[4..8].copy_from_slice(&magic);
        slot[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        slot[16..20].copy_from_slice(&(self.content.len() as u32).to_le_bytes());
        slot[HEADER_BYTES..][..self.content.len()].copy_from_slice(&self.content);
        let checksum = crc32c::crc32c(&slot[4..]);
        slot[..4].copy_from_slice(&checksum.to_le_bytes());
        slot
    }

    fn read(slot: &[u8], magic: [u8; 4]) -> Option<Self> {
        let sequence = u64::from_le_bytes(*slot[8..].first_chunk()?);
        let length = u32::from_le_bytes(*slot[16..].first_chunk()?) as usize;
        let is_valid = crc32c::crc32c(&slot[4..]).to_le_bytes() == slot[..4]
            && slot[4..8] == magic
            && length <= CONTENT_BYTES_MAX;
        is_valid.then(|| Self { sequence, content: slot[HEADER_BYTES..][..length].to_vec() })
    }
}

/// Returns the valid slot with the higher sequence.
fn newest(file: &[u8], magic: [u8; 4]) -> Option<Slot> {
    file.chunks_exact(SLOT_BYTES).filter_map(|slot| Slot::read(slot, magic)).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs;

    const NAME: SlotName = SlotName { name: "small", magic: *b"TEST" };
    const FIRST: &[u8] = b"term 4 for node 2";
    const SECOND: &[u8] = b"term 5 for node 1, committed";

    /// Saves votes in a new directory and returns it with the bytes of the file.
    fn saved(votes: &[&[u8]]) -> (tempfile::TempDir, Vec<u8>) {
        let directory = tempfile::tempdir().expect("a directory");
        let mut file = SlotFile::create(directory.path(), NAME).expect("a new file");
        votes.iter().for_each(|vote| file.save(vote).expect("saved"));
        let bytes = fs::read(directory.path().join(NAME.name)).expect("the file");
        (directory, bytes)
    }

    fn open(directory: &tempfile::TempDir) -> (SlotFile, Option<Vec<u8>>) {
        SlotFile::open(directory.path(), NAME).expect("a valid slot").expect("a file")
    }

    fn opened(directory: &tempfile::TempDir, bytes: &[u8]) -> Result<Option<Vec<u8>>, SlotError> {
        fs::write(directory.path().join(NAME.name), bytes).expect("a file");
        SlotFile::open(directory.path(), NAME).map(|found| found.expect("a file").1)
    }

    #[test]
    fn the_newest_content_is_there_after_each_save() {
        let (directory, _) = saved(&[]);
        let votes: [&[u8]; 4] = [FIRST, &[], SECOND, &[9; CONTENT_BYTES_MAX]];
        for vote in votes {
            let (mut file, _) = open(&directory);
            file.save(vote).expect("saved");
            let (_, found) = open(&directory);
            assert_eq!(found.as_deref(), Some(vote));
        }
    }

    #[test]
    fn a_save_that_is_torn_anywhere_leaves_this_vote_or_the_one_before() {
        for before in [&[][..], &[FIRST]] {
            let (_, old) = saved(before);
            let (directory, new) = saved(&[before, &[SECOND]].concat());
            let old_vote = newest(&old, NAME.magic).expect("a valid slot");
            for torn in 0..=new.len() {
                let bytes = [&new[..torn], &old[torn..]].concat();
                let found = newest(&bytes, NAME.magic).expect("one slot is whole");
                let is_new = found.content == SECOND;
                assert!(is_new || found == old_vote, "torn at {torn}: {found:?}");
                if torn % 511 == 0 {
                    // What was read once is read again.
                    let vote = (found.sequence > 0).then_some(found.content);
                    assert_eq!(opened(&directory, &bytes).expect("a valid slot"), vote, "torn at {torn}");
                    assert_eq!(open(&directory).1, vote, "torn at {torn}");
                }
            }
        }
    }

    #[test]
    fn no_flipped_bit_loses_the_content() {
        let (directory, bytes) = saved(&[FIRST, SECOND]);
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(
                newest(&flipped, NAME.magic).expect("the other slot is valid").content,
                SECOND,
                "bit {bit}"
            );
            if bit % 1997 == 0 {
                assert_eq!(
                    opened(&directory, &flipped).expect("a vote").as_deref(),
                    Some(SECOND),
                    "bit {bit}"
                );
                let repaired = fs::read(directory.path().join(NAME.name)).expect("the file");
                assert_eq!(repaired, bytes, "bit {bit} is repaired");
            }
        }
    }

    #[test]
    fn two_broken_slots_are_an_error() {
        let (directory, bytes) = saved(&[FIRST]);
        let mut broken = bytes.clone();
        broken[30] ^= 1;
        broken[SLOT_BYTES + 40] ^= 1;
        let zeros = vec![0; bytes.len()];
        let longer = [&bytes[..], &[0]].concat();
        for damaged in [&broken, &zeros, &bytes[..SLOT_BYTES].to_vec(), &Vec::new(), &longer] {
            assert!(matches!(opened(&directory, damaged), Err(SlotError::Damaged { .. })));
            assert_eq!(fs::read(directory.path().join(NAME.name)).expect("the file"), *damaged);
        }
    }

    #[test]
    fn a_creation_that_was_interrupted_is_made_again() {
        let directory = tempfile::tempdir().expect("a directory");
        fs::write(directory.path().join("small.tmp"), b"half").expect("a file");
        assert!(SlotFile::open(directory.path(), NAME).expect("no file").is_none());
        let mut file = SlotFile::create(directory.path(), NAME).expect("a new file");
        assert_eq!(open(&directory).1, None);
        file.save(FIRST).expect("saved");
        assert_eq!(open(&directory).1.as_deref(), Some(FIRST));
    }

    #[test]
    fn the_file_of_another_kind_is_no_file_of_this_one() {
        let (directory, _) = saved(&[FIRST]);
        let other = SlotName { magic: *b"ELSE", ..NAME };
        assert!(matches!(SlotFile::open(directory.path(), other), Err(SlotError::Damaged { .. })));
    }

    #[test]
    fn after_a_failed_save_no_other_succeeds() {
        let (directory, _) = saved(&[FIRST]);
        let (mut file, _) = open(&directory);
        let writable =
            std::mem::replace(&mut file.file, File::open(directory.path().join(NAME.name)).expect("it"));
        file.save(SECOND).expect_err("the descriptor is read-only");
        file.file = writable;
        let error = file.save(SECOND).expect_err("the file is failed").to_string();
        assert!(error.contains("an earlier save failed"), "{error}");
        assert_eq!(open(&directory).1.as_deref(), Some(FIRST));
    }

    proptest! {
        #[test]
        fn any_bytes_are_no_slot(
            first in proptest::collection::vec(any::<u8>(), 0..80),
            second in proptest::collection::vec(any::<u8>(), 0..80),
        ) {
            let directory = tempfile::tempdir().expect("a directory");
            let mut bytes = vec![0; 2 * SLOT_BYTES];
            bytes[..first.len()].copy_from_slice(&first);
            bytes[SLOT_BYTES..][..second.len()].copy_from_slice(&second);
            prop_assert!(opened(&directory, &bytes).is_err());
        }
    }
}
