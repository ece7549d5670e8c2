//! Reads the files of the original's log in order, and computes the stock in two ways: from
//! `snapshot.json` and the records after it, and from the configuration's catalogue and all
//! records. Both are folded while the files are read, so memory holds the items and one line of the
//! log.
//!
//! The place of `snapshot.json` among the records:
//!
//! ```text
//! 3,path   1,1   1,2 … 1,990 │ 3,path   1,991 … 1,1000   1,1001 …
//!                            │   ▲      ╰ numbers ≤ 1000: carried over, not in the snapshot
//!                    new file│   ╰ newest snapshot record: {"last_request_id":1000, …}
//! ```
//!
//! The file is overwritten in place, so it is the newest snapshot, and belongs to the last snapshot
//! record. The position decides, not the number. A rotation returns the draws that did not fit to
//! stock, takes the snapshot with their numbers counted, and writes the draws after it. A crash
//! between the overwriting and the record leaves a snapshot newer than its last record; then all
//! numbers after the record are below the snapshot's. If the number before the record is above the
//! snapshot's, the original started again, and the snapshot does not continue the log at all.

use super::header::{HEADER_BYTES, Header, VERSION, begins_header};
use super::item::OriginalItem;
use super::ledger::{Ledger, Rewindable};
use super::lines::{Lines, Piece};
use super::names::Names;
use super::numbering::{Numbering, Setback};
use super::place::LogPosition;
use super::record::{Record, Unreadable};
use super::recovered::{Basis, Recovered, RecoveredItem, Stocks};
use super::report::{Cut, Damage, FileReport, Format, Note, Placement, Report};
use super::snapshot::{Snapshot, SnapshotHash};
use super::{json_lines, string_line};
use crate::ITEMS_MAX;
use std::io::{self, Read};
use std::str;

/// Maximum that keeps the numbers of items in 32 bits.
const UNKNOWN_ITEMS_MAX: usize = 1 << 31;
const _: () = assert!(2 * ITEMS_MAX + UNKNOWN_ITEMS_MAX <= u32::MAX as usize);

/// Limits of the memory of a recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum length of a line of the log in bytes; longer ones are reported and skipped.
    pub line_bytes: usize,
    /// Maximum number of damages, of setbacks and of notes that are listed; more are counted.
    pub listed: usize,
    /// Maximum number of items outside the catalogues that are counted separately; draws of others
    /// are counted together.
    pub unknown_items: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { line_bytes: 1 << 20, listed: 1000, unknown_items: 1 << 16 }
    }
}

/// Inputs of a recovery besides the log.
#[derive(Debug, Clone, Default)]
pub struct Given {
    /// `snapshot.json`, if it is readable.
    pub snapshot: Option<Snapshot>,
    /// Whether to use the snapshot even if its hash is wrong.
    pub accept_changed_snapshot: bool,
    /// Catalogue of the original's configuration: the stock before the first draw.
    pub configuration: Option<Vec<OriginalItem>>,
    /// Limits of memory.
    pub limits: Limits,
}

/// Error of one file of the log. Other files can still be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The files are not in the order of their numbers.
    #[error("wal.{number:03} was given after wal.{before:03}: give the files in the order of their numbers")]
    Order {
        /// Number of the file.
        number: u64,
        /// Number of the file before.
        before: u64,
    },
    /// The file is not a log of the original, or its header is damaged.
    #[error("wal.{number:03} is no log of the original: it begins with {magic:#010x} instead of 0x746e776c")]
    Magic {
        /// Number of the file.
        number: u64,
        /// Value in place of the magic.
        magic: u32,
    },
    /// Reading failed. Records read before the error are in the report, but the stock is
    /// incomplete.
    #[error("wal.{number:03} cannot be read: {error}")]
    Io {
        /// Number of the file.
        number: u64,
        /// The error.
        error: io::Error,
    },
}

/// The configuration has too many items.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the configuration has {items} items, at most {ITEMS_MAX} are possible")]
pub struct TooManyItems {
    /// Number of items.
    pub items: usize,
}

/// The last snapshot record, and what follows it.
#[derive(Debug, Default)]
struct Mark {
    /// `None` before the first one.
    place: Option<LogPosition>,
    /// Last draw number before it.
    before: Option<u64>,
    /// Whether there are updates before it.
    updates_before: bool,
    /// Number of draws after it, including failed ones.
    draws: u64,
    /// Number of those draws with a number up to the snapshot's.
    draws_at_most_snapshot: u64,
    first: Option<u64>,
    last: u64,
    /// Number of the first draw between the previous snapshot record and this one.
    first_of_last: Option<u64>,
    /// Draws up to this number are repetitions.
    again_until: Option<u64>,
}

/// A running recovery.
///
/// ```
/// use tidemark_pool::original::{Basis, Given, OriginalItem, Recovery};
///
/// let mut file = [0; 256].to_vec();
/// file[..8].copy_from_slice(b"lwnt\x01\0\0\0"); // The header of a file that was not closed.
/// file.extend_from_slice(b"3,snapshot.json\n1,1,gold,0,true\n1,2,gold,0,true\n1,3,go");
///
/// let configuration = Some(vec![OriginalItem::new("gold", 100, 20)]);
/// let mut recovery = Recovery::new(Given { configuration, ..Given::default() }).unwrap();
/// recovery.read(0, &file[..]).unwrap();
/// let recovered = recovery.finish();
///
/// assert_eq!(recovered.recommended, Some(Basis::History));
/// assert_eq!(recovered.recommended_stocks().unwrap().items[0].item.quantity, 98);
/// assert_eq!((recovered.last_request, recovered.report.forgotten), (2, 2));
/// ```
#[derive(Debug)]
pub struct Recovery {
    limits: Limits,
    names: Names,
    /// Number of names that are in a catalogue.
    known: usize,
    unknown_more: u64,
    /// Number of the last draw in the snapshot; 0 without one.
    snapshot_request: u64,
    tail: Option<Rewindable>,
    history: Ledger,
    /// Whether the initial stock of the history is known.
    history_begins: bool,
    history_from_snapshot: bool,
    mark: Mark,
    numbering: Numbering,
    report: Report,
    notes_more: u64,
}

impl Recovery {
    /// Creates a recovery. O(n) in the items.
    ///
    /// # Errors
    /// If the configuration has more than [`ITEMS_MAX`] items.
    pub fn new(given: Given) -> Result<Self, TooManyItems> {
        let Given { snapshot, accept_changed_snapshot, configuration, limits } = given;
        if let Some(items) = configuration.as_ref().map(Vec::len).filter(|&items| items > ITEMS_MAX) {
            return Err(TooManyItems { items });
        }
        let mut recovery = Self {
            limits,
            names: Names::default(),
            known: 0,
            unknown_more: 0,
            snapshot_request: 0,
            tail: None,
            history: Ledger::default(),
            history_begins: false,
            history_from_snapshot: false,
            mark: Mark::default(),
            numbering: Numbering::new(limits.listed),
            report: Report::default(),
            notes_more: 0,
        };
        if let Some(snapshot) = snapshot {
            recovery.begin_with_snapshot(&snapshot, accept_changed_snapshot);
        }
        if let Some(items) = configuration {
            recovery.history = recovery.ledger_of(&items);
            (recovery.history_begins, recovery.history_from_snapshot) = (true, false);
        }
        recovery.known = recovery.names.len();
        Ok(recovery)
    }

    fn begin_with_snapshot(&mut self, snapshot: &Snapshot, accept_changed: bool) {
        let used = accept_changed || !matches!(snapshot.hash, SnapshotHash::Differs { .. });
        if let Some(note) = Note::of_hash(&snapshot.hash, used) {
            self.note(note);
        }
        if !used {
            return;
        }
        self.snapshot_request = snapshot.last_request;
        let ledger = self.ledger_of(&snapshot.items);
        if snapshot.last_request == 0 {
            self.history = ledger.clone();
            (self.history_begins, self.history_from_snapshot) = (true, true);
        }
        self.tail = Some(Rewindable::new(ledger));
    }

    fn ledger_of(&mut self, items: &[OriginalItem]) -> Ledger {
        let (ledger, again) = Ledger::of(items, &mut self.names);
        for position in again {
            self.note(Note::DuplicateItem { id: items[position].id.clone() });
        }
        ledger
    }

    /// Reads a file from its first byte to its last. Lines that are not records are reported and
    /// skipped.
    ///
    /// # Errors
    /// If the file is not the original's or out of order, or if reading fails. The recovery can
    /// continue.
    pub fn read(&mut self, number: u64, source: impl Read) -> Result<(), ReadError> {
        if let Some(before) = self.report.files.last().map(|file| file.number) {
            if number <= before {
                return Err(ReadError::Order { number, before });
            }
            if number - before > 1 {
                self.note(Note::MissingFiles { after: before, before: number });
            }
        }
        let mut file = FileReport { number, ..FileReport::default() };
        let result = self.read_file(&mut file, source);
        self.report.files.push(file);
        result
    }

    fn read_file(&mut self, file: &mut FileReport, mut source: impl Read) -> Result<(), ReadError> {
        let number = file.number;
        let failed = |error| ReadError::Io { number, error };
        let mut bytes = [0; HEADER_BYTES];
        let length = read_full(&mut source, &mut bytes).map_err(failed)?;
        file.bytes = length as u64;
        if length < HEADER_BYTES && begins_header(&bytes[..length]) {
            file.cut = (length > 0).then_some(Cut { offset: 0, bytes: file.bytes });
            return Ok(());
        }
        let damaged = match Header::parse(&bytes) {
            Ok(header) => {
                file.header = Some(header);
                None
            }
            // A file that was extended but never written contains only zeros.
            Err(magic) => Some(DamagedHeader { magic, is_blank: bytes == [0; HEADER_BYTES] }),
        };
        if let Some(version) = file.header.map(|header| header.version).filter(|&version| version != VERSION)
        {
            self.note(Note::OtherVersion { file: number, version });
        }
        self.read_lines(file, damaged, source)
    }

    /// Reads the records after a header. If the header is damaged and has a wrong magic, a first
    /// valid record proves that the file is the original's.
    fn read_lines(
        &mut self,
        file: &mut FileReport,
        mut damaged: Option<DamagedHeader>,
        source: impl Read,
    ) -> Result<(), ReadError> {
        let number = file.number;
        let mut lines = Lines::new(source, file.bytes, self.limits.line_bytes);
        // Omitted if nothing follows, otherwise damage.
        let (mut torn, mut zeros) = (None, None);
        loop {
            let offset = lines.offset();
            let place = LogPosition { file: number, offset };
            let piece = match lines.next() {
                Ok(Some(piece)) => piece,
                Ok(None) => {
                    file.bytes = offset;
                    if let Some(DamagedHeader { magic, is_blank: false }) = damaged {
                        file.foreign = true;
                        return Err(ReadError::Magic { number, magic });
                    }
                    file.zero_bytes = offset - zeros.unwrap_or(offset);
                    let end = zeros.unwrap_or(offset);
                    file.cut = torn.map(|torn| Cut { offset: torn, bytes: end - torn });
                    return Ok(());
                }
                Err(error) => return Err(ReadError::Io { number, error }),
            };
            if piece == Piece::Zeros {
                zeros = Some(offset);
                continue;
            }
            if let Some(header) = &mut damaged {
                header.is_blank = false;
                if !matches!(piece, Piece::Line(line) if read_record(line).is_ok()) {
                    file.unreadable += 1;
                    continue;
                }
                self.note(Note::DamagedHeader { file: number, magic: header.magic });
                (damaged, zeros) = (None, None);
            }
            match (torn.take(), zeros.take()) {
                (Some(offset), _) => {
                    self.damage(file, LogPosition { file: number, offset }, Unreadable::BreaksOff);
                }
                (None, Some(offset)) => {
                    self.damage(file, LogPosition { file: number, offset }, Unreadable::Zeros);
                }
                (None, None) => {}
            }
            match piece {
                Piece::Line(line) => self.line(file, place, line),
                Piece::Torn(_) => torn = Some(offset),
                Piece::TooLong => self.damage(file, place, Unreadable::TooLong),
                Piece::Zeros => {}
            }
        }
    }

    fn line(&mut self, file: &mut FileReport, place: LogPosition, line: &[u8]) {
        let line = without_return(line);
        if line.is_empty() {
            return;
        }
        let format = format_of(line);
        match read_record(line).and_then(|record| self.apply(place, record, format)) {
            Ok(kind) => {
                file.format = Some(match file.format {
                    Some(other) if other != format => Format::Both,
                    _ => format,
                });
                count(file, place, kind);
            }
            Err(reason) => self.damage(file, place, reason),
        }
    }

    fn apply(&mut self, place: LogPosition, record: Record<'_>, format: Format) -> Result<Kind, Unreadable> {
        let kind = match record {
            Record::Draw { request, item } => {
                let item = self.item(&item, format)?;
                let first = self.number(place, request);
                self.report.draws += u64::from(first);
                match item {
                    Some(item) => self.draw(item, request, first),
                    None => self.unknown_more += u64::from(first),
                }
                Kind::Draw
            }
            Record::FailedDraw { request } => {
                let first = self.number(place, request);
                self.report.failed_draws += u64::from(first);
                Kind::FailedDraw
            }
            Record::Update { item, quantity, weight } => {
                if let Some(item) = self.item(&item, format)? {
                    self.update(item, quantity, weight);
                }
                self.report.updates += 1;
                Kind::Update
            }
            Record::Snapshot => {
                self.mark = Mark {
                    place: Some(place),
                    before: self.numbering.last(),
                    updates_before: self.report.updates > 0,
                    first_of_last: self.mark.first,
                    ..Mark::default()
                };
                if let Some(tail) = &mut self.tail {
                    tail.rewind();
                }
                Kind::Snapshot
            }
            Record::Rotation => Kind::Rotation,
        };
        Ok(kind)
    }

    /// Returns the number of an item; `None` if there are too many.
    fn item(&mut self, id: &str, format: Format) -> Result<Option<u32>, Unreadable> {
        if let Some(number) = self.names.find(id) {
            return Ok(Some(number));
        }
        if self.known > 0 && format == Format::StringLine && id.contains(',') {
            return Err(Unreadable::JoinedLines);
        }
        let unknown = self.names.len() - self.known;
        let room = unknown < self.limits.unknown_items.min(UNKNOWN_ITEMS_MAX);
        Ok(room.then(|| self.names.number(id)))
    }

    /// Records the number of a draw. Returns whether it is its first occurrence in the log.
    fn number(&mut self, place: LogPosition, request: u64) -> bool {
        let after_snapshot = self.mark.place.is_some() && self.mark.draws == 0;
        if after_snapshot && self.begins_again(place, request) {
            self.mark.again_until = self.numbering.last();
        }
        let first = self.mark.again_until.is_none_or(|until| request > until);
        if first {
            self.mark.again_until = None;
            if let Some(damaged) = self.numbering.see(place, request, after_snapshot, self.report.draws) {
                self.list_damage(Damage { place: damaged, reason: Unreadable::OutOfOrder });
            }
        } else {
            self.report.repeated += 1;
        }
        self.mark.draws += 1;
        self.mark.first.get_or_insert(request);
        self.mark.draws_at_most_snapshot += u64::from(request <= self.snapshot_request);
        self.mark.last = request;
        first
    }

    /// Returns whether the first draw after a rotation is also the first after the rotation before.
    /// The original forgets that it has written the draws it carried over, and writes them again if
    /// the next batch does not fit either. The snapshot misses all of them; the history must count
    /// them once.
    fn begins_again(&self, place: LogPosition, request: u64) -> bool {
        let mark =
            self.mark.place.filter(|mark| mark.file == place.file && mark.offset == HEADER_BYTES as u64);
        let closed = |file: &FileReport| file.header.is_some_and(|header| header.closed);
        mark.is_some()
            && self.mark.first_of_last == Some(request)
            && Some(request) <= self.numbering.last()
            && self.report.files.last().is_some_and(closed)
    }

    fn draw(&mut self, item: u32, request: u64, first: bool) {
        if first {
            self.history.draw(item);
        }
        let in_snapshot = self.mark.place.is_none() && request <= self.snapshot_request;
        if let Some(tail) = self.tail.as_mut().filter(|_| !in_snapshot) {
            tail.draw(item);
        }
    }

    fn update(&mut self, item: u32, quantity: i64, weight: i64) {
        self.history.update(item, quantity, weight);
        // Without a snapshot record, the snapshot contains an update unless a draw before it is
        // missing there.
        let behind = self.mark.place.is_some() || self.mark.draws > self.mark.draws_at_most_snapshot;
        if let Some(tail) = self.tail.as_mut().filter(|_| behind) {
            tail.update(item, quantity, weight);
        }
    }

    /// Returns the result once all files are read. O(n) in the items.
    pub fn finish(mut self) -> Recovered {
        self.numbering.end();
        let placement = self.tail.is_some().then(|| self.placement());
        let forgets = self.tail.is_some() && self.snapshot_forgets();
        if placement == Some(Placement::BehindAll)
            && let Some(tail) = &mut self.tail
        {
            tail.rewind();
        }
        let from_snapshot = self.tail.take().map(|tail| self.stocks(tail.now()));
        let history = std::mem::take(&mut self.history);
        let from_history = self.history_begins.then(|| self.stocks(&history));
        let recommended = match (&from_snapshot, &from_history) {
            (Some(_), Some(_)) if forgets => Some(Basis::History),
            (Some(_), _) => Some(Basis::Snapshot),
            (None, Some(_)) => Some(Basis::History),
            (None, None) => None,
        };
        self.note_findings(placement, forgets, from_snapshot.as_ref(), from_history.as_ref());
        let mut report = self.report;
        report.forgotten = forgotten(&report, self.numbering.anew());
        report.drawn = drawn(&self.names, &history, |_| true);
        report.setbacks = self.numbering.listed().to_vec();
        report.setbacks_total = self.numbering.setbacks();
        report.placement = placement;
        let last_request = self.numbering.max().max(self.snapshot_request);
        Recovered { from_snapshot, from_history, recommended, last_request, report }
    }

    /// Returns the place of the snapshot: see the module.
    fn placement(&self) -> Placement {
        let Some(place) = self.mark.place else {
            return Placement::ByNumber;
        };
        let (mark, at_its_record) = (&self.mark, Placement::AtItsRecord(place));
        if self.snapshot_is_anew() && mark.draws > 0 {
            return Placement::BehindAll;
        }
        if mark.draws == 0 || mark.draws_at_most_snapshot < mark.draws {
            return at_its_record;
        }
        // A rotation writes the draws it carries over in one batch that ends with the snapshot's
        // number.
        let damaged =
            |file: &FileReport| file.number >= place.file && (file.cut.is_some() || file.unreadable > 0);
        let ends_before = mark.last < self.snapshot_request && !self.report.files.iter().any(damaged);
        // In doubt, the snapshot misses the records after its own: too little stock is better than
        // too much.
        if ends_before || self.snapshot_is_end_of_history() { Placement::BehindAll } else { at_its_record }
    }

    /// Returns whether the snapshot is from a restart with the configuration that has no draws yet.
    /// A snapshot has at least the number of the draw before its record, and a restart with draws
    /// after the record would have been noticed.
    fn snapshot_is_anew(&self) -> bool {
        let noticed = self.numbering.last_after_snapshot() > self.mark.place;
        !noticed && self.mark.before.is_some_and(|before| before > self.snapshot_request)
    }

    /// Returns whether all records together give the stock in the snapshot, before anything is
    /// applied to it.
    fn snapshot_is_end_of_history(&self) -> bool {
        let Some(tail) = self.tail.as_ref().filter(|_| self.history_begins) else {
            return false;
        };
        let base = tail.base();
        base.order().len() == self.history.order().len()
            && base.order().iter().all(|&number| {
                let (snapshot, end) = (base.held(number), self.history.held(number));
                end.present && (snapshot.quantity, snapshot.weight) == (end.quantity, end.weight)
            })
    }

    /// Returns whether the original had lost draws when it wrote the snapshot.
    fn snapshot_forgets(&mut self) -> bool {
        let Some(place) = self.mark.place else { return false };
        if self.snapshot_is_anew() {
            let end = self
                .report
                .files
                .last()
                .map_or(place, |file| LogPosition { file: file.number, offset: file.bytes });
            self.numbering.set_back(Setback {
                place: if self.mark.draws == 0 { place } else { end },
                from: self.numbering.last().unwrap_or(0),
                to: self.snapshot_request.saturating_add(1),
                after_snapshot: true,
                draws_before: self.report.draws,
            });
            return true;
        }
        // A restart that was killed before its first record may have overwritten a snapshot of the
        // same number, 0, with the configuration.
        let same_number = self.snapshot_request == 0 && self.mark.updates_before;
        let killed = self.report.killed().any(|(file, _)| file < place.file || same_number);
        let before_mark = killed || self.numbering.first_setback().is_some_and(|first| first <= place);
        before_mark || self.numbering.last_after_snapshot().is_some_and(|last| last > place)
    }

    fn note_findings(
        &mut self,
        placement: Option<Placement>,
        forgets: bool,
        from_snapshot: Option<&Stocks>,
        from_history: Option<&Stocks>,
    ) {
        for stocks in [from_snapshot, from_history].into_iter().flatten() {
            self.note_amounts(stocks);
        }
        let carried = self.mark.draws_at_most_snapshot;
        let snapshot = match placement {
            Some(Placement::BehindAll) => Some(Note::SnapshotIsNewest { draws: self.mark.draws }),
            Some(Placement::AtItsRecord(_)) if carried > 0 => Some(Note::CarriedOver { draws: carried }),
            _ => None,
        };
        let stocks = match (from_snapshot, from_history) {
            (None, None) => Some(Note::NoCatalogue),
            (Some(snapshot), Some(history)) => Some(differing(snapshot, history))
                .filter(|&items| items > 0)
                .map(|items| Note::StocksDiffer { items }),
            _ => None,
        };
        let killed = self.report.killed().last();
        let (missing, unknown, more) = (self.numbering.missing(), self.unknown_more, self.notes_more);
        // These are few and important, so they are listed beyond the limit.
        let findings = [
            (more > 0).then_some(Note::More { notes: more }),
            (missing > 0).then_some(Note::MissingDraws { draws: missing }),
            (unknown > 0).then_some(Note::UnknownItems { draws: unknown }),
            killed.map(|(file, _)| Note::NotClosed { file }),
            self.history_from_snapshot.then_some(Note::HistoryFromSnapshot),
            snapshot,
            forgets.then_some(Note::SnapshotForgets),
            stocks,
        ];
        self.report.notes.extend(findings.into_iter().flatten());
    }

    fn note_amounts(&mut self, stocks: &Stocks) {
        for OriginalItem { id, quantity, weight } in stocks.items.iter().map(|recovered| &recovered.item) {
            if *weight < 0 {
                self.note(Note::NegativeWeight { id: id.clone(), weight: *weight });
            }
            if *quantity < OriginalItem::UNLIMITED {
                self.note(Note::NegativeQuantity { id: id.clone(), quantity: *quantity });
            }
        }
    }

    fn stocks(&self, ledger: &Ledger) -> Stocks {
        let item = |&number: &u32| {
            let held = ledger.held(number);
            let item = OriginalItem::new(self.names.id(number), held.quantity, held.weight);
            RecoveredItem { item, drawn: held.drawn, beyond: held.beyond }
        };
        let unknown = drawn(&self.names, ledger, |number| !ledger.held(number).present);
        Stocks { items: ledger.order().iter().map(item).collect(), unknown }
    }

    fn note(&mut self, note: Note) {
        if self.report.notes.len() >= self.limits.listed {
            self.notes_more += 1;
        } else if !self.report.notes.contains(&note) {
            self.report.notes.push(note);
        }
    }

    fn damage(&mut self, file: &mut FileReport, place: LogPosition, reason: Unreadable) {
        file.unreadable += 1;
        self.list_damage(Damage { place, reason });
    }

    fn list_damage(&mut self, damage: Damage) {
        self.report.damages_total += 1;
        if self.report.damages.len() < self.limits.listed {
            self.report.damages.push(damage);
        }
    }
}

/// Bytes in place of a header.
struct DamagedHeader {
    magic: u32,
    /// Whether they, and everything read after them, are zeros.
    is_blank: bool,
}

fn read_record(line: &[u8]) -> Result<Record<'_>, Unreadable> {
    let line = without_return(line);
    match format_of(line) {
        Format::Json => json_lines::parse(line),
        _ => str::from_utf8(line).map_err(|_| Unreadable::NotUtf8).and_then(string_line::parse),
    }
}

fn format_of(line: &[u8]) -> Format {
    if line.first() == Some(&b'{') { Format::Json } else { Format::StringLine }
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Draw,
    FailedDraw,
    Update,
    Snapshot,
    Rotation,
}

fn count(file: &mut FileReport, place: LogPosition, kind: Kind) {
    let claimed = file.header.map_or(0, |header| (HEADER_BYTES as u64).saturating_add(header.data_bytes));
    let beyond = u64::from(place.offset >= claimed);
    file.records += 1;
    file.records_beyond_header += beyond;
    match kind {
        Kind::Draw => {
            file.draws += 1;
            file.draws_beyond_header += beyond;
        }
        Kind::FailedDraw => file.failed_draws += 1,
        Kind::Update => file.updates += 1,
        Kind::Snapshot => file.snapshots += 1,
        Kind::Rotation => {}
    }
}

/// Returns the number of draws that the original would forget. It reads only the newest file, up to
/// the length in its header; if that contains no record, it starts again from its configuration.
fn forgotten(report: &Report, anew: Option<Setback>) -> u64 {
    match report.files.last() {
        Some(newest) if newest.records > newest.records_beyond_header => {
            let killed = report.killed().last().map_or(0, |(_, draws)| draws);
            let anew = anew.map_or(0, |setback| setback.draws_before);
            (newest.draws_beyond_header + killed.max(anew)).min(report.draws)
        }
        _ => report.draws,
    }
}

fn drawn(names: &Names, ledger: &Ledger, which: impl Fn(u32) -> bool) -> Vec<(Box<str>, u64)> {
    (0..names.len() as u32)
        .map(|number| (number, ledger.held(number).drawn))
        .filter(|&(number, drawn)| drawn > 0 && which(number))
        .map(|(number, drawn)| (names.id(number).into(), drawn))
        .collect()
}

/// Returns the number of items whose stocks differ.
fn differing(left: &Stocks, right: &Stocks) -> u64 {
    let sorted = |stocks: &Stocks| {
        let mut items: Vec<OriginalItem> =
            stocks.items.iter().map(|recovered| recovered.item.clone()).collect();
        items.sort_by(|left, right| left.id.cmp(&right.id));
        items
    };
    let (left, right) = (sorted(left), sorted(right));
    let same = left.iter().filter(|item| {
        right.binary_search_by(|other| other.id.cmp(&item.id)).is_ok_and(|at| right[at] == **item)
    });
    (left.len().max(right.len()) - same.count()) as u64
}

/// Reads until the buffer is full or the source ends. Returns the number of bytes.
fn read_full(source: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match source.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
