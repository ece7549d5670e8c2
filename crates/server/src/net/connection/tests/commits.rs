//! Nothing is told before it is committed: alone in mode `always`, in a group in every mode.

use super::*;
use crate::durability::hold::COMMIT_LOST;
use crate::net::inbox::Message;
use tidemark_log::{EntryId, Member};

/// A member of a group whose entries a test numbers, writes and commits.
struct Group {
    member: Member,
    next_index: std::cell::Cell<u64>,
}

impl Group {
    /// Returns the server of a member that leads.
    fn leader(durability: Durability) -> (Bench, Group) {
        let clock = ManualClock::new();
        let options = Options {
            durability,
            segment_bytes: 64 * 1024,
            clock: Clock::from(&clock),
            ..Options::default()
        };
        let (log, member, _) =
            Log::open_member(Arc::new(MemoryStorage::new()), options).expect("an empty log");
        member.lead();
        let config =
            Config { durability, enable_debug_command: crate::config::DebugAccess::Yes, ..Config::default() };
        let group = Group { member, next_index: std::cell::Cell::new(1) };
        (Bench::with_log(log, clock, config), group)
    }

    /// Writes what was appended as the next entry.
    fn write(&self) {
        let records = self.member.take(Duration::ZERO).expect("something was appended");
        let index = self.next_index.replace(self.next_index.get() + 1);
        self.member.write_taken(EntryId { index, term: 1 }, &records).expect("memory does not fail");
    }

    /// Commits everything that is written.
    fn commit(&self, bench: &Bench) {
        self.member.commit(bench.shared.engine.log().written());
    }
}

impl Bench {
    /// Notifies a connection of the log's progress, and takes what it may be sent.
    fn hears(&self, connection: &mut Connection) -> String {
        connection.log_moved(Reached::by(self.shared.engine.log()), &self.context());
        connection.take()
    }

    /// Returns a key of another shard than `key`.
    fn apart_from(&self, key: &str) -> String {
        let keyspace = self.shared.engine.keyspace();
        let shard = keyspace.shard_of(key.as_bytes());
        let mut names = (0..1000).map(|number| format!("other{number}"));
        names.find(|name| keyspace.shard_of(name.as_bytes()) != shard).expect("there are four shards")
    }
}

const MODES: [Durability; 3] =
    [Durability::Always, Durability::Interval(Duration::from_secs(1)), Durability::Off];

#[test]
fn in_a_group_every_mode_tells_only_what_is_committed() {
    for mode in MODES {
        let (bench, group) = Group::leader(mode);
        let [mut writer, mut reader, mut watcher, mut subscriber, mut tracker, mut observer] =
            [(); 6].map(|()| bench.connect());
        writer.receive(b"CONFIG SET notify-keyspace-events KA\r\n", &bench.context());
        assert_eq!(writer.take(), "+OK\r\n");
        watcher.receive(b"HELLO 3\r\nGET.WATCH k | AS n\r\n", &bench.context());
        assert!(!watcher.take().contains("value"), "{mode}: a position is told");
        group.write();
        group.commit(&bench);
        assert!(bench.hears(&mut watcher).ends_with("value\r\n_\r\n"));
        subscriber.receive(b"SUBSCRIBE news\r\nSUBSCRIBE __keyspace@0__:k\r\n", &bench.context());
        subscriber.take();
        tracker.receive(b"HELLO 3\r\nCLIENT TRACKING ON\r\nGET k\r\n", &bench.context());
        tracker.take();

        writer.receive(b"SET k 1\r\nPUBLISH news a\r\n", &bench.context());
        reader.receive(b"GET k\r\n", &bench.context());
        watcher.emit(Lsn(1), &bench.context());
        let mut messages = Vec::new();
        bench.shared.inboxes[0].take(&mut messages);
        for message in messages {
            match message {
                Message::Publish(_, publication) => subscriber.publish(&publication, &bench.config),
                Message::Invalidated(_, source) => tracker.invalidate(source, &bench.context()),
                _ => {}
            }
        }
        observer.receive(b"DEBUG DIGEST\r\n", &bench.context());
        let all = [&mut writer, &mut reader, &mut watcher, &mut subscriber, &mut tracker, &mut observer];
        for (index, connection) in all.into_iter().enumerate() {
            assert_eq!(connection.take(), "", "{mode}: client {index}");
            assert!(matches!(connection.awaited(), Some(Until::Committed(_))), "{mode}: client {index}");
        }
        // Durable here, which says nothing of the others.
        group.write();
        group.member.sync().expect("memory does not fail");
        assert_eq!(bench.hears(&mut writer), "", "{mode}");
        group.commit(&bench);
        assert_eq!(bench.hears(&mut writer), "+OK\r\n:1\r\n", "{mode}");
        assert_eq!(bench.hears(&mut reader), "$1\r\n1\r\n", "{mode}");
        assert!(bench.hears(&mut watcher).starts_with(">5\r\n$8\r\nemission"), "{mode}");
        let messages = bench.hears(&mut subscriber);
        assert!(messages.contains("set") && messages.contains("news"), "{mode}: {messages}");
        assert!(bench.hears(&mut tracker).contains("invalidate"), "{mode}");
        assert!(bench.hears(&mut observer).starts_with('+'), "{mode}");
    }
}

#[test]
fn in_a_group_an_answer_does_not_wait_for_this_members_disk() {
    let (bench, group) = Group::leader(Durability::Off);
    let mut writer = bench.connect();
    writer.receive(b"SET k 1\r\n", &bench.context());
    group.write();
    group.commit(&bench);
    assert!(bench.shared.engine.log().durable() < Lsn(1));
    assert_eq!(bench.hears(&mut writer), "+OK\r\n");
    // Which is what `WAITAOF` asks for.
    writer.receive(b"WAITAOF 1 0 0\r\n", &bench.context());
    assert_eq!(bench.hears(&mut writer), "");
    assert!(writer.waits_for_log());
    group.member.sync().expect("memory does not fail");
    assert_eq!(bench.hears(&mut writer), "*2\r\n:1\r\n:0\r\n");
}

#[test]
fn in_a_group_no_mode_that_is_set_later_tells_more() {
    let (bench, group) = Group::leader(Durability::Always);
    let mut writer = bench.connect();
    writer.receive(b"CONFIG SET durability off\r\n", &bench.context());
    assert_eq!(writer.take(), "+OK\r\n");
    let mut writer = bench.connect();
    writer.receive(b"SET k 1\r\n", &bench.context());
    assert_eq!(writer.take(), "");
    group.write();
    group.commit(&bench);
    assert_eq!(bench.hears(&mut writer), "+OK\r\n");
}

#[test]
fn with_always_a_timeout_waits_for_the_pop_that_left_nothing() {
    for line in ["BLPOP k 1", "BLPOP none k 1", "BZPOPMIN k 1", "BLMOVE k j LEFT RIGHT 1"] {
        let bench = Bench::new(|config| config.durability = Durability::Always);
        let (mut popper, mut taker) = (bench.connect(), bench.connect());
        popper.receive(format!("{line}\r\n").as_bytes(), &bench.context());
        let other = bench.apart_from("k");
        taker.receive(format!("SET {other} 1\r\n").as_bytes(), &bench.context());
        if line == "BLPOP k 1" {
            // A change of another shard is not waited for.
            popper.unblock(Unblock::Timeout, &bench.context());
            assert_eq!(popper.take(), "*-1\r\n");
            popper.receive(b"BLPOP k 1\r\n", &bench.context());
            bench.sync(&mut popper);
        }
        let (push, pop) =
            if line.starts_with("BZ") { ("ZADD k 1 a", "ZPOPMIN k") } else { ("RPUSH k a", "LPOP k") };
        taker.receive(format!("MULTI\r\n{push}\r\n{pop}\r\nEXEC\r\n").as_bytes(), &bench.context());
        popper.unblock(Unblock::Timeout, &bench.context());
        assert_eq!(popper.take(), "", "{line}: a crash could bring the element back");
        bench.sync(&mut popper);
        assert!(popper.take().starts_with(['*', '$']), "{line}");
    }
}

/// Returns a server that has committed the key `k`, and another of another shard. Its log fails with
/// the next change, once `before` has run, which is one of `k`.
fn with_failed_log(durability: Durability, before: impl FnOnce(&Bench, &str)) -> (Bench, String) {
    let storage = FaultyStorage::new(Arc::new(MemoryStorage::new()), None);
    let options = Options { durability, segment_bytes: 64 * 1024, ..Options::default() };
    let config =
        Config { durability, enable_debug_command: crate::config::DebugAccess::Yes, ..Config::default() };
    let bench = Bench::with_storage(Arc::new(storage.clone()), options, config);
    let other = bench.apart_from("k");
    let mut writer = bench.connect();
    writer.receive(format!("SET {other} safe\r\nSET k 1\r\n").as_bytes(), &bench.context());
    bench.sync(&mut writer);
    assert_eq!(writer.take(), "+OK\r\n+OK\r\n");
    before(&bench, &other);
    let fault = Fault::Error(std::io::ErrorKind::Other);
    storage.set_plan(Some(Plan { fault, at: 1, site: Some(Site::SyncData), forever: true, seed: 0 }));
    writer.receive(b"SET k 2\r\n", &bench.context());
    let log = bench.shared.engine.log();
    log.request_sync(log.appended());
    eventually("the log has failed", || bench.shared.log_has_failed());
    assert!(log.committed() < log.appended());
    // A change whose outcome is unknown is answered by the end of its connection.
    let is_held = durability == Durability::Always;
    assert_eq!(writer.take(), if is_held { "" } else { "+OK\r\n" });
    writer.log_failed(&bench.context_without_room());
    assert_eq!((writer.take(), writer.is_finished()), (String::new(), is_held));
    (bench, other)
}

/// Sends lines and returns the answer, without the log's doing anything.
fn ask(bench: &Bench, lines: &str) -> String {
    let mut connection = bench.connect();
    connection.receive(format!("{lines}\r\n").as_bytes(), &bench.context_without_room());
    let answers = connection.take();
    connection.close(&bench.context_without_room());
    answers
}

#[test]
fn behind_a_failed_log_always_shows_only_what_is_committed() {
    let (bench, other) = with_failed_log(Durability::Always, |_, _| {});
    assert_eq!(ask(&bench, &format!("GET {other}")), "$4\r\nsafe\r\n");
    assert_eq!(ask(&bench, "PING"), "+PONG\r\n");
    let lost = format!("-{COMMIT_LOST}\r\n");
    for line in ["GET k", "EXISTS k", "KEYS *", "DBSIZE", "DEBUG DIGEST", "PUBLISH news a"] {
        assert_eq!(ask(&bench, line), lost, "{line}");
    }
    // Each command has one answer, and those before and after it are its own.
    let answers = ask(&bench, &format!("GET {other}\r\nGET k\r\nMULTI\r\nGET k\r\nPING\r\nEXEC\r\nPING"));
    assert_eq!(answers, format!("$4\r\nsafe\r\n{lost}+OK\r\n+QUEUED\r\n+QUEUED\r\n{lost}+PONG\r\n"));
    let refused = ask(&bench, "SET k 3");
    assert!(refused.starts_with("-MISCONF Tidemark refuses changes"), "{refused}");
    let role = ask(&bench, "ROLE");
    assert!(role.contains("master\r\n:2\r\n"), "the position is one that is committed: {role}");
}

#[test]
fn behind_a_failed_log_always_answers_a_timeout_with_an_error() {
    let mut poppers = Vec::new();
    let (bench, _) = with_failed_log(Durability::Always, |bench, other| {
        let keyspace = bench.shared.engine.keyspace();
        for (key, expected) in [(other, "*-1\r\n".to_owned()), ("k", format!("-{COMMIT_LOST}\r\n"))] {
            let is_beside =
                |name: &String| keyspace.shard_of(name.as_bytes()) == keyspace.shard_of(key.as_bytes());
            let list = (0..1000).map(|number| format!("list{number}")).find(is_beside).expect("a name");
            let mut popper = bench.connect();
            popper.receive(format!("BLPOP {list} 1\r\n").as_bytes(), &bench.context());
            poppers.push((popper, expected));
        }
    });
    for (mut popper, expected) in poppers {
        popper.unblock(Unblock::Timeout, &bench.context_without_room());
        assert_eq!(popper.take(), expected);
    }
}

#[test]
fn behind_a_failed_log_the_other_modes_go_on_to_show_what_is_in_memory() {
    for mode in [Durability::Interval(Duration::from_secs(1)), Durability::Off] {
        let (bench, _) = with_failed_log(mode, |_, _| {});
        assert_eq!(ask(&bench, "GET k"), "$1\r\n2\r\n");
        assert_eq!(ask(&bench, "PUBLISH news a"), ":0\r\n");
    }
}
