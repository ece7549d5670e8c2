//! A server that can be killed, a proxy that cuts connections, a writer that retries for ever, and
//! helpers of all tests.

pub(crate) mod proxy;
pub(crate) mod server;

use redis::{Cmd, FromRedisValue, Value};
use server::Server;
use std::time::Duration;
use tidemark_client::{Client, Event, Reason, Retry, Snapshot, Watch};

/// Longer than anything takes: a test that waits for an event that never comes fails instead of
/// hanging.
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns a client that retries quickly and for ever.
pub(crate) async fn client(port: u16) -> Client {
    let client = Client::connect(format!("redis://127.0.0.1:{port}")).await.expect("the server answers");
    let (delay_min, delay_max) = (Duration::from_millis(5), Duration::from_millis(100));
    client.with_retry(Retry { delay_min, delay_max, attempts_max: None })
}

/// Returns the next event.
pub(crate) async fn event(watch: &mut Watch) -> Event {
    let next = tokio::time::timeout(PATIENCE, watch.next()).await.expect("an event comes");
    next.expect("the watch goes on").expect("the server accepts the watch")
}

/// Returns the next event, a snapshot with this reason.
pub(crate) async fn snapshot(watch: &mut Watch, reason: Reason) -> Snapshot {
    match event(watch).await {
        Event::Snapshot(snapshot) if snapshot.reason == reason => snapshot,
        other => panic!("{reason:?} was to come: {other:?}"),
    }
}

/// Expects emissions of these numbers as text, and no other events, with sequence numbers from
/// `seq` on.
pub(crate) async fn expect_numbers(watch: &mut Watch, numbers: std::ops::RangeInclusive<u64>, seq: u64) {
    let mut lsn = watch.position().map_or(0, tidemark_client::Position::lsn);
    for (number, seq) in numbers.zip(seq..) {
        match event(watch).await {
            Event::Emission(emission) => {
                assert_eq!((emission.value, emission.seq), (text(number), seq));
                assert!(emission.lsn > lsn, "{} behind {lsn}", emission.lsn);
                lsn = emission.lsn;
            }
            other => panic!("{number} was to come: {other:?}"),
        }
    }
}

pub(crate) fn text(number: impl ToString) -> Value {
    Value::BulkString(number.to_string().into_bytes())
}

/// Runs a command on a connection of its own.
pub(crate) fn run<T: FromRedisValue>(server: &Server, line: &str) -> T {
    let mut connection = server.connection();
    command(line).query(&mut connection).expect(line)
}

pub(crate) fn command(line: &str) -> Cmd {
    let mut command = Cmd::new();
    for word in line.split(' ') {
        command.arg(word);
    }
    command
}

/// Sets a key to each of the numbers, one after another, through crashes of the server. Repeats a
/// command without a reply, which changes nothing if it had been executed.
pub(crate) fn write_numbers(port: u16, key: &str, numbers: std::ops::RangeInclusive<u64>) {
    let server = redis::Client::open(("127.0.0.1", port)).expect("an address");
    let mut connection = None;
    for number in numbers {
        loop {
            let open = match connection.take() {
                Some(open) => Ok(open),
                None => server.get_connection(),
            };
            if let Ok(mut open) = open
                && command(&format!("SET {key} {number}")).exec(&mut open).is_ok()
            {
                connection = Some(open);
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
