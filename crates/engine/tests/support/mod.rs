//! An engine over a log in memory, and commands as text lines.

pub(crate) mod commands;
pub(crate) mod crashes;
pub(crate) mod members;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use tidemark_engine::{Call, Engine, Executed, Protocol, Reply, WatchedKeys, command};
use tidemark_log::{Log, Lsn, MemoryStorage, Options, Record};

/// 2026-01-01T00:00:00Z, the time at which every test begins.
pub(crate) const START_US: u64 = 1_767_225_600_000_000;

/// An engine without keys, whose random choices and secrets are always the same.
pub(crate) fn engine() -> Engine {
    engine_with_log(log())
}

pub(crate) fn log() -> Arc<Log> {
    let (log, _) = Log::open(Arc::new(MemoryStorage::new()), Options::default()).expect("an empty log opens");
    Arc::new(log)
}

pub(crate) fn engine_with_log(log: Arc<Log>) -> Engine {
    let next = AtomicU8::new(0);
    let secrets = move |bytes: &mut [u8]| {
        bytes.fill(next.fetch_add(1, Ordering::Relaxed));
        Ok(())
    };
    Engine::new(log, 8, 42).with_secrets(Box::new(secrets))
}

/// Splits a line as `redis-cli` does, without escapes: words, or text between double quotes.
pub(crate) fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() {
        let (word, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').expect("a closing quote"),
            None => rest.split_once(' ').unwrap_or((rest, "")),
        };
        words.push(word.to_owned());
        rest = after.trim_start();
    }
    words
}

/// A client: a protocol, a database and a clock.
pub(crate) struct Client<'e> {
    pub(crate) engine: &'e Engine,
    pub(crate) protocol: Protocol,
    pub(crate) db: u8,
    pub(crate) now_us: u64,
}

impl<'e> Client<'e> {
    pub(crate) fn new(engine: &'e Engine) -> Self {
        Self { engine, protocol: Protocol::Resp2, db: 0, now_us: START_US }
    }

    pub(crate) fn resp3(engine: &'e Engine) -> Self {
        Self { protocol: Protocol::Resp3, ..Self::new(engine) }
    }

    pub(crate) fn sleep_ms(&mut self, ms: u64) {
        self.now_us += ms * 1000;
    }

    /// Runs a command. Returns its answer in wire form, with `\r\n` shown as a space.
    pub(crate) fn run(&self, line: &str) -> String {
        self.execute(line).0
    }

    pub(crate) fn execute(&self, line: &str) -> (String, Executed<'e>) {
        let words = words(line);
        let args: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
        let mut reply = Reply::new(self.protocol);
        let executed = match command::resolve(&args) {
            Ok(command) => {
                let call = Call { command, args: &args, db: self.db, now_us: self.now_us };
                self.engine.execute(&call, &mut reply)
            }
            Err(error) => {
                reply.error(&error);
                Executed::default()
            }
        };
        (shown(reply.bytes()), executed)
    }

    /// Runs commands and compares each answer.
    pub(crate) fn expect(&self, dialogue: &[(&str, &str)]) {
        for (line, answer) in dialogue {
            assert_eq!(self.run(line), *answer, "{line}");
        }
    }
}

/// Runs commands as `EXEC` does and returns the answer, unless a key of `watch` has changed.
pub(crate) fn transaction(engine: &Engine, watch: Option<&WatchedKeys>, lines: &[&str]) -> String {
    let (answer, executed) = execute_transaction(engine, watch, lines);
    assert!(!executed.blocks(), "no command blocks in a transaction");
    answer
}

/// As [`transaction`], with the outcome, which has the record that the reply waits for.
pub(crate) fn execute_transaction<'e>(
    engine: &'e Engine,
    watch: Option<&WatchedKeys>,
    lines: &[&str],
) -> (String, Executed<'e>) {
    let words: Vec<Vec<String>> = lines.iter().map(|line| words(line)).collect();
    let args: Vec<Vec<&[u8]>> =
        words.iter().map(|words| words.iter().map(String::as_bytes).collect()).collect();
    let calls: Vec<Call<'_>> = args
        .iter()
        .map(|args| Call {
            command: command::resolve(args).expect("a command"),
            args,
            db: 0,
            now_us: START_US,
        })
        .collect();
    let mut reply = Reply::new(Protocol::Resp2);
    let executed = engine.execute_transaction(&calls, watch, START_US, &mut reply);
    (shown(reply.bytes()), executed)
}

/// Runs commands on four threads; `line` returns that of a thread's step.
pub(crate) fn run_on_threads(engine: &Engine, line: impl Fn(usize, usize) -> String + Sync) {
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let line = &line;
            scope.spawn(move || {
                for step in 0..120 {
                    Client::new(engine).run(&line(thread, step));
                }
            });
        }
    });
}

/// Wire bytes as one line.
pub(crate) fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace("\r\n", " ").trim_end().to_owned()
}

/// A second engine that has applied the whole log of the first.
pub(crate) fn replayed(engine: &Engine) -> Engine {
    let replica = self::engine();
    apply_from(engine, engine.log().floor().max(Lsn(1)), &replica);
    replica
}

/// Applies the log of `engine` from `from` on to another engine.
pub(crate) fn apply_from(engine: &Engine, from: Lsn, replica: &Engine) {
    let mut scratch = Reply::default();
    replica.continue_behind(from.previous());
    for_each_record(engine, from, |record| {
        let applied = replica.apply(record, &mut scratch);
        applied.unwrap_or_else(|error| panic!("record {} of kind {}: {error}", record.lsn, record.kind));
    });
}

/// Shows every record of an engine's log from `from` on.
pub(crate) fn for_each_record(engine: &Engine, from: Lsn, mut visit: impl FnMut(&Record<'_>)) {
    let log = engine.log();
    log.wait_durable(log.appended()).expect("memory does not fail");
    if from > log.appended() {
        return;
    }
    let mut replay = log.replay(from).expect("the log is complete");
    while let Some(batch) = replay.next_batch().expect("the log is sound") {
        batch.iter().for_each(|record| visit(&record));
    }
}
