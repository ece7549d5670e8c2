//! What was found in the original's files, for people to read.

use super::header::Header;
use super::numbering::Setback;
use super::place::Place;
use super::record::Unreadable;
use super::snapshot::SnapshotHash;
use std::fmt;

/// How the records of a file are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Fields between commas.
    StringLine,
    /// One JSON object per line.
    Json,
    /// Some so, some so: the configuration was changed while the file was in use.
    Both,
}

/// What one file has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileReport {
    /// Its number: 7 for `wal.007`.
    pub number: u64,
    /// Whether it is none of the original's files, so nothing of it was read.
    pub foreign: bool,
    /// What its header claims; `None` if it has none, because nothing was written.
    pub header: Option<Header>,
    /// How its records are written; `None` if it has none.
    pub format: Option<Format>,
    /// All records.
    pub records: u64,
    /// Draws that got something.
    pub draws: u64,
    /// Draws that got nothing.
    pub failed_draws: u64,
    /// Changes of an item's amounts.
    pub updates: u64,
    /// Notes that `snapshot.json` was written.
    pub snapshots: u64,
    /// Its size, with the zero bytes at the end of a mapped file.
    pub bytes: u64,
    /// The zero bytes at its end.
    pub zero_bytes: u64,
    /// The last line, if its end is missing.
    pub cut: Option<Cut>,
    /// Lines that are no record.
    pub unreadable: u64,
    /// Records behind the length that its header claims, which the original does not read.
    pub records_beyond_header: u64,
    /// Those of them that are draws that got something.
    pub draws_beyond_header: u64,
}

/// The end of a file that is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Where it begins.
    pub offset: u64,
    /// How long it is.
    pub bytes: u64,
}

/// Something that is no record, or none that can be true.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damage {
    /// Where the line begins.
    pub place: Place,
    /// What is wrong with it.
    pub reason: Unreadable,
}

/// Where `snapshot.json` belongs in the order of the records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// At the last note of a snapshot: the records behind it are not in it.
    AtItsRecord(Place),
    /// Behind all records: the note of it was never written.
    BehindAll,
    /// No file notes a snapshot: draws up to its number are taken as in it.
    ByNumber,
}

/// Something to know before going on with what was recovered.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// Neither a usable snapshot nor a configuration: there are counts, but no stock.
    NoCatalogue,
    /// The snapshot was changed or is damaged.
    SnapshotChanged {
        /// The hash in the file.
        stated: Box<str>,
        /// The hash of its catalogue.
        computed: Box<str>,
        /// Whether it is used all the same.
        used: bool,
    },
    /// The snapshot has no hash.
    SnapshotUnproven,
    /// The snapshot was taken after the original had forgotten draws, so they are missing in it.
    SnapshotForgets,
    /// Draws behind the note of the snapshot have numbers up to the snapshot's: a rotation carried them over. They are not in it.
    CarriedOver {
        /// How many records.
        draws: u64,
    },
    /// The snapshot is newer than all records, so these are in it already.
    SnapshotIsNewest {
        /// How many records with numbers.
        draws: u64,
    },
    /// No configuration was given; the snapshot, which was taken before the first draw, stands for it.
    HistoryFromSnapshot,
    /// Snapshot and history give different stock.
    StocksDiffer {
        /// For so many items.
        items: u64,
    },
    /// Numbers of draws were jumped over: these were lost, or stand in files that are not there. The history knows nothing of them.
    MissingDraws {
        /// How many.
        draws: u64,
    },
    /// Numbers of files were jumped over.
    MissingFiles {
        /// The number before.
        after: u64,
        /// The number that came next.
        before: u64,
    },
    /// Two items of a catalogue have one id. The second is left out.
    DuplicateItem {
        /// The id.
        id: Box<str>,
    },
    /// A weight below 0; becomes 0.
    NegativeWeight {
        /// Of which item.
        id: Box<str>,
        /// The weight.
        weight: i64,
    },
    /// A quantity below −1; becomes 0.
    NegativeQuantity {
        /// Of which item.
        id: Box<str>,
        /// The quantity.
        quantity: i64,
    },
    /// A header names another version, so its records may mean something else.
    OtherVersion {
        /// Of which file.
        file: u64,
        /// The version.
        version: u32,
    },
    /// A file does not begin as the original's do. It has records, which were read.
    DamagedHeader {
        /// Which file.
        file: u64,
        /// What stands in the place of the magic number.
        magic: u32,
    },
    /// A file was not closed, and others follow: the original was killed then, and began anew. Of more than one, this is the last.
    NotClosed {
        /// The file.
        file: u64,
    },
    /// There was no room to tell apart all items that no catalogue has.
    UnknownItems {
        /// Draws of those beyond.
        draws: u64,
    },
    /// There are more notes of these kinds than are listed.
    More {
        /// How many.
        notes: u64,
    },
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The files, in their order.
    pub files: Vec<FileReport>,
    /// Draws that got something, over all files. Each once, though a file may have it again.
    pub draws: u64,
    /// Draws that got nothing.
    pub failed_draws: u64,
    /// Changes of an item's amounts.
    pub updates: u64,
    /// Draws that are written a second time, by rotations one behind the other.
    pub repeated: u64,
    /// Draws that the original would not know of if it were started now.
    pub forgotten: u64,
    /// How often each item was drawn, over all files, in no particular order.
    pub drawn: Vec<(Box<str>, u64)>,
    /// Lines that are no record: the first of them.
    pub damages: Vec<Damage>,
    /// Lines that are no record: how many there are.
    pub damages_total: u64,
    /// Places where the numbers of the draws went back: the first of them.
    pub setbacks: Vec<Setback>,
    /// Places where the numbers of the draws went back: how many there are.
    pub setbacks_total: u64,
    /// Where the snapshot belongs; `None` if none is used.
    pub placement: Option<Placement>,
    /// What else there is to know.
    pub notes: Vec<Note>,
}

impl Report {
    /// Whether there may have been records that were not read: a file is none of the original's, lines are no records, or numbers of files
    /// or of draws are jumped over. Then more may be left, by what was read, than there is.
    pub fn has_gaps(&self) -> bool {
        let is_gap = |note: &Note| matches!(note, Note::MissingDraws { .. } | Note::MissingFiles { .. });
        self.damages_total > 0
            || self.files.iter().any(|file| file.foreign || file.unreadable > 0)
            || self.notes.iter().any(is_gap)
    }

    /// The files after which the original began anew, and how many draws there were up to their ends: a file is closed before the next one
    /// is begun, and without a crash.
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
    /// A line for each file, each damage, each setback and each note.
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
    /// What there is to say of a snapshot's hash.
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
