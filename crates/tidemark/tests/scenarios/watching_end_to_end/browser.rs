//! A subscriber that behaves like a browser: it watches one read over Server-Sent Events, and
//! resumes after the last event when the connection breaks.

use super::inbound::{Inbound, PATIENCE, behind};
use super::read::{Form, Read};
use super::received::{Begin, End, Name, Received, Refusal, Stretch, Subscription};
use super::stream::{Connection, content};
use super::world::World;
use crate::commands::Generator;
use serde_json::Value;
use std::fmt::Write as _;
use std::io;
use std::time::{Duration, Instant};
use tidemark_engine::Protocol;

/// A subscriber over Server-Sent Events.
pub(crate) struct Browser<'w> {
    world: &'w World,
    generator: Generator,
    events: Option<Events>,
    /// The current subscription, if any.
    open: Option<Subscription>,
    closed: Vec<Subscription>,
}

impl<'w> Browser<'w> {
    pub(crate) fn new(world: &'w World, generator: Generator) -> Self {
        Self { world, generator, events: None, open: None, closed: Vec::new() }
    }

    /// Watches until there is nothing more to receive; returns all that it received.
    pub(crate) fn run(mut self) -> Vec<Subscription> {
        while self.world.head().is_none() {
            if self.world.is_given_up() {
                return Vec::new();
            }
            if self.step().is_err() {
                self.events = None;
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        self.finish().expect("the server is no longer killed");
        self.closed.extend(self.open);
        self.closed
    }

    fn step(&mut self) -> io::Result<()> {
        if self.events.is_none() {
            let goes_back = self.generator.random.once_in(4);
            return self.request(goes_back);
        }
        match self.generator.random.below(20) {
            0 => self.events = None,
            1 => std::thread::sleep(Duration::from_millis(20 + self.generator.random.below(200))),
            2 if self.generator.random.once_in(3) => {
                self.events = None;
                self.closed.extend(self.open.take());
            }
            _ => {
                let pause = 1 + self.generator.random.below(40);
                self.listen(Duration::from_millis(pause))?;
            }
        }
        Ok(())
    }

    /// Requests a read, or resumes the current one.
    fn request(&mut self, goes_back: bool) -> io::Result<()> {
        let read = match &self.open {
            Some(open) => open.read.clone(),
            None => Read { form: Form::Json, ..Read::any(&mut self.generator, Protocol::Resp3) },
        };
        let name = self.open.as_ref().and_then(|open| open.stretches.last()).map(|stretch| stretch.name);
        let behind = self.place(goes_back);
        let last = name.map(|name| format!("{name}:{behind}"));
        let mut events = Events::request(self.world.http_port(), &target(&read), last.as_deref())?;
        match events.status()? {
            200 => {}
            // The server stops, or has only just started.
            503 => return Err(io::ErrorKind::ConnectionRefused.into()),
            400 => {
                // The read must start over, but its answer is an error now, with which no
                // subscription can begin.
                self.closed.extend(self.open.take());
                return Ok(());
            }
            other => panic!("{} is answered {other}", read.shown()),
        }
        self.events = Some(events);
        match (&mut self.open, name) {
            (Some(open), Some(name)) => {
                let begin = Begin::Resumed { behind, seq: None };
                open.stretches.push(Stretch::new(name, begin));
            }
            _ => self.open = Some(Subscription { read, stretches: Vec::new(), refusal: None }),
        }
        Ok(())
    }

    /// Returns the LSN to resume after.
    fn place(&mut self, goes_back: bool) -> u64 {
        let Some(open) = &self.open else { return 0 };
        let lsns: Vec<u64> =
            open.stretches.iter().flat_map(|stretch| &stretch.received).map(Received::lsn).collect();
        if goes_back && !lsns.is_empty() {
            return lsns[self.generator.random.below(lsns.len() as u64) as usize];
        }
        open.reached()
    }

    /// Receives events for a while.
    fn listen(&mut self, time: Duration) -> io::Result<()> {
        let until = Instant::now() + time;
        while let Some(events) = &mut self.events {
            let left = until.saturating_duration_since(Instant::now());
            let Some((kind, data)) = events.next(left)? else { return Ok(()) };
            self.take(&kind, &data);
        }
        Ok(())
    }

    fn take(&mut self, kind: &str, data: &Value) {
        if kind == "failed" {
            // The read's answer is an error now, with which no subscription can begin.
            self.events = None;
            self.closed.extend(self.open.take());
            return;
        }
        let name = Name::parse(data["sub_id"].as_str().unwrap_or_default().as_bytes());
        if kind == "stale" && data["reason"] == "TRYAGAIN" {
            // The server stops, or is overloaded.
            self.events = None;
            return;
        }
        let number = |field: &str| data[field].as_u64().unwrap_or_else(|| panic!("{field} in {data}"));
        let value = || data["value"].to_string().into_bytes();
        match kind {
            "snapshot" => {
                let begin =
                    Begin::Answer { lsn: number("lsn"), seq: Some(number("seq")), value: Some(value()) };
                let open = self.open.as_mut().expect("it has asked");
                open.stretches.push(Stretch::new(name, begin));
            }
            "emission" => {
                let (lsn, seq) = (number("lsn"), number("seq"));
                let open = self.open.as_mut().expect("it has asked");
                let stretch = open.stretches.last_mut().expect("it has begun");
                assert_eq!(stretch.name, name, "one read is watched over one connection");
                stretch.received.push(Received::Emission { lsn, seq, value: value(), old: None });
            }
            "stale" => {
                let mut open = self.open.take().expect("it has asked");
                let last = open.stretches.pop().expect("it has begun");
                let word = data["reason"].as_str().unwrap_or_default().to_owned();
                let highest = self.world.floor();
                open.refusal = Some(Refusal { behind: last.reached(), word, lsn: number("floor"), highest });
                self.open = Some(Subscription { stretches: Vec::new(), refusal: None, ..open.clone() });
                // A stretch that was to continue from the position of the one before has not begun
                // if it received nothing.
                if !last.received.is_empty() || matches!(last.begin, Begin::Answer { .. }) {
                    open.stretches.push(last);
                }
                self.closed.push(open);
            }
            other => panic!("an event of its own kind: {other}: {data}"),
        }
    }

    /// Receives the rest: up to the number of the last emission at the time when the head was
    /// known.
    fn finish(&mut self) -> io::Result<()> {
        let Some(open) = &self.open else { return Ok(()) };
        let Some(name) = open.stretches.last().map(|last| last.name) else { return Ok(()) };
        let latest = latest(self.world, &open.read, name)?;
        self.events = None;
        self.request(false)?;
        let began = Instant::now();
        while self.highest(name).is_some_and(|highest| latest.is_some_and(|latest| highest < latest)) {
            assert!(began.elapsed() < PATIENCE, "what is behind is sent");
            self.listen(Duration::from_millis(5))?;
        }
        if let (Some(_), Some(_), Some(open)) = (latest, self.highest(name), &mut self.open) {
            let head = self.world.head().unwrap_or_default();
            open.stretches.last_mut().expect("it has begun").end = End::Complete { head };
        }
        Ok(())
    }

    /// Returns the highest number received; `None` if the subscription has ended.
    fn highest(&self, name: Name) -> Option<u64> {
        let open = self.open.as_ref()?;
        open.stretches.last().filter(|last| last.name == name)?;
        Some(open.highest())
    }
}

/// Returns the number of the latest emission of a subscription, after which another subscription to
/// the same read would begin.
pub(crate) fn latest(world: &World, read: &Read, name: Name) -> io::Result<Option<u64>> {
    let now = name_now(world, read)?;
    // Otherwise the subscription was evicted, and its read has another query now.
    Ok(now.filter(|now| now.query == name.query).map(|now| now.base - name.base))
}

/// Returns the name that a new subscription to a read gets; `None` if it cannot be watched.
pub(crate) fn name_now(world: &World, read: &Read) -> io::Result<Option<Name>> {
    let mut connection = Connection::open(world.port(), false)?;
    let mut ask = |words: &[Vec<u8>]| -> io::Result<_> {
        connection.send(words)?;
        Ok(connection.next(PATIENCE)?.expect("a server that runs answers"))
    };
    ask(&[b"HELLO".to_vec(), b"3".to_vec()])?;
    ask(&[b"SELECT".to_vec(), read.db.to_string().into_bytes()])?;
    let answer = ask(&read.watch(&[]))?;
    let parts = answer.elements();
    Ok(parts.get(1).filter(|_| !answer.is_error()).map(|now| Name::parse(content(now))))
}

/// Returns the target of a request for a read.
fn target(read: &Read) -> String {
    let mut target = format!("/v1/watch?db={}&command={}", read.db, escaped(&read.words[0]));
    let operators = read.operators.split_whitespace().map(str::as_bytes);
    let bar = (!read.operators.is_empty()).then_some(b"|".as_slice());
    for word in read.words[1..].iter().map(Vec::as_slice).chain(bar).chain(operators) {
        target.push_str("&arg=");
        target.push_str(&escaped(word));
    }
    target
}

fn escaped(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        if byte.is_ascii_alphanumeric() {
            text.push(char::from(*byte));
        } else {
            write!(text, "%{byte:02X}").expect("a string takes all");
        }
        text
    })
}

/// An event stream.
struct Events(Inbound);

impl Events {
    /// Requests with HTTP 1.0, whose answers have no chunks.
    fn request(port: u16, target: &str, last: Option<&str>) -> io::Result<Self> {
        let mut inbound = Inbound::connect(port)?;
        let last = last.map_or(String::new(), |last| format!("Last-Event-ID: {last}\r\n"));
        let head = format!("GET {target} HTTP/1.0\r\nHost: 127.0.0.1\r\n{last}\r\n");
        inbound.send(head.as_bytes())?;
        Ok(Self(inbound))
    }

    /// Reads the head of the answer and returns its status.
    fn status(&mut self) -> io::Result<u16> {
        let head = self.0.next(PATIENCE, behind(b"\r\n\r\n"))?.expect("a server that runs answers");
        let head = String::from_utf8_lossy(&head);
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        Ok(status.unwrap_or_else(|| panic!("no status: {head}")))
    }

    /// Returns the next event and its data; `None` after `patience`.
    fn next(&mut self, patience: Duration) -> io::Result<Option<(String, Value)>> {
        loop {
            let Some(event) = self.0.next(patience, behind(b"\n\n"))? else { return Ok(None) };
            let event = String::from_utf8_lossy(&event);
            let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
            if let (Some(kind), Some(data)) = (field("event:"), field("data:")) {
                let data = serde_json::from_str(data).unwrap_or_else(|error| panic!("{error}: {data}"));
                return Ok(Some((kind.to_owned(), data)));
            }
            // A comment, which keeps the connection alive.
        }
    }
}
