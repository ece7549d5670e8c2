//! What the members that are left say of the leader, from the fault to the first acknowledged write.

use crate::client::Client;
use crate::target::Target;
use std::time::{Duration, Instant};
use tidemark_server::resp::Value;

/// Times from the fault, in milliseconds, and the member that leads then.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Takeover {
    /// Until the first member no longer named the old leader.
    pub(super) detection_ms: f64,
    /// From then until a member said that it leads.
    pub(super) election_ms: f64,
    /// Until that member acknowledged a write.
    pub(super) total_ms: f64,
    pub(super) new_leader: usize,
}

/// The key that is written to see whether a member leads.
const CHECK_KEY: &str = "failover-bench:leader-check";
/// Longest wait for one answer.
const ANSWER_PATIENCE: Duration = Duration::from_secs(1);

/// The members that are left, each with a connection that is opened before the fault.
pub(super) struct Observer<'a> {
    old: &'a Target,
    survivors: Vec<Survivor<'a>>,
}

struct Survivor<'a> {
    member: usize,
    target: &'a Target,
    connection: Option<Client>,
}

/// What a member says of the lead.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Role {
    Leads,
    /// It follows the member at this address.
    Follows(String),
    /// It follows none.
    Alone,
}

impl<'a> Observer<'a> {
    pub(super) fn new(targets: &'a [Target], leader: usize) -> Self {
        let is_left = |(member, _): &(usize, &Target)| *member != leader;
        let survivor = |(member, target): (usize, &'a Target)| Survivor {
            member,
            target,
            connection: Client::connect(target, ANSWER_PATIENCE).ok(),
        };
        Observer {
            old: &targets[leader],
            survivors: targets.iter().enumerate().filter(is_left).map(survivor).collect(),
        }
    }

    /// Asks in turns until there is a leader. `None` after `patience`, or when `gives_up` says so.
    pub(super) fn observe(
        mut self,
        fault_at: Instant,
        poll: Duration,
        patience: Duration,
        gives_up: impl Fn() -> bool,
    ) -> Option<Takeover> {
        let old = format!("{}:{}", self.old.host, self.old.port);
        let since = || fault_at.elapsed().as_secs_f64() * 1e3;
        let (mut detected, mut elected) = (None, None);
        while fault_at.elapsed() < patience && !gives_up() {
            for survivor in &mut self.survivors {
                let Some(role) = survivor.ask(&["ROLE"]).as_ref().and_then(role) else { continue };
                if role != Role::Follows(old.clone()) {
                    detected.get_or_insert_with(since);
                }
                if role != Role::Leads {
                    continue;
                }
                elected.get_or_insert_with(since);
                let reply = survivor.ask(&["SET", CHECK_KEY, "1"]);
                if reply.is_some_and(|reply| reply.as_bytes() == Some(b"OK")) {
                    let total_ms = since();
                    let detection_ms = detected.unwrap_or(total_ms);
                    let election_ms = elected.unwrap_or(total_ms) - detection_ms;
                    return Some(Takeover {
                        detection_ms,
                        election_ms,
                        total_ms,
                        new_leader: survivor.member,
                    });
                }
            }
            std::thread::sleep(poll);
        }
        None
    }
}

impl Survivor<'_> {
    fn ask(&mut self, arguments: &[&str]) -> Option<Value> {
        if self.connection.is_none() {
            self.connection = Client::connect(self.target, ANSWER_PATIENCE).ok();
        }
        let reply = self.connection.as_mut()?.call(arguments);
        if reply.is_err() {
            self.connection = None;
        }
        reply.ok()
    }
}

/// Reads the answer to `ROLE`.
fn role(reply: &Value) -> Option<Role> {
    let [kind, rest @ ..] = reply.as_elements()? else { return None };
    if kind.as_bytes() == Some(b"master") {
        return Some(Role::Leads);
    }
    let [host, port, ..] = rest else { return None };
    let host = String::from_utf8_lossy(host.as_bytes()?).into_owned();
    Some(if host.is_empty() { Role::Alone } else { Role::Follows(format!("{host}:{}", port.as_integer()?)) })
}

#[cfg(test)]
mod tests {
    use super::{Observer, Role, role};
    use crate::target::Target;
    use crate::test_server::{self, Behaviour, Connection, bulk};
    use std::time::{Duration, Instant};
    use tidemark_server::resp::Value;

    fn slave(host: &str, port: u16) -> Value {
        let state = if host.is_empty() { "connect" } else { "connected" };
        Value::Array(vec![
            bulk("slave"),
            bulk(host),
            Value::Integer(port.into()),
            bulk(state),
            Value::Integer(7),
        ])
    }

    fn master() -> Value {
        Value::Array(vec![bulk("master"), Value::Integer(7), Value::Array(vec![])])
    }

    #[test]
    fn a_role_is_read() {
        assert_eq!(role(&slave("10.0.0.1", 7379)), Some(Role::Follows("10.0.0.1:7379".into())));
        assert_eq!(role(&slave("", 0)), Some(Role::Alone));
        assert_eq!(role(&master()), Some(Role::Leads));
        assert_eq!(role(&Value::Error(b"ERR".to_vec())), None);
        assert_eq!(role(&Value::Array(vec![])), None);
    }

    /// A member that answers `ROLE` in this order, the last for ever, and refuses the first write.
    struct Member {
        roles: Vec<Value>,
        writes: u64,
    }

    impl Behaviour for Member {
        fn answer(&mut self, arguments: &[Vec<u8>], _: &Connection) -> Vec<Value> {
            if arguments[0] == b"SET" {
                self.writes += 1;
                let is_first = self.writes == 1;
                let ok = Value::Simple(b"OK".to_vec());
                return vec![if is_first { Value::Error(b"CLUSTERDOWN".to_vec()) } else { ok }];
            }
            vec![if self.roles.len() > 1 { self.roles.remove(0) } else { self.roles[0].clone() }]
        }
    }

    #[test]
    fn the_new_leader_is_the_one_that_acknowledges() {
        let old = Target::new("127.0.0.1", test_server::refusing_port());
        let start = |roles| Target::new("127.0.0.1", test_server::start(Member { roles, writes: 0 }));
        let follows = slave("127.0.0.1", old.port);
        let one = start(vec![follows.clone()]);
        let other = start(vec![follows, slave("", 0), master()]);
        let targets = [one, old, other];
        let observer = Observer::new(&targets, 1);
        let patience = Duration::from_secs(10);
        let election =
            observer.observe(Instant::now(), Duration::from_millis(1), patience, || false).unwrap();
        assert_eq!(election.new_leader, 2);
        assert!(
            election.election_ms > 0.0 && election.detection_ms + election.election_ms < election.total_ms
        );
        let stays = Observer::new(&targets[..2], 1);
        assert_eq!(stays.observe(Instant::now(), patience, Duration::from_millis(1), || false), None);
    }
}
