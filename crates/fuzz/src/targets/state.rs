//! A keyspace with a key of every kind, from which inputs of corpora are made.

use std::sync::Arc;
use tidemark_engine::watch::{Filter, Guarantee, Named, Read};
use tidemark_engine::{Call, Engine, Protocol, Reply, command};
use tidemark_log::{Durability, Log, Lsn, MemoryStorage, Options};

/// Shards of an engine: few, which makes a new one cheap.
const SHARDS: usize = 4;
/// Time at which commands run, in microseconds since 1970.
pub(super) const NOW_US: u64 = 1_700_000_000_000_000;

/// Returns an engine without keys over an empty log in memory.
pub(super) fn engine() -> Engine {
    engine_over(MemoryStorage::new())
}

/// Returns an engine without keys over a log that continues after the newest snapshot of `storage`.
pub(super) fn engine_over(storage: MemoryStorage) -> Engine {
    let options = Options {
        durability: Durability::Off,
        segment_bytes: 64 * 1024,
        seed: Some(1),
        ..Options::default()
    };
    let (log, _) = Log::open(Arc::new(storage), options).expect("a log without records opens");
    let secrets = |bytes: &mut [u8]| {
        bytes.fill(7);
        Ok(())
    };
    Engine::new(Arc::new(log), SHARDS, 1).with_secrets(Box::new(secrets))
}

/// Scripts of commands that create a key of every kind, each with the kind.
pub(super) const SCRIPTS: &[(&str, &str)] = &[
    (
        "strings",
        "SET a b\nSET n 42\nAPPEND a cdefghijklmnopqrstuvwxyz0123456789\nINCRBYFLOAT f 1.5\nSETRANGE r 5 x\n\
         SETBIT b 7 1\nPEXPIREAT a 1700000001000\nEXPIREAT n 1800000000\nRENAME f g\nCOPY a c\nDEL c\nMSET x 1 y 2\n\
         BITFIELD b SET u8 #1 200 OVERFLOW SAT INCRBY i4 2 9\nGETSET x 3\nGETDEL y",
    ),
    (
        "lists",
        "RPUSH l a 1 -5 300 70000 bcdefghijklmnopqrstuvwxyz\nLPUSH l z\nLINSERT l BEFORE 1 q\nLREM l 1 q\nLSET l 0 y\n\
         LTRIM l 0 -2\nLMOVE l m LEFT RIGHT\nRPOP l\nSORT l ALPHA STORE o",
    ),
    ("hashes", "HSET h f v g 1\nHINCRBY h g 4\nHINCRBYFLOAT h d 0.25\nHDEL h f\nHSETNX h n v"),
    (
        "sets",
        "SADD s 1 2 3\nSADD t a b c\nSMOVE t s a\nSREM s 2\nSPOP t\nSINTERSTORE u s t\nSUNIONSTORE w s t",
    ),
    (
        "sorted-sets",
        "ZADD z 1 a 2.5 b -inf c\nZINCRBY z 3 a\nZREM z b\nZADD y 1 a\nZUNIONSTORE x 2 z y WEIGHTS 2 3 AGGREGATE MAX\n\
         ZREMRANGEBYSCORE x 100 200\nZPOPMIN z\nZRANGESTORE v x 0 -1\nZADD y XX GT CH 5 a",
    ),
    (
        "counters",
        "COUNTER.CREATE c LIMIT 100\nCOUNTER.CREATE e LIMIT 1000 EXACT 10\nCOUNTER.CREATE r RELAXED 10 HIGH 9 LOW 2 MAXAGE 1000\nCOUNTER.TAKE c 3\n\
         LIMIT.CHECK e AMOUNT 5\nCOUNTER.REFUND c 1\nCOUNTER.ADD c 2\nCOUNTER.LIMIT c 50\nCOUNTER.COMMIT c\nCOUNTER.COMMIT e",
    ),
    (
        "limits",
        "LIMIT.CHECK g AMOUNT 1 GCRA 10 PER 1000 BURST 20\nLIMIT.CHECK t TOKEN 10 PER 1000\nLIMIT.CHECK y LEAKY 10 PER 1000\n\
         LIMIT.CHECK f AMOUNT 2 FIXED 5 PER 60000\nLIMIT.CHECK w AMOUNT 2 SLIDING 5 PER 60000\n\
         LIMIT.CHECK o AMOUNT 2 LOG 5 PER 60000\nLIMIT.ACQUIRE k AMOUNT 2 CONCURRENCY 3 TTL 60000\n\
         LIMIT.CHECKALL 2 g f AMOUNT 1 1\nLIMIT.REFUND f AMOUNT 1\nLIMIT.CREATE n SLIDING 5 PER 1000\nLIMIT.RESET t",
    ),
    (
        "pools",
        "POOL.CREATE p LIMIT DRAWS 9 GUARANTEE 3 SOFT 2 1 OF 1 car SCHEDULE car 1 FROM 1700000000000 EVERY 10 TIMES 2 ITEMS car 1 3 \
         mug 9 UNLIMITED\nPOOL.DRAW p COUNT 3 USER u REQUEST r\nPOOL.RESERVE p 60000 COUNT 1 USER u\nPOOL.RESTOCK p car 5\n\
         POOL.UPDATE p WEIGHT mug 5 ADD pen 1 2\nPOOL.CONFIRM p 3\nPOOL.DRAW p COUNT 2 USER v\nPOOL.EPOCH p SEED s",
    ),
    (
        "pools-nested",
        "POOL.CREATE q SOLDOUT NOPRIZE TABLE wheels 2 car 1 3 bicycle 9 30 ITEMS w 1 TABLE:wheels mug 9 UNLIMITED\n\
         POOL.DRAW q COUNT 5\nPOOL.RESERVE q 1 COUNT 2\nPOOL.CREATE j JSON {\"items\":[{\"id\":\"a\",\"weight\":1,\"quantity\":3}],\"mode\":\"per-unit\"}\n\
         POOL.DRAW j COUNT 2\nPOOL.EXPIRE q",
    ),
    (
        "time-series",
        "TS.CREATE c RETENTION 1000 LABELS a b\nTS.CREATE r\nTS.ADD c 1 2.5\nTS.MADD c 2 3 c 3 nan d 1 1 d 2 -0 CREATE\n\
         TS.ADD e 1700000000 0.1 ON_DUPLICATE sum UNIT s\nTS.ADD e 1700000000 0.2 ON_DUPLICATE sum\n\
         TS.INCRBY d 1 TIMESTAMP 9\nTS.ADD c 10 1e300\n\
         TS.APPEND f \\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x09\\x00\\x00\\x00\\x00\\x00\\x00\\x00 \
         \\x01\\x00\\x00\\x00\\x00\\x00\\xf8\\x7f\\x00\\x00\\x00\\x00\\x00\\x00\\x34\\x40 LABELS a c\n\
         TS.DEL c 1 2\nTS.ALTER d DUPLICATE_POLICY max\n\
         TS.CREATERULE c r AGGREGATION sum 10\nTS.ADD c 30 1\nLENS.CREATE l c moving avg 5 / d ASOF 1m",
    ),
    ("databases", "SET k v\nMOVE k 3\nSET k w\nSWAPDB 0 1\nFLUSHDB\nSET l w"),
];

/// Returns an engine on which a script has run.
pub(super) fn after(script: &str) -> Engine {
    let engine = engine();
    let mut refused = Vec::new();
    for line in script.lines() {
        let words = super::words_of(line.as_bytes());
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let command = command::resolve(&words).unwrap_or_else(|error| panic!("{line}: {error}"));
        let mut reply = Reply::new(Protocol::Resp2);
        engine.execute(&Call { command, args: &words, db: 0, now_us: NOW_US }, &mut reply);
        let answer = String::from_utf8_lossy(reply.bytes()).into_owned();
        if answer.starts_with('-') {
            refused.push(format!("{line}: {answer}"));
        }
    }
    assert!(refused.is_empty(), "{refused:#?}");
    engine
}

/// Subscribes to a read under a name.
pub(super) fn watch(engine: &Engine) {
    let read = Read::new(0, Protocol::Resp3, &[b"GET", b"a"], Filter::default()).expect("a read");
    let subscribed = engine.subscribe(read, 0, NOW_US).expect("is watched");
    let named = Named {
        query: subscribed.query,
        base: 0,
        position: Lsn::ZERO,
        has_begun: false,
        guarantee: Guarantee::AtLeastOnce,
    };
    engine.name_subscription(b"name", &named, NOW_US).expect("is named");
}
