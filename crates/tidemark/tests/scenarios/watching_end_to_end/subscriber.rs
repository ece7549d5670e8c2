//! A subscriber that watches a few reads, notes everything that it receives, and is as unreliable
//! as its seed says. It loses its connection in the middle of a frame, stops reading for a while,
//! and resumes at its position or before it.

use super::inbound::PATIENCE;
use super::read::Read;
use super::received::{Begin, End, Floor, Name, Received, Refusal, Stretch, Subscription};
use super::stream::{Connection, Frame, content, elements, number};
use super::world::World;
use super::writer::line;
use crate::commands::Generator;
use std::io;
use std::time::{Duration, Instant};
use tidemark_engine::Protocol;

/// Option for subscribers that want only the latest emissions.
const SQUASH: &str = "SQUASH";

/// Most reads that one subscriber watches at a time.
const APPETITE: usize = 4;

/// A subscriber over RESP.
pub(crate) struct Subscriber<'w> {
    world: &'w World,
    generator: Generator,
    protocol: Protocol,
    has_small_window: bool,
    is_slow: bool,
    connection: Option<Connection>,
    open: Vec<Open>,
    closed: Vec<Subscription>,
}

/// A subscription that has not ended.
struct Open {
    subscription: Subscription,
    /// Whether it is active on the current connection.
    is_live: bool,
}

impl Open {
    fn name(&self) -> Name {
        name_of(&self.subscription)
    }
}

impl<'w> Subscriber<'w> {
    /// Returns a subscriber. A `slow` one watches the largest reads, and sometimes stops reading
    /// for longer.
    pub(crate) fn new(world: &'w World, mut generator: Generator, is_slow: bool) -> Self {
        let protocol = if generator.random.once_in(3) { Protocol::Resp2 } else { Protocol::Resp3 };
        let has_small_window = is_slow || generator.random.once_in(2);
        Self {
            world,
            generator,
            protocol,
            has_small_window,
            is_slow,
            connection: None,
            open: Vec::new(),
            closed: Vec::new(),
        }
    }

    /// Watches until there is nothing more to receive; returns all that it received.
    pub(crate) fn run(mut self) -> Vec<Subscription> {
        while self.world.head().is_none() {
            if self.world.is_given_up() {
                return Vec::new();
            }
            if self.step().is_err() {
                // The server has gone, or will be back soon.
                self.lose_connection();
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        if self.generator.random.once_in(2) {
            self.lose_connection();
        }
        // The first attempt may use the connection of a server that has gone.
        if self.finish().is_err() {
            self.lose_connection();
            self.finish().expect("the server is no longer killed");
        }
        self.closed.extend(self.open.into_iter().map(|open| open.subscription));
        self.closed
    }

    fn step(&mut self) -> io::Result<()> {
        self.come_back()?;
        if self.open.len() < APPETITE && (self.open.is_empty() || self.generator.random.once_in(2)) {
            self.watch()?;
        }
        match self.generator.random.below(24) {
            0 => self.lose_connection(),
            1 => {
                let most = match (self.is_slow, self.generator.random.once_in(3)) {
                    (true, true) => 1500,
                    (true, false) => 600,
                    (false, _) => 200,
                };
                std::thread::sleep(Duration::from_millis(20 + self.generator.random.below(most)));
            }
            2 => self.leave(false)?,
            3 => self.leave(true)?,
            4 => self.watch_again()?,
            5 => self.acknowledge()?,
            6 => drop(self.ask(&["PING"])?),
            _ => {
                let pause = 1 + self.generator.random.below(30);
                self.listen(Duration::from_millis(pause))?;
            }
        }
        Ok(())
    }

    /// Receives the rest: until the server says that nothing is missing, with every record up to
    /// the head in the log.
    fn finish(&mut self) -> io::Result<()> {
        let head = self.world.head().unwrap_or_default();
        let began = Instant::now();
        self.come_back()?;
        loop {
            let watches = self.ask(&["WATCHES"])?;
            let is_behind = |watch: &&[u8]| {
                elements(watch).chunks(2).any(|pair| content(pair[0]) == b"lag" && number(pair[1]) > 0)
            };
            if !watches.elements().iter().any(is_behind) {
                break;
            }
            assert!(began.elapsed() < PATIENCE, "what is behind is sent");
            self.listen(Duration::from_millis(5))?;
        }
        for open in self.open.iter_mut().filter(|open| open.is_live) {
            if let Some(stretch) = open.subscription.stretches.last_mut() {
                stretch.end = End::Complete { head };
            }
        }
        Ok(())
    }

    // ---- the connection ----

    /// Connects if there is no connection, and resumes all subscriptions on it.
    fn come_back(&mut self) -> io::Result<()> {
        if self.connection.is_none() {
            let opened = Connection::open(self.world.port(), self.has_small_window)?;
            self.connection = Some(opened);
            if self.protocol == Protocol::Resp3 {
                self.ask(&["HELLO", "3"])?;
            }
        }
        while let Some(at) = self.open.iter().position(|open| !open.is_live) {
            self.resume(at)?;
        }
        Ok(())
    }

    fn lose_connection(&mut self) {
        self.connection = None;
        self.open.iter_mut().for_each(|open| open.is_live = false);
    }

    fn connection(&mut self) -> io::Result<&mut Connection> {
        self.connection.as_mut().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Sends a command; returns its answer and notes the pushes before it.
    fn ask<W: AsRef<[u8]>>(&mut self, words: &[W]) -> io::Result<Frame> {
        self.connection()?.send(words)?;
        loop {
            let frame = self.connection()?.next(PATIENCE)?.expect("a server that runs answers");
            if !self.take(&frame) {
                return Ok(frame);
            }
        }
    }

    /// Receives frames for a while.
    fn listen(&mut self, time: Duration) -> io::Result<()> {
        let until = Instant::now() + time;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let Some(frame) = self.connection()?.next(left)? else { return Ok(()) };
            assert!(self.take(&frame), "unrequested: {}", frame.text());
        }
    }

    /// Notes a frame; returns whether it is about a subscription.
    fn take(&mut self, frame: &Frame) -> bool {
        let parts = frame.elements();
        let received = match (frame.word(), parts.as_slice()) {
            (b"emission", [_, _, lsn, seq, value, old @ ..]) => Ok(Received::Emission {
                lsn: number(lsn),
                seq: number(seq),
                value: value.to_vec(),
                old: old.first().map(|old| old.to_vec()),
            }),
            (b"progress", [_, _, lsn]) => Ok(Received::Progress { lsn: number(lsn) }),
            (b"caught-up", [_, _, lsn]) => Ok(Received::CaughtUp { lsn: number(lsn) }),
            (b"stale", [_, _, at, floor]) => {
                let floor = Floor { received: number(floor), highest: self.world.floor() };
                Err(End::Stale { at: number(at), floor })
            }
            _ => return false,
        };
        let name = Name::parse(content(parts[1]));
        let at = self.open.iter().position(|open| open.is_live && open.name() == name);
        let at = at.unwrap_or_else(|| panic!("notified of {name}, which is not watched: {}", frame.text()));
        let stretch = self.open[at].subscription.stretches.last_mut().expect("a subscription has begun");
        match received {
            Ok(received) => stretch.received.push(received),
            Err(stale) => {
                stretch.end = stale;
                self.close(at);
            }
        }
        true
    }

    fn close(&mut self, at: usize) {
        self.closed.push(self.open.swap_remove(at).subscription);
    }

    // ---- subscriptions ----

    fn begin(&mut self, read: Read, stretch: Stretch) {
        let subscription = Subscription { read, stretches: vec![stretch], refusal: None };
        self.open.push(Open { subscription, is_live: true });
    }

    fn watch(&mut self) -> io::Result<()> {
        let mut read = Read::any(&mut self.generator, self.protocol);
        if self.is_slow && self.generator.random.once_in(2) {
            read.words = line("GET bulky");
        }
        if self.protocol == Protocol::Resp2 {
            // A RESP2 connection that watches cannot select another database.
            read.db = 0;
        }
        if self.open.iter().any(|open| open.subscription.read == read) {
            return Ok(());
        }
        if let Ok(stretch) = self.ask_for(&read)? {
            // Different words may be the same read, for example a scan with another COUNT.
            if self.open.iter().any(|open| open.name().query == stretch.name.query) {
                self.lose_connection();
            } else {
                self.begin(read, stretch);
            }
        }
        Ok(())
    }

    /// Watches a read. The error is the server's, if the read cannot be watched.
    fn ask_for(&mut self, read: &Read) -> io::Result<Result<Stretch, String>> {
        self.select(read)?;
        let mut options = self.delivery();
        let wants_value = !self.generator.random.once_in(10);
        if !wants_value {
            options.push("UPDATES".to_owned());
        }
        let answer = self.ask(&read.watch(&options))?;
        if answer.is_error() {
            return Ok(Err(answer.text()));
        }
        let [_, name, _, lsn, _, seq, _, value] = answer.elements()[..] else {
            panic!("not how {} begins: {}", read.shown(), answer.text());
        };
        let value = wants_value.then(|| value.to_vec());
        let begin = Begin::Answer { lsn: number(lsn), seq: Some(number(seq)), value };
        Ok(Ok(stretch(Name::parse(content(name)), begin, &options)))
    }

    fn select(&mut self, read: &Read) -> io::Result<()> {
        if self.protocol == Protocol::Resp3 {
            self.ask(&["SELECT", &read.db.to_string()])?;
        }
        Ok(())
    }

    /// Returns random delivery options.
    fn delivery(&mut self) -> Vec<String> {
        let random = &mut self.generator.random;
        let mut options = Vec::new();
        if random.once_in(3) {
            options.push("OLD".to_owned());
        }
        if random.once_in(4) {
            options.extend(["PROGRESS".to_owned(), (10 + random.below(40)).to_string()]);
        }
        if random.once_in(2) {
            options.push("MARK".to_owned());
        }
        if random.once_in(5) {
            options.push(SQUASH.to_owned());
            if random.once_in(2) {
                options.push(random.below(30).to_string());
            }
        }
        options
    }

    /// Resumes a subscription after a break.
    fn resume(&mut self, at: usize) -> io::Result<()> {
        let mut subscription = self.open.swap_remove(at).subscription;
        let behind = self.place(&subscription);
        let is_by_name = !self.generator.random.once_in(3);
        let resumed = if is_by_name {
            self.reconnect(&subscription, behind)
        } else {
            self.watch_behind(&subscription, behind)
        };
        let (read, name) = (subscription.read.clone(), name_of(&subscription));
        match resumed {
            Err(error) => {
                self.open.push(Open { subscription, is_live: false });
                return Err(error);
            }
            Ok(Ok(stretch)) if stretch.name.query == name.query => {
                subscription.stretches.push(stretch);
                self.open.push(Open { subscription, is_live: true });
            }
            Ok(Ok(stretch)) => {
                // The read was evicted, and another client has watched it again: it has a sequence
                // of its own.
                self.closed.push(subscription);
                self.begin(read, stretch);
            }
            Ok(Err(refusal)) => {
                subscription.refusal = Some(refusal.clone());
                self.closed.push(subscription.clone());
                self.begin_anew(&subscription, &refusal)?;
            }
        }
        Ok(())
    }

    /// Returns an LSN to resume after: usually that of its last emission, sometimes an earlier one.
    fn place(&mut self, subscription: &Subscription) -> u64 {
        if !self.generator.random.once_in(4) {
            return subscription.reached();
        }
        let lsns = subscription.stretches.iter().flat_map(|stretch| &stretch.received).map(Received::lsn);
        let mut lsns: Vec<u64> = lsns.collect();
        lsns.extend(subscription.stretches.first().map(Stretch::began_at));
        lsns[self.generator.random.below(lsns.len() as u64) as usize]
    }

    /// Resumes with `EMITRECONNECT`.
    fn reconnect(
        &mut self,
        subscription: &Subscription,
        behind: u64,
    ) -> io::Result<Result<Stretch, Refusal>> {
        let (name, key) = (name_of(subscription), subscription.read.key());
        let options = self.delivery();
        let mut words = vec![b"EMITRECONNECT".to_vec(), key];
        words.extend([name.to_string().into_bytes(), behind.to_string().into_bytes()]);
        if !options.is_empty() {
            words.push(b"|".to_vec());
            words.extend(options.iter().map(|option| option.clone().into_bytes()));
        }
        let answer = self.ask(&words)?;
        if answer.text().starts_with("-TRYAGAIN ") {
            // The server stops, or is overloaded.
            return Err(io::ErrorKind::Interrupted.into());
        }
        let [word, lsn] = answer.elements()[..] else {
            panic!("not how {} goes on: {}", subscription.read.shown(), answer.text());
        };
        Ok(match content(word) {
            b"OK" => {
                let begin = Begin::Resumed { behind, seq: Some(number(lsn) - 1) };
                Ok(stretch(name, begin, &options))
            }
            word => {
                let word = String::from_utf8_lossy(word).into_owned();
                Err(Refusal { behind, word, lsn: number(lsn), highest: self.world.floor() })
            }
        })
    }

    /// Resumes with `X.WATCH … | RESUME lsn`.
    fn watch_behind(
        &mut self,
        subscription: &Subscription,
        behind: u64,
    ) -> io::Result<Result<Stretch, Refusal>> {
        let read = &subscription.read;
        self.select(read)?;
        let mut options = self.delivery();
        options.extend(["RESUME".to_owned(), behind.to_string()]);
        let answer = self.ask(&read.watch(&options))?;
        if answer.is_error() {
            let text = answer.text();
            let mut words = text[1..].split(' ');
            let word = words.next().unwrap_or_default().to_owned();
            if word == "TRYAGAIN" {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let lsn = words.find_map(|word| word.parse().ok()).unwrap_or(0);
            return Ok(Err(Refusal { behind, word, lsn, highest: self.world.floor() }));
        }
        let [_, name, _, _, _, seq, ..] = answer.elements()[..] else {
            panic!("not how {} goes on: {}", read.shown(), answer.text());
        };
        let begin = Begin::Resumed { behind, seq: Some(number(seq)) };
        Ok(Ok(stretch(Name::parse(content(name)), begin, &options)))
    }

    /// Begins again after the server has refused to resume. If only the first part of the missed
    /// emissions is gone, the rest can be received as a subscription of its own; otherwise the read
    /// is watched again.
    fn begin_anew(&mut self, refused: &Subscription, refusal: &Refusal) -> io::Result<()> {
        let rest = if refusal.word == "STALE_SEQUENCE" && self.generator.random.once_in(2) {
            let rest = self.reconnect(refused, refusal.lsn)?;
            if let Err(again) = &rest {
                // The log may have removed more meanwhile.
                let is_further = again.word != refusal.word || again.lsn > refusal.lsn;
                assert!(is_further, "what is behind {} can be had, it was said, but {again:?}", refusal.lsn);
            }
            rest.ok()
        } else {
            self.ask_for(&refused.read)?.ok()
        };
        match rest {
            // As in `watch`.
            Some(rest) if self.open.iter().any(|open| open.name().query == rest.name.query) => {
                self.lose_connection();
            }
            Some(rest) => self.begin(refused.read.clone(), rest),
            None => {}
        }
        Ok(())
    }

    /// Ends a subscription, permanently or to resume it immediately.
    fn leave(&mut self, is_for_good: bool) -> io::Result<()> {
        let Some(at) = self.any_open() else { return Ok(()) };
        let name = self.open[at].name();
        let answer = self.ask(&["UNWATCH", &name.to_string()])?;
        // It may have become stale meanwhile.
        if let Some(at) = self.open.iter().position(|open| open.name() == name) {
            assert_eq!(answer.text(), ":1", "{name} was watched");
            self.open[at].is_live = false;
            if is_for_good {
                self.close(at);
            }
        }
        Ok(())
    }

    /// Requests the answer again. The answer includes emissions that are on their way, so it is a
    /// new beginning.
    fn watch_again(&mut self) -> io::Result<()> {
        let Some(at) = self.any_open() else { return Ok(()) };
        let (name, read) = (self.open[at].name(), self.open[at].subscription.read.clone());
        let answer = self.ask_for(&read)?;
        if let Some(at) = self.open.iter().position(|open| open.name() == name) {
            let again = answer.unwrap_or_else(|error| panic!("{name} is watched and refused: {error}"));
            assert_eq!(again.name, name, "it is the same subscription");
            self.close(at);
            self.begin(read, again);
        } else if let Ok(stretch) = answer {
            self.begin(read, stretch);
        }
        Ok(())
    }

    fn acknowledge(&mut self) -> io::Result<()> {
        let Some(at) = self.any_open() else { return Ok(()) };
        let open = &self.open[at];
        let (name, key) = (open.name(), open.subscription.read.key());
        let received = open.subscription.stretches.last().and_then(|stretch| {
            stretch
                .received
                .iter()
                .rev()
                .find(|received| matches!(received, Received::Emission { .. }))
                .map(Received::lsn)
        });
        let Some(lsn) = received else { return Ok(()) };
        let words = [b"EMITACK".to_vec(), key, name.to_string().into_bytes(), lsn.to_string().into_bytes()];
        let answer = self.ask(&words)?;
        let is_open = self.open.iter().any(|open| open.name() == name);
        assert!(!is_open || answer.text() == "+OK", "{name} has reported {lsn}: {}", answer.text());
        Ok(())
    }

    fn any_open(&mut self) -> Option<usize> {
        let count = self.open.len() as u64;
        (count > 0).then(|| self.generator.random.below(count) as usize)
    }
}

/// Returns a stretch that was requested with these options.
fn stretch(name: Name, begin: Begin, options: &[String]) -> Stretch {
    Stretch { is_squashed: options.iter().any(|option| option == SQUASH), ..Stretch::new(name, begin) }
}

/// Returns the name of a subscription that has begun.
fn name_of(subscription: &Subscription) -> Name {
    subscription.stretches.last().map(|stretch| stretch.name).expect("a subscription has begun")
}
