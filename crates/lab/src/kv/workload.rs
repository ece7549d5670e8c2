//! Requests and their expected replies.

use super::mix::Mix;
use super::options::{CommandMix, KvOptions};
use super::reply::Reply;
use crate::random::Random;
use tidemark_server::resp::encode_request;

/// Keys, values and expectations of the scenario, shared by all threads.
pub(super) struct Workload {
    keyspace: u64,
    watched_keys: u64,
    mix: Mix,
    command: CommandMix,
    durable: bool,
    /// Value that every SET writes and every GET must find.
    value: Vec<u8>,
}

/// Kind of a request in flight, which decides how its reply is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Get,
    Set,
    /// A SET that is followed by a PUBLISH of its value.
    AnnouncedSet,
    Publish,
    Ping,
}

/// Meaning of a reply for its operation.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReplyMeaning {
    Success,
    /// A GET of a key that was never written: a correct answer without a value.
    Miss,
    Failure(String),
}

const KEY_PREFIX: &[u8] = b"bench:key:";
const WATCHED_KEY_PREFIX: &[u8] = b"bench:watch:key:";

impl Operation {
    /// Returns whether the worker may send its next request when this one is answered.
    pub(super) fn ends_turn(self) -> bool {
        self != Operation::AnnouncedSet
    }
}

impl Workload {
    pub(super) fn new(options: &KvOptions) -> Self {
        Workload {
            keyspace: options.keyspace,
            watched_keys: options.reactive_keyspace,
            mix: options.mix,
            command: options.cmd,
            durable: options.durable_set,
            value: vec![b'x'; options.value_size],
        }
    }

    /// Chooses the next operation and its key, and appends the request.
    pub(super) fn encode_next(&self, out: &mut Vec<u8>, random: &mut Random) -> Operation {
        let operation = match self.command {
            CommandMix::Get => Operation::Get,
            CommandMix::Ping => Operation::Ping,
            CommandMix::GetSet if random.below(self.mix.total()) < u64::from(self.mix.get) => Operation::Get,
            CommandMix::GetSet | CommandMix::Set => Operation::Set,
        };
        match operation {
            Operation::Ping => encode_request(out, &["PING"]),
            Operation::Get => {
                encode_request(
                    out,
                    &[&b"GET"[..], Key::new(KEY_PREFIX, random.below(self.keyspace)).bytes()],
                );
            }
            _ => self.encode_set(out, random.below(self.keyspace), self.durable),
        }
        operation
    }

    pub(super) fn encode_set(&self, out: &mut Vec<u8>, key: u64, durable: bool) {
        set(out, &Key::new(KEY_PREFIX, key), &self.value, durable);
    }

    /// Chooses a watched key.
    pub(super) fn any_watched_key(&self, random: &mut Random) -> u64 {
        random.below(self.watched_keys)
    }

    /// Appends a SET of a watched key whose value starts with `token`, if any. If `announced`, also
    /// publishes the value to the channel of the key's name.
    pub(super) fn encode_watched_set(
        &self,
        out: &mut Vec<u8>,
        key: u64,
        token: Option<u64>,
        announced: bool,
    ) {
        let mut value = Vec::with_capacity(self.value.len() + 24);
        if let Some(token) = token {
            value.extend_from_slice(format!("tk={token}|").as_bytes());
        }
        let padding = self.value.len().saturating_sub(value.len());
        value.extend(self.value.iter().take(padding));
        let key = Key::new(WATCHED_KEY_PREFIX, key);
        set(out, &key, &value, self.durable);
        if announced {
            encode_request(out, &[&b"PUBLISH"[..], key.bytes(), &value]);
        }
    }

    /// Judges a reply. Every error is a failure; a value must be the one that was written.
    pub(super) fn judge(&self, operation: Operation, reply: &Reply<'_>) -> ReplyMeaning {
        match (operation, reply) {
            (Operation::Publish, Reply::Integer(b"0")) => {
                ReplyMeaning::Failure("PUBLISH reached no subscriber".to_owned())
            }
            (Operation::Set | Operation::AnnouncedSet, Reply::Simple(b"OK"))
            | (Operation::Publish, Reply::Integer(_))
            | (Operation::Ping, Reply::Simple(b"PONG")) => ReplyMeaning::Success,
            (Operation::Get, Reply::Null) => ReplyMeaning::Miss,
            (Operation::Get, Reply::Bulk(value)) if *value == self.value => ReplyMeaning::Success,
            (Operation::Get, Reply::Bulk(value)) => {
                ReplyMeaning::Failure(format!("GET returned {} bytes that no client wrote", value.len()))
            }
            (operation, reply) => ReplyMeaning::Failure(format!("{operation:?} was answered {reply}")),
        }
    }
}

/// Appends a request that removes a watched key.
pub(super) fn encode_delete_watched(out: &mut Vec<u8>, key: u64) {
    encode_request(out, &[&b"DEL"[..], Key::new(WATCHED_KEY_PREFIX, key).bytes()]);
}

/// Appends a request that removes a key of the scenario.
pub(super) fn encode_delete(out: &mut Vec<u8>, key: u64) {
    encode_request(out, &[&b"DEL"[..], Key::new(KEY_PREFIX, key).bytes()]);
}

/// Returns the name of a watched key.
pub(super) fn watched_key(index: u64) -> Vec<u8> {
    Key::new(WATCHED_KEY_PREFIX, index).bytes().to_vec()
}

/// Returns the token at the start of an emitted value.
pub(super) fn token_of(value: &[u8]) -> Option<u64> {
    let rest = value.strip_prefix(b"tk=")?;
    let end = rest.iter().position(|byte| *byte == b'|')?;
    std::str::from_utf8(rest.get(..end)?).ok()?.parse().ok()
}

fn set(out: &mut Vec<u8>, key: &Key, value: &[u8], durable: bool) {
    if durable {
        encode_request(out, &[&b"SET"[..], key.bytes(), value, b"DURABLE"]);
    } else {
        encode_request(out, &[&b"SET"[..], key.bytes(), value]);
    }
}

/// A key's name on the stack: millions are built per second.
struct Key {
    text: [u8; KEY_BYTES],
    length: usize,
}

/// The longest prefix and the twenty digits of the largest number fit.
const KEY_BYTES: usize = 40;
const _: () =
    assert!(WATCHED_KEY_PREFIX.len() + 20 <= KEY_BYTES && KEY_PREFIX.len() <= WATCHED_KEY_PREFIX.len());

impl Key {
    fn new(prefix: &[u8], index: u64) -> Self {
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(index).as_bytes();
        let mut text = [0; KEY_BYTES];
        for (place, byte) in text.iter_mut().zip(prefix.iter().chain(digits)) {
            *place = *byte;
        }
        Key { text, length: prefix.len() + digits.len() }
    }

    fn bytes(&self) -> &[u8] {
        &self.text[..self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::{Key, Operation, ReplyMeaning, Workload, token_of, watched_key};
    use crate::kv::mix::Mix;
    use crate::kv::options::CommandMix;
    use crate::kv::reply::Reply;
    use crate::random::Random;

    fn workload(command: CommandMix) -> Workload {
        Workload {
            keyspace: 10,
            watched_keys: 3,
            mix: Mix { get: 80, set: 20 },
            command,
            durable: true,
            value: b"xxxx".to_vec(),
        }
    }

    #[test]
    fn the_mix_is_kept_and_every_key_is_used() {
        let workload = workload(CommandMix::GetSet);
        let mut random = Random::new(1, 0);
        let mut requests = Vec::new();
        let gets = (0..10_000)
            .filter(|_| workload.encode_next(&mut requests, &mut random) == Operation::Get)
            .count();
        assert!((7_500..8_500).contains(&gets), "{gets} of 10000 are not 80 %");
        let text = String::from_utf8(requests).unwrap();
        for key in 0..10 {
            assert!(text.contains(&format!("bench:key:{key}\r\n")));
        }
        assert!(!text.contains("bench:key:10"));
    }

    #[test]
    fn the_same_seed_gives_the_same_requests() {
        let encode = |seed| {
            let (mut out, mut random) = (Vec::new(), Random::new(seed, 3));
            for _ in 0..50 {
                workload(CommandMix::GetSet).encode_next(&mut out, &mut random);
            }
            out
        };
        assert_eq!(encode(7), encode(7));
        assert_ne!(encode(7), encode(8));
    }

    #[test]
    fn a_durable_set_says_so() {
        let mut out = Vec::new();
        workload(CommandMix::Set).encode_set(&mut out, 7, true);
        assert_eq!(out, b"*4\r\n$3\r\nSET\r\n$11\r\nbench:key:7\r\n$4\r\nxxxx\r\n$7\r\nDURABLE\r\n");
    }

    #[test]
    fn an_error_or_a_wrong_value_is_never_success() {
        let workload = workload(CommandMix::GetSet);
        assert_eq!(workload.judge(Operation::Set, &Reply::Simple(b"OK")), ReplyMeaning::Success);
        assert_eq!(workload.judge(Operation::Get, &Reply::Bulk(b"xxxx")), ReplyMeaning::Success);
        assert_eq!(workload.judge(Operation::Get, &Reply::Null), ReplyMeaning::Miss);
        let failed = |operation, reply| matches!(workload.judge(operation, &reply), ReplyMeaning::Failure(_));
        assert!(failed(Operation::Set, Reply::Error(b"ERR full")));
        assert!(failed(Operation::Set, Reply::Null));
        assert!(failed(Operation::Get, Reply::Bulk(b"xxx")));
        assert!(failed(Operation::Get, Reply::Simple(b"OK")));
        assert!(failed(Operation::Ping, Reply::Error(b"NOAUTH")));
    }

    #[test]
    fn a_token_survives_its_way_through_the_server() {
        let mut out = Vec::new();
        workload(CommandMix::Set).encode_watched_set(&mut out, 2, Some(42), false);
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("bench:watch:key:2\r\n") && !text.contains("PUBLISH"));
        let value = text.split("\r\n").find(|part| part.starts_with("tk=")).unwrap();
        assert_eq!(token_of(value.as_bytes()), Some(42));
        assert_eq!(token_of(b"xxxx"), None);
        assert_eq!(token_of(b"tk=1"), None);
        assert_eq!(token_of(b"tk=abc|"), None);
    }

    #[test]
    fn an_announced_set_publishes_its_value_and_fails_without_a_subscriber() {
        let (mut out, workload) = (Vec::new(), workload(CommandMix::Set));
        workload.encode_watched_set(&mut out, 2, Some(42), true);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.matches("tk=42|").count(), 2);
        assert!(text.ends_with("PUBLISH\r\n$17\r\nbench:watch:key:2\r\n$6\r\ntk=42|\r\n"), "{text}");
        assert_eq!(workload.judge(Operation::Publish, &Reply::Integer(b"1")), ReplyMeaning::Success);
        assert!(matches!(
            workload.judge(Operation::Publish, &Reply::Integer(b"0")),
            ReplyMeaning::Failure(_)
        ));
    }

    #[test]
    fn the_longest_key_fits() {
        assert_eq!(watched_key(u64::MAX), b"bench:watch:key:18446744073709551615");
        assert_eq!(Key::new(b"bench:key:", 0).bytes(), b"bench:key:0");
    }
}
