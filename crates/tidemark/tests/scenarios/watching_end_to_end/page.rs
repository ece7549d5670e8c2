//! A page that watches several reads over one WebSocket, in JSON, and resumes them after a break.

use super::browser::latest;
use super::inbound::PATIENCE;
use super::read::{Form, Read};
use super::received::{Begin, End, Name, Received, Refusal, Stretch, Subscription};
use super::web_socket::WebSocket;
use super::world::World;
use crate::commands::Generator;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::io;
use std::time::{Duration, Instant};
use tidemark_engine::Protocol;

/// Most reads that one page watches at a time.
const APPETITE: usize = 3;

/// A subscriber over a WebSocket.
pub(crate) struct Page<'w> {
    world: &'w World,
    generator: Generator,
    socket: Option<WebSocket>,
    open: Vec<Open>,
    closed: Vec<Subscription>,
    /// Id of its latest message.
    id: u64,
}

/// A subscription that has begun and has not ended.
struct Open {
    subscription: Subscription,
    name: Name,
    /// Whether it is active on the current connection.
    is_live: bool,
}

impl<'w> Page<'w> {
    pub(crate) fn new(world: &'w World, generator: Generator) -> Self {
        Self { world, generator, socket: None, open: Vec::new(), closed: Vec::new(), id: 0 }
    }

    /// Watches until there is nothing more to receive; returns all that it received.
    pub(crate) fn run(mut self) -> Vec<Subscription> {
        while self.world.head().is_none() {
            if self.world.is_given_up() {
                return Vec::new();
            }
            if self.step().is_err() {
                self.lose_connection();
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        // The first attempt may use the connection of a server that has gone, and each other one
        // may find an evicted read.
        let mut attempts = 2 + APPETITE;
        while let Err(error) = self.finish() {
            attempts -= 1;
            assert!(attempts > 0, "the server is no longer killed: {error}");
            self.lose_connection();
        }
        self.closed.extend(self.open.into_iter().map(|open| open.subscription));
        self.closed.retain(|subscription| !subscription.stretches.is_empty());
        self.closed
    }

    fn step(&mut self) -> io::Result<()> {
        self.come_back()?;
        if self.open.len() < APPETITE && (self.open.is_empty() || self.generator.random.once_in(2)) {
            self.watch()?;
        }
        match self.generator.random.below(20) {
            0 => self.lose_connection(),
            1 => std::thread::sleep(Duration::from_millis(20 + self.generator.random.below(200))),
            2 => self.leave()?,
            _ => {
                let pause = 1 + self.generator.random.below(40);
                self.listen(Duration::from_millis(pause))?;
            }
        }
        Ok(())
    }

    /// Receives the rest: up to the number of the last emission of each read.
    fn finish(&mut self) -> io::Result<()> {
        self.come_back()?;
        let began = Instant::now();
        for name in self.open.iter().map(|open| open.name).collect::<Vec<_>>() {
            let Some(open) = self.open.iter().find(|open| open.name == name) else { continue };
            let Some(latest) = latest(self.world, &open.subscription.read, name)? else { continue };
            let find = |page: &Self| page.open.iter().position(|open| open.name == name);
            // After resuming at an earlier position, emissions come a second time.
            while find(self).is_some_and(|at| latest > number_of(&self.open[at].subscription)) {
                assert!(began.elapsed() < PATIENCE, "what is behind is sent");
                self.listen(Duration::from_millis(5))?;
            }
            if let Some(at) = find(self) {
                let head = self.world.head().unwrap_or_default();
                let stretch = self.open[at].subscription.stretches.last_mut();
                stretch.expect("it has begun").end = End::Complete { head };
            }
        }
        Ok(())
    }

    // ---- the connection ----

    /// Connects if there is no connection, and resumes all subscriptions on it.
    fn come_back(&mut self) -> io::Result<()> {
        if self.socket.is_none() {
            self.socket = Some(WebSocket::open(self.world.http_port())?);
        }
        while let Some(at) = self.open.iter().position(|open| !open.is_live) {
            self.resume(at)?;
        }
        Ok(())
    }

    fn lose_connection(&mut self) {
        self.socket = None;
        // A subscription that had ended, and was to begin again on this connection, never did.
        self.open.retain(|open| !open.subscription.stretches.is_empty());
        self.open.iter_mut().for_each(|open| open.is_live = false);
    }

    fn socket(&mut self) -> io::Result<&mut WebSocket> {
        self.socket.as_mut().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Sends a message; returns its answer and notes the pushes before it.
    fn ask(&mut self, mut message: Value) -> io::Result<Value> {
        self.id += 1;
        message["id"] = json!(self.id);
        self.socket()?.send(&message)?;
        loop {
            let notice = self.socket()?.next(PATIENCE)?.expect("a server that runs answers");
            if notice["id"] == message["id"] {
                return Ok(notice);
            }
            self.take(&notice)?;
        }
    }

    /// Receives messages for a while.
    fn listen(&mut self, time: Duration) -> io::Result<()> {
        let until = Instant::now() + time;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let Some(notice) = self.socket()?.next(left)? else { return Ok(()) };
            self.take(&notice)?;
        }
    }

    /// Notes a message about a subscription.
    fn take(&mut self, notice: &Value) -> io::Result<()> {
        let name = Name::parse(notice["sub_id"].as_str().unwrap_or_default().as_bytes());
        let kind = notice["type"].as_str().unwrap_or_default();
        if kind == "snapshot" {
            let begin_anew = |open: &&mut Open| open.subscription.stretches.is_empty();
            let mut all: Vec<&mut Open> = self.open.iter_mut().filter(begin_anew).collect();
            // If the read was evicted meanwhile, it has another query.
            let at = all.iter().position(|open| open.name.query == name.query);
            if at.is_none() && all.len() > 1 {
                // It is unknown which of them begins.
                return Err(io::ErrorKind::NotConnected.into());
            }
            assert!(!all.is_empty(), "nothing begins anew: {notice}");
            let open = all.swap_remove(at.unwrap_or(0));
            open.name = name;
            open.subscription.stretches.push(Stretch::new(name, begin(notice)));
            return Ok(());
        }
        let at = self.open.iter().position(|open| open.is_live && open.name == name);
        let at = at.unwrap_or_else(|| panic!("notified of {name}, which is not watched: {notice}"));
        match kind {
            "emission" => {
                let received = Received::Emission {
                    lsn: number(notice, "lsn"),
                    seq: number(notice, "seq"),
                    value: notice["value"].to_string().into_bytes(),
                    old: None,
                };
                let stretch = self.open[at].subscription.stretches.last_mut().expect("it has begun");
                stretch.received.push(received);
            }
            "stale" => {
                let subscription = self.open.swap_remove(at).subscription;
                self.refuse(subscription, notice)?;
            }
            // The read's answer is an error now, with which no subscription can begin.
            "failed" => self.close(at),
            other => panic!("a notice of its own kind: {other}: {notice}"),
        }
        Ok(())
    }

    fn close(&mut self, at: usize) {
        self.closed.push(self.open.swap_remove(at).subscription);
    }

    // ---- subscriptions ----

    fn watch(&mut self) -> io::Result<()> {
        let read = Read { form: Form::Json, ..Read::any(&mut self.generator, Protocol::Resp3) };
        let bar = (!read.operators.is_empty()).then_some("|");
        let operators = bar.into_iter().chain(read.operators.split_whitespace());
        let words: Vec<Value> =
            read.words.iter().map(|word| shown(word)).chain(operators.map(|word| json!(word))).collect();
        let notice = self.ask(json!({ "watch": words, "db": read.db }))?;
        if notice["type"] == "error" {
            return Ok(());
        }
        assert_eq!(notice["type"], "snapshot", "{notice}");
        let name = Name::parse(notice["sub_id"].as_str().unwrap_or_default().as_bytes());
        // Different words may be the same read, which then begins again for both.
        if self.open.iter().any(|open| open.name.query == name.query) {
            self.lose_connection();
            return Ok(());
        }
        let stretches = vec![Stretch::new(name, begin(&notice))];
        let subscription = Subscription { read, stretches, refusal: None };
        self.open.push(Open { subscription, name, is_live: true });
        Ok(())
    }

    /// Resumes a subscription after a break.
    fn resume(&mut self, at: usize) -> io::Result<()> {
        let Open { mut subscription, name, .. } = self.open.swap_remove(at);
        let behind = self.place(&subscription);
        let mut message = json!({ "resume": name.to_string(), "lsn": behind });
        if self.generator.random.once_in(2) {
            message["key"] = shown(&subscription.read.key());
        }
        let notice = match self.ask(message) {
            Ok(notice) => notice,
            Err(error) => {
                self.open.push(Open { subscription, name, is_live: false });
                return Err(error);
            }
        };
        match notice["type"].as_str().unwrap_or_default() {
            "resumed" => {
                let begin = Begin::Resumed { behind, seq: Some(number(&notice, "next") - 1) };
                subscription.stretches.push(Stretch::new(name, begin));
                self.open.push(Open { subscription, name, is_live: true });
                Ok(())
            }
            "stale" => {
                // It resumes after this position, and knows nothing of later emissions.
                let refused = Stretch::new(name, Begin::Resumed { behind, seq: None });
                subscription.stretches.push(refused);
                self.refuse(subscription, &notice)
            }
            other => panic!("{name} is answered {other}: {notice}"),
        }
    }

    /// Returns the LSN to resume after.
    fn place(&mut self, subscription: &Subscription) -> u64 {
        let lsns: Vec<u64> =
            subscription.stretches.iter().flat_map(|stretch| &stretch.received).map(Received::lsn).collect();
        if self.generator.random.once_in(4) && !lsns.is_empty() {
            return lsns[self.generator.random.below(lsns.len() as u64) as usize];
        }
        subscription.reached()
    }

    /// Ends a subscription that the server refuses to continue. If the read is known, the server
    /// begins it again.
    fn refuse(&mut self, mut subscription: Subscription, notice: &Value) -> io::Result<()> {
        let last = subscription.stretches.last().expect("it has begun");
        let (name, behind) = (last.name, last.reached());
        if last.received.is_empty() && matches!(last.begin, Begin::Resumed { .. }) {
            // The stretch has not begun.
            subscription.stretches.pop();
        }
        let word = notice["reason"].as_str().unwrap_or_default().to_owned();
        if word == "TRYAGAIN" {
            // The server stops, or is overloaded.
            self.open.push(Open { subscription, name, is_live: false });
            return Err(io::ErrorKind::Interrupted.into());
        }
        let is_known = word != "SUBSCRIPTION_NOT_FOUND";
        let anew = Subscription { stretches: Vec::new(), refusal: None, ..subscription.clone() };
        let highest = self.world.floor();
        subscription.refusal = Some(Refusal { behind, word, lsn: number(notice, "floor"), highest });
        self.closed.push(subscription);
        if !is_known {
            // If the read was evicted only during the search for its position, the page does not
            // wait for the server to begin it again.
            return Err(io::ErrorKind::NotConnected.into());
        }
        self.open.push(Open { subscription: anew, name, is_live: true });
        Ok(())
    }

    /// Ends a subscription, permanently or to resume it immediately.
    fn leave(&mut self) -> io::Result<()> {
        let begun: Vec<Name> = self
            .open
            .iter()
            .filter(|open| !open.subscription.stretches.is_empty())
            .map(|open| open.name)
            .collect();
        let Some(last) = begun.len().checked_sub(1) else { return Ok(()) };
        let name = begun[self.generator.random.below(last as u64 + 1) as usize];
        let notice = self.ask(json!({ "unwatch": name.to_string() }))?;
        // It may have become stale meanwhile.
        if let Some(at) = self.open.iter().position(|open| open.name == name) {
            let has_begun = !self.open[at].subscription.stretches.is_empty();
            if !has_begun && notice["ended"] == false {
                // It begins again, under another name than requested.
                return Ok(());
            }
            assert!(!has_begun || notice["ended"] == true, "{name} was watched: {notice}");
            self.open[at].is_live = false;
            if !has_begun || self.generator.random.once_in(2) {
                self.close(at);
            }
        }
        Ok(())
    }
}

/// Returns the number of the last emission on the current connection.
fn number_of(subscription: &Subscription) -> u64 {
    let last = subscription.stretches.last();
    let received = last.and_then(|stretch| stretch.received.last());
    match (received, last.map(|stretch| &stretch.begin)) {
        (Some(Received::Emission { seq, .. }), _) => *seq,
        (_, Some(Begin::Answer { seq, .. } | Begin::Resumed { seq, .. })) => seq.unwrap_or(0),
        (_, None) => 0,
    }
}

/// Returns the beginning of a subscription from its answer.
fn begin(notice: &Value) -> Begin {
    Begin::Answer {
        lsn: number(notice, "lsn"),
        seq: Some(number(notice, "seq")),
        value: Some(notice["value"].to_string().into_bytes()),
    }
}

fn number(notice: &Value, field: &str) -> u64 {
    notice[field].as_u64().unwrap_or_else(|| panic!("{field} in {notice}"))
}

/// Returns a word of a command in the protocol's form.
fn shown(word: &[u8]) -> Value {
    match std::str::from_utf8(word) {
        Ok(text) => json!(text),
        Err(_) => json!({ "base64": STANDARD.encode(word) }),
    }
}
