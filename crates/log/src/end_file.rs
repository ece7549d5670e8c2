//! The file `END`: how the log was left, so that the next start knows whether durable records are gone, and whether any LSN
//! may have been handed out that is not in the log.
//!
//! ```text
//!  0            8          12         16         24         32     36
//!  +------------+----------+----------+----------+----------+------+
//!  | TIDEEND\n  | version  | closed   | durable  | next lsn | crc  |     the same again at 4096
//!  +------------+----------+----------+----------+----------+------+
//! ```
//!
//! A process that opens the log writes where its records begin, before it accepts any, and goes on to write which records
//! are durable (`high_water`). One that closes it writes, when everything is durable, which record is
//! the last. So the file is there as long as the log is. Of a log that ends before what it calls durable, records are
//! [missing](MissingTail). What it calls closed is a clean stop only if the log ends exactly there. It is overwritten in
//! place, which needs no space on a full disk; each of the two copies is in a sector of its own, so that a write that a
//! power failure interrupts leaves what was written before, or what was to be written.

use std::io;

use crate::Lsn;
use crate::error::{MissingTail, OpenError};
use crate::segment::TEMPORARY_SUFFIX;
use crate::storage::{Storage, StorageFile, read_full, write_all};

const NAME: &str = "END";
const MAGIC: [u8; 8] = *b"TIDEEND\n";
const VERSION: u32 = 1;
const COPY_BYTES: usize = 36;
const CHECKSUM_OFFSET: usize = COPY_BYTES - 4;
/// Where the second copy is: far enough that what ruins one sector, or a page, leaves it.
const SECOND_OFFSET: usize = 4096;

/// How a log was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogEnd {
    /// Whether the log was closed, and `durable` is its last record.
    pub(crate) closed: bool,
    /// A record that was durable, with all before it, when this was written; 0 if nothing is known of any.
    pub(crate) durable: Lsn,
    /// The LSN at which the next record is to begin; of a log that was not closed, that at which its process began.
    pub(crate) next: Lsn,
}

impl LogEnd {
    fn encode(self) -> Vec<u8> {
        let mut copy = Vec::with_capacity(COPY_BYTES);
        copy.extend_from_slice(&MAGIC);
        copy.extend_from_slice(&VERSION.to_le_bytes());
        copy.extend_from_slice(&u32::from(self.closed).to_le_bytes());
        copy.extend_from_slice(&self.durable.0.to_le_bytes());
        copy.extend_from_slice(&self.next.0.to_le_bytes());
        copy.extend_from_slice(&crc32c::crc32c(&copy).to_le_bytes());
        assert!(copy.len() == COPY_BYTES, "a copy of {} bytes", copy.len());
        copy
    }

    /// Whether the log was closed behind the record `last`.
    pub(crate) fn is_closed_at(self, last: Lsn) -> bool {
        self.closed && self.durable == last
    }

    /// What is missing of a log whose last record is `last`: neither a kill nor a power failure takes back what was durable.
    pub(crate) fn missing(self, storage: &dyn Storage, last: Lsn) -> Option<MissingTail> {
        let durable = Some(self.durable).filter(|durable| *durable > last)?;
        Some(MissingTail { path: path(storage), durable, last })
    }

    /// The content of a copy; `None` if it is damaged, or of another version.
    fn decode(copy: &[u8]) -> Option<Self> {
        let copy: &[u8; COPY_BYTES] = copy.first_chunk()?;
        let (covered, checksum) = copy.split_at(CHECKSUM_OFFSET);
        let rest = covered.strip_prefix(&MAGIC)?.strip_prefix(&VERSION.to_le_bytes())?;
        let (closed, rest) = rest.split_first_chunk()?;
        let (durable, rest) = rest.split_first_chunk()?;
        let (next, _) = rest.split_first_chunk()?;
        let (durable, next) = (Lsn(u64::from_le_bytes(*durable)), Lsn(u64::from_le_bytes(*next)));
        let closed = match u32::from_le_bytes(*closed) {
            0 => false,
            1 if durable < next => true,
            _ => return None,
        };
        let is_whole = checksum == crc32c::crc32c(covered).to_le_bytes();
        is_whole.then_some(Self { closed, durable, next })
    }
}

/// The file, held open, so that closing the log needs no descriptor.
#[derive(Debug)]
pub(crate) struct EndFile {
    file: Box<dyn StorageFile>,
}

impl EndFile {
    /// The file, if the directory has one, which is what `names` are of.
    pub(crate) fn find(storage: &dyn Storage, names: &[String]) -> io::Result<Option<Self>> {
        if !names.iter().any(|name| name == NAME) {
            return Ok(None);
        }
        Ok(Some(Self { file: storage.open(NAME)? }))
    }

    /// Makes the file, which appears with its content.
    pub(crate) fn create(storage: &dyn Storage, end: LogEnd) -> io::Result<Self> {
        let temporary = format!("{NAME}{TEMPORARY_SUFFIX}");
        let file = Self { file: storage.create(&temporary)? };
        file.write(end)?;
        storage.rename(&temporary, NAME)?;
        storage.sync_dir()?;
        Ok(file)
    }

    /// What it says; `None` if neither copy can be understood.
    pub(crate) fn read(&self) -> io::Result<Option<LogEnd>> {
        let mut bytes = [0; SECOND_OFFSET + COPY_BYTES];
        let filled = read_full(&*self.file, &mut bytes, 0)?;
        let bytes = &bytes[..filled];
        // They differ only if writing them was interrupted, when nothing depends on it yet.
        Ok(LogEnd::decode(bytes).or_else(|| LogEnd::decode(bytes.get(SECOND_OFFSET..)?)))
    }

    /// Replaces what it says, durably.
    pub(crate) fn write(&self, end: LogEnd) -> io::Result<()> {
        let copy = end.encode();
        let mut bytes = copy.clone();
        bytes.resize(SECOND_OFFSET, 0);
        bytes.extend_from_slice(&copy);
        write_all(&*self.file, &bytes, 0)?;
        self.file.sync_data()
    }
}

/// The file, and what it says, as far as that can be understood. `names` are those of the directory.
pub(crate) fn find(
    storage: &dyn Storage,
    names: &[String],
) -> Result<(Option<EndFile>, Option<LogEnd>), OpenError> {
    let failed = |error| {
        let what = format!(
            "reading {} (if the disk has lost it, remove it: the log then goes on behind a gap)",
            path(storage)
        );
        OpenError::storage(what, error)
    };
    let file = EndFile::find(storage, names).map_err(failed)?;
    let left = file.as_ref().map(EndFile::read).transpose().map_err(failed)?.flatten();
    Ok((file, left))
}

/// Where the file is, to be shown to a person.
pub(crate) fn path(storage: &dyn Storage) -> String {
    storage.path(NAME)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryStorage;

    const CLOSED: LogEnd = LogEnd { closed: true, durable: Lsn(41), next: Lsn(42) };

    #[test]
    fn it_says_what_was_written_last() {
        let storage = MemoryStorage::new();
        assert!(EndFile::find(&storage, &storage.list().expect("names")).expect("looks").is_none());
        let file = EndFile::create(&storage, CLOSED).expect("is made");
        assert_eq!(file.read().expect("reads"), Some(CLOSED));
        let open = LogEnd { closed: false, durable: Lsn(99), next: Lsn(42) };
        file.write(open).expect("writes");
        let file =
            EndFile::find(&storage, &storage.list().expect("names")).expect("looks").expect("is there");
        assert_eq!(file.read().expect("reads"), Some(open));
    }

    #[test]
    fn one_copy_is_enough_and_a_flipped_bit_is_never_believed() {
        let storage = MemoryStorage::new();
        let file = EndFile::create(&storage, CLOSED).expect("is made");
        let whole = storage.read(NAME).expect("is there");
        for bit in 0..COPY_BYTES * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            storage.put(NAME, bytes.clone());
            let file = EndFile::find(&storage, &[NAME.to_owned()]).expect("looks").expect("is there");
            assert_eq!(file.read().expect("reads"), Some(CLOSED), "bit {bit}");
            bytes[SECOND_OFFSET + bit / 8] ^= 1 << (bit % 8);
            storage.put(NAME, bytes);
            let file = EndFile::find(&storage, &[NAME.to_owned()]).expect("looks").expect("is there");
            assert_eq!(file.read().expect("reads"), None, "bit {bit}");
        }
        for size in [0, 1, COPY_BYTES - 1] {
            storage.put(NAME, whole[..size].to_vec());
            let file = EndFile::find(&storage, &[NAME.to_owned()]).expect("looks").expect("is there");
            assert_eq!(file.read().expect("reads"), None, "{size} bytes");
        }
        drop(file);
    }

    #[test]
    fn a_log_that_ends_before_what_was_durable_misses_records() {
        let storage = MemoryStorage::new();
        let missing = |end: LogEnd, last| end.missing(&storage, Lsn(last));
        let found = missing(CLOSED, 40).expect("one is missing");
        assert_eq!((found.durable, found.last), (Lsn(41), Lsn(40)));
        assert_eq!(found.path, path(&storage));
        assert!(missing(CLOSED, 0).is_some());
        assert_eq!((missing(CLOSED, 41), missing(CLOSED, 42)), (None, None));
        let open = LogEnd { closed: false, ..CLOSED };
        assert_eq!(missing(open, 40).map(|missing| missing.durable), Some(Lsn(41)));
        assert_eq!((missing(open, 41), missing(LogEnd { durable: Lsn::ZERO, ..open }, 0)), (None, None));
        assert_eq!(missing(LogEnd { closed: true, durable: Lsn::ZERO, next: Lsn(1) }, 0), None);
    }

    #[test]
    fn a_log_that_ends_behind_where_it_goes_on_is_not_believed() {
        let wrong = LogEnd { closed: true, durable: Lsn(42), next: Lsn(42) };
        assert_eq!(LogEnd::decode(&wrong.encode()), None);
    }

    #[test]
    fn a_write_that_a_power_failure_interrupts_leaves_the_old_content_or_the_new() {
        let storage = MemoryStorage::with_crashes();
        let file = EndFile::create(&storage, CLOSED).expect("is made");
        let open = LogEnd { closed: false, durable: Lsn(57), next: Lsn(42) };
        let bytes = {
            file.write(open).expect("writes");
            storage.read(NAME).expect("is there")
        };
        file.write(CLOSED).expect("writes");
        storage.open(NAME).expect("opens").write_at(&bytes, 0).expect("is not synced");
        let mut found = Vec::new();
        for seed in 0..100 {
            let survivor = storage.crash(seed);
            let names = survivor.list().expect("names");
            let file = EndFile::find(&survivor, &names).expect("looks").expect("is there");
            let left = file.read().expect("reads").expect("a copy is whole");
            assert!(left == CLOSED || left == open, "seed {seed}: {left:?}");
            found.push(left);
        }
        assert!(found.contains(&CLOSED) && found.contains(&open));
    }
}
