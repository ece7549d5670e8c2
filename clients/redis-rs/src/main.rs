//! Every type of value with redis-rs. Empties database 15 first.
//!
//! ```sh
//! cargo run -- redis://127.0.0.1:7379/15
//! ```

use redis::{Client, Commands, Connection, RedisResult, cmd, pipe, transaction};
use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::thread;

type Example = fn(&Client, &mut Connection) -> RedisResult<()>;

const EXAMPLES: [(&str, Example); 12] = [
    ("strings", strings),
    ("durable writes", durable_writes),
    ("hashes", hashes),
    ("lists", lists),
    ("a blocking pop waits for a push", blocking_pop),
    ("sets", sets),
    ("sorted sets", sorted_sets),
    ("time series", time_series),
    ("transactions", transactions),
    ("a pipeline answers in order", pipeline),
    ("a scan finds every key", scan),
    ("messages reach patterns", messages),
];

fn strings(_: &Client, connection: &mut Connection) -> RedisResult<()> {
    let () = connection.set_ex("greeting", "hello", 100)?;
    assert_eq!(connection.get::<_, String>("greeting")?, "hello");
    assert_eq!(connection.get::<_, Option<String>>("missing")?, None);
    assert_eq!(connection.incr::<_, _, i64>("visits", 42)?, 42);
    let error = connection.lpush::<_, _, i64>("greeting", 1).expect_err("the key holds a string");
    assert_eq!(error.code(), Some("WRONGTYPE"));
    Ok(())
}

/// Tidemark's own word: these answers wait until the change is on disk.
fn durable_writes(_: &Client, connection: &mut Connection) -> RedisResult<()> {
    cmd("SET").arg("order").arg(42).arg("DURABLE").exec(connection)?;
    let order: i64 = cmd("DURABLE").arg("INCR").arg("order").query(connection)?;
    assert_eq!(order, 43);
    Ok(())
}

fn hashes(_: &Client, connection: &mut Connection) -> RedisResult<()> {
    let () = connection.hset_multiple("user", &[("name", "ada"), ("visits", "1")])?;
    assert_eq!(connection.hincr::<_, _, _, i64>("user", "visits", 2)?, 3);
    let user: BTreeMap<String, String> = connection.hgetall("user")?;
    assert_eq!(user["name"], "ada");
    assert_eq!(user["visits"], "3");
    Ok(())
}

fn lists(_: &Client, connection: &mut Connection) -> RedisResult<()> {
    assert_eq!(connection.rpush::<_, _, usize>("queue", &["a", "b", "c"])?, 3);
    assert_eq!(connection.lpop::<_, String>("queue", None)?, "a");
    assert_eq!(connection.lrange::<_, Vec<String>>("queue", 0, -1)?, ["b", "c"]);
    Ok(())
}

fn blocking_pop(client: &Client, connection: &mut Connection) -> RedisResult<()> {
    let mut waiter = client.get_connection()?;
    let popped = thread::spawn(move || waiter.blpop::<_, (String, String)>("jobs", 30.0));
    let _: usize = connection.rpush("jobs", "job")?;
    let popped = popped.join().expect("the waiter does not panic")?;
    assert_eq!(popped, ("jobs".to_owned(), "job".to_owned()));
    Ok(())
}

fn sets(_: &Client, connection: &mut Connection) -> RedisResult<()> {
    let () = connection.sadd("odd", &[1, 3, 5])?;
    let () = connection.sadd("small", &[1, 2, 3])?;
    assert_eq!(connection.sinter::<_, BTreeSet<i64>>(&["odd", "small"])?, [1, 3].into());
    Ok(())
}

fn sorted_sets(_: &Client, connection: &mut Connection) -> RedisResult<()> {
    let () = connection.zadd_multiple("board", &[(12.5, "ada"), (9.0, "bob")])?;
    assert_eq!(connection.zincr::<_, _, _, f64>("board", "bob", 10)?, 19.0);
    let ranking: Vec<(String, f64)> = connection.zrevrange_withscores("board", 0, -1)?;
    assert_eq!(ranking, [("bob".to_owned(), 19.0), ("ada".to_owned(), 12.5)]);
    Ok(())
}

fn time_series(_: &Client, connection: &mut Connection) -> RedisResult<()> {
    let key = "temperature:hall";
    let add = cmd("TS.ADD")
        .arg(key)
        .arg(1000)
        .arg(20.5)
        .arg(&["LABELS", "kind", "temperature"])
        .query::<i64>(connection)?;
    assert_eq!(add, 1000);
    let times: Vec<i64> =
        cmd("TS.MADD").arg(key).arg(2000).arg(21.5).arg(key).arg(61000).arg(19).query(connection)?;
    assert_eq!(times, [2000, 61000]);
    let by_minute = ["-", "+", "AGGREGATION", "avg", "60000"];
    let means: Vec<(i64, f64)> = cmd("TS.RANGE").arg(key).arg(&by_minute).query(connection)?;
    assert_eq!(means, [(0, 21.0), (60_000, 19.0)]);
    let keys: Vec<String> = cmd("TS.QUERYINDEX").arg("kind=~temp.*").query(connection)?;
    assert_eq!(keys, [key]);
    Ok(())
}

fn transactions(client: &Client, connection: &mut Connection) -> RedisResult<()> {
    let mut other = client.get_connection()?;
    let () = connection.set("balance", 1)?;
    let mut attempts = 0;
    let (balance,): (i64,) = transaction(connection, &["balance"], |connection, pipeline| {
        attempts += 1;
        let balance: i64 = connection.get("balance")?;
        // Another client is faster the first time: the transaction is retried.
        if attempts == 1 {
            let () = other.set("balance", 20)?;
        }
        pipeline.set("balance", balance + 1).ignore().get("balance").query(connection)
    })?;
    assert_eq!((attempts, balance), (2, 21));
    Ok(())
}

fn pipeline(_: &Client, connection: &mut Connection) -> RedisResult<()> {
    let mut pipeline = pipe();
    for _ in 0..1000 {
        pipeline.incr("counter", 1);
    }
    let answers: Vec<i64> = pipeline.query(connection)?;
    assert!(answers.into_iter().eq(1..=1000));
    Ok(())
}

fn scan(_: &Client, connection: &mut Connection) -> RedisResult<()> {
    for number in 0..500 {
        let () = connection.set(format!("scan:{number}"), number)?;
    }
    let found: BTreeSet<String> = connection.scan_match("scan:*")?.collect::<RedisResult<_>>()?;
    assert_eq!(found.len(), 500);
    Ok(())
}

fn messages(client: &Client, connection: &mut Connection) -> RedisResult<()> {
    let mut listener = client.get_connection()?;
    let mut subscriber = listener.as_pubsub();
    subscriber.psubscribe("weather.*")?;
    assert_eq!(connection.publish::<_, _, i64>("weather.oslo", "snow")?, 1);
    let message = subscriber.get_message()?;
    assert_eq!(message.get_channel_name(), "weather.oslo");
    assert_eq!(message.get_payload::<String>()?, "snow");
    Ok(())
}

fn main() -> ExitCode {
    let url = std::env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1:7379/15".to_owned());
    let (mut passed, mut failed) = (0, 0);
    for protocol in ["resp2", "resp3"] {
        let client = Client::open(format!("{url}?protocol={protocol}")).expect("a valid address");
        let mut connection = client.get_connection().expect("a server at the address");
        cmd("FLUSHDB").exec(&mut connection).expect("an empty database");
        for (name, example) in EXAMPLES {
            // An assertion that fails fails its example, not the others.
            let run = || example(&client, &mut connection);
            match std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)) {
                Ok(Ok(())) => passed += 1,
                other => {
                    failed += 1;
                    println!("FAILED {name} ({protocol}): {other:?}");
                }
            }
        }
    }
    println!("{passed} passed, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
