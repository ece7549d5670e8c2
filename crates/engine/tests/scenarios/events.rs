//! Keyspace events: which command publishes which, in which order, and when it publishes none.

use crate::support;
use crate::support::commands::{Generator, Line, Times, shown};
use crate::support::members::{GroupMember, replicate};
use crate::support::{Client, START_US, transaction, words};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use tidemark_engine::event::{Cause, EVENTS, Event, EventAudience, EventClasses};
use tidemark_engine::keyspace::DATABASES;
use tidemark_engine::watch::{Filter, Read};
use tidemark_engine::{Call, Engine, Protocol, Reply, command};
use tidemark_log::{Log, Lsn, MemoryStorage, Options};

/// Records the events that it receives.
#[derive(Default)]
struct Listener(Mutex<Vec<(Event, Cause)>>);

impl EventAudience for Listener {
    fn publish(&self, events: &[Event], cause: Cause) {
        let mut published = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        published.extend(events.iter().map(|event| (event.clone(), cause)));
    }
}

impl Listener {
    fn of(engine: &Engine, classes: EventClasses) -> Arc<Self> {
        let listener = Arc::new(Self::default());
        engine.set_event_audience(Arc::<Self>::clone(&listener));
        engine.want_events(classes);
        listener
    }

    fn take(&self) -> Vec<(Event, Cause)> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The events since the last call, as `event key, event key`. A database other than 0 precedes
    /// the key.
    fn heard(&self) -> String {
        let shown = |(event, _): &(Event, Cause)| {
            let db = if event.db == 0 { String::new() } else { format!("{}:", event.db) };
            format!("{} {db}{}", event.name, String::from_utf8_lossy(&event.key))
        };
        self.take().iter().map(shown).collect::<Vec<_>>().join(", ")
    }
}

/// All classes but that of key misses.
const ALL: EventClasses = EventClasses::GENERIC
    .with(EventClasses::STRING)
    .with(EventClasses::LIST)
    .with(EventClasses::SET)
    .with(EventClasses::HASH)
    .with(EventClasses::SORTED_SET)
    .with(EventClasses::STREAM)
    .with(EventClasses::MODULE)
    .with(EventClasses::EXPIRED)
    .with(EventClasses::NEW);

/// Runs commands and compares the events of each.
fn expect(client: &Client<'_>, listener: &Listener, dialogue: &[(&str, &str)]) {
    for (line, events) in dialogue {
        let answer = client.run(line);
        assert_eq!(listener.heard(), *events, "{line}, which answers {answer}");
    }
}

/// As a Redis replica, a member publishes the events of what it applies: of the commands that are in the log.
#[test]
fn members_that_follow_publish_the_events_of_what_they_apply() {
    let (leader, follower) = (GroupMember::new(), GroupMember::new());
    let (told, heard) = (Listener::of(&leader.engine, ALL), Listener::of(&follower.engine, ALL));
    leader.lead(START_US);
    replicate(&leader, &[&follower]);
    let mut client = Client::new(&leader.engine);
    let same = [
        "SET k 1",
        "SET k 2 EX 100",
        "INCR n",
        "APPEND k more",
        "RPUSH l a b c",
        "LPOP l",
        "LTRIM l 5 6",
        "SADD s a",
        "SREM s a",
        "HSET h f v",
        "ZADD z 1 a",
        "RENAME n m",
        "DEL k m",
        "TS.CREATE t",
        "TS.ADD t 1000 5",
        "TS.MADD t 2000 6",
        "COUNTER.CREATE c",
        "LIMIT.CREATE limit FIXED 5 10",
        "SET e 1 PX 1",
    ];
    for line in same {
        let answer = client.run(line);
        let lsn = replicate(&leader, &[&follower]);
        let (told, heard) = (told.take(), heard.take());
        let names = |events: &[(Event, Cause)]| {
            events.iter().map(|(event, _)| (event.db, event.name, event.key.clone())).collect::<Vec<_>>()
        };
        assert_eq!(names(&heard), names(&told), "{line}, which answers {answer}");
        assert!(heard.iter().all(|(_, cause)| cause.lsn == Some(lsn)), "{line}: {heard:?}");
    }
    // Commands that the log has in another form: what Redis tells its replicas.
    client.run("SADD s a");
    replicate(&leader, &[&follower]);
    let _ = (told.take(), heard.take());
    client.run("SPOP s");
    replicate(&leader, &[&follower]);
    assert_eq!((told.heard().as_str(), heard.heard().as_str()), ("spop s, del s", "srem s, del s"));
    // A key that has expired.
    client.sleep_ms(5);
    assert_eq!(client.run("GET e"), "$-1");
    replicate(&leader, &[&follower]);
    assert_eq!((told.heard().as_str(), heard.heard().as_str()), ("expired e", "expired e"));
    // The lead moves: each event comes once.
    leader.step_down();
    follower.lead(START_US + 10_000);
    let mut client = Client::new(&follower.engine);
    client.sleep_ms(10);
    client.run("SET k 3");
    replicate(&follower, &[&leader]);
    assert_eq!((told.heard().as_str(), heard.heard().as_str()), ("new k, set k", "new k, set k"));
}

#[test]
fn commands_of_strings_publish_their_events() {
    let engine = support::engine();
    let listener = Listener::of(&engine, ALL);
    expect(
        &Client::new(&engine),
        &listener,
        &[
            ("SET k 1", "new k, set k"),
            ("SET k 2 EX 100", "set k, expire k"),
            ("SETEX k 100 2", "set k, expire k"),
            ("SET k 2 KEEPTTL", "set k"),
            ("SET k 3 NX", ""),
            ("SETNX k 3", ""),
            ("GETSET k 3", "set k"),
            ("INCR k", "incrby k"),
            ("DECRBY k 2", "incrby k"),
            ("INCRBYFLOAT k 0.5", "incrbyfloat k"),
            ("INCR k", ""),
            ("APPEND k x", "append k"),
            ("APPEND other x", "new other, append other"),
            ("SETRANGE k 0 z", "setrange k"),
            ("SETRANGE k 0 \"\"", ""),
            ("SETRANGE far 2 z", "new far, setrange far"),
            ("MSET k 1 m 2 k 3", "set k, new m, set m, set k"),
            ("MSETNX k 1 free 2", ""),
            ("GETEX k EX 10", "expire k"),
            ("GETEX k PERSIST", "persist k"),
            ("GETEX k PERSIST", ""),
            ("GETEX k PXAT 1", "del k"),
            ("GETDEL m", "del m"),
            ("GETDEL m", ""),
            ("RESTORE k 0 x REPLACE", ""),
        ],
    );
}

#[test]
fn a_command_that_changes_bits_publishes_one_event() {
    let engine = support::engine();
    let listener = Listener::of(&engine, ALL);
    expect(
        &Client::new(&engine),
        &listener,
        &[
            ("SETBIT b 100 1", "new b, setbit b"),
            ("SETBIT b 100 1", ""),
            ("SETBIT b 900 0", "setbit b"),
            ("BITFIELD b SET u8 0 255 INCRBY u8 8 1", "setbit b"),
            ("BITFIELD b SET u8 0 255 GET u8 0", ""),
            ("BITFIELD b GET u8 5000", ""),
            ("BITOP NOT c b", "new c, set c"),
            ("BITOP AND c b none", "set c"),
            ("BITOP AND c none", "del c"),
            ("BITOP AND c none", ""),
        ],
    );
}

#[test]
fn a_place_publishes_the_events_of_a_sorted_set() {
    let engine = support::engine();
    let listener = Listener::of(&engine, ALL);
    expect(
        &Client::new(&engine),
        &listener,
        &[
            ("GEOADD g 1 1 a 2 2 b", "new g, zadd g"),
            ("GEOADD g 1 1 a", ""),
            ("GEORADIUS g 1 1 1 km STORE s", "new s, georadiusstore s"),
            ("GEORADIUS g 1 1 1 km", ""),
            ("GEOSEARCHSTORE s g FROMMEMBER a BYRADIUS 1 km", "geosearchstore s"),
            ("GEOSEARCHSTORE s g FROMLONLAT 50 50 BYRADIUS 1 km", "del s"),
            ("GEOSEARCHSTORE s g FROMLONLAT 50 50 BYRADIUS 1 km", ""),
        ],
    );
}

#[test]
fn a_change_of_a_hyper_log_log_publishes_one_event() {
    let engine = support::engine();
    let listener = Listener::of(&engine, ALL);
    expect(
        &Client::new(&engine),
        &listener,
        &[
            ("PFADD h a b", "new h, pfadd h"),
            ("PFADD h a b", ""),
            ("PFCOUNT h", ""),
            ("PFMERGE i h", "new i, pfadd i"),
            ("PFMERGE i h", "pfadd i"),
            ("PFDEBUG TODENSE h", ""),
        ],
    );
}

#[test]
fn an_emptied_collection_is_deleted_and_publishes_del() {
    let engine = support::engine();
    let listener = Listener::of(&engine, ALL);
    expect(
        &Client::new(&engine),
        &listener,
        &[
            ("RPUSH l a b c d e f", "new l, rpush l"),
            ("LPOP l", "lpop l"),
            ("RPOP l 2", "rpop l"),
            ("LTRIM l 0 -1", "ltrim l"),
            ("LTRIM l 0 1", "ltrim l"),
            ("LINSERT l BEFORE b a", "linsert l"),
            ("LSET l 0 a", "lset l"),
            ("LREM l 0 none", ""),
            ("LREM l 0 a", "lrem l"),
            ("LMPOP 2 none l LEFT COUNT 9", "lpop l, del l"),
            ("LPUSHX l a", ""),
            ("LTRIM l 0 1", ""),
            ("RPUSH l a", "new l, rpush l"),
            ("LTRIM l 5 9", "ltrim l, del l"),
            ("HSET h f 1 g 2", "new h, hset h"),
            ("HSETNX h f 2", ""),
            ("HINCRBY h f 1", "hincrby h"),
            ("HINCRBYFLOAT h f 0.5", "hincrbyfloat h"),
            ("HDEL h none", ""),
            ("HDEL h f g", "hdel h, del h"),
            ("HSETEX h EX 10 FIELDS 1 f 1", "new h, hset h, hexpire h"),
            ("HPERSIST h FIELDS 1 f", "hpersist h"),
            ("HPERSIST h FIELDS 1 f", ""),
            ("HEXPIRE h 10 FIELDS 1 f", "hexpire h"),
            ("HEXPIRE h 10 NX FIELDS 1 f", ""),
            ("HGETEX h FIELDS 1 f", ""),
            ("HGETEX h PX 500 FIELDS 1 f", "hexpire h"),
            ("HGETEX h PERSIST FIELDS 1 f", "hpersist h"),
            ("HSETEX h KEEPTTL FIELDS 1 f 2", "hset h"),
            ("HSETEX h PXAT 1 FIELDS 1 g 1", "hset h, hdel h"),
            ("HGETDEL h FIELDS 1 f", "hdel h, del h"),
            ("HSETEX h PXAT 1 FIELDS 1 g 1", "new h, hset h, hdel h, del h"),
            ("HSET h f 1", "new h, hset h"),
            ("HEXPIRE h 0 FIELDS 1 f", "hdel h, del h"),
            ("SADD s a b c", "new s, sadd s"),
            ("SADD s a", ""),
            ("SREM s a", "srem s"),
            ("SPOP s", "spop s"),
            ("SPOP s 5", "spop s, del s"),
            ("ZADD z 1 a 2 b 3 c 4 d 5 e", "new z, zadd z"),
            ("ZADD z 1 a", ""),
            ("ZADD z XX INCR 1 none", ""),
            ("ZINCRBY z 1 a", "zincr z"),
            ("ZREM z none", ""),
            ("ZREM z a", "zrem z"),
            ("ZPOPMAX z", "zpopmax z"),
            ("ZREMRANGEBYRANK z 0 0", "zremrangebyrank z"),
            ("ZREMRANGEBYLEX z [x [y", ""),
            ("ZREMRANGEBYSCORE z -inf +inf", "zremrangebyscore z, del z"),
            ("ZADD z 1 a", "new z, zadd z"),
            ("BZMPOP 1 2 none z MIN COUNT 2", "zpopmin z, del z"),
        ],
    );
}

#[test]
fn moves_publish_events_of_both_ends() {
    let engine = support::engine();
    let listener = Listener::of(&engine, ALL);
    expect(
        &Client::new(&engine),
        &listener,
        &[
            ("RPUSH l a b", "new l, rpush l"),
            ("LMOVE l l LEFT RIGHT", "rpush l, lpop l"),
            ("LMOVE l m LEFT LEFT", "new m, lpush m, lpop l"),
            ("RPOPLPUSH l m", "lpush m, rpop l, del l"),
            ("SADD s a b", "new s, sadd s"),
            ("SMOVE s t a", "srem s, new t, sadd t"),
            ("SADD t b", "sadd t"),
            ("SMOVE s t b", "srem s, del s"),
            ("SMOVE s t b", ""),
            ("SET k 1", "new k, set k"),
            ("RENAME k k", ""),
            ("RENAME k q", "new q, rename_from k, rename_to q"),
            ("SET k 2", "new k, set k"),
            ("RENAME k q", "new q, rename_from k, rename_to q"),
            ("RENAMENX q m", ""),
            ("COPY q r", "new r, copy_to r"),
            ("COPY q r", ""),
            ("COPY q r REPLACE", "new r, copy_to r"),
            ("COPY q r DB 2", "new 2:r, copy_to 2:r"),
            ("MOVE r 2", ""),
            ("MOVE r 3", "new 3:r, move_from r, move_to 3:r"),
            ("DEL q none t", "del q, del t"),
            ("UNLINK m", "del m"),
        ],
    );
}

#[test]
fn stored_results_publish_their_command_or_del() {
    let engine = support::engine();
    let client = Client::new(&engine);
    client.run("SADD s 1 2");
    client.run("ZADD z 1 a");
    let listener = Listener::of(&engine, ALL);
    expect(
        &client,
        &listener,
        &[
            ("SORT s STORE d", "new d, sortstore d"),
            ("SINTERSTORE d s", "sinterstore d"),
            ("SUNIONSTORE d s", "sunionstore d"),
            ("SDIFFSTORE d s s", "del d"),
            ("SDIFFSTORE d s s", ""),
            ("ZRANGESTORE d z 0 -1", "new d, zrangestore d"),
            ("ZUNIONSTORE d 1 z", "zunionstore d"),
            ("ZINTERSTORE d 1 z", "zinterstore d"),
            ("ZDIFFSTORE d 1 z", "zdiffstore d"),
            ("ZDIFFSTORE d 2 z z", "del d"),
            ("SORT none STORE d", ""),
        ],
    );
}

#[test]
fn deadlines_publish_events_when_set_and_when_the_key_is_removed() {
    let engine = support::engine();
    let listener = Listener::of(&engine, ALL);
    let mut client = Client::new(&engine);
    let dialogue = [
        ("SET k 1", "new k, set k"),
        ("PEXPIRE k 10", "expire k"),
        ("EXPIRE k 10 NX", ""),
        ("PERSIST k", "persist k"),
        ("EXPIRE k -1", "del k"),
        ("SET k 1 PX 10", "new k, set k, expire k"),
        ("SET l 1 PX 20", "new l, set l, expire l"),
        ("SET m 1 PX 20", "new m, set m, expire m"),
        ("SET n 1 PX 20", "new n, set n, expire n"),
    ];
    expect(&client, &listener, &dialogue);
    client.sleep_ms(15);
    engine.expire_due(client.now_us, 100);
    assert_eq!(listener.heard(), "expired k");
    client.sleep_ms(15);
    let dialogue = [
        // A read that finds the key expired removes it, as a write does.
        ("GET l", "expired l"),
        ("DEL l", ""),
        ("SET m 1", "expired m, new m, set m"),
        ("INCR n", "expired n, new n, incrby n"),
    ];
    expect(&client, &listener, &dialogue);
    client.sleep_ms(100);
    engine.expire_due(client.now_us, 100);
    assert_eq!(listener.heard(), "");
    expect(&client, &listener, &[("FLUSHALL", ""), ("SWAPDB 0 1", "")]);
}

#[test]
fn a_key_that_a_watched_read_expires_early_publishes_expired() {
    let engine = support::engine();
    let listener = Listener::of(&engine, EventClasses::EXPIRED);
    let mut client = Client::new(&engine);
    client.run("SET k 1 PX 10");
    client.run("SET l 1 PX 10");
    let read = |line: &str| {
        let words = words(line);
        let args: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
        Read::new(0, Protocol::Resp3, &args, Filter::default()).expect("it can be watched")
    };
    engine.subscribe(read("GET k"), 0, client.now_us).expect("it is watched");
    client.sleep_ms(20);
    engine.subscribe(read("GET l"), 0, client.now_us).expect("it is watched");
    assert_eq!(listener.heard(), "expired l");
    engine.expire_due(client.now_us, 100);
    assert_eq!(listener.heard(), "expired k");
}

#[test]
fn reads_of_absent_keys_publish_keymiss() {
    let engine = support::engine();
    let client = Client::new(&engine);
    client.run("RPUSH l a");
    let listener = Listener::of(&engine, EventClasses::KEY_MISS);
    expect(
        &client,
        &listener,
        &[
            ("GET k", "keymiss k"),
            ("MGET k l m", "keymiss k, keymiss m"),
            ("EXISTS k k", "keymiss k, keymiss k"),
            ("LRANGE k 0 x", ""),
            ("SINTERSTORE l k m", "keymiss k, keymiss m"),
            ("OBJECT ENCODING k", ""),
            ("TTL k", "keymiss k"),
            ("INCR n", ""),
            ("SET k 1 GET", "keymiss k"),
            ("SET l2 1", ""),
            ("GETDEL m", "keymiss m"),
            ("GETEX m", "keymiss m"),
            ("LPOP m", ""),
            ("COPY m k", "keymiss m"),
            ("BITFIELD m GET u8 0", "keymiss m"),
            ("XACK s g 1-0", "keymiss s"),
            ("XREAD STREAMS s 0", "keymiss s"),
            ("BITFIELD m SET u8 0 1", ""),
            ("GET k", ""),
        ],
    );
}

#[test]
fn only_selected_classes_are_published() {
    let engine = support::engine();
    let client = Client::new(&engine);
    let listener = Listener::of(&engine, EventClasses::LIST);
    expect(&client, &listener, &[("SET k 1", ""), ("RPUSH l a", "rpush l"), ("LPOP l", "lpop l")]);
    engine.want_events(EventClasses::GENERIC);
    expect(&client, &listener, &[("RPUSH l a", ""), ("LPOP l", "del l")]);
    engine.want_events(EventClasses::NONE);
    expect(&client, &listener, &[("DEL k", "")]);
}

#[test]
fn a_transaction_publishes_all_events_after_its_one_record() {
    let engine = support::engine();
    let listener = Listener::of(&engine, ALL);
    transaction(&engine, None, &["SET k 1", "LPUSH k a", "RPUSH l a", "LPOP l"]);
    let published = listener.take();
    let names: Vec<&str> = published.iter().map(|(event, _)| event.name).collect();
    assert_eq!(names, ["new", "set", "new", "rpush", "lpop", "del"]);
    let cause = Cause { lsn: Some(Lsn(1)), durable: false };
    assert!(published.iter().all(|(_, other)| *other == cause), "{published:?}");
}

#[test]
fn a_served_clients_event_follows_the_event_that_served_it() {
    let engine = support::engine();
    let listener = Listener::of(&engine, ALL);
    for line in ["BLMOVE a b LEFT RIGHT 0", "BLPOP b 0"] {
        let words = words(line);
        let args: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
        let call =
            Call { command: command::resolve(&args).expect("a row"), args: &args, db: 0, now_us: START_US };
        let blocked = engine.execute(&call, &mut Reply::default()).into_blocked().expect("nothing to take");
        let _waiter = blocked.wait(|_| {}, |_| {});
    }
    assert_eq!(listener.heard(), "");
    Client::new(&engine).run("RPUSH a x");
    let published = listener.take();
    let heard: Vec<(&str, u64)> =
        published.iter().map(|(event, cause)| (event.name, cause.lsn.expect("it was logged").0)).collect();
    let (push, moved, popped) = (1, 2, 3);
    assert_eq!(
        heard,
        [
            ("new", push),
            ("rpush", push),
            ("new", moved),
            ("rpush", moved),
            ("lpop", moved),
            ("del", moved),
            ("lpop", popped),
            ("del", popped),
        ]
    );
}

#[test]
fn limiters_publish_no_event_of_refused_requests() {
    let engine = support::engine();
    let listener = Listener::of(&engine, ALL);
    expect(
        &Client::new(&engine),
        &listener,
        &[
            ("CL.THROTTLE k 0 1 10", "new k, limit_check k"),
            ("CL.THROTTLE k 0 1 10", ""),
            ("LIMIT.CHECK k AMOUNT 0", ""),
            ("LIMIT.REFUND k", "del k"),
            ("LIMIT.CHECK k AMOUNT 2 GCRA 5 PER 1000", "new k, limit_check k"),
            ("LIMIT.REFUND k", "limit_refund k"),
            ("LIMIT.RESET k", "del k"),
            ("LIMIT.CREATE a FIXED 2 PER 1000", "new a, limit_create a"),
            ("LIMIT.CREATE a FIXED 2 PER 1000", ""),
            ("LIMIT.CREATE a SLIDING 2 PER 1000", "limit_create a"),
            ("LIMIT.CHECKALL 2 a b GCRA 2 PER 1000", ""),
            ("LIMIT.CHECKALL 2 a b SLIDING 2 PER 1000", "limit_check a, new b, limit_check b"),
            ("LIMIT.RESET a", "limit_reset a"),
            ("LIMIT.RESET a", ""),
            ("LIMIT.CREATE c CONCURRENCY 1 TTL 1000", "new c, limit_create c"),
            ("LIMIT.ACQUIRE c", "limit_acquire c"),
            ("LIMIT.ACQUIRE c", ""),
            (&format!("LIMIT.RENEW c {START_US}"), ""),
            (&format!("LIMIT.RENEW c {START_US} TTL 2000"), "limit_renew c"),
            (&format!("LIMIT.RELEASE c {START_US}"), "limit_release c"),
            (&format!("LIMIT.RELEASE c {START_US}"), ""),
        ],
    );
}

#[test]
fn series_publish_the_events_of_their_rules_and_lenses() {
    let engine = support::engine();
    let listener = Listener::of(&engine, ALL);
    expect(
        &Client::new(&engine),
        &listener,
        &[
            ("TS.CREATE a", "new a, ts.create a"),
            ("TS.CREATE b", "new b, ts.create b"),
            ("TS.CREATERULE a b AGGREGATION sum 10", "ts.createrule:src a, ts.createrule:dest b"),
            ("TS.ADD a 1 1", "ts.add a"),
            ("TS.MADD a 11 1 a 2 2", "ts.add:dest b, ts.add a, ts.add a"),
            ("TS.APPEND a xxxxxxxx x", ""),
            ("LENS.CREATE l a abs", "new l, lens.create l"),
            ("LENS.COMPOSE m l l", "new m, lens.create m"),
            ("LENS.CREATE l b", ""),
            ("LENS.DROP l l", "del l"),
            ("TS.DELETERULE a b", "ts.deleterule:src a, ts.deleterule:dest b"),
            ("TS.DEL a 0 100", "ts.del a"),
        ],
    );
}

#[test]
fn durable_changes_say_so() {
    let engine = support::engine();
    let listener = Listener::of(&engine, EventClasses::STRING);
    let client = Client::new(&engine);
    client.run("SET k 1 DURABLE");
    client.run("SET k 2");
    let published: Vec<bool> = listener.take().iter().map(|(_, cause)| cause.durable).collect();
    assert_eq!(published, [true, false]);
}

#[test]
fn what_the_log_has_refused_is_no_event() {
    let options = Options { max_record_bytes: 1024, ..Options::default() };
    let (log, _) = Log::open(Arc::new(MemoryStorage::new()), options).expect("an empty log opens");
    let engine = support::engine_with_log(Arc::new(log));
    let listener = Listener::of(&engine, ALL);
    let client = Client::new(&engine);
    let large = "x".repeat(2000);
    assert!(client.run(&format!("SET k {large}")).starts_with("-MISCONF"));
    assert_eq!(listener.heard(), "");
    assert!(client.run("DEL k").starts_with("-MISCONF"));
    assert_eq!(listener.heard(), "");
}

#[test]
fn a_replay_publishes_no_events() {
    let engine = support::engine();
    let client = Client::new(&engine);
    for line in ["SET k 1", "RPUSH l a", "LPOP l", "SPOP none", "SET e 1 PX 1"] {
        client.run(line);
    }
    engine.expire_due(START_US + 10_000_000, 100);
    let replica = support::engine();
    let listener = Listener::of(&replica, ALL);
    support::apply_from(&engine, Lsn(1), &replica);
    assert_eq!(replica.digest(), engine.digest());
    assert_eq!(listener.heard(), "");
}

#[test]
fn every_event_is_in_the_book() {
    let book = include_str!("../../../../docs/keyspace-notifications.md");
    let mut documented: Vec<&str> = book
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split(" | ").nth(2))
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .collect();
    let mut published: Vec<&str> = EVENTS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    documented.sort_unstable();
    published.sort_unstable();
    assert_eq!(published, documented);
}

#[test]
fn the_end_of_fields_is_announced() {
    let engine = support::engine();
    let listener = Listener::of(&engine, ALL);
    let mut client = Client::new(&engine);
    client.run("HSETEX h PX 1 FIELDS 2 a 1 b 1");
    client.run("HSET h c 1");
    client.run("HSETEX last PX 1 FIELDS 1 a 1");
    listener.heard();
    client.sleep_ms(1);
    expect(&client, &listener, &[("HGET h c", "hexpired h"), ("HLEN last", "hexpired last, del last")]);
}

/// Keys with their databases.
type KeySet = BTreeSet<(u8, Vec<u8>)>;

fn keys_of(engine: &Engine) -> KeySet {
    let mut keys = KeySet::new();
    for index in 0..engine.keyspace().shard_count() {
        let shard = engine.keyspace().lock(index);
        for db in 0..DATABASES {
            keys.extend(shard.database(db).table().iter().map(|entry| (db as u8, entry.key().to_vec())));
        }
    }
    keys
}

/// Updates the set of keys from events. Each event must be of a key that exists.
fn follow(keys: &mut KeySet, published: &[(Event, Cause)], line: &Line) {
    for (Event { db, name, key }, _) in published {
        let key = (*db, key.to_vec());
        let was_there = match *name {
            "new" => {
                keys.insert(key);
                true
            }
            "del" | "expired" | "rename_from" | "move_from" => keys.remove(&key),
            _ => keys.contains(&key),
        };
        assert!(was_there, "{}: {name} of a key that is not there: {published:?}", shown(line));
    }
}

fn logged(engine: &Engine) -> Vec<(u8, Vec<u8>)> {
    let mut records = Vec::new();
    support::for_each_record(engine, Lsn(1), |record| records.push((record.kind, record.payload.to_vec())));
    records
}

#[test]
fn events_mirror_the_keys_and_leave_the_log_unchanged() {
    for seed in 0..10 {
        let (heard, silent) = (support::engine(), support::engine());
        let listener = Listener::of(&heard, ALL);
        let mut generator = Generator::new(seed, Times::Near, START_US / 1000);
        let (mut keys, mut now_us, mut count) = (KeySet::new(), START_US, 0);
        for step in 0..2000 {
            now_us += generator.random.below(2_000_000);
            generator.now_ms = now_us / 1000;
            let line = generator.line();
            let args: Vec<&[u8]> = line.iter().map(Vec::as_slice).collect();
            let db = generator.random.below(2) as u8;
            for engine in [&heard, &silent] {
                if let Ok(command) = command::resolve(&args) {
                    drop(engine.execute(&Call { command, args: &args, db, now_us }, &mut Reply::default()));
                }
            }
            if matches!(command::resolve(&args), Ok(row) if matches!(row.name, "flushall" | "flushdb" | "swapdb"))
            {
                // These commands publish no events of their own. The keys that expire after them
                // do.
                keys = keys_of(&heard);
            }
            if step % 20 == 0 {
                for engine in [&heard, &silent] {
                    engine.expire_due(now_us, 3);
                }
            }
            let published = listener.take();
            count += published.len();
            follow(&mut keys, &published, &line);
            assert_eq!(keys, keys_of(&heard), "seed {seed}, behind {}", shown(&line));
        }
        assert!(count > 200, "seed {seed}: {count} events");
        assert_eq!(logged(&heard), logged(&silent), "seed {seed}");
        assert_eq!(heard.digest(), silent.digest(), "seed {seed}");
    }
}
