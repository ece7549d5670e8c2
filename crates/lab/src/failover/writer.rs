//! A client that writes, one write at a time, and knows what became of each.

use super::moments::{Moments, OwnMoments};
use crate::client::Client;
use crate::target::Target;
use std::time::{Duration, Instant};

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It was answered with `OK`.
    Acknowledged,
    /// There was no answer, or one that does not say.
    Unknown,
    /// It was refused before it was executed, and the client stopped before it was not.
    Refused,
}

/// Names of the keys of a round; each write has one of its own, which is its value too.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keys {
    pub(super) run: u64,
    pub(super) round: u32,
}

impl Keys {
    pub(super) fn key(self, client: usize, number: usize) -> String {
        let Keys { run, round } = self;
        format!("failover-bench:{run:x}:{round}:{client}:{number}")
    }
}

/// What a writer has to say at the end.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// Of the writes 0, 1, 2, ….
    pub(super) outcomes: Vec<Outcome>,
    /// Answers that refused a write.
    pub(super) refusals: u64,
    /// Answers that no client expects, each once.
    pub(super) wrong_answers: Vec<String>,
}

/// How writers behave.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    pub(super) interval: Duration,
    pub(super) answer_timeout: Duration,
}

/// Pause before a write that was refused goes to the next member.
const RETRY_INTERVAL: Duration = Duration::from_millis(2);
/// A member that has not answered is asked again after so long, ...
const SILENCE: Duration = Duration::from_millis(100);
/// ... by a PING with this timeout.
const PROBE_TIMEOUT: Duration = Duration::from_millis(20);
/// Different wrong answers that are kept.
const WRONG_ANSWERS_MAX: usize = 10;
/// Starts of answers that refuse a command before it is executed.
const REFUSALS: [&[u8]; 6] =
    [b"MOVED ", b"CLUSTERDOWN ", b"TRYAGAIN ", b"LOADING ", b"MASTERDOWN ", b"READONLY "];

/// A client of a cluster.
pub(super) struct Writer<'a> {
    number: usize,
    keys: Keys,
    pace: Pace,
    moments: &'a Moments,
    members: Vec<Peer<'a>>,
    /// Index of the member that gets the next attempt.
    at: usize,
    own: OwnMoments,
    written: Written,
}

/// A member as a client knows it.
struct Peer<'a> {
    target: &'a Target,
    address: String,
    connection: Option<Client>,
    /// Set when it has not answered: when to ask it again.
    silent_until: Option<Instant>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(
        number: usize,
        targets: &'a [Target],
        keys: Keys,
        pace: Pace,
        moments: &'a Moments,
    ) -> Self {
        let peer = |target: &'a Target| Peer {
            target,
            address: format!("{}:{}", target.host, target.port),
            connection: None,
            silent_until: None,
        };
        Writer {
            number,
            keys,
            pace,
            moments,
            members: targets.iter().map(peer).collect(),
            at: number % targets.len(),
            own: OwnMoments::default(),
            written: Written::default(),
        }
    }

    /// Writes until the round is over.
    pub(super) fn run(mut self) -> Written {
        while !self.moments.is_over() {
            let key = self.keys.key(self.number, self.written.outcomes.len());
            self.moments.try_write();
            let outcome = loop {
                if let Some(outcome) = self.attempt(&key) {
                    break outcome;
                }
                self.written.refusals += 1;
                if self.moments.is_over() {
                    break Outcome::Refused;
                }
                std::thread::sleep(RETRY_INTERVAL);
            };
            self.written.outcomes.push(outcome);
            if outcome == Outcome::Acknowledged {
                self.moments.acknowledge(&mut self.own);
            }
            std::thread::sleep(self.pace.interval);
        }
        self.written
    }

    /// Sends a write to one member. Returns what became of it, or `None` if it was not executed.
    fn attempt(&mut self, key: &str) -> Option<Outcome> {
        let member = self.at;
        if !self.is_reachable() {
            self.go_on();
            return None;
        }
        let timeout = self.pace.answer_timeout;
        let peer = &mut self.members[member];
        let connection = peer.connection.as_mut()?;
        let sent = connection.send(&["SET", key, key]);
        let answer = match sent.and_then(|()| connection.receive(Some(timeout))) {
            Ok(Some(answer)) => answer,
            Ok(None) => {
                peer.fall_silent();
                self.go_on();
                return Some(Outcome::Unknown);
            }
            Err(_) => {
                peer.connection = None;
                self.go_on();
                return Some(Outcome::Unknown);
            }
        };
        if answer.as_bytes() == Some(b"OK") {
            return Some(Outcome::Acknowledged);
        }
        let text = answer.as_error().unwrap_or_default();
        if !REFUSALS.iter().any(|start| text.starts_with(start)) {
            self.note_wrong(format!("SET was answered {:?}", String::from_utf8_lossy(text)));
            return Some(Outcome::Unknown);
        }
        match self.moved_to(text) {
            Some(leader) if leader != member => self.at = leader,
            _ => self.go_on(),
        }
        None
    }

    /// Connects to the member whose turn it is. A member that has not answered lately is asked first
    /// whether it does.
    fn is_reachable(&mut self) -> bool {
        let timeout = self.pace.answer_timeout;
        let peer = &mut self.members[self.at];
        let Some(until) = peer.silent_until else { return peer.connect(timeout) };
        if Instant::now() < until {
            return false;
        }
        let answers = peer.connect(PROBE_TIMEOUT)
            && peer.connection.as_mut().is_some_and(|connection| {
                connection.send(&["PING"]).is_ok()
                    && matches!(connection.receive(Some(PROBE_TIMEOUT)), Ok(Some(_)))
            });
        if answers {
            peer.silent_until = None;
        } else {
            peer.fall_silent();
        }
        answers
    }

    fn go_on(&mut self) {
        self.at = (self.at + 1) % self.members.len();
    }

    /// Returns the member that `MOVED slot address` names, if it is one.
    fn moved_to(&self, error: &[u8]) -> Option<usize> {
        let text = std::str::from_utf8(error).ok()?.strip_prefix("MOVED ")?;
        let (_, address) = text.split_once(' ')?;
        self.members.iter().position(|peer| peer.address == address)
    }

    fn note_wrong(&mut self, answer: String) {
        let wrong = &mut self.written.wrong_answers;
        if wrong.len() < WRONG_ANSWERS_MAX && !wrong.contains(&answer) {
            wrong.push(answer);
        }
    }
}

impl Peer<'_> {
    fn connect(&mut self, timeout: Duration) -> bool {
        if self.connection.is_none() {
            self.connection = Client::connect(self.target, timeout).ok();
        }
        self.connection.is_some()
    }

    fn fall_silent(&mut self) {
        self.connection = None;
        self.silent_until = Some(Instant::now() + SILENCE);
    }
}

#[cfg(test)]
mod tests {
    use super::{Keys, Outcome, Pace, Writer};
    use crate::failover::moments::Moments;
    use crate::target::Target;
    use crate::test_server::{self, Behaviour, Connection};
    use std::collections::HashMap;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;
    use tidemark_server::resp::Value;

    const PACE: Pace = Pace { interval: Duration::ZERO, answer_timeout: Duration::from_millis(50) };

    type Data = Arc<Mutex<HashMap<Vec<u8>, u64>>>;

    /// A member that answers by a function of how many writes it has been sent, the first being 0.
    struct Member<F> {
        data: Data,
        writes: u64,
        answer: F,
    }

    impl<F: FnMut(u64) -> Option<Value> + Send + 'static> Behaviour for Member<F> {
        fn answer(&mut self, arguments: &[Vec<u8>], connection: &Connection) -> Vec<Value> {
            if arguments[0] != b"SET" {
                return vec![Value::Simple(b"PONG".to_vec())];
            }
            self.writes += 1;
            let answer = (self.answer)(self.writes - 1);
            if answer.as_ref().is_none_or(|answer| answer.as_error().is_none()) {
                *self.data.lock().unwrap().entry(arguments[1].clone()).or_default() += 1;
            }
            if answer.is_none() {
                let _ = connection.lock().unwrap().shutdown(std::net::Shutdown::Both);
            }
            answer.into_iter().collect()
        }
    }

    fn member(data: &Data, answer: impl FnMut(u64) -> Option<Value> + Send + 'static) -> Target {
        let member = Member { data: Arc::clone(data), writes: 0, answer };
        Target::new("127.0.0.1", test_server::start(member))
    }

    fn ok() -> Option<Value> {
        Some(Value::Simple(b"OK".to_vec()))
    }

    fn error(text: &str) -> Option<Value> {
        Some(Value::Error(text.as_bytes().to_vec()))
    }

    /// Runs a client until it has written for a moment.
    fn written(targets: &[Target]) -> (super::Written, Moments) {
        let moments = Moments::begin();
        let keys = Keys { run: 0xA, round: 1 };
        let written = std::thread::scope(|scope| {
            let writer = scope.spawn(|| Writer::new(0, targets, keys, PACE, &moments).run());
            while moments.acknowledged() < 50 {
                std::thread::sleep(Duration::from_millis(1));
            }
            moments.end();
            writer.join().unwrap()
        });
        (written, moments)
    }

    #[test]
    fn the_leader_is_found_and_each_write_executed_once() {
        let data = Data::default();
        let leader = member(&data, |_| ok());
        let address = format!("MOVED 7 127.0.0.1:{}", leader.port);
        let follower = member(&data, move |_| error(&address));
        let targets = [follower, Target::new("127.0.0.1", test_server::refusing_port()), leader];
        let (written, moments) = written(&targets);
        assert!(written.outcomes.iter().all(|outcome| *outcome == Outcome::Acknowledged));
        assert_eq!(written.outcomes.len() as u64, moments.acknowledged());
        assert_eq!((written.refusals, written.wrong_answers.len()), (1, 0));
        let data = data.lock().unwrap();
        assert_eq!(data.len(), written.outcomes.len());
        assert!(
            data.values().all(|writes| *writes == 1) && data.contains_key(&b"failover-bench:a:1:0:0"[..])
        );
    }

    #[test]
    fn a_write_without_an_answer_is_unknown_and_not_repeated() {
        let data = Data::default();
        let breaks = member(&data, |write| if write % 10 == 3 { None } else { ok() });
        let (written, _) = written(&[breaks]);
        let unknown: Vec<_> = written
            .outcomes
            .iter()
            .enumerate()
            .filter(|(_, outcome)| **outcome == Outcome::Unknown)
            .collect();
        assert_eq!(unknown[0].0, 3);
        assert!(data.lock().unwrap().values().all(|writes| *writes == 1));
    }

    #[test]
    fn a_silent_member_is_left_and_an_odd_answer_is_kept() {
        let data = Data::default();
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let silent = (Target::new("127.0.0.1", silent.local_addr().unwrap().port()), silent);
        let odd = member(&data, |write| if write == 0 { error("ERR odd") } else { ok() });
        let (written, _) = written(&[silent.0, odd]);
        assert_eq!(&written.outcomes[..3], [Outcome::Unknown, Outcome::Unknown, Outcome::Acknowledged]);
        assert_eq!(written.wrong_answers, ["SET was answered \"ERR odd\""]);
    }
}
