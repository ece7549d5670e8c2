//! Emissions with inconsistent numbers, which no Tidemark server sends: they come from a script.
#![allow(clippy::indexing_slicing, missing_docs, reason = "a test may fail by a panic")]

use redis::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use tidemark_client::{Client, Event, Reason};

/// Answers a client until it disconnects; each subscription gets its pushes after the list of
/// subscriptions.
fn serve(stream: TcpStream, lsn: u64, pushes: &str) -> std::io::Result<()> {
    let mut input = BufReader::new(stream.try_clone()?);
    let mut output = stream;
    while let Some(words) = command(&mut input)? {
        let answer = match words[0].as_str() {
            "HELLO" => "%1\r\n$5\r\nproto\r\n:3\r\n".to_owned(),
            "COMMAND" => "*1\r\n$1\r\nk\r\n".to_owned(),
            "GET.WATCH" => format!(
                "%4\r\n$6\r\nsub_id\r\n$3\r\n9-0\r\n$3\r\nlsn\r\n:{lsn}\r\n$3\r\nseq\r\n:0\r\n$5\r\nvalue\r\n_\r\n"
            ),
            "WATCHES" => format!(
                "*1\r\n%2\r\n$6\r\nsub_id\r\n$3\r\n9-0\r\n$7\r\ncommand\r\n*2\r\n$3\r\nget\r\n$1\r\nk\r\n{pushes}"
            ),
            _ => "+OK\r\n".to_owned(),
        };
        output.write_all(answer.as_bytes())?;
    }
    Ok(())
}

/// Returns the next command; `None` at the end.
fn command(input: &mut impl BufRead) -> std::io::Result<Option<Vec<String>>> {
    let number = |input: &mut dyn BufRead| {
        let mut line = String::new();
        input.read_line(&mut line)?;
        Ok::<_, std::io::Error>(line.get(1..).and_then(|digits| digits.trim_end().parse::<usize>().ok()))
    };
    let Some(count) = number(input)? else { return Ok(None) };
    let mut words = Vec::new();
    for _ in 0..count {
        let length = number(input)?.expect("a length");
        let mut word = vec![0; length + 2];
        input.read_exact(&mut word)?;
        word.truncate(length);
        words.push(String::from_utf8(word).expect("text"));
    }
    Ok(Some(words))
}

fn push(lsn: u64, seq: u64) -> String {
    format!(">5\r\n$8\r\nemission\r\n$3\r\n9-0\r\n:{lsn}\r\n:{seq}\r\n:{seq}\r\n")
}

#[tokio::test]
async fn what_is_known_is_dropped_and_a_gap_is_said() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a socket");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        let first = [push(9, 7), push(11, 1), push(11, 1), push(10, 2), push(13, 2), push(15, 4)].concat();
        // The first connection only checks whether the server answers.
        let scripts = [(0, String::new()), (10, first), (20, push(21, 1))];
        for ((lsn, pushes), stream) in scripts.into_iter().zip(listener.incoming()) {
            thread::spawn(move || serve(stream.expect("a connection"), lsn, &pushes));
        }
    });
    let client = Client::connect(format!("redis://127.0.0.1:{port}")).await.expect("it answers");
    let mut watch = client.watch(["GET", "k"]);
    let mut events = Vec::new();
    for _ in 0..5 {
        events.push(match watch.next().await.expect("an event").expect("no error") {
            Event::Snapshot(snapshot) => (snapshot.lsn, Err(snapshot.reason)),
            Event::Emission(emission) => {
                assert_eq!(emission.value, Value::Int(emission.seq as i64));
                (emission.lsn, Ok(emission.seq))
            }
        });
    }
    let gap = Reason::Gap { expected: 3, found: 4 };
    assert_eq!(events, [(10, Err(Reason::Begun)), (11, Ok(1)), (13, Ok(2)), (20, Err(gap)), (21, Ok(1))]);
}
