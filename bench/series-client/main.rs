//! The client of `bench/series-vs-peers`: adds points and reads answers as fast as sockets allow, so that the server is
//! measured. Requests are made before the clock starts. It needs the standard library alone, and the script compiles it.
//!
//! ```text
//! series-client add    PORT POINTS PIPELINE CONNECTIONS    TS.ADD, PIPELINE of them before their replies are read
//! series-client madd   PORT POINTS BATCH CONNECTIONS       TS.MADD of BATCH points
//! series-client append PORT POINTS BATCH CONNECTIONS       TS.APPEND of BATCH points
//! series-client import PORT POINTS BATCH CONNECTIONS NAME  POST of BATCH points in VictoriaMetrics' JSON Lines
//! series-client query  PORT TIMES WORD...                  one command of RESP, TIMES times
//! series-client get    PORT TIMES PATH                     one GET over HTTP, TIMES times
//! ```
//!
//! Each connection adds to a series of its own, a point a second. The result is a line of JSON: `points` or `bytes`, `seconds`
//! (a list for reads), the client's own processor time `cpu`, and `errors`: replies that are errors count as no work.

use std::env;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Instant;

/// The first point's time, in milliseconds.
const START_MS: u64 = 1_700_006_400_000;

/// The value of a point, with two decimals: the script has the same formula for the other peers.
fn cents(point: u64) -> i64 {
    (2000.0 + 500.0 * (point as f64 / 1000.0).sin()).floor() as i64 + (point * 7919 % 100) as i64
}

fn value_text(point: u64) -> String {
    let cents = cents(point);
    format!("{}.{:02}", cents / 100, cents % 100)
}

fn time(point: u64) -> u64 {
    START_MS + 1000 * point
}

fn bulk(request: &mut Vec<u8>, word: &[u8]) {
    write!(request, "${}\r\n", word.len()).expect("memory takes it");
    request.extend_from_slice(word);
    request.extend_from_slice(b"\r\n");
}

fn request(words: &[Vec<u8>]) -> Vec<u8> {
    let mut request = format!("*{}\r\n", words.len()).into_bytes();
    words.iter().for_each(|word| bulk(&mut request, word));
    request
}

/// What is sent before replies are read, with the number of lines that they have, and the points in it.
struct Batch {
    bytes: Vec<u8>,
    lines: usize,
    points: u64,
}

fn batches(mode: &str, points: u64, size: u64, connection: u64, name: &str) -> Vec<Batch> {
    let key = format!("series:{connection}").into_bytes();
    let of = |first: u64| {
        let range = first..points.min(first + size);
        let count = range.end - range.start;
        let (bytes, lines) = match mode {
            "add" => {
                let one = |point: u64| {
                    request(&[
                        b"TS.ADD".to_vec(),
                        key.clone(),
                        time(point).to_string().into(),
                        value_text(point).into(),
                    ])
                };
                (range.flat_map(one).collect(), count as usize)
            }
            "madd" => {
                let mut words = vec![b"TS.MADD".to_vec()];
                for point in range {
                    words.extend([key.clone(), time(point).to_string().into(), value_text(point).into()]);
                }
                (request(&words), 1 + count as usize)
            }
            "append" => {
                let times: Vec<u8> = range.clone().flat_map(|point| time(point).to_le_bytes()).collect();
                let values: Vec<u8> =
                    range.flat_map(|point| (cents(point) as f64 / 100.0).to_le_bytes()).collect();
                (request(&[b"TS.APPEND".to_vec(), key.clone(), times, values]), 1)
            }
            "import" => {
                let joined =
                    |text: &dyn Fn(u64) -> String| range.clone().map(text).collect::<Vec<_>>().join(",");
                let body = format!(
                    "{{\"metric\":{{\"__name__\":\"{name}\",\"connection\":\"{connection}\"}},\"values\":[{}],\"timestamps\":[{}]}}\n",
                    joined(&value_text),
                    joined(&|point| time(point).to_string())
                );
                let head = format!(
                    "POST /api/v1/import HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n",
                    body.len()
                );
                (format!("{head}{body}").into_bytes(), 0)
            }
            _ => panic!("there is no mode {mode}"),
        };
        Batch { bytes, lines, points: count }
    };
    (0..points).step_by(size as usize).map(of).collect()
}

/// Sends a batch and reads its replies. Returns the number of errors among them.
fn exchange(reader: &mut BufReader<TcpStream>, batch: &Batch, line: &mut Vec<u8>) -> u64 {
    reader.get_mut().write_all(&batch.bytes).expect("the server takes requests");
    let mut errors = 0;
    if batch.lines == 0 {
        // HTTP: a status and headers, without a body.
        let mut is_first = true;
        loop {
            line.clear();
            reader.read_until(b'\n', line).expect("the server answers");
            errors += u64::from(is_first && !line.starts_with(b"HTTP/1.1 2"));
            is_first = false;
            if line.as_slice() == b"\r\n" || line.is_empty() {
                return errors * batch.points;
            }
        }
    }
    for _ in 0..batch.lines {
        line.clear();
        reader.read_until(b'\n', line).expect("the server answers");
        errors += u64::from(line.first().is_none_or(|byte| *byte == b'-'));
    }
    errors
}

fn connect(port: &str) -> BufReader<TcpStream> {
    let stream = TcpStream::connect(format!("127.0.0.1:{port}")).expect("the server listens");
    stream.set_nodelay(true).expect("TCP");
    BufReader::with_capacity(1 << 18, stream)
}

/// Processor time of this process in seconds.
fn cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}

fn add(mode: &str, arguments: &[String]) {
    let number = |at: usize| arguments[at].parse::<u64>().expect("a number");
    let (port, points, size, connections) = (&arguments[0], number(1), number(2), number(3));
    let name = arguments.get(4).cloned().unwrap_or_default();
    let barrier = Arc::new(Barrier::new(connections as usize + 1));
    let workers: Vec<_> = (0..connections)
        .map(|connection| {
            let batches = batches(mode, points / connections, size, connection, &name);
            let (barrier, mut reader) = (Arc::clone(&barrier), connect(port));
            if mode == "madd" {
                let create = request(&[b"TS.CREATE".to_vec(), format!("series:{connection}").into_bytes()]);
                exchange(&mut reader, &Batch { bytes: create, lines: 1, points: 0 }, &mut Vec::new());
            }
            thread::spawn(move || {
                let mut line = Vec::new();
                barrier.wait();
                batches.iter().map(|batch| exchange(&mut reader, batch, &mut line)).sum::<u64>()
            })
        })
        .collect();
    let before = cpu();
    barrier.wait();
    let began = Instant::now();
    let errors: u64 = workers.into_iter().map(|worker| worker.join().expect("a worker ends well")).sum();
    let seconds = began.elapsed().as_secs_f64();
    let done = points / connections * connections - errors;
    println!(
        "{{\"points\": {done}, \"seconds\": {seconds}, \"cpu\": {}, \"errors\": {errors}}}",
        cpu() - before
    );
}

/// Reads one reply. Returns its bytes, and whether it is or has an error.
fn reply(reader: &mut BufReader<TcpStream>, line: &mut Vec<u8>) -> (usize, bool) {
    let (mut left, mut bytes, mut failed) = (1_usize, 0, false);
    while left > 0 {
        line.clear();
        bytes += reader.read_until(b'\n', line).expect("the server answers");
        left -= 1;
        let length = || {
            std::str::from_utf8(&line[1..]).ok().and_then(|text| text.trim().parse::<i64>().ok()).unwrap_or(0)
        };
        match line.first() {
            Some(b'*' | b'~') => left += length().max(0) as usize,
            Some(b'%') => left += 2 * length().max(0) as usize,
            Some(b'$') if length() >= 0 => {
                let mut text = vec![0; length() as usize + 2];
                reader.read_exact(&mut text).expect("the server answers");
                bytes += text.len();
            }
            Some(b'-') | None => failed = true,
            _ => {}
        }
    }
    (bytes, failed)
}

fn report_reads(times: usize, mut read: impl FnMut() -> (usize, bool)) {
    let before = cpu();
    let (mut seconds, mut bytes, mut errors) = (Vec::new(), 0, 0);
    for _ in 0..times {
        let began = Instant::now();
        let (size, failed) = read();
        seconds.push(began.elapsed().as_secs_f64());
        bytes = size;
        errors += u64::from(failed);
    }
    println!(
        "{{\"bytes\": {bytes}, \"seconds\": {seconds:?}, \"cpu\": {}, \"errors\": {errors}}}",
        cpu() - before
    );
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let times = |arguments: &[String]| arguments[2].parse::<usize>().expect("a number");
    match arguments.first().map(String::as_str) {
        Some(mode @ ("add" | "madd" | "append" | "import")) if arguments.len() >= 5 => {
            add(mode, &arguments[1..])
        }
        Some("query") if arguments.len() >= 4 => {
            let words: Vec<Vec<u8>> = arguments[3..].iter().map(|word| word.clone().into_bytes()).collect();
            let (bytes, mut reader, mut line) = (request(&words), connect(&arguments[1]), Vec::new());
            report_reads(times(&arguments), || {
                reader.get_mut().write_all(&bytes).expect("the server takes requests");
                reply(&mut reader, &mut line)
            });
        }
        Some("get") if arguments.len() == 4 => report_reads(times(&arguments), || {
            let mut reader = connect(&arguments[1]);
            // HTTP/1.0, so that the answer ends with the connection.
            write!(reader.get_mut(), "GET {} HTTP/1.0\r\nHost: x\r\n\r\n", arguments[3])
                .expect("the server takes requests");
            let mut answer = Vec::new();
            reader.read_to_end(&mut answer).expect("the server answers");
            (answer.len(), !answer.starts_with(b"HTTP/1.0 200"))
        }),
        _ => {
            eprintln!("series-client: see the head of bench/series-client/main.rs for its arguments");
            std::process::exit(2);
        }
    }
}
