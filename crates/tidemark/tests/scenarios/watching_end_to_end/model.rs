//! The emissions that subscribers must receive, computed only from the log: the model applies one
//! record after another, runs the plain read after each, and counts an answer that differs from the
//! one before as an emission if it passes the operators. None of this uses the implementation of
//! watched reads.

use super::names::without_positions;
use super::operators::Operators;
use super::read::Read;
use std::collections::BTreeMap;
use std::sync::Arc;
use tidemark_engine::record::kind;
use tidemark_engine::{Call, Engine, Protocol, Reply, command, encoded};
use tidemark_log::{Log, MemoryStorage, Options, Record};

/// A time before every deadline: a key exists until a record removes it.
pub(crate) const BEFORE_ALL: u64 = 0;

/// Expected output of one watched read.
#[derive(Debug, Clone)]
pub(crate) struct Signal {
    /// Answer to the first subscriber.
    pub(crate) first: Arc<[u8]>,
    pub(crate) emissions: Vec<Expected>,
    /// The record that ended the query.
    pub(crate) ended: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Expected {
    pub(crate) lsn: u64,
    pub(crate) before: Arc<[u8]>,
    pub(crate) value: Arc<[u8]>,
}

impl Signal {
    /// Returns the number of emissions up to `lsn`.
    pub(crate) fn count_at(&self, lsn: u64) -> u64 {
        self.emissions.partition_point(|emission| emission.lsn <= lsn) as u64
    }

    /// Returns the answer to a subscriber that has the first `count` emissions.
    pub(crate) fn shown(&self, count: u64) -> &[u8] {
        let last = count.checked_sub(1).and_then(|at| self.emissions.get(at as usize));
        last.map_or(&self.first, |last| &last.value)
    }
}

/// A query that is evaluated.
struct Watched {
    read: Read,
    last: Vec<u8>,
    shown: Arc<[u8]>,
    operators: Operators,
    signal: Signal,
}

/// The model, over an engine that has no watched reads.
pub(crate) struct Model {
    engine: Engine,
    watched: BTreeMap<u64, Watched>,
    /// The last record seen.
    pub(crate) last: u64,
}

impl Model {
    pub(crate) fn new() -> Self {
        Self { engine: empty_engine(), watched: BTreeMap::new(), last: 0 }
    }

    /// Applies the next record. `reads` has the watched reads by the records that begin them.
    pub(crate) fn see(&mut self, record: &Record<'_>, reads: &BTreeMap<u64, Read>) {
        let lsn = record.lsn.0;
        assert!(lsn > self.last, "records ascend: {lsn} behind {}", self.last);
        self.last = lsn;
        self.engine.continue_behind(record.lsn.previous());
        match record.kind {
            kind::COMMAND | kind::TRANSACTION | kind::EXPIRY => {
                let Some(payload) = without_positions(record) else { return };
                self.apply(&Record { payload: &payload, ..*record });
            }
            kind::POINTS => self.apply(record),
            kind::WATCH => {
                if let Some(read) = reads.get(&lsn) {
                    self.begin(lsn, record.time_us, read);
                }
            }
            kind::UNWATCH => {
                let mut fields = tidemark_engine::record::Cursor::new(record.payload);
                let ended = fields.varint().and_then(|id| self.watched.get_mut(&id));
                if let Some(watched) = ended {
                    watched.signal.ended = Some(lsn);
                }
            }
            _ => {}
        }
    }

    fn apply(&mut self, record: &Record<'_>) {
        let (lsn, applied) = (record.lsn.0, self.engine.apply(record, &mut Reply::default()));
        applied.unwrap_or_else(|error| panic!("record {lsn} cannot be applied: {error}"));
        self.emit(lsn, record.time_us);
    }

    fn begin(&mut self, lsn: u64, time_us: u64, read: &Read) {
        let last = answer(&self.engine, read);
        let mut operators = Operators::of(&read.operators, read.protocol);
        let shown: Arc<[u8]> = match operators.pass(&last, time_us) {
            Some(shown) => shown.into(),
            None if read.protocol == Protocol::Resp3 => Arc::from(b"_\r\n".as_slice()),
            None => Arc::from(b"$-1\r\n".as_slice()),
        };
        let signal = Signal { first: Arc::clone(&shown), emissions: Vec::new(), ended: None };
        self.watched.insert(lsn, Watched { read: read.clone(), last, shown, operators, signal });
    }

    fn emit(&mut self, lsn: u64, time_us: u64) {
        for watched in self.watched.values_mut().filter(|watched| watched.signal.ended.is_none()) {
            let present = answer(&self.engine, &watched.read);
            if present == watched.last {
                continue;
            }
            if let Some(value) = watched.operators.pass(&present, time_us) {
                let value: Arc<[u8]> = value.into();
                let before = std::mem::replace(&mut watched.shown, Arc::clone(&value));
                watched.signal.emissions.push(Expected { lsn, before, value });
            }
            watched.last = present;
        }
    }

    /// Returns the expected output of each watched read.
    pub(crate) fn signals(self) -> BTreeMap<u64, Signal> {
        self.watched.into_iter().map(|(id, watched)| (id, watched.signal)).collect()
    }
}

/// Returns an engine without keys.
pub(crate) fn empty_engine() -> Engine {
    let options = Options { segment_bytes: 64 << 10, ..Options::default() };
    let (log, _) = Log::open(Arc::new(MemoryStorage::new()), options).expect("a log in memory opens");
    Engine::new(Arc::new(log), 8, 1)
}

/// Returns the answer of the plain command; elements without an order are sorted by their bytes.
fn answer(engine: &Engine, read: &Read) -> Vec<u8> {
    let name = read.words[0].to_ascii_lowercase();
    let words = whole(&name, &read.words);
    let args: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    let mut reply = Reply::new(read.protocol);
    match command::resolve(&args) {
        Ok(command) => {
            let call = Call { command, args: &args, db: read.db, now_us: BEFORE_ALL };
            engine.execute(&call, &mut reply);
        }
        Err(error) => panic!("{} was watched and is no command: {error}", read.shown()),
    }
    let answer = reply.take();
    match name.as_slice() {
        b"smembers" | b"sunion" | b"sinter" | b"sdiff" | b"hkeys" | b"hvals" | b"keys" => {
            in_order(answer, 0, 1)
        }
        b"hgetall" => in_order(answer, 0, 2),
        b"scan" | b"sscan" => in_order_behind_cursor(answer, 1),
        b"hscan" | b"zscan" => in_order_behind_cursor(answer, 2),
        _ => answer,
    }
}

/// Returns the read of a whole iteration: watched iterations cover it all, whatever part a single
/// command would return.
fn whole(name: &[u8], words: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let options = match name {
        b"scan" => 2,
        b"sscan" | b"hscan" | b"zscan" => 3,
        _ => return words.to_vec(),
    };
    let mut whole = words[..options].to_vec();
    for pair in words[options..].chunks(2).filter(|pair| !pair[0].eq_ignore_ascii_case(b"count")) {
        whole.extend_from_slice(pair);
    }
    whole.extend([b"COUNT".to_vec(), i64::MAX.to_string().into_bytes()]);
    whole
}

fn in_order_behind_cursor(answer: Vec<u8>, together: usize) -> Vec<u8> {
    match encoded::elements(&answer, 0) {
        Some(parts) if parts.len() == 2 => in_order(answer, parts[1].0, together),
        _ => answer,
    }
}

/// Sorts the elements of the list that begins at `start` in groups of `together`, by the bytes of
/// the first in each group.
fn in_order(answer: Vec<u8>, start: usize, together: usize) -> Vec<u8> {
    let Some(elements) = encoded::elements(&answer, start).filter(|elements| !elements.is_empty()) else {
        return answer;
    };
    let mut units: Vec<&[u8]> =
        elements.chunks(together).map(|unit| &answer[unit[0].0..unit[unit.len() - 1].1]).collect();
    units.sort_by_key(|unit| super::stream::content(unit));
    [&answer[..elements[0].0], &units.concat()].concat()
}
