//! `ingest`: points through a running server, over one connection. Rows of their own, only with
//! `--server`: the server also answers for its processor time, and may be another one of the protocol.

use super::options::TimeSeriesOptions;
use super::points::value_at;
use super::row::{Findings, Row, Work};
use crate::client::Client;
use crate::target::Target;
use anyhow::{Context, bail, ensure};
use std::time::Duration;
use tidemark_server::resp::{Value, encode_request};

/// Longest wait for a reply.
const PATIENCE: Duration = Duration::from_mins(1);

/// Time of the first point: now, more or less, as clients send it.
const FIRST_TIME: i64 = 1_767_225_600_000;

/// How points are sent.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// `TS.ADD`, so many in a pipeline.
    Add(usize),
    /// `TS.ADD` to as many series as are in a pipeline.
    AddOver(usize),
    /// `TS.MADD` of so many points.
    Madd(usize),
    /// `TS.APPEND` of so many points.
    Append(usize),
}

pub(super) fn rows(options: &TimeSeriesOptions) -> Vec<Row> {
    let Some(server) = &options.server else { return Vec::new() };
    let forms = [
        (Form::Add(64), "add_pipeline_64", "TS.ADD in pipelines of 64 to one series"),
        (Form::AddOver(64), "add_over_64_series", "TS.ADD in pipelines of 64 to as many series"),
        (Form::Madd(1000), "madd_1000", "TS.MADD of 1,000 points to one series"),
        (Form::Append(10_000), "append_10000", "TS.APPEND of 10,000 points"),
        (Form::Append(65_536), "append_65536", "TS.APPEND of 65,536 points"),
    ];
    let points = options.ingest_points;
    let row = |(form, name, measures): (Form, &str, &str)| {
        let server = server.clone();
        Row {
            name: format!("ingest/{name}"),
            measures: format!("{measures}, each sent when the one before is answered"),
            operation: "point",
            operations: points,
            iterations: options.file_iterations,
            start: Box::new(move || Ok(Box::new(Ingesting::new(&server, form, points)?))),
        }
    };
    forms.into_iter().map(row).collect()
}

/// Requests that are sent together, and the replies to them.
struct Batch {
    requests: Vec<u8>,
    replies: usize,
    /// Points of the requests.
    points: u64,
}

struct Ingesting {
    client: Client,
    batches: Vec<Batch>,
    keys: Vec<String>,
    points: u64,
    cpu_before: f64,
    cpu_ns: f64,
    added: u64,
}

impl Ingesting {
    fn new(server: &Target, form: Form, points: u64) -> anyhow::Result<Self> {
        let client = Client::connect(server, PATIENCE).with_context(|| format!("the server at {server}"))?;
        let series = if let Form::AddOver(count) = form { count } else { 1 };
        let keys: Vec<String> = (0..series).map(|at| format!("bench:series:{at:06}:temperature")).collect();
        let batches = batches(form, points, &keys);
        Ok(Ingesting { client, batches, keys, points, cpu_before: 0.0, cpu_ns: 0.0, added: 0 })
    }

    /// Returns the processor time that the server has used, in seconds.
    fn cpu_s(&mut self) -> anyhow::Result<f64> {
        let info = self.client.call(&["INFO", "cpu"])?;
        let text = String::from_utf8_lossy(info.as_bytes().context("INFO answers text")?).into_owned();
        let of = |name: &str| {
            text.lines().find_map(|line| line.strip_prefix(name)).and_then(|s| s.trim().parse().ok())
        };
        let both = of("used_cpu_sys:").zip(of("used_cpu_user:"));
        both.map(|(system, user): (f64, f64)| system + user).context("INFO has the processor time")
    }
}

/// Encodes all requests, so that the measured part only sends them.
fn batches(form: Form, points: u64, keys: &[String]) -> Vec<Batch> {
    let of_batch = match form {
        Form::Add(count) | Form::AddOver(count) | Form::Madd(count) | Form::Append(count) => count as u64,
    };
    let point = |at: u64| (FIRST_TIME + at as i64, value_at(at as i64));
    let text = |at: u64| (point(at).0.to_string(), format!("{}", point(at).1));
    let batch = |first: u64| {
        let all = first..(first + of_batch).min(points);
        let (mut requests, count) = (Vec::new(), all.end - all.start);
        match form {
            Form::Add(_) | Form::AddOver(_) => {
                for at in all {
                    let key = &keys[at as usize % keys.len()];
                    let (time, value) = text(at);
                    encode_request(&mut requests, &["TS.ADD", key, &time, &value]);
                }
                return Batch { requests, replies: count as usize, points: count };
            }
            Form::Madd(_) => {
                let mut words = vec!["TS.MADD".to_owned()];
                for at in all {
                    let (time, value) = text(at);
                    words.extend([keys[0].clone(), time, value]);
                }
                encode_request(&mut requests, &words);
            }
            Form::Append(_) => {
                let times: Vec<u8> = all.clone().flat_map(|at| point(at).0.to_le_bytes()).collect();
                let values: Vec<u8> = all.flat_map(|at| point(at).1.to_le_bytes()).collect();
                encode_request(&mut requests, &[b"TS.APPEND", keys[0].as_bytes(), &times, &values]);
            }
        }
        Batch { requests, replies: 1, points: count }
    };
    (0..points).step_by(of_batch as usize).map(batch).collect()
}

impl Work for Ingesting {
    fn prepare(&mut self, _iteration: u64) -> anyhow::Result<()> {
        for key in &self.keys {
            self.client.call(&["DEL", key])?;
            self.client.call(&["TS.CREATE", key])?;
        }
        self.added = 0;
        self.cpu_before = self.cpu_s()?;
        Ok(())
    }

    fn run(&mut self) -> anyhow::Result<()> {
        for batch in &self.batches {
            self.client.send_encoded(&batch.requests)?;
            for _ in 0..batch.replies {
                match self.client.receive(Some(PATIENCE))?.context("the server answers in time")? {
                    Value::Error(text) => bail!("the server answered {}", String::from_utf8_lossy(&text)),
                    Value::Array(times) => ensure!(
                        times.iter().all(|time| matches!(time, Value::Integer(_))),
                        "the server has refused points"
                    ),
                    _ => {}
                }
            }
            self.added += batch.points;
        }
        Ok(())
    }

    fn check(&mut self) -> anyhow::Result<Findings> {
        self.cpu_ns = (self.cpu_s()? - self.cpu_before) * 1e9 / self.points as f64;
        let mut stored = 0;
        for key in self.keys.clone() {
            let row = self.client.call(&[
                "TS.RANGE",
                &key,
                "-",
                "+",
                "AGGREGATION",
                "count",
                "9000000000000000",
            ])?;
            let Value::Array(rows) = row else { bail!("TS.RANGE answers rows") };
            let Some(Value::Array(row)) = rows.first() else { bail!("{key} has no points") };
            stored += match row.get(1) {
                Some(Value::Double(count)) => *count as u64,
                Some(Value::Simple(text) | Value::Bulk(text)) => String::from_utf8_lossy(text).parse()?,
                other => bail!("a count is a number, and not {other:?}"),
            };
        }
        ensure!(stored == self.points, "{stored} points are stored of {}", self.points);
        Ok(Findings { server_ns: Some(self.cpu_ns), ..Findings::default() })
    }

    fn release(&mut self) {
        for key in &self.keys {
            // The next iteration removes them, too.
            let _ = self.client.call(&["DEL", key]);
        }
    }
}
