//! Tests of a connection without a socket: its replies, and when it stops reading.

mod commits;
mod group;
mod once;

use super::*;
use crate::durability::log_state::CommitLost;
use crate::net::client::Origin;
use crate::net::event_loop::WAKER;
use crate::net::inbox::Inbox;
use crate::net::outbox::Until;
use crate::observe::counters::Counters;
use crate::shared::Shared;
use crate::subscription::channel_publisher::ChannelPublisher;
use crate::subscription::registry::SubscriptionRegistry;
use mio::{Poll, Waker};
use proptest::prelude::*;
use std::cell::Cell;
use std::time::Duration;
use tidemark_engine::Engine;
use tidemark_engine::watch::RetentionLimits;
use tidemark_log::storage::faulty::{Fault, Plan, Site};
use tidemark_log::{
    Clock, Durability, FaultyStorage, Health, Log, Lsn, ManualClock, MemoryStorage, Options, Storage,
};

/// Server without threads or disk.
struct Bench {
    shared: Shared,
    config: Config,
    counters: Counters,
    registry: SubscriptionRegistry,
    turn: Duration,
    /// What `shared` reads: time stands still until a test advances it.
    clock: ManualClock,
    shows_lead: Cell<bool>,
    _poll: Poll,
}

impl Bench {
    fn new(change: impl FnOnce(&mut Config)) -> Bench {
        let mut config = Config::default();
        change(&mut config);
        let options =
            Options { durability: config.durability, segment_bytes: 64 * 1024, ..Options::default() };
        Bench::over(options, config)
    }

    /// Creates a bench with segments so large that a megabyte never waits for log space.
    fn with_large_segments(change: impl FnOnce(&mut Config)) -> Bench {
        let mut config = Config::default();
        change(&mut config);
        let options =
            Options { durability: config.durability, segment_bytes: 128 << 20, ..Options::default() };
        Bench::over(options, config)
    }

    fn over(options: Options, config: Config) -> Bench {
        Bench::with_storage(Arc::new(MemoryStorage::new()), options, config)
    }

    fn with_storage(storage: Arc<dyn Storage>, options: Options, config: Config) -> Bench {
        let clock = ManualClock::new();
        let options = Options { clock: Clock::from(&clock), ..options };
        let (log, _) = Log::open(storage, options).expect("an empty log");
        Bench::with_log(log, clock, config)
    }

    fn with_log(log: Log, clock: ManualClock, config: Config) -> Bench {
        Bench::with_group(log, clock, config, None)
    }

    fn with_group(log: Log, clock: ManualClock, config: Config, group: Option<crate::group::Group>) -> Bench {
        let poll = Poll::new().expect("an event loop");
        let waker = Waker::new(poll.registry(), WAKER).expect("a waker");
        let engine = Engine::new(Arc::new(log), 4, 1);
        let snapshots = crate::durability::snapshots::Snapshots::new(Lsn::default(), engine.log().clock()).0;
        let inboxes = vec![Arc::new(Inbox::new(waker))];
        let shared = Shared::in_group(engine, snapshots, config.clone(), inboxes, group);
        let registry = SubscriptionRegistry::default();
        let turn = Duration::from_hours(1);
        Bench {
            shared,
            config,
            counters: Counters::default(),
            registry,
            turn,
            clock,
            shows_lead: Cell::new(false),
            _poll: poll,
        }
    }

    fn now(&self) -> Instant {
        self.shared.clock.now()
    }

    /// Makes all records durable and notifies a connection.
    fn sync(&self, connection: &mut Connection) {
        let log = self.shared.engine.log();
        log.wait_durable(log.appended()).expect("what was accepted is stored");
        connection.log_moved(Reached::by(log), &self.context());
    }

    /// Writes all records, so that they survive the process, and notifies a connection.
    fn write(&self, connection: &mut Connection) {
        let log = self.shared.engine.log();
        eventually("everything is written", || {
            log.write_or_request(log.appended());
            log.written() >= log.appended()
        });
        connection.log_moved(Reached::by(log), &self.context());
    }

    /// Delivers published messages to a subscriber, as its worker does.
    fn pass_messages_to(&self, subscriber: &mut Connection) {
        let mut messages = Vec::new();
        self.shared.inboxes[0].take(&mut messages);
        for message in messages {
            if let crate::net::inbox::Message::Publish(connection_id, publication) = message
                && connection_id == subscriber.session.connection_id()
            {
                subscriber.publish(&publication, &self.config);
            }
        }
    }

    /// Does the work of the channel thread and delivers its messages to a subscriber.
    fn publish_on_channels_to(&self, subscriber: &mut Connection) {
        let received = self.shared.channel_registry.mailbox().wait().expect("it is not stopped");
        ChannelPublisher::new(&self.shared).serve(received);
        self.pass_messages_to(subscriber);
    }

    fn context(&self) -> Context<'_> {
        // Other tests cover waiting for log space; segments are small here.
        let log = self.shared.engine.log();
        eventually("the log has room", || log.has_room_for(0));
        self.context_without_room()
    }

    /// The context of commands after the log has failed.
    fn context_without_room(&self) -> Context<'_> {
        Context {
            shared: &self.shared,
            config: &self.config,
            counters: &self.counters,
            registry: &self.registry,
            // Independent of the machine: the commands that a test runs in one turn are fixed.
            turn: self.turn,
            now_us: 1_000_000,
            shows_lead: &self.shows_lead,
        }
    }

    fn connect(&self) -> Connection {
        let origin = Origin {
            address: "127.0.0.1:1".to_owned(),
            local_address: "127.0.0.1:2".to_owned(),
            descriptor: 0,
            is_local: true,
            is_unix: false,
        };
        let client = self.shared.clients.admit(10, 0, 0, 0, origin).expect("a place");
        Connection::new(client, &self.config, &self.shared.client_memory.budget)
    }
}

impl Connection {
    /// Drains everything sendable, as if the socket had accepted it.
    fn take(&mut self) -> String {
        let bytes = self.session.outbox.sendable().to_vec();
        self.sent(bytes.len());
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// What the first held reply waits for.
    fn awaited(&self) -> Option<Until> {
        self.session.outbox.waits_for()
    }
}

/// Waits until another thread has established a condition.
#[track_caller]
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}: waited in vain");
        std::thread::yield_now();
    }
}

/// Creates a message of the channel `a`.
fn message(bytes: usize) -> Publication {
    Publication {
        kind: crate::events::publication::Kind::Channel,
        name: b"a".as_slice().into(),
        channel: b"a".as_slice().into(),
        payload: vec![b'x'; bytes].into(),
        after: None,
        turn: None,
    }
}

#[test]
fn a_batch_is_answered_by_one_output() {
    let bench = Bench::new(|_| {});
    let mut connection = bench.connect();
    connection.receive(b"SET a 1\r\nGET a\r\nPI", &bench.context());
    assert_eq!(connection.take(), "+OK\r\n$1\r\n1\r\n");
    assert!(!connection.can_resume());
    connection.receive(b"NG\r\n", &bench.context());
    assert_eq!(connection.take(), "+PONG\r\n");
    assert!(connection.wants_input());
}

#[test]
fn a_long_pipeline_leaves_the_turn_to_other_connections_and_goes_on() {
    let mut bench = Bench::new(|_| {});
    bench.turn = Duration::ZERO;
    let (mut long, mut other) = (bench.connect(), bench.connect());
    long.receive("INCR n\r\n".repeat(10).as_bytes(), &bench.context());
    assert_eq!(long.take(), ":1\r\n:2\r\n:3\r\n", "its turn is over");
    assert!(long.can_resume() && long.holds_bytes());
    other.receive(b"GET n\r\n", &bench.context());
    assert_eq!(other.take(), "$1\r\n3\r\n");
    assert!(!other.can_resume());
    let mut rest = String::new();
    while long.can_resume() {
        long.resume(&bench.context());
        rest += &long.take();
    }
    assert_eq!(rest, ":4\r\n:5\r\n:6\r\n:7\r\n:8\r\n:9\r\n:10\r\n");
    assert!(!long.holds_bytes());
}

#[test]
fn unread_output_stops_input_until_it_is_read() {
    let bench = Bench::with_large_segments(|_| {});
    let mut connection = bench.connect();
    let value = "v".repeat(OUTPUT_PAUSE_BYTES);
    connection.receive(format!("SET a {}\r\n", "v".repeat(60_000)).as_bytes(), &bench.context());
    connection.receive(
        format!("*3\r\n$3\r\nSET\r\n$1\r\na\r\n${}\r\n{value}\r\n", value.len()).as_bytes(),
        &bench.context(),
    );
    connection.receive(b"GET a\r\nGET a\r\nPING\r\n", &bench.context());
    assert!(!connection.wants_input() && !connection.can_resume());
    assert_eq!(connection.take().len(), 10 + 10 + value.len() + 2, "two OKs and one value");
    assert!(connection.can_resume());
    connection.resume(&bench.context());
    connection.take();
    connection.resume(&bench.context());
    assert_eq!(connection.take(), "+PONG\r\n");
    assert!(connection.wants_input() && !connection.holds_bytes());
}

#[test]
fn with_always_a_read_does_not_show_what_a_crash_could_take_back() {
    let bench = Bench::new(|config| config.durability = Durability::Always);
    let (mut writer, mut reader) = (bench.connect(), bench.connect());
    writer.receive(b"SET a 1\r\n", &bench.context());
    reader.receive(b"GET a\r\n", &bench.context());
    assert_eq!((writer.take(), reader.take()), (String::new(), String::new()));
    let Some(Until::Committed(lsn)) = reader.awaited() else { panic!("the read waits for the write") };
    bench.shared.engine.log().wait_durable(lsn).expect("memory does not fail");
    let reached = Reached::by(bench.shared.engine.log());
    assert!(writer.log_moved(reached, &bench.context()) && reader.log_moved(reached, &bench.context()));
    assert_eq!((writer.take(), reader.take()), ("+OK\r\n".into(), "$1\r\n1\r\n".into()));
    reader.receive(b"GET a\r\n", &bench.context());
    assert_eq!(reader.take(), "$1\r\n1\r\n");
}

#[test]
fn with_always_a_reply_waits_for_its_record_and_takes_later_ones_with_it() {
    let bench = Bench::new(|config| config.durability = Durability::Always);
    let mut connection = bench.connect();
    connection.receive(b"PING\r\nSET a 1\r\nPING\r\n", &bench.context());
    assert_eq!(connection.take(), "+PONG\r\n");
    let Some(Until::Committed(lsn)) = connection.awaited() else { panic!("a change waits") };
    bench.shared.engine.log().wait_durable(lsn).expect("memory does not fail");
    assert!(connection.log_moved(Reached::by(bench.shared.engine.log()), &bench.context()));
    assert_eq!(connection.take(), "+OK\r\n+PONG\r\n");
    assert!(!connection.waits_for_log());
}

#[test]
#[should_panic(expected = "waits until LSN 8 is committed was released, and the log is committed to LSN 7")]
fn an_answer_that_is_released_before_its_record_is_committed_stops_the_process() {
    let needed = Reached { written: Lsn(0), committed: Lsn(8) };
    assert_reached(needed, Reached { written: Lsn(9), committed: Lsn(7) });
}

#[test]
fn with_always_nothing_of_an_exec_leaves_before_its_record_is_durable() {
    let bench = Bench::new(|config| config.durability = Durability::Always);
    let mut connection = bench.connect();
    connection.receive(b"HELLO 3\r\nGET.WATCH k | AS n\r\n", &bench.context());
    bench.sync(&mut connection);
    connection.take();
    // The end of a named subscription is a separate record, after the transaction's.
    connection.receive(b"MULTI\r\nSET other 1\r\nUNWATCH NAMED n\r\nEXEC\r\n", &bench.context());
    assert_eq!(connection.take(), "+OK\r\n+QUEUED\r\n+QUEUED\r\n");
    bench.sync(&mut connection);
    assert_eq!(connection.take(), "*2\r\n+OK\r\n:1\r\n");
}

#[test]
fn with_always_a_frame_in_place_of_several_answers_waits_for_their_record() {
    let bench = Bench::new(|config| config.durability = Durability::Always);
    let mut connection = bench.connect();
    connection.receive(&dice_frame(&["ZADD", "z", "1", "a"]), &bench.context());
    bench.sync(&mut connection);
    connection.take();
    // A transaction whose replies are longer than the frame.
    let pop_and_ping = [dice_frame(&["ZPOPMAX", "z"]), dice_frame(&["PING"])].concat();
    connection.receive(&pop_and_ping, &bench.context());
    assert_eq!(connection.take(), "");
    bench.sync(&mut connection);
    assert!(connection.take().contains("PONG"));
}

#[test]
fn with_always_an_emission_waits_for_its_record() {
    let bench = Bench::new(|config| config.durability = Durability::Always);
    let (mut writer, mut watcher) = (bench.connect(), bench.connect());
    watcher.receive(b"HELLO 3\r\nGET.WATCH k\r\n", &bench.context());
    bench.sync(&mut watcher);
    assert!(watcher.take().ends_with("value\r\n_\r\n"));
    writer.receive(b"SET k 1\r\n", &bench.context());
    watcher.emit(Lsn(1), &bench.context());
    assert_eq!(watcher.take(), "", "a crash could take it back");
    assert_eq!(watcher.awaited(), Some(Until::Committed(Lsn(2))));
    bench.sync(&mut watcher);
    assert_eq!(watcher.take(), ">5\r\n$8\r\nemission\r\n$3\r\n1-0\r\n:2\r\n:1\r\n$1\r\n1\r\n");
}

#[test]
fn an_emission_on_a_channel_waits_until_it_is_durable_if_its_change_asked_for_that() {
    let bench = Bench::new(|config| config.durability = Durability::Off);
    let (mut writer, mut subscriber) = (bench.connect(), bench.connect());
    subscriber.receive(b"HELLO 3\r\nSUBSCRIBE c\r\n", &bench.context());
    subscriber.take();
    writer.receive(b"GET.WATCH k | CHANNEL c\r\n", &bench.context());
    bench.write(&mut writer);
    assert_eq!(writer.take(), "$45\r\n{\"sub_id\":\"1-0\",\"lsn\":1,\"seq\":0,\"value\":null}\r\n");
    writer.receive(b"DURABLE SET k 1\r\n", &bench.context());
    bench.publish_on_channels_to(&mut subscriber);
    assert_eq!(subscriber.take(), "", "a crash could take the change back");
    assert_eq!(subscriber.awaited(), Some(Until::Committed(Lsn(2))));
    bench.sync(&mut subscriber);
    let line = "{\"sub_id\":\"1-0\",\"lsn\":2,\"seq\":1,\"value\":\"1\"}";
    let expected = format!(">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n${}\r\n{line}\r\n", line.len());
    assert_eq!(subscriber.take(), expected);
}

#[test]
fn a_channel_waits_for_a_subscriber_that_reads_and_not_for_one_that_does_not() {
    let bench = Bench::new(|config| config.durability = Durability::Off);
    let (mut writer, mut subscriber) = (bench.connect(), bench.connect());
    subscriber.receive(b"HELLO 3\r\nSUBSCRIBE c\r\n", &bench.context());
    subscriber.take();
    writer.receive(b"GET.WATCH k | CHANNEL c\r\n", &bench.context());
    // A small record and a large answer: no segment fills, so the log syncs only on request.
    writer.receive(b"DURABLE SETRANGE k 60000 x\r\n", &bench.context());
    (0..9).for_each(|_| writer.receive(b"DURABLE APPEND k x\r\n", &bench.context()));
    let serve = |subscriber: &mut Connection| {
        bench.shared.channel_registry.mailbox().look_at(Lsn(1));
        bench.publish_on_channels_to(subscriber);
        subscriber.session.outbox.pending()
    };
    let mut pending = Vec::new();
    (0..9).for_each(|_| pending.push(serve(&mut subscriber)));
    assert!(pending[8] > 256 << 10 && pending[8] < 1 << 20, "{pending:?}");
    assert_eq!(pending[7], pending[8], "it waits");
    let later = || bench.now() + Duration::from_mins(1);
    assert_eq!(subscriber.exceeded(&bench.config, later()), None, "it is the log that is waited for");
    bench.sync(&mut subscriber);
    assert_eq!(subscriber.exceeded(&bench.config, bench.now()), None);
    assert_eq!(subscriber.exceeded(&bench.config, later()), Some(CloseReason::SlowReader));
    // The client reads.
    subscriber.take();
    assert_eq!(subscriber.exceeded(&bench.config, later()), None);
    bench.publish_on_channels_to(&mut subscriber);
    assert!(subscriber.session.outbox.pending() > 0, "the next turn");
}

#[test]
fn an_emission_waits_until_it_survives_the_process_and_longer_if_its_change_asked_for_that() {
    let bench = Bench::new(|config| config.durability = Durability::Off);
    let (mut writer, mut watcher) = (bench.connect(), bench.connect());
    watcher.receive(b"HELLO 3\r\nGET.WATCH k\r\n", &bench.context());
    bench.write(&mut watcher);
    assert!(watcher.take().ends_with("value\r\n_\r\n"));
    writer.receive(b"SET k 1\r\n", &bench.context());
    watcher.emit(Lsn(1), &bench.context());
    let waits_for = watcher.awaited();
    // The log's thread may have written it already.
    let is_written = bench.shared.engine.log().written() >= Lsn(2);
    assert!(
        waits_for == Some(Until::Written(Lsn(2))) || (waits_for.is_none() && is_written),
        "{waits_for:?}"
    );
    bench.write(&mut watcher);
    assert!(watcher.take().ends_with(":2\r\n:1\r\n$1\r\n1\r\n"));
    for (number, line) in
        [(3, "SET k 2 DURABLE\r\n"), (4, "DURABLE INCR k\r\n"), (5, "MULTI\r\nDURABLE INCR k\r\nEXEC\r\n")]
    {
        writer.receive(line.as_bytes(), &bench.context());
        watcher.emit(Lsn(1), &bench.context());
        bench.write(&mut watcher);
        let waits_for = watcher.awaited();
        assert_eq!(
            (watcher.take(), waits_for),
            (String::new(), Some(Until::Committed(Lsn(number)))),
            "{line}"
        );
        bench.sync(&mut watcher);
        assert!(watcher.take().starts_with(">5"));
    }
}

#[test]
fn a_blocked_client_is_answered_at_its_own_durability() {
    let bench = Bench::new(|config| config.durability = Durability::Off);
    let (mut pusher, mut popper, mut watcher) = (bench.connect(), bench.connect(), bench.connect());
    watcher.receive(b"HELLO 3\r\nLLEN.WATCH q\r\n", &bench.context());
    bench.write(&mut watcher);
    assert!(watcher.take().ends_with("value\r\n:0\r\n"));
    popper.receive(b"DURABLE BLPOP q 0\r\n", &bench.context());
    pusher.receive(b"RPUSH q a\r\n", &bench.context());
    watcher.emit(Lsn(1), &bench.context());
    bench.write(&mut watcher);
    assert!(watcher.take().ends_with(":2\r\n:1\r\n:1\r\n"), "the push asked for nothing");
    assert_eq!(watcher.awaited(), Some(Until::Committed(Lsn(3))), "the pop did");
    bench.sync(&mut watcher);
    assert!(watcher.take().ends_with(":3\r\n:2\r\n:0\r\n"));
}

#[test]
fn a_failed_log_ends_connections_that_were_promised_durability() {
    let bench = Bench::new(|config| config.durability = Durability::Always);
    let (mut writer, mut reader) = (bench.connect(), bench.connect());
    writer.receive(b"PING\r\nSET a 1\r\nSET b 2\r\n", &bench.context());
    reader.receive(b"PING\r\n", &bench.context());
    writer.log_failed(&bench.context());
    reader.log_failed(&bench.context());
    assert_eq!(writer.take(), "+PONG\r\n", "whether the changes are in the log is unknown");
    assert!(writer.is_finished());
    assert_eq!(reader.take(), "+PONG\r\n");
    assert!(!reader.is_finished());
}

#[test]
fn a_change_that_the_log_refuses_leaves_earlier_answers_alone() {
    let options = Options { max_record_bytes: 100, segment_bytes: 64 * 1024, ..Options::default() };
    let bench = Bench::over(options, Config::default());
    let mut connection = bench.connect();
    // Small changes, each of which fits into the log, make one record that does not.
    let increments = "APPEND a 0123456789\r\n".repeat(10);
    connection.receive(format!("PING\r\nMULTI\r\n{increments}EXEC\r\n").as_bytes(), &bench.context());
    let answers = connection.take();
    assert!(answers.starts_with("+PONG\r\n+OK\r\n+QUEUED\r\n"), "{answers}");
    let last = answers.lines().last().expect("an answer to EXEC");
    assert!(last.starts_with('-') && answers.lines().count() == 13, "{answers}");
}

#[test]
fn a_client_that_waits_runs_nothing_until_it_is_unblocked() {
    let bench = Bench::new(|config| config.enable_debug_command = crate::config::DebugAccess::Local);
    let mut connection = bench.connect();
    connection.receive(b"DEBUG SLEEP 100\r\nPING\r\n", &bench.context());
    assert_eq!(connection.take(), "");
    assert!(!connection.can_resume() && connection.next_deadline(&bench.config).is_some());
    assert!(connection.wants_input(), "the end of a waiting client must be noticed");
    connection.receive(&vec![b'\n'; INPUT_AHEAD_BYTES], &bench.context());
    assert!(!connection.wants_input(), "but it may not send without limit");
    connection.unblock(Unblock::Timeout, &bench.context());
    assert_eq!(connection.take(), "+OK\r\n+PONG\r\n");
}

#[test]
fn input_that_ends_is_answered_before_the_connection_closes() {
    let bench = Bench::new(|_| {});
    let mut connection = bench.connect();
    connection.receive(b"PING\r\nPI", &bench.context());
    connection.end_input(&bench.context());
    assert!(!connection.is_finished(), "an answer is still to be sent");
    assert_eq!(connection.take(), "+PONG\r\n");
    assert!(connection.is_finished());
}

#[test]
fn a_soft_limit_gives_time_and_a_hard_limit_does_not() {
    let limits = |config: &mut Config| {
        config.output_limits.normal =
            OutputLimit { hard_bytes: 2000, soft_bytes: 1000, soft_time: Duration::from_mins(1) };
    };
    let bench = Bench::new(limits);
    let mut connection = bench.connect();
    let now = bench.now();
    connection.receive(format!("ECHO {}\r\n", "x".repeat(1500)).as_bytes(), &bench.context());
    assert_eq!(connection.exceeded(&bench.config, now), None);
    assert_eq!(connection.next_deadline(&bench.config), Some(now + Duration::from_mins(1)));
    assert_eq!(
        connection.exceeded(&bench.config, now + Duration::from_mins(1)),
        Some(CloseReason::SlowReader)
    );
    connection.take();
    assert_eq!(connection.exceeded(&bench.config, now + Duration::from_mins(1)), None);
    connection.receive(format!("ECHO {}\r\n", "x".repeat(2500)).as_bytes(), &bench.context());
    assert_eq!(connection.exceeded(&bench.config, now), Some(CloseReason::SlowReader));
}

#[test]
fn a_client_that_has_read_everything_is_not_slow() {
    let limits = |config: &mut Config| {
        config.output_limits.normal =
            OutputLimit { hard_bytes: 0, soft_bytes: 1000, soft_time: Duration::from_mins(1) };
    };
    let bench = Bench::new(limits);
    let mut connection = bench.connect();
    let burst = format!("ECHO {}\r\n", "x".repeat(1500));
    let now = bench.now();
    for (minutes, is_read) in [(0, true), (5, true), (10, false)] {
        let now = now + Duration::from_mins(minutes);
        connection.receive(burst.as_bytes(), &bench.context());
        assert_eq!(connection.exceeded(&bench.config, now), None, "in minute {minutes}");
        assert!(connection.session.client.shown.output_bytes.load(Ordering::Relaxed) > 1500);
        if is_read {
            connection.take();
            assert_eq!(connection.session.client.shown.output_bytes.load(Ordering::Relaxed), 0);
            assert_eq!(connection.next_deadline(&bench.config), None);
        }
    }
    let later = now + Duration::from_mins(11);
    assert_eq!(connection.exceeded(&bench.config, later), Some(CloseReason::SlowReader));
}

/// Creates a server whose normal clients may leave 100 kB unread, with a value of 60 kB under `m`.
fn bench_with_little_output() -> Bench {
    let bench = Bench::with_large_segments(|config| config.output_limits.normal.hard_bytes = 100_000);
    let mut connection = bench.connect();
    let value = "v".repeat(60_000);
    connection
        .receive(format!("*3\r\n$3\r\nSET\r\n$1\r\nm\r\n$60000\r\n{value}\r\n").as_bytes(), &bench.context());
    assert_eq!(connection.take(), "+OK\r\n");
    connection.close(&bench.context());
    bench
}

#[test]
fn one_reply_beyond_the_limit_is_not_even_made() {
    let bench = bench_with_little_output();
    let mut connection = bench.connect();
    let keys = "$1\r\nm\r\n".repeat(400);
    connection
        .receive(format!("PING\r\n*401\r\n$4\r\nMGET\r\n{keys}SET a 1\r\n").as_bytes(), &bench.context());
    assert!(connection.session.outbox.pending() <= 100_000);
    assert!(!connection.wants_input() && !connection.can_resume() && connection.holds_bytes());
    assert_eq!(connection.exceeded(&bench.config, bench.now()), Some(CloseReason::SlowReader));
    connection.take();
    assert_eq!(connection.exceeded(&bench.config, bench.now()), Some(CloseReason::SlowReader), "sent or not");
    let mut other = bench.connect();
    other.receive(b"EXISTS a\r\n", &bench.context());
    assert_eq!(other.take(), ":0\r\n", "nothing runs after a reply that has no end");
}

#[test]
fn repeated_draws_end_at_the_limit() {
    let bench = bench_with_little_output();
    for (fill, ask) in [
        ("SADD a x", "SRANDMEMBER a -100000"),
        ("HSET b x y", "HRANDFIELD b -100000 WITHVALUES"),
        ("ZADD c 1 x", "ZRANDMEMBER c -100000 WITHSCORES"),
    ] {
        let mut connection = bench.connect();
        connection.receive(format!("{fill}\r\n{ask}\r\n").as_bytes(), &bench.context());
        assert_eq!(connection.exceeded(&bench.config, bench.now()), Some(CloseReason::SlowReader), "{ask}");
        connection.close(&bench.context());
    }
}

#[test]
fn replies_within_the_limit_go_on_as_they_are_read() {
    let bench = bench_with_little_output();
    let mut connection = bench.connect();
    connection.receive("GET m\r\n".repeat(50).as_bytes(), &bench.context());
    let mut received = connection.take().len();
    while connection.can_resume() {
        connection.resume(&bench.context());
        received += connection.take().len();
    }
    assert_eq!(received, 50 * (60_000 + 10));
    assert_eq!(connection.exceeded(&bench.config, bench.now()), None);
}

#[test]
fn a_transaction_whose_answers_overflow_is_executed_and_logged() {
    // With a connection command in the transaction, replies are collected and merged.
    for between in ["", "SELECT 0\r\n"] {
        let bench = bench_with_little_output();
        let mut connection = bench.connect();
        let gets = "GET m\r\n".repeat(50);
        let before = bench.shared.engine.log().appended();
        connection.receive(
            format!("MULTI\r\nINCR a\r\n{gets}{between}INCR a\r\nEXEC\r\n").as_bytes(),
            &bench.context(),
        );
        assert!(connection.session.outbox.pending() <= 100_000);
        assert_eq!(connection.exceeded(&bench.config, bench.now()), Some(CloseReason::SlowReader));
        assert!(bench.shared.engine.log().appended() > before);
        let mut other = bench.connect();
        other.receive(b"GET a\r\n", &bench.context());
        assert_eq!(other.take(), "$1\r\n2\r\n");
    }
}

#[test]
fn a_blocked_client_is_not_given_more_than_it_may_hold() {
    let bench = bench_with_little_output();
    let (mut waiting, mut other) = (bench.connect(), bench.connect());
    waiting.receive(b"BLMPOP 0 1 list LEFT COUNT 9\r\n", &bench.context());
    assert_eq!(waiting.take(), "");
    let elements = format!("$30000\r\n{}\r\n", "e".repeat(30_000)).repeat(9);
    let before = bench.shared.engine.log().appended();
    other.receive(format!("*11\r\n$5\r\nRPUSH\r\n$4\r\nlist\r\n{elements}").as_bytes(), &bench.context());
    assert_eq!(other.take(), ":9\r\n");
    let mut messages = Vec::new();
    bench.shared.inboxes[0].take(&mut messages);
    let [crate::net::inbox::Message::Deliver(_, delivery)] = messages.as_slice() else {
        panic!("one delivery")
    };
    assert!(delivery.overflowed && delivery.reply.capacity() == 0);
    assert!(bench.shared.engine.log().appended().0 >= before.0 + 2, "the push and the pop are in the log");
    waiting.deliver(delivery, &bench.context());
    assert_eq!(waiting.exceeded(&bench.config, bench.now()), Some(CloseReason::SlowReader));
}

#[test]
fn a_stranger_costs_little_memory() {
    let bench = Bench::new(|config| config.requirepass = "secret".to_owned());
    let mut connection = bench.connect();
    let now = bench.now();
    connection.receive(&b"PING\r\n".repeat(10_000), &bench.context());
    assert!(connection.session.outbox.pending() < STRANGER_OUTPUT_PAUSE_BYTES + 100);
    assert!(!connection.wants_input(), "it reads its refusals before it sends more");

    let mut connection = bench.connect();
    let argument = format!("$16000\r\n{}\r\n", "x".repeat(16_000));
    connection.receive(format!("*10\r\n{}", argument.repeat(3)).as_bytes(), &bench.context());
    assert_eq!(connection.exceeded(&bench.config, now), None);
    connection.receive(argument.repeat(2).as_bytes(), &bench.context());
    assert_eq!(connection.exceeded(&bench.config, now), Some(CloseReason::QueryBuffer));
}

#[test]
fn a_message_that_does_not_fit_is_not_copied() {
    let bench = Bench::new(|config| config.output_limits.pubsub.hard_bytes = 1000);
    let mut connection = bench.connect();
    connection.receive(b"SUBSCRIBE a\r\n", &bench.context());
    connection.publish(&message(500), &bench.config);
    assert_eq!(connection.exceeded(&bench.config, bench.now()), None);
    let before = connection.session.outbox.pending();
    connection.publish(&message(500), &bench.config);
    assert_eq!(connection.session.outbox.pending(), before);
    assert_eq!(connection.exceeded(&bench.config, bench.now()), Some(CloseReason::SlowReader));
}

#[test]
fn the_name_of_a_channel_takes_room_too() {
    let bench = Bench::new(|config| config.output_limits.pubsub.hard_bytes = 1000);
    let mut connection = bench.connect();
    connection.receive(b"PSUBSCRIBE *\r\n", &bench.context());
    let pattern: std::sync::Arc<[u8]> = b"*".as_slice().into();
    let long = Publication {
        kind: crate::events::publication::Kind::Pattern,
        name: pattern,
        channel: vec![b'k'; 1000].into(),
        ..message(1)
    };
    connection.publish(&long, &bench.config);
    assert_eq!(connection.exceeded(&bench.config, bench.now()), Some(CloseReason::SlowReader));
}

#[test]
fn silence_and_missing_passwords_have_their_deadlines() {
    let bench = Bench::new(|config| {
        config.timeout = Duration::from_secs(10);
        config.requirepass = "secret".to_owned();
        config.authentication_timeout = Duration::from_secs(5);
    });
    let mut connection = bench.connect();
    bench.clock.advance(Duration::from_secs(4));
    assert_eq!(connection.overdue(&bench.config, bench.now()), None);
    bench.clock.advance(Duration::from_secs(1));
    assert_eq!(connection.overdue(&bench.config, bench.now()), Some(CloseReason::Unauthenticated));
    connection.receive(b"AUTH secret\r\n", &bench.context());
    assert_eq!(connection.overdue(&bench.config, bench.now()), None);
    bench.clock.advance(Duration::from_secs(9));
    assert_eq!(connection.overdue(&bench.config, bench.now()), None);
    bench.clock.advance(Duration::from_secs(1));
    assert_eq!(connection.overdue(&bench.config, bench.now()), Some(CloseReason::Idle));
    connection.receive(b"SUBSCRIBE a\r\n", &bench.context());
    assert_eq!(connection.next_deadline(&bench.config), None, "a subscriber may be silent");
}

#[test]
fn the_rest_of_a_request_has_a_deadline_that_every_byte_renews() {
    let bench = Bench::new(|config| config.request_timeout = Duration::from_secs(30));
    let mut connection = bench.connect();
    connection.receive(b"PING\r\n", &bench.context());
    assert_eq!(connection.next_deadline(&bench.config), None, "between two requests silence has no end");
    connection.receive(b"*2\r\n$4\r\nECHO\r\n$3\r\na", &bench.context());
    let deadline = bench.now() + Duration::from_secs(30);
    assert_eq!(connection.next_deadline(&bench.config), Some(deadline));
    bench.clock.advance(Duration::from_secs(29));
    assert_eq!(connection.overdue(&bench.config, bench.now()), None);
    assert_eq!(connection.overdue(&bench.config, deadline), Some(CloseReason::Unfinished));
    connection.receive(b"b", &bench.context());
    assert_eq!(connection.next_deadline(&bench.config), Some(bench.now() + Duration::from_secs(30)));
    connection.receive(b"c\r\n", &bench.context());
    assert_eq!(connection.next_deadline(&bench.config), None);
}

#[test]
fn a_client_that_is_not_listened_to_need_not_finish_its_request() {
    let bench = Bench::new(|config| config.request_timeout = Duration::from_secs(30));
    let mut blocked = bench.connect();
    blocked.receive(b"BLPOP k 0\r\nPI", &bench.context());
    assert_eq!(blocked.next_deadline(&bench.config), None);
    bench.clock.advance(Duration::from_secs(20));
    blocked.unblock(Unblock::Timeout, &bench.context());
    let deadline = bench.now() + Duration::from_secs(30);
    assert_eq!(blocked.next_deadline(&bench.config), Some(deadline), "its time begins when its turn comes");

    let mut slow = bench.connect();
    slow.receive(b"SUBSCRIBE a\r\nPI", &bench.context());
    assert!(slow.next_deadline(&bench.config).is_some());
    bench.clock.advance(Duration::from_secs(20));
    slow.publish(&message(OUTPUT_PAUSE_BYTES), &bench.config);
    assert_eq!(slow.next_deadline(&bench.config), None, "it has to read first");
    slow.take();
    assert_eq!(slow.next_deadline(&bench.config), Some(bench.now() + Duration::from_secs(30)));
}

#[test]
fn a_closed_connection_leaves_nothing_behind() {
    let bench = Bench::new(|_| {});
    let mut connection = bench.connect();
    connection.receive(b"WATCH a\r\nSUBSCRIBE a\r\nPSUBSCRIBE b\r\n", &bench.context());
    connection.close(&bench.context());
    assert_eq!(bench.shared.clients.count(), 0);
    assert_eq!(bench.shared.pubsub.counts(), (0, 0, 0));
}

/// Replies to `input` sent in one piece, and sent in pieces that end at `splits`.
fn answers_to(input: &[u8], splits: &[prop::sample::Index]) -> (String, String) {
    let mut ends: Vec<usize> = splits.iter().map(|split| split.index(input.len() + 1)).collect();
    ends.push(input.len());
    ends.sort_unstable();

    let (whole, pieces) = (Bench::new(|_| {}), Bench::new(|_| {}));
    let (mut expected, mut connection) = (whole.connect(), pieces.connect());
    if !input.is_empty() {
        expected.receive(input, &whole.context());
    }
    let (mut start, mut answers) = (0, String::new());
    for end in ends {
        if end > start && !connection.session.closing {
            connection.receive(&input[start..end], &pieces.context());
            answers.push_str(&connection.take());
        }
        start = end;
    }
    (expected.take(), answers)
}

/// Encodes a command of DiceDB's protocol with words of less than 128 bytes.
fn dice_frame(words: &[&str]) -> Vec<u8> {
    let mut message = Vec::new();
    for (index, word) in words.iter().enumerate() {
        message.extend([if index == 0 { 0x0a } else { 0x12 }, word.len() as u8]);
        message.extend_from_slice(word.as_bytes());
    }
    [&(message.len() as u32).to_be_bytes(), message.as_slice()].concat()
}

#[test]
fn a_failed_log_ends_connections_of_dicedbs_protocol_too() {
    let bench = Bench::new(|config| config.durability = Durability::Always);
    let mut connection = bench.connect();
    connection.receive(&dice_frame(&["SET", "a", "1"]), &bench.context());
    connection.log_failed(&bench.context());
    assert_eq!(connection.take(), "");
    assert!(connection.is_finished());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Replies to frames followed by arbitrary bytes do not depend on how the input is split.
    #[test]
    fn pieces_of_frames_do_not_matter(
        lines in prop::collection::vec("(SET|GET|INCR|ZADD|ZRANGE|ZPOPMAX|ZRANK|HSET|HGETALL|KEYS|HELLO|HANDSHAKE|PING|NOPE)( (a|b|1|-1|2|é|\\*|BYSCORE|watch)){0,4}", 1..12),
        garbage in prop::collection::vec(any::<u8>(), 0..20),
        splits in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let mut input: Vec<u8> =
            lines.iter().flat_map(|line| dice_frame(&line.split(' ').collect::<Vec<_>>())).collect();
        input.extend(garbage);
        let (expected, answers) = answers_to(&input, &splits);
        prop_assert_eq!(answers, expected);
    }

    /// Replies do not depend on how the input is split.
    #[test]
    fn pieces_do_not_matter(
        lines in prop::collection::vec("(SET|GET|INCR|MULTI|EXEC|WATCH|SELECT|ECHO|SUBSCRIBE|HELLO|NOPE|CLIENT|\\*1|\\$3)( [a-c3\"]){0,3}", 0..12),
        splits in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let input = (lines.join("\r\n") + "\r\n").into_bytes();
        let (expected, answers) = answers_to(&input, &splits);
        prop_assert_eq!(answers, expected);
    }
}

/// Encodes a command as an array of bulk strings.
fn frame(line: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    crate::resp::encode_request(&mut bytes, &line.split(' ').collect::<Vec<_>>());
    bytes
}

#[test]
fn points_in_a_pipeline_share_a_record_and_each_has_its_answer() {
    let bench = Bench::new(|config| config.durability = Durability::Always);
    let mut connection = bench.connect();
    let lines =
        ["TS.ADD a 1 1", "TS.ADD b 1 x", "ts.add b 1 2", "TS.ADD a 1 1", "PING", "TS.ADD a 2 1", "TS.ADD a"];
    let input: Vec<u8> = lines.iter().flat_map(|line| frame(line)).collect();
    connection.receive(&input, &bench.context());
    assert_eq!(connection.take(), "", "all wait for the first record");
    let log = bench.shared.engine.log();
    assert_eq!(log.appended(), Lsn(2), "a run, and the point behind PING");
    log.wait_durable(Lsn(2)).expect("memory does not fail");
    assert!(connection.log_moved(Reached::by(log), &bench.context()));
    let answers = connection.take();
    let answers: Vec<&str> = answers.lines().map(|line| line.get(..20).unwrap_or(line)).collect();
    let expected =
        [":1", "-ERR TSDB: invalid v", ":1", "-ERR TSDB: Error at ", "+PONG", ":2", "-ERR wrong number of"];
    assert_eq!(answers, expected);
    assert_eq!(bench.counters.commands.get(), lines.len() as u64);
    assert_eq!(bench.shared.errors.all().values().sum::<u64>(), 3);
}

#[test]
fn points_run_alone_where_they_must() {
    let appended = |prefix: &[&str], lines: &[&str]| {
        let bench = Bench::new(|_| {});
        let mut connection = bench.connect();
        for line in prefix {
            connection.receive(&frame(line), &bench.context());
        }
        let before = bench.shared.engine.log().appended().0;
        let input: Vec<u8> = lines.iter().flat_map(|line| frame(line)).collect();
        connection.receive(&input, &bench.context());
        (bench.shared.engine.log().appended().0 - before, connection.take().lines().count())
    };
    let points = ["TS.ADD a 1 1", "TS.ADD a 2 1", "TS.ADD b 2 1"];
    assert_eq!(appended(&[], &points), (1, 3));
    let durable: Vec<String> = points.iter().map(|line| format!("DURABLE {line}")).collect();
    let durable: Vec<&str> = durable.iter().map(String::as_str).collect();
    assert_eq!(appended(&[], &durable).0, 3);
    assert_eq!(appended(&["MULTI"], &points), (0, 4), "they are queued");
    assert_eq!(appended(&["CLIENT REPLY OFF"], &points).0, 3);
    let many: Vec<String> = (0..300).map(|at| format!("TS.ADD a {at} 1")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(appended(&[], &many), (3, 300), "a run has at most 128 commands");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    /// Replies to points do not depend on how the input is split, and so not on which share a record.
    #[test]
    fn pieces_of_points_do_not_matter(
        lines in prop::collection::vec("TS.ADD [a-c] [0-9] [1-9x]( ON_DUPLICATE last)?|GET d|MULTI|EXEC|SET [a-d] 1|DEL a|TS.GET b", 1..20),
        inline in 0_usize..20,
        garbage in prop::collection::vec(any::<u8>(), 0..6),
        splits in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let mut input = Vec::new();
        for (at, line) in lines.iter().enumerate() {
            if at == inline {
                input.extend_from_slice(line.as_bytes());
                input.extend_from_slice(b"\r\n");
            } else {
                input.extend(frame(line));
            }
        }
        input.extend(garbage);
        let (expected, answers) = answers_to(&input, &splits);
        prop_assert_eq!(answers, expected);
    }
}

#[test]
fn positions_of_refusals_are_sent_when_their_records_are_durable() {
    let bench = Bench::new(|config| {
        config.durability = Durability::Always;
        config.watch_backlogs = 0;
    });
    bench.shared.engine.limit_retention(RetentionLimits { bytes: 0, age_us: u64::MAX });
    let mut watcher = bench.connect();
    watcher.receive(b"HELLO 3\r\nGET.WATCH k\r\n", &bench.context());
    bench.sync(&mut watcher);
    watcher.take();
    for (asked, refused) in [
        ("EMITRECONNECT k 1-0 1", "STALE_SEQUENCE"),
        ("GET.WATCH k | RESUME 1", "-STALE_SEQUENCE"),
        ("EMITRECONNECT k 1-0 1000", "INVALID_SEQUENCE"),
        ("GET.WATCH k | RESUME 1000", "-INVALID_SEQUENCE"),
    ] {
        let (mut writer, mut late) = (bench.connect(), bench.connect());
        // The query retains its last emission under every limit.
        writer.receive(b"INCR k\r\nINCR k\r\nINCR k\r\n", &bench.context());
        late.receive(b"HELLO 3\r\n", &bench.context());
        late.take();
        late.receive(format!("{asked}\r\n").as_bytes(), &bench.context());
        assert_eq!(late.take(), "", "{asked}: a crash could take back what it says");
        bench.sync(&mut late);
        let received = late.take();
        assert!(received.contains(refused), "{asked}: {received}");
    }
}

#[test]
fn a_connection_closed_while_a_replay_begins_leaves_no_listener() {
    for asked in ["EMITRECONNECT k 1-0 1", "GET.WATCH k | RESUME 1"] {
        // The replay threads have not started.
        let bench = Bench::new(|config| config.watch_backlogs = 1);
        let engine = &bench.shared.engine;
        engine.limit_retention(RetentionLimits { bytes: 0, age_us: 0 });
        let (mut watcher, mut late) = (bench.connect(), bench.connect());
        watcher.receive(b"HELLO 3\r\nGET.WATCH k\r\nINCR k\r\nINCR k\r\nINCR k\r\n", &bench.context());
        watcher.close(&bench.context());
        late.receive(format!("HELLO 3\r\n{asked}\r\n").as_bytes(), &bench.context());
        assert!(late.session.wait.is_some(), "{asked}");
        late.close(&bench.context());
        engine.forget_watched(bench.context().now_us + 1);
        assert_eq!(engine.query_figures().0, 0, "{asked}: no listener is left");
    }
}

#[test]
fn durable_covers_what_a_command_shows_although_it_changes_nothing() {
    for (first, again) in [
        ("SADD s m", "DURABLE SADD s m"),
        ("SET k v", "SET k v NX DURABLE"),
        ("SADD s m", "MULTI\r\nDURABLE SADD s m\r\nEXEC"),
    ] {
        let bench = Bench::new(|config| config.durability = Durability::Off);
        let (mut writer, mut other) = (bench.connect(), bench.connect());
        writer.receive(format!("{first}\r\n").as_bytes(), &bench.context());
        other.receive(format!("{again}\r\nPING\r\n").as_bytes(), &bench.context());
        let early = other.take();
        assert!(!early.contains("PONG"), "{again}: {early}");
        bench.sync(&mut other);
        assert!(other.take().contains("PONG"), "{again}");
    }
}

#[test]
fn a_log_that_is_full_has_not_failed_and_one_that_cannot_write_has() {
    for (site, kind, fails) in [
        (Site::Allocate, std::io::ErrorKind::StorageFull, false),
        (Site::WriteAt, std::io::ErrorKind::Other, true),
    ] {
        let storage = FaultyStorage::new(Arc::new(MemoryStorage::new()), None);
        let options = Options { durability: Durability::Off, segment_bytes: 64 * 1024, ..Options::default() };
        let bench = Bench::with_storage(Arc::new(storage.clone()), options, Config::default());
        let log = bench.shared.engine.log();
        let fault = Fault::Error(kind);
        storage.set_plan(Some(Plan { fault, at: 1, site: Some(site), forever: true, seed: 0 }));
        let set = format!("SET a {}\r\n", "v".repeat(1000));
        let mut writer = bench.connect();
        eventually("the log refuses changes", || {
            writer.receive(set.as_bytes(), &bench.context());
            writer.take();
            log.check_writable().is_err()
        });
        assert_eq!(matches!(log.health(), Health::Failed(_)), fails, "{site:?}");
        assert_eq!(bench.shared.log_has_failed(), fails, "{site:?}");
        assert_eq!(bench.shared.not_yet_committed() == Err(CommitLost), fails, "nothing waits in vain");
    }
}

#[test]
fn info_states_why_old_segments_are_kept_and_changes_go_on() {
    let storage = FaultyStorage::new(Arc::new(MemoryStorage::new()), None);
    let options =
        Options { durability: Durability::Off, segment_bytes: 64 * 1024, recycle: 0, ..Options::default() };
    let bench = Bench::with_storage(Arc::new(storage.clone()), options, Config::default());
    let log = bench.shared.engine.log();
    let set = format!("SET a {}\r\n", "v".repeat(1000));
    let mut writer = bench.connect();
    for _ in 0..200 {
        writer.receive(set.as_bytes(), &bench.context());
    }
    bench.sync(&mut writer);
    writer.take();
    let fault = Fault::Error(std::io::ErrorKind::PermissionDenied);
    storage.set_plan(Some(Plan { fault, at: 1, site: Some(Site::Remove), forever: true, seed: 0 }));
    log.release(log.durable());
    eventually("dropping a segment has failed", || log.retention_failure().is_some());
    writer.receive(b"SET a 1\r\nINFO persistence\r\n", &bench.context());
    let answers = writer.take();
    assert!(answers.starts_with("+OK\r\n"), "{answers}");
    assert!(answers.contains("log_status:ok\r\nlog_retention_error:dropping memory:segment-"), "{answers}");
}

#[test]
fn a_changed_setting_holds_from_the_next_command_on() {
    let mut bench = Bench::new(|config| config.durability = Durability::Off);
    let mut connection = bench.connect();
    connection.receive(b"CONFIG SET durability always\r\nSET z 1\r\n", &bench.context());
    assert_eq!(connection.take(), "+OK\r\n");
    assert!(connection.can_resume(), "the rest of the batch is for the next turn");
    bench.config = Config::clone(&bench.shared.settings.current());
    connection.resume(&bench.context());
    assert_eq!(connection.take(), "");
    bench.sync(&mut connection);
    assert_eq!(connection.take(), "+OK\r\n");
    connection.receive(b"CONFIG SET requirepass secret\r\nAUTH wrong\r\n", &bench.context());
    bench.config = Config::clone(&bench.shared.settings.current());
    connection.resume(&bench.context());
    assert_eq!(
        connection.take(),
        "+OK\r\n-WRONGPASS invalid username-password pair or user is disabled.\r\n"
    );
}

#[test]
fn another_workers_connections_follow_a_change_to_always_at_once() {
    let bench = Bench::new(|config| config.durability = Durability::Off);
    let (mut administrator, mut writer) = (bench.connect(), bench.connect());
    administrator.receive(b"CONFIG SET durability always\r\n", &bench.context());
    // The writer's worker has not loaded the new configuration yet.
    writer.receive(b"SET a 1\r\n", &bench.context());
    assert_eq!(writer.take(), "");
}

#[test]
fn with_always_others_hear_nothing_that_a_crash_could_take_back() {
    let bench = Bench::new(|config| {
        config.durability = Durability::Always;
        config.enable_debug_command = crate::config::DebugAccess::Yes;
    });
    let (mut publisher, mut subscriber, mut observer) = (bench.connect(), bench.connect(), bench.connect());
    subscriber.receive(b"SUBSCRIBE news\r\n", &bench.context());
    subscriber.take();
    publisher.receive(b"SET a 1\r\nPUBLISH news a\r\n", &bench.context());
    bench.pass_messages_to(&mut subscriber);
    observer.receive(b"DEBUG DIGEST\r\n", &bench.context());
    assert_eq!((subscriber.take(), observer.take()), (String::new(), String::new()));
    bench.sync(&mut subscriber);
    bench.sync(&mut observer);
    assert!(subscriber.take().ends_with("$1\r\na\r\n"));
    assert!(observer.take().starts_with('+'));
}

#[test]
fn an_event_of_a_key_waits_for_its_record_where_a_message_would() {
    for (durability, line, waits) in [
        (Durability::Always, "SET k 1\r\n", true),
        (Durability::Always, "SET other 1\r\nEXISTS k\r\n", true),
        (Durability::Off, "SET k 1\r\n", false),
        (Durability::Off, "SET k 1 DURABLE\r\n", true),
        (Durability::Off, "DURABLE SET k 1\r\n", true),
        (Durability::Off, "MULTI\r\nDURABLE SET k 1\r\nEXEC\r\n", true),
    ] {
        let bench = Bench::new(|config| config.durability = durability);
        let (mut writer, mut subscriber) = (bench.connect(), bench.connect());
        writer.receive(b"CONFIG SET notify-keyspace-events KAm\r\n", &bench.context());
        subscriber.receive(b"SUBSCRIBE __keyspace@0__:k\r\n", &bench.context());
        assert!(subscriber.take().ends_with(":1\r\n"));
        writer.receive(line.as_bytes(), &bench.context());
        bench.pass_messages_to(&mut subscriber);
        let waits_for = waits.then_some(Until::Committed(Lsn(1)));
        assert_eq!(subscriber.awaited(), waits_for, "{durability:?}: {line}");
        assert_eq!(subscriber.take().is_empty(), waits, "{durability:?}: {line}");
        bench.sync(&mut subscriber);
        assert_eq!(subscriber.take().starts_with("*3\r\n$7\r\nmessage\r\n"), waits);
    }
}

#[test]
fn a_client_that_resets_has_the_whole_time_to_say_its_password_again() {
    let bench = Bench::new(|config| {
        config.requirepass = "secret".to_owned();
        config.authentication_timeout = Duration::from_secs(5);
    });
    let mut connection = bench.connect();
    // The client has been connected for 3 s.
    connection.session.stranger_since -= Duration::from_secs(3);
    let first_deadline = connection.session.stranger_since + Duration::from_secs(5);
    // `RESET` does not extend the deadline of an unauthenticated client.
    connection.receive(b"RESET\r\n", &bench.context());
    assert_eq!(connection.next_deadline(&bench.config), Some(first_deadline));
    connection.receive(b"AUTH secret\r\nRESET\r\n", &bench.context());
    assert_eq!(connection.overdue(&bench.config, first_deadline), None);
    let whole_time = first_deadline + Duration::from_secs(3);
    assert!(connection.next_deadline(&bench.config).is_some_and(|at| at >= whole_time));
}

#[test]
fn a_client_that_wants_no_replies_gets_none_for_what_it_waited_for() {
    for wait in ["BLPOP k 100", "WAIT 1 1000", "DEBUG SLEEP 100", "WAITAOF 1 0 0"] {
        let bench = Bench::new(|config| {
            config.durability = Durability::Off;
            config.enable_debug_command = crate::config::DebugAccess::Yes;
        });
        for (mode, rest) in [("OFF", ""), ("SKIP", "+PONG\r\n")] {
            let mut connection = bench.connect();
            let commands = format!("SET a 1\r\nCLIENT REPLY {mode}\r\n{wait}\r\nPING\r\n");
            connection.receive(commands.as_bytes(), &bench.context());
            assert_eq!(connection.take(), "+OK\r\n");
            connection.unblock(Unblock::Timeout, &bench.context());
            bench.sync(&mut connection);
            assert_eq!(connection.take(), rest, "{wait} after {mode}");
        }
    }
}

#[test]
fn a_confirmed_subscription_is_a_message_and_no_reply() {
    let bench = Bench::new(|_| {});
    let mut connection = bench.connect();
    connection
        .receive(b"CLIENT REPLY OFF\r\nSUBSCRIBE a\r\nUNSUBSCRIBE a\r\nSUBSCRIBE\r\n", &bench.context());
    let confirmed = "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:0\r\n";
    assert_eq!(connection.take(), confirmed);

    // The same holds in a transaction, whether its reply is suppressed before it or within it.
    for (before, within) in [("CLIENT REPLY OFF", "PING"), ("PING", "CLIENT REPLY OFF")] {
        let mut connection = bench.connect();
        let queued = format!("{before}\r\nMULTI\r\nGET k\r\nSUBSCRIBE a b\r\n{within}\r\nUNSUBSCRIBE b\r\n");
        connection.receive(format!("HELLO 3\r\n{queued}").as_bytes(), &bench.context());
        connection.take();
        connection.receive(b"EXEC\r\nPING\r\n", &bench.context());
        let confirmed = ">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n>3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:2\r\n\
                         >3\r\n$11\r\nunsubscribe\r\n$1\r\nb\r\n:1\r\n";
        assert_eq!(connection.take(), confirmed, "{before}, {within}");
        connection.receive(b"CLIENT REPLY ON\r\nCLIENT REPLY SKIP\r\nPING\r\nPING\r\n", &bench.context());
        assert_eq!(connection.take(), "+OK\r\n+PONG\r\n", "they are sent once");
    }
}

#[test]
fn a_draining_connection_runs_received_requests_and_reads_no_more() {
    let bench = Bench::new(|_| {});
    let mut connection = bench.connect();
    let large = format!("SETRANGE a {OUTPUT_PAUSE_BYTES} x\r\n");
    connection.receive(format!("{large}{}PI", "GET a\r\n".repeat(5)).as_bytes(), &bench.context());
    connection.drain();
    let mut answers = 0;
    while !connection.is_finished() {
        assert!(!connection.wants_input());
        answers += connection.take().matches('$').count();
        connection.resume(&bench.context());
    }
    assert_eq!(answers, 5);

    let mut waiting = bench.connect();
    waiting.receive(b"BLPOP k 0\r\nPING\r\n", &bench.context());
    waiting.drain();
    assert!(waiting.is_finished(), "nothing can be given to it");
}

#[test]
fn a_change_waits_for_room_on_its_own_connection_and_is_run_when_there_is_some() {
    let storage = FaultyStorage::new(Arc::new(MemoryStorage::new()), None);
    let options = Options { durability: Durability::Off, segment_bytes: 64 * 1024, ..Options::default() };
    let bench = Bench::with_storage(Arc::new(storage.clone()), options, Config::default());
    let log = bench.shared.engine.log();
    let (mut writer, mut reader) = (bench.connect(), bench.connect());
    writer.receive(b"SET a before\r\n", &bench.context());
    assert_eq!(writer.take(), "+OK\r\n");
    storage.set_plan(Some(Plan {
        fault: Fault::Hang,
        at: 0,
        site: Some(Site::Allocate),
        forever: true,
        seed: 0,
    }));
    // Larger than a 64th of a segment, so its segment must be prepared first.
    let large = "v".repeat(100_000);
    let set = format!("*3\r\n$3\r\nSET\r\n$1\r\na\r\n$100000\r\n{large}\r\n");
    writer.receive(format!("{set}GET a\r\n").as_bytes(), &bench.context());
    assert_eq!(writer.take(), "");
    assert!(writer.waits_for_log() && writer.awaited_room().is_some());
    reader.receive(b"GET a\r\nPING\r\nPUBLISH c m\r\n", &bench.context());
    assert_eq!(reader.take(), "$6\r\nbefore\r\n+PONG\r\n:0\r\n");
    storage.set_plan(None);
    eventually("the change runs", || {
        writer.log_moved(Reached::by(log), &bench.context());
        !writer.waits_for_log()
    });
    assert_eq!(writer.take(), format!("+OK\r\n$100000\r\n{large}\r\n"));
}

#[test]
fn a_pause_of_changes_stops_a_transaction_that_publishes() {
    let bench = Bench::new(|_| {});
    let mut connection = bench.connect();
    connection.receive(b"MULTI\r\nPUBLISH c m\r\n", &bench.context());
    assert_eq!(connection.take(), "+OK\r\n+QUEUED\r\n");
    bench.shared.pause.begin(u64::MAX, true);
    connection.receive(b"EXEC\r\n", &bench.context());
    assert_eq!(connection.take(), "");
    assert!(connection.session.wait.is_some());
}
