//! Memory of a simulated member: the real engine, as a server keeps it. It follows what is committed, it
//! is at the end of the log while the member leads, and it is dropped when something that it has is
//! taken back, or when a snapshot takes the place of the log. Then it is loaded from the newest snapshot
//! and the log.

use std::sync::Arc;

use tidemark_engine::section::KEYSPACE;
use tidemark_engine::{Call, Engine, Follower, Protocol, Reply, command};
use tidemark_log::{Log, Lsn, Snapshot, Snapshots};

use crate::term::Term;

/// Number of the engine's shards.
const SHARDS: usize = 4;

/// Loads a snapshot, as a server does.
pub(super) fn load(log: &Arc<Log>, snapshot: &Snapshot) -> Result<Engine, String> {
    let engine = Engine::new(Arc::clone(log), SHARDS, 1);
    let loader = engine.load(log.clock().now_us());
    let mut buffer = Vec::new();
    for frame in snapshot.frames().iter().filter(|frame| frame.section == KEYSPACE) {
        snapshot.read_frame(frame, &mut buffer).map_err(|error| error.to_string())?;
        loader.load_frame(&buffer).map_err(|error| error.to_string())?;
    }
    loader.finish().map_err(|error| error.to_string())?;
    engine.continue_behind(snapshot.lsn());
    Ok(engine)
}

/// Runs a command. Returns the answer, and the last record on which it depends.
pub(super) fn run(engine: &Engine, words: &[Vec<u8>]) -> (Vec<u8>, Lsn) {
    let args: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    let command = command::resolve(&args).expect("a command");
    let mut reply = Reply::new(Protocol::Resp3);
    let call = Call { command, args: &args, db: 0, now_us: engine.log().clock().now_us() };
    let executed = engine.execute(&call, &mut reply);
    // What a read shows may be any earlier change.
    let lsn = executed.lsn.unwrap_or_else(|| engine.log().appended());
    (reply.bytes().to_vec(), lsn)
}

/// What is in memory.
struct State {
    engine: Arc<Engine>,
    /// Where it is in the log; `None` while it leads and until it first follows.
    follower: Option<Follower>,
}

impl State {
    /// Loads the newest snapshot, and says what of the log is needed.
    fn load(log: &Arc<Log>) -> Result<Self, String> {
        let snapshots = Snapshots::new(log.storage().clone());
        let (snapshot, damaged) = snapshots.latest(log.floor()).map_err(|error| error.to_string())?;
        if let Some(error) = damaged.first() {
            return Err(format!("a snapshot is damaged: {error}"));
        }
        let engine = match &snapshot {
            Some(snapshot) => load(log, snapshot)?,
            None => Engine::new(Arc::clone(log), SHARDS, 1),
        };
        log.retain(engine.applied().next());
        snapshots.set_aside(snapshot.map(|found| found.lsn())).map_err(|error| error.to_string())?;
        Ok(Self { engine: Arc::new(engine), follower: None })
    }

    /// Applies all that is committed.
    fn follow(&mut self) -> Result<(), String> {
        loop {
            // The snapshot of another member may have a part of the entry that comes next.
            if self.follower.is_none() && self.engine.applied() > self.engine.log().appended() {
                return Ok(());
            }
            let follower = match &mut self.follower {
                Some(follower) => follower,
                empty => empty.insert(Follower::of(&self.engine).map_err(|error| error.to_string())?),
            };
            let applied = follower.apply_next(&self.engine, || true).map_err(|error| error.to_string())?;
            if applied == Some(0) {
                return Ok(());
            }
        }
    }
}

/// Memory of a process.
pub(super) struct Memory {
    log: Arc<Log>,
    /// `None` until it is loaded.
    state: Option<State>,
    /// The term in which commands run. Kept until the log is known to have what they did.
    leads: Option<Term>,
    /// The log was cut behind this record, and memory may have later ones.
    cut: Option<Lsn>,
    /// A fault: what is taken back stays.
    keeps_what_is_cut: bool,
}

impl Memory {
    pub(super) fn new(log: Arc<Log>, keeps_what_is_cut: bool) -> Self {
        Self { log, state: None, leads: None, cut: None, keeps_what_is_cut }
    }

    /// Returns the engine, with everything that is committed; one that leads, with everything. `None`
    /// between the end of a term and the moment from which the log is known to have what memory has.
    /// `leading` is the term that is led.
    ///
    /// # Errors
    /// The log or a snapshot cannot be read, or does not fit.
    pub(super) fn engine(&mut self, leading: Option<Term>) -> Result<Option<Arc<Engine>>, String> {
        if self.leads.is_some() && self.leads != leading {
            return Ok(None);
        }
        let state = match &mut self.state {
            Some(state) => state,
            empty => empty.insert(State::load(&self.log)?),
        };
        if self.leads.is_none() {
            state.follow()?;
        }
        Ok(Some(state.engine.clone()))
    }

    /// The member leads in `term`, and its log has nothing behind the term's first record.
    pub(super) fn begin_term(&mut self, term: Term) -> Result<(), String> {
        if let Some(led) = self.leads {
            return Err(format!("memory leads in term {led} when term {term} begins"));
        }
        drop(self.engine(None)?);
        let state = self.state.as_mut().expect("is loaded");
        state.follower = None;
        state.engine.lead(self.log.clock().now_us());
        self.leads = Some(term);
        Ok(())
    }

    /// Runs a command in the term that memory leads.
    pub(super) fn run(&self, words: &[Vec<u8>]) -> (Vec<u8>, Lsn) {
        run(&self.state.as_ref().expect("memory leads").engine, words)
    }

    /// Records behind `lsn` are taken back; of a log that was replaced, nothing is left.
    pub(super) fn cut(&mut self, lsn: Lsn) {
        self.cut = Some(self.cut.map_or(lsn, |cut| cut.min(lsn)));
        if self.leads.is_none() {
            self.settle();
        }
    }

    /// `end` is the last record that the log gave out in a term that has ended.
    pub(super) fn end_log(&mut self, end: Lsn) {
        if self.leads.take().is_some() {
            let is_ahead = self.state.as_ref().is_some_and(|state| state.engine.follow(end).is_err());
            if is_ahead {
                self.state = None;
            }
        }
        self.settle();
    }

    /// Drops memory that has what was taken back.
    fn settle(&mut self) {
        let Some(cut) = self.cut.take() else { return };
        let is_cut = |state: &State| state.engine.applied() > cut || cut == Lsn::ZERO;
        if self.state.as_ref().is_some_and(is_cut) && !self.keeps_what_is_cut {
            self.state = None;
        }
    }
}
