//! The file `END`: how the log was left. The next start uses it to detect lost durable records, and
//! LSNs that may have been handed out but are not in the log.
//!
//! ```text
//!  0            8          12         16         24         32     36
//!  +------------+----------+----------+----------+----------+------+
//!  | TIDEEND\n  | version  | closed   | durable  | next lsn | crc  |     the same again at 4096
//!  +------------+----------+----------+----------+----------+------+
//! ```
//!
//! A process that opens the log writes where its records start, before it accepts any, and then
//! regularly updates the durable LSN (`high_water`). A process that closes the log writes its last
//! record once everything is durable. If the log ends before `durable`, records are
//! [missing](MissingTail). `closed` means a clean stop only if the log ends exactly at `durable`.
//!
//! The file is overwritten in place, which needs no space on a full disk. Its two copies are in
//! separate sectors, so a write that a power failure interrupts leaves the old content or the new.

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
/// Offset of the second copy: in another sector and another page than the first.
const SECOND_OFFSET: usize = 4096;

/// How a log was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogEnd {
    /// Whether the log was closed; `durable` is its last record then.
    pub(crate) closed: bool,
    /// A record that was durable, with all before it, when this was written; 0 if unknown.
    pub(crate) durable: Lsn,
    /// LSN of the next record; for a log that was not closed, the LSN at which its process started.
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

    /// Returns whether the log was closed after record `last`.
    pub(crate) fn is_closed_at(self, last: Lsn) -> bool {
        self.closed && self.durable == last
    }

    /// Returns what is missing from a log that ends at `last`: neither a kill nor a power failure
    /// removes durable records.
    pub(crate) fn missing(self, storage: &dyn Storage, last: Lsn) -> Option<MissingTail> {
        let durable = Some(self.durable).filter(|durable| *durable > last)?;
        Some(MissingTail { path: path(storage), durable, last })
    }

    /// Decodes a copy; `None` if it is damaged or of another version.
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
    /// Opens the file if it is among `names`, the names in the directory.
    pub(crate) fn find(storage: &dyn Storage, names: &[String]) -> io::Result<Option<Self>> {
        if !names.iter().any(|name| name == NAME) {
            return Ok(None);
        }
        Ok(Some(Self { file: storage.open(NAME)? }))
    }

    /// Creates the file atomically with its content.
    pub(crate) fn create(storage: &dyn Storage, end: LogEnd) -> io::Result<Self> {
        let temporary = format!("{NAME}{TEMPORARY_SUFFIX}");
        let file = Self { file: storage.create(&temporary)? };
        file.write(end)?;
        storage.rename(&temporary, NAME)?;
        storage.sync_dir()?;
        Ok(file)
    }

    /// Reads the content; `None` if neither copy is valid.
    pub(crate) fn read(&self) -> io::Result<Option<LogEnd>> {
        let mut bytes = [0; SECOND_OFFSET + COPY_BYTES];
        let filled = read_full(&*self.file, &mut bytes, 0)?;
        let bytes = &bytes[..filled];
        // The copies differ only after an interrupted write, on which nothing depends yet.
        Ok(LogEnd::decode(bytes).or_else(|| LogEnd::decode(bytes.get(SECOND_OFFSET..)?)))
    }

    /// Replaces the content, durably.
    pub(crate) fn write(&self, end: LogEnd) -> io::Result<()> {
        let copy = end.encode();
        let mut bytes = copy.clone();
        bytes.resize(SECOND_OFFSET, 0);
        bytes.extend_from_slice(&copy);
        write_all(&*self.file, &bytes, 0)?;
        self.file.sync_data()
    }
}

/// Returns the file and its content, if they exist and are valid. `names` are those of the
/// directory.
pub(crate) fn find(
    storage: &dyn Storage,
    names: &[String],
) -> Result<(Option<EndFile>, Option<LogEnd>), OpenError> {
    let failed = |error| {
        let what = format!(
            "reading {} (if the disk has lost it, remove it: the log then continues after a gap)",
            path(storage)
        );
        OpenError::storage(what, error)
    };
    let file = EndFile::find(storage, names).map_err(failed)?;
    let left = file.as_ref().map(EndFile::read).transpose().map_err(failed)?.flatten();
    Ok((file, left))
}

/// Removes the file, if there is one.
pub(crate) fn remove(storage: &dyn Storage) -> io::Result<()> {
    match storage.remove(NAME) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => storage.sync_dir(),
    }
}

/// Returns the file's path for messages.
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
