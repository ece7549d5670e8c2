//! Whether the members have what was acknowledged, and nothing that was refused.

use super::writer::{Keys, Outcome, Written};
use crate::client::Client;
use anyhow::Context;
use std::time::{Duration, Instant};
use tidemark_server::resp::encode_request;

/// Reads in flight at once.
const BATCH: usize = 512;
/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Pause before a member that has not caught up is read again.
const RETRY_INTERVAL: Duration = Duration::from_millis(5);
/// Missing writes that are named.
pub(super) const NAMED_MAX: usize = 10;

/// What a member has of the writes of a round.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Audit {
    /// Acknowledged writes that it does not have, and the names of the first.
    pub(super) missing: u64,
    pub(super) missing_keys: Vec<String>,
    /// Refused writes that it has.
    pub(super) phantoms: u64,
    /// Whether it has each write whose outcome is unknown, in one order for all members.
    pub(super) unknown: Vec<bool>,
}

/// Reads every write of a round from one member.
pub(super) fn audit(reader: &mut Client, keys: Keys, written: &[Written]) -> anyhow::Result<Audit> {
    let mut audit = Audit::default();
    for (client, written) in written.iter().enumerate() {
        for (batch, outcomes) in written.outcomes.chunks(BATCH).enumerate() {
            let names: Vec<String> =
                (0..outcomes.len()).map(|index| keys.key(client, batch * BATCH + index)).collect();
            let held = read(reader, &names)?;
            for ((name, held), outcome) in names.into_iter().zip(held).zip(outcomes) {
                audit.note(name, held, *outcome);
            }
        }
    }
    Ok(audit)
}

/// Removes every key of a round at the leader, so that a long run needs no more memory than a short one.
pub(super) fn remove(leader: &mut Client, keys: Keys, written: &[Written]) -> anyhow::Result<()> {
    for (client, written) in written.iter().enumerate() {
        let names: Vec<String> = (0..written.outcomes.len()).map(|number| keys.key(client, number)).collect();
        for names in names.chunks(BATCH) {
            send(leader, "DEL", names)?;
            for name in names {
                let reply = leader.receive(Some(PATIENCE))?.context("a member does not answer")?;
                anyhow::ensure!(reply.as_error().is_none(), "DEL {name} was answered {reply:?}");
            }
        }
    }
    Ok(())
}

impl Audit {
    fn note(&mut self, name: String, held: bool, outcome: Outcome) {
        match outcome {
            Outcome::Acknowledged if !held => {
                self.missing += 1;
                if self.missing_keys.len() < NAMED_MAX {
                    self.missing_keys.push(name);
                }
            }
            Outcome::Acknowledged => {}
            Outcome::Refused => self.phantoms += u64::from(held),
            Outcome::Unknown => self.unknown.push(held),
        }
    }
}

/// Returns the number of unknown writes that one member has and another has not.
pub(super) fn disagreements(audits: &[Audit]) -> u64 {
    let Some((first, others)) = audits.split_first() else { return 0 };
    let differs =
        |index: &usize| others.iter().any(|other| other.unknown.get(*index) != first.unknown.get(*index));
    (0..first.unknown.len()).filter(differs).count() as u64
}

/// Returns for each key whether it has its own name as its value. Repeats the reads while a follower says
/// that it is behind.
fn read(reader: &mut Client, names: &[String]) -> anyhow::Result<Vec<bool>> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        send(reader, "GET", names)?;
        let (mut held, mut refusal) = (Vec::with_capacity(names.len()), None);
        for name in names {
            let reply = reader.receive(Some(PATIENCE))?.context("a member does not answer")?;
            match reply.as_error() {
                Some(error) => refusal = Some(String::from_utf8_lossy(error).into_owned()),
                None => held.push(reply.as_bytes() == Some(name.as_bytes())),
            }
        }
        let Some(refusal) = refusal else { return Ok(held) };
        anyhow::ensure!(Instant::now() < deadline, "a member refuses to be read: {refusal}");
        std::thread::sleep(RETRY_INTERVAL);
    }
}

fn send(client: &mut Client, command: &str, names: &[String]) -> anyhow::Result<()> {
    let mut requests = Vec::new();
    names.iter().for_each(|name| encode_request(&mut requests, &[command, name]));
    Ok(client.send_encoded(&requests)?)
}

#[cfg(test)]
mod tests {
    use super::{Audit, audit, disagreements, remove};
    use crate::client::Client;
    use crate::failover::writer::{Keys, Outcome, Written};
    use crate::target::Target;
    use crate::test_server::{self, Behaviour, Connection};
    use std::collections::HashMap;
    use std::time::Duration;
    use tidemark_server::resp::Value;

    const KEYS: Keys = Keys { run: 0xA, round: 2 };

    /// A member with some data that is behind for the first reads.
    struct Member {
        data: HashMap<Vec<u8>, Vec<u8>>,
        behind: u64,
    }

    impl Behaviour for Member {
        fn answer(&mut self, arguments: &[Vec<u8>], _: &Connection) -> Vec<Value> {
            if arguments[0] == b"DEL" {
                return vec![Value::Integer(self.data.remove(&arguments[1]).map_or(0, |_| 1))];
            }
            if self.behind > 0 {
                self.behind -= 1;
                return vec![Value::Error(b"MASTERDOWN behind".to_vec())];
            }
            vec![self.data.get(&arguments[1]).map_or(Value::Null, |value| Value::Bulk(value.clone()))]
        }
    }

    fn member(held: &[(usize, usize)], behind: u64) -> Client {
        let entry = |(client, number): &(usize, usize)| {
            let key = KEYS.key(*client, *number).into_bytes();
            (key.clone(), key)
        };
        let member = Member { data: held.iter().map(entry).collect(), behind };
        let target = Target::new("127.0.0.1", test_server::start(member));
        Client::connect(&target, Duration::from_secs(5)).unwrap()
    }

    fn written(outcomes: &[Outcome]) -> Written {
        Written { outcomes: outcomes.to_vec(), ..Written::default() }
    }

    #[test]
    fn what_is_missing_and_what_should_not_be_there_is_counted() {
        use Outcome::{Acknowledged, Refused, Unknown};
        let written = [
            written(&[Acknowledged, Unknown, Acknowledged, Unknown, Refused]),
            written(&[Acknowledged; 2000]),
        ];
        let mut held: Vec<_> = (0..2000).map(|number| (1, number)).filter(|held| held.1 != 777).collect();
        held.extend([(0, 0), (0, 2), (0, 3), (0, 4)]);
        let found = audit(&mut member(&held, 3), KEYS, &written).unwrap();
        let expected = Audit {
            missing: 1,
            missing_keys: vec![KEYS.key(1, 777)],
            phantoms: 1,
            unknown: vec![false, true],
        };
        assert_eq!(found, expected);
        let other = audit(&mut member(&[], 0), KEYS, &written).unwrap();
        assert_eq!((other.missing, other.missing_keys.len(), other.phantoms), (2002, super::NAMED_MAX, 0));
        assert_eq!(disagreements(&[found, other]), 1);
        assert_eq!(disagreements(&[]), 0);
    }

    #[test]
    fn the_keys_of_a_round_are_removed() {
        let written = [written(&[Outcome::Acknowledged; 3])];
        let mut member = member(&[(0, 0), (0, 1), (0, 2), (1, 0)], 0);
        remove(&mut member, KEYS, &written).unwrap();
        assert_eq!(audit(&mut member, KEYS, &written).unwrap().missing, 3);
        let other = [Written::default(), self::written(&[Outcome::Acknowledged])];
        assert_eq!(audit(&mut member, KEYS, &other).unwrap().missing, 0, "another client's key");
    }
}
