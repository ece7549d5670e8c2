//! A script that runs: its commands, and what they leave behind.
//!
//! They are those of clients, but for the record: what they change is collected, and logged as one.

use super::busy::{Announced, RunningFunction, RunningScript, RunningScripts, Shards};
use super::host::ScriptHost;
use crate::command::{self, Command, FIELDS_EXPIRE, FIELDS_EXPIRE_NAME, KeySpec, Run, flags, parse};
use crate::context::{Effects, Keys};
use crate::engine::Engine;
use crate::error::CommandError;
use crate::execute::call::Call;
use crate::execute::logging::encode_effects;
use crate::keyspace::DATABASES;
use crate::wire::reply::{Protocol, Reply};
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidemark_script::{Caller, MAX_MEMORY};

/// Most bytes of the changes of one script, alone and in a group: those of a transaction.
const MAX_CHANGES: usize = 192 << 20;
const MAX_GROUP_CHANGES: usize = 48 << 20;

/// Keys among which a key is found by comparison with each.
const FEW_KEYS: usize = 16;

/// The error for a change, or a message, of a script that only reads.
const ONLY_READS: &str = "Write commands are not allowed from read-only scripts.";

/// Time within which a script is quick enough for an event loop.
pub(super) const QUICK: Duration = Duration::from_millis(1);
/// Time after which a script is announced that was not before.
const LONG: Duration = Duration::from_millis(5);

/// A script that runs.
pub(super) struct ScriptRun<'a, 'k> {
    engine: &'a Engine,
    keys: &'a mut Keys<'k>,
    /// The command that runs it.
    call: Call<'a>,
    /// The database that it has selected.
    db: u8,
    declared: &'a [&'a [u8]],
    /// The same, if they are many.
    declared_set: Option<HashSet<&'a [u8]>>,
    /// Whether it holds all locks.
    is_alone: bool,
    only_reads: bool,
    /// Bytes that its changes may still take in the record.
    room: usize,
    /// What it has changed, for the record.
    recorded: Vec<Vec<u8>>,
    /// Its other effects.
    all: Effects,
    /// Where it is announced.
    running: Option<Arc<RunningScript>>,
    /// Its own announcement, if it was not announced before it began.
    announced: Option<Announced<'a>>,
    /// When it was first asked whether it must end.
    asked: Option<Instant>,
    /// Whether it has run a command that only reads.
    has_read: bool,
}

type Refused = Cow<'static, str>;

impl<'a, 'k> ScriptRun<'a, 'k> {
    pub(super) fn new(
        engine: &'a Engine,
        call: &Call<'a>,
        keys: &'a mut Keys<'k>,
        declared: &'a [&'a [u8]],
        only_reads: bool,
    ) -> Self {
        keys.release_early(false);
        keys.forbid_waiting();
        Self {
            engine,
            is_alone: keys.holds_all(),
            keys,
            call: *call,
            db: call.db,
            declared,
            declared_set: (declared.len() > FEW_KEYS).then(|| declared.iter().copied().collect()),
            only_reads,
            room: if engine.is_in_group() { MAX_GROUP_CHANGES } else { MAX_CHANGES },
            recorded: Vec::new(),
            all: Effects::default(),
            running: if engine.scripts().running().any() { RunningScripts::own() } else { None },
            announced: None,
            asked: None,
            has_read: false,
        }
    }
}

impl ScriptRun<'_, '_> {
    fn host(&self) -> Option<&Arc<dyn ScriptHost>> {
        self.engine.scripts().host()
    }

    fn resolve(&self, args: &[&[u8]]) -> Result<&'static Command, Refused> {
        let found = match (command::find(args[0]), self.host()) {
            (None, Some(host)) => host.resolve(args),
            _ => command::resolve(args),
        };
        found.map_err(|error| match error {
            CommandError::Arity(_) => "Wrong number of args calling Redis command from script".into(),
            _ => "Unknown Redis command called from script".into(),
        })
    }

    /// Runs a command on keys.
    fn run_on_keys(
        &mut self,
        command: &'static Command,
        args: &[&[u8]],
        reply: &mut Reply,
    ) -> Result<(), Refused> {
        let is_write = command.is(flags::WRITE);
        if is_write && self.only_reads {
            return Err(ONLY_READS.into());
        }
        self.has_read |= command.is(flags::READONLY);
        if !self.is_alone {
            self.check_declared(command, args)?;
        }
        if is_write {
            if let Some(running) = &self.running
                && !running.may_write()
            {
                return Err(running.killed().unwrap_or_default().into());
            }
            if let Err(error) = self.admit(command, args) {
                reply.error(&error);
                return Ok(());
            }
        }
        let call = Call { command, args, db: self.db, now_us: self.call.now_us };
        self.keys.select(self.db);
        let is_in_group = self.engine.is_in_group();
        if is_in_group && self.is_alone && !self.only_reads {
            // Keys that were not known when the others were removed.
            command.keys.keys(args).for_each(|key| self.keys.drop_expired(key));
        }
        if self.is_alone && !self.only_reads && command.id != FIELDS_EXPIRE && self.keys.has_due_fields() {
            command.keys.keys(args).for_each(|key| self.expire_fields(key));
        }
        self.keys.see_expired(is_in_group && !is_write);
        self.engine.run(&call, self.keys, reply);
        self.collect(&call, reply);
        Ok(())
    }

    /// Removes the fields of a hash whose time has come, and which was not known when those of the declared
    /// keys were removed. They stay if the record has no room.
    #[cold]
    fn expire_fields(&mut self, key: &[u8]) {
        let command =
            command::find_logged(FIELDS_EXPIRE_NAME).expect("the table has the command that removes fields");
        let args: &[&[u8]] = &[FIELDS_EXPIRE_NAME.as_bytes(), key];
        while self.keys.is_field_due(self.db, key) && self.admit(command, args).is_ok() {
            let call = Call { command, args, db: self.db, now_us: self.call.now_us };
            let mut reply = Reply::default();
            self.engine.run(&call, self.keys, &mut reply);
            self.collect(&call, &mut reply);
        }
    }

    /// Checks that a confined script touches only its keys. It cannot do otherwise, unless its text was
    /// misread.
    fn check_declared(&self, command: &Command, args: &[&[u8]]) -> Result<(), Refused> {
        let is_declared = |key: &&[u8]| match &self.declared_set {
            Some(set) => set.contains(key),
            None => self.declared.contains(key),
        };
        let stray = match (command.keys, args) {
            (KeySpec::Range { first: 1, last: 1, .. }, [_, key, ..]) => (!is_declared(key)).then_some(*key),
            (keys, args) if keys.concerns_all(args) => Some(&b"*"[..]),
            (keys, args) => keys.keys(args).find(|key| !is_declared(key)),
        };
        match stray {
            None => Ok(()),
            Some(key) => Err(format!(
                "the script touches '{}', which is not among its KEYS",
                String::from_utf8_lossy(&key[..key.len().min(128)])
            )
            .into()),
        }
    }

    /// Checks that a change is accepted, and that the record has room for it.
    fn admit(&mut self, command: &Command, args: &[&[u8]]) -> Result<(), CommandError> {
        self.engine.check_writable_by(command)?;
        self.engine.check_level_for(command, args)?;
        let bytes = Engine::record_bytes(args);
        match self.room.checked_sub(bytes) {
            Some(room) => self.room = room,
            None => {
                return Err(CommandError::Text(
                    format!(
                        "ERR the changes of the script leave {} bytes of its record, and this one takes {bytes}: \
                         make them in several scripts",
                        self.room
                    )
                    .into(),
                ));
            }
        }
        Ok(())
    }

    /// Takes the effects of the command that has just run.
    fn collect(&mut self, call: &Call<'_>, reply: &mut Reply) {
        let mut effects = std::mem::take(&mut self.keys.effects);
        encode_effects(call, &effects, &mut self.recorded);
        self.all.durable |= effects.durable;
        self.all.awaited = self.all.awaited.max(effects.awaited);
        self.all.reveals_logged |= effects.reveals_logged;
        if effects.rare().is_none() {
            return;
        }
        let rare = effects.take_rare();
        if rare.block.is_some() {
            reply.null_array();
        }
        let all = self.all.rare_mut();
        all.ready.extend(rare.ready);
        all.noted.extend(rare.noted);
        all.leased.extend(rare.leased);
    }

    /// Leaves all effects where those of a command are looked for. Returns whether the script was long.
    pub(super) fn finish(self) -> bool {
        let now = self.asked.and_then(|_| self.host()).map(|host| host.now());
        let Self { mut all, recorded, keys, asked, announced, has_read, .. } = self;
        all.changed = !recorded.is_empty();
        all.script_reads = has_read && !all.changed;
        if all.changed {
            all.rare_mut().recorded = recorded;
        }
        keys.effects = all;
        drop(announced);
        asked.zip(now).is_some_and(|(asked, now)| now.saturating_duration_since(asked) >= QUICK)
    }

    /// The shards that it has locked, for its announcement.
    fn shards(&self) -> Shards {
        if self.is_alone {
            return Shards::All;
        }
        Shards::Some(self.declared.iter().map(|key| self.keys.shard_of(key)).collect())
    }

    /// `SELECT`, for the commands behind it.
    fn select(&mut self, args: &[&[u8]], reply: &mut Reply) {
        let index = args.get(1).copied().and_then(parse::canonical_integer);
        let chosen = index.and_then(|index| u8::try_from(index).ok());
        match chosen.filter(|index| usize::from(*index) < DATABASES) {
            Some(db) => {
                self.db = db;
                reply.ok();
            }
            None if index.is_some() => reply.error_text("ERR DB index is out of range"),
            None => reply.error_text("ERR value is not an integer or out of range"),
        }
    }

    /// Runs a command that is not on keys.
    fn run_outside(
        &mut self,
        command: &'static Command,
        args: &[&[u8]],
        reply: &mut Reply,
    ) -> Result<(), Refused> {
        const REFUSED: &str = "This Redis command is not allowed from script";
        if command.name == "select" {
            self.select(args, reply);
            return Ok(());
        }
        if command.name == "durable" {
            let inner = args.get(1..).filter(|inner| !inner.is_empty()).ok_or(REFUSED)?;
            let command = self.resolve(inner)?;
            if !matches!(command.run, Run::Keys(_)) || command.is(flags::NOSCRIPT) {
                return Err(REFUSED.into());
            }
            self.run_on_keys(command, inner, reply)?;
            self.all.durable = true;
            return Ok(());
        }
        let host = self.host().map(Arc::clone).ok_or(REFUSED)?;
        if let Some((publication, receivers)) = host.receivers(command, args) {
            if self.only_reads {
                return Err(ONLY_READS.into());
            }
            reply.count(receivers);
            self.all.rare_mut().published.push(publication);
            return Ok(());
        }
        if host.run(command, args, self.call.now_us, reply) { Ok(()) } else { Err(REFUSED.into()) }
    }
}

impl Caller for ScriptRun<'_, '_> {
    fn call(&mut self, args: &[&[u8]], is_resp3: bool, answer: &mut Vec<u8>) -> Result<(), Refused> {
        let command = self.resolve(args)?;
        if command.is(flags::NOSCRIPT) {
            return Err("This Redis command is not allowed from script".into());
        }
        let mut reply = Reply::new(if is_resp3 { Protocol::Resp3 } else { Protocol::Resp2 });
        reply.set_limit(MAX_MEMORY);
        match command.run {
            Run::Keys(_) => self.run_on_keys(command, args, &mut reply)?,
            Run::Outside(_) => self.run_outside(command, args, &mut reply)?,
            Run::Script(_) => return Err("This Redis command is not allowed from script".into()),
            Run::Container => return Err("Wrong number of args calling Redis command from script".into()),
        }
        if reply.has_overflowed() {
            return Err("the answer of the command takes more memory than a script may".into());
        }
        *answer = reply.take();
        Ok(())
    }

    fn interrupt(&mut self) -> Option<&'static str> {
        let now = self.host()?.now();
        let asked = *self.asked.get_or_insert(now);
        if self.running.is_none() && now.saturating_duration_since(asked) >= LONG {
            let running = self.engine.scripts().running();
            let function = RunningFunction::of(self.call.command, self.call.args, asked);
            let has_written = !self.recorded.is_empty();
            self.announced = Some(running.announce(self.shards(), asked, has_written, function));
            self.running = RunningScripts::own();
        }
        let killed = self.running.as_ref().and_then(|running| running.killed());
        killed.or_else(|| self.engine.scripts().running().stopped(now))
    }

    fn log(&mut self, level: u8, message: &[u8]) {
        if let Some(host) = self.host() {
            host.log(level, message);
        }
    }

    fn knows(&self, name: &[u8]) -> bool {
        let is_known = |error: &CommandError| matches!(error, CommandError::Arity(_));
        command::find(name).is_some()
            || self
                .host()
                .is_some_and(|host| host.resolve(&[name]).map_or_else(|error| is_known(&error), |_| true))
    }
}
