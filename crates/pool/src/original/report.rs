//! Findings in the original's files, for people.

use super::header::Header;
use super::numbering::Setback;
use super::place::LogPosition;
use super::record::Unreadable;
use super::snapshot::SnapshotHash;
use std::fmt;

/// Format of the records in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated fields.
    StringLine,
    /// One JSON object per line.
    Json,
    /// Both: the configuration was changed while the file was in use.
    Both,
}

/// Findings in one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileReport {
    /// Its number: 7 for `wal.007`.
    pub number: u64,
    /// Whether the file is not one of the original's, so it was not read.
    pub foreign: bool,
    /// Its header; `None` if it has none, because nothing was written.
    pub header: Option<Header>,
    /// Format of its records; `None` if it has none.
    pub format: Option<Format>,
    /// Number of all records.
    pub records: u64,
    /// Number of draws that gave an item.
    pub draws: u64,
    /// Number of draws that gave nothing.
    pub failed_draws: u64,
    /// Number of changes of an item's amounts.
    pub updates: u64,
    /// Number of snapshot records.
    pub snapshots: u64,
    /// Its size, including zero bytes at the end of a mapped file.
    pub bytes: u64,
    /// Number of zero bytes at its end.
    pub zero_bytes: u64,
    /// The last line, if its end is missing.
    pub cut: Option<Cut>,
    /// Number of lines that are not records.
    pub unreadable: u64,
    /// Number of records after the length in its header, which the original does not read.
    pub records_beyond_header: u64,
    /// Number of these that are draws that gave an item.
    pub draws_beyond_header: u64,
}

/// The end of a file that is omitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Offset of its beginning.
    pub offset: u64,
    /// Its length.
    pub bytes: u64,
}

/// A line that is not a record, or not a plausible one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damage {
    /// Beginning of the line.
    pub place: LogPosition,
    /// What is wrong with it.
    pub reason: Unreadable,
}

/// Place of `snapshot.json` in the order of the records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// At the last snapshot record: later records are not in the snapshot.
    AtItsRecord(LogPosition),
    /// After all records: its snapshot record was never written.
    BehindAll,
    /// No file has a snapshot record: the snapshot is taken to contain all draws up to its number.
    ByNumber,
}

/// A finding to consider before the recovered stock is used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// There is neither a usable snapshot nor a configuration: there are counts, but no stock.
    NoCatalogue,
    /// The snapshot was changed or is damaged.
    SnapshotChanged {
        /// Hash in the file.
        stated: Box<str>,
        /// Hash of its catalogue.
        computed: Box<str>,
        /// Whether it is used nevertheless.
        used: bool,
    },
    /// The snapshot has no hash.
    SnapshotUnproven,
    /// The snapshot was taken after the original had forgotten draws, so it misses them.
    SnapshotForgets,
    /// Draws after the snapshot record have numbers up to the snapshot's: a rotation carried them
    /// over. The snapshot does not contain them.
    CarriedOver {
        /// Number of these records.
        draws: u64,
    },
    /// The snapshot is newer than all records, so it contains them.
    SnapshotIsNewest {
        /// Number of records with draw numbers.
        draws: u64,
    },
    /// No configuration was given; the snapshot was taken before the first draw, and replaces it.
    HistoryFromSnapshot,
    /// Snapshot and history give different stock.
    StocksDiffer {
        /// Number of items that differ.
        items: u64,
    },
    /// Draw numbers are missing: the draws were lost, or are in missing files. The history does not
    /// contain them.
    MissingDraws {
        /// Number of missing draws.
        draws: u64,
    },
    /// File numbers are missing.
    MissingFiles {
        /// Number of the file before the gap.
        after: u64,
        /// Number of the file after the gap.
        before: u64,
    },
    /// Two items of a catalogue have the same id. The second is omitted.
    DuplicateItem {
        /// The id.
        id: Box<str>,
    },
    /// A weight is negative; it becomes 0.
    NegativeWeight {
        /// Id of the item.
        id: Box<str>,
        /// The weight.
        weight: i64,
    },
    /// A quantity is below −1; it becomes 0.
    NegativeQuantity {
        /// Id of the item.
        id: Box<str>,
        /// The quantity.
        quantity: i64,
    },
    /// A header has another version, so the records may have another meaning.
    OtherVersion {
        /// Number of the file.
        file: u64,
        /// The version.
        version: u32,
    },
    /// A file has a damaged header. Its records were read.
    DamagedHeader {
        /// Number of the file.
        file: u64,
        /// Value in place of the magic.
        magic: u32,
    },
    /// A file was not closed, and other files follow: the original was killed, and started again.
    /// If there are several such files, this is the last.
    NotClosed {
        /// Number of the file.
        file: u64,
    },
    /// There were too many items outside the catalogues to count them separately.
    UnknownItems {
        /// Number of draws of the remaining ones.
        draws: u64,
    },
    /// There are more notes than are listed.
    More {
        /// Number of notes not listed.
        notes: u64,
    },
}

/// Findings of a recovery.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The files, in order.
    pub files: Vec<FileReport>,
    /// Number of draws that gave an item, over all files, without repetitions.
    pub draws: u64,
    /// Number of draws that gave nothing.
    pub failed_draws: u64,
    /// Number of changes of an item's amounts.
    pub updates: u64,
    /// Number of draws that consecutive rotations wrote again.
    pub repeated: u64,
    /// Number of draws that the original would forget if it were started now.
    pub forgotten: u64,
    /// Number of draws of each item, over all files, in no particular order.
    pub drawn: Vec<(Box<str>, u64)>,
    /// The first lines that are not records.
    pub damages: Vec<Damage>,
    /// Number of lines that are not records.
    pub damages_total: u64,
    /// The first places where draw numbers go back.
    pub setbacks: Vec<Setback>,
    /// Number of places where draw numbers go back.
    pub setbacks_total: u64,
    /// Place of the snapshot; `None` if none is used.
    pub placement: Option<Placement>,
    /// Other findings.
    pub notes: Vec<Note>,
}

impl Report {
    /// Returns whether records may be missing: a file is not the original's, lines are not records,
    /// or numbers of files or draws are missing. Then the recovered stock may be too high.
    pub fn has_gaps(&self) -> bool {
        let is_gap = |note: &Note| matches!(note, Note::MissingDraws { .. } | Note::MissingFiles { .. });
        self.damages_total > 0
            || self.files.iter().any(|file| file.foreign || file.unreadable > 0)
            || self.notes.iter().any(is_gap)
    }

    /// Returns the files after which the original was killed and started again, each with the
    /// number of draws up to its end. Without a crash, a file is closed before the next one begins.
    pub(super) fn killed(&self) -> impl Iterator<Item = (u64, u64)> {
        let newest = self.files.iter().filter(|file| file.header.is_some()).map(|file| file.number).max();
        let draws = self.files.iter().scan(0, |draws, file| {
            *draws += file.draws;
            Some(*draws)
        });
        let killed = move |file: &FileReport| {
            let closed = file.header.is_none_or(|header| header.closed);
            !closed && file.records > 0 && Some(file.number) < newest
        };
        self.files
            .iter()
            .zip(draws)
            .filter(move |(file, _)| killed(file))
            .map(|(file, draws)| (file.number, draws))
    }
}

impl fmt::Display for FileReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.foreign {
            return write!(f, "wal.{:03}: no log of the original, not read", self.number);
        }
        let format = match self.format {
            None => "no records",
            Some(Format::StringLine) => "string_line",
            Some(Format::Json) => "json",
            Some(Format::Both) => "string_line and json",
        };
        write!(
            f,
            "wal.{:03}: {format}, {} bytes, {} records ({} draws, {} failed draws, {} updates, {} snapshots)",
            self.number,
            self.bytes,
            self.records,
            self.draws,
            self.failed_draws,
            self.updates,
            self.snapshots,
        )?;
        if self.records_beyond_header > 0 {
            write!(f, ", {} of them behind the length in the header", self.records_beyond_header)?;
        }
        if let Some(cut) = self.cut {
            write!(f, ", {} bytes of an unfinished record cut off at byte {}", cut.bytes, cut.offset)?;
        }
        if self.unreadable > 0 {
            write!(f, ", {} lines unreadable", self.unreadable)?;
        }
        Ok(())
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.reason)
    }
}

impl fmt::Display for Setback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: the number of draws goes back from {} to {}", self.place, self.from, self.to)?;
        match (self.after_snapshot, self.to) {
            (true, 1) => {
                write!(f, ": the original began anew and forgot {} draws before", self.draws_before)
            }
            (true, _) => write!(f, ": the original had forgotten draws when it wrote a snapshot"),
            (false, _) => write!(f, ": the original had forgotten draws when it was started"),
        }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtItsRecord(place) => write!(f, "the snapshot was written at {place}"),
            Self::BehindAll => write!(f, "the snapshot was written after all records"),
            Self::ByNumber => write!(f, "no record says when the snapshot was written"),
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCatalogue => write!(
                f,
                "there is neither a usable snapshot nor a configuration: give the configuration's catalogue to get the stock"
            ),
            Self::SnapshotChanged { stated, computed, used } => write!(
                f,
                "the snapshot was changed or is damaged: it states the hash {stated} and has {computed}; it is {}",
                if *used { "used all the same" } else { "not used" },
            ),
            Self::SnapshotUnproven => {
                write!(f, "the snapshot has no hash, so changes of it cannot be noticed")
            }
            Self::SnapshotForgets => write!(
                f,
                "the snapshot was written after the original had forgotten draws: its stock is too high by them"
            ),
            Self::CarriedOver { draws } => write!(
                f,
                "{draws} draws behind the snapshot's record have numbers of before: a rotation carried them over, and the snapshot \
                 does not have them"
            ),
            Self::SnapshotIsNewest { draws } => write!(
                f,
                "the snapshot is newer than all records: the {draws} draws behind the last record of a snapshot are in it"
            ),
            Self::HistoryFromSnapshot => write!(
                f,
                "no configuration is given: the history begins with the snapshot, which was taken before the first draw"
            ),
            Self::StocksDiffer { items } => {
                write!(f, "snapshot and history give different amounts for {items} items")
            }
            Self::MissingDraws { draws } => {
                write!(f, "{draws} numbers of draws are jumped over: the history does not have these draws")
            }
            Self::MissingFiles { after, before } => {
                write!(f, "there is no file between wal.{after:03} and wal.{before:03}")
            }
            Self::DuplicateItem { id } => {
                write!(f, "item {id:?} is in a catalogue more than once: only the first of them is kept")
            }
            Self::NegativeWeight { id, weight } => {
                write!(f, "item {id:?} has the weight {weight}: it becomes 0, so the item is not drawn")
            }
            Self::NegativeQuantity { id, quantity } => {
                write!(f, "item {id:?} has the quantity {quantity}: it becomes 0")
            }
            Self::OtherVersion { file, version } => {
                write!(f, "wal.{file:03} is of version {version}: only version 1 is known")
            }
            Self::DamagedHeader { file, magic } => write!(
                f,
                "wal.{file:03} has a damaged header (magic number {magic:#010x}): its records were read all the same"
            ),
            Self::NotClosed { file } => write!(
                f,
                "wal.{file:03} was not closed, and a file follows it: the original was killed then, and began anew"
            ),
            Self::UnknownItems { draws } => {
                write!(f, "{draws} draws are of further items that no catalogue has")
            }
            Self::More { notes } => write!(f, "{notes} more of these are not listed"),
        }
    }
}

impl fmt::Display for Report {
    /// Writes a line for each file, damage, setback and note.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for file in &self.files {
            writeln!(f, "{file}")?;
        }
        writeln!(
            f,
            "{} draws, {} failed draws, {} updates; the original would forget {} of the draws",
            self.draws, self.failed_draws, self.updates, self.forgotten,
        )?;
        if self.repeated > 0 {
            writeln!(f, "{} draws are written a second time, and counted once", self.repeated)?;
        }
        for damage in &self.damages {
            writeln!(f, "{damage}")?;
        }
        if self.damages_total > self.damages.len() as u64 {
            writeln!(f, "{} unreadable lines in all", self.damages_total)?;
        }
        for setback in &self.setbacks {
            writeln!(f, "{setback}")?;
        }
        if self.setbacks_total > self.setbacks.len() as u64 {
            writeln!(f, "numbers of draws go back {} times in all", self.setbacks_total)?;
        }
        if let Some(placement) = self.placement {
            writeln!(f, "{placement}")?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "{note}"))
    }
}

impl Note {
    /// Returns the note about a snapshot's hash, if there is anything to report.
    pub(super) fn of_hash(hash: &SnapshotHash, used: bool) -> Option<Self> {
        match hash {
            SnapshotHash::Matches => None,
            SnapshotHash::Absent => Some(Self::SnapshotUnproven),
            SnapshotHash::Differs { stated, computed } => {
                Some(Self::SnapshotChanged { stated: stated.clone(), computed: computed.clone(), used })
            }
        }
    }
}
