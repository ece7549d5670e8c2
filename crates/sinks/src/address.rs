//! Address of a sink, with a selection: `nats://127.0.0.1:4222/STREAM?prefix=user:&format=json`.

use percent_encoding::percent_decode_str;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use tidemark_changes::{Format, Selection, query_string};
use tidemark_log::Lsn;

/// Longest interval between progress messages, in seconds: a day.
const PROGRESS_S_MAX: u64 = 86_400;

/// Configuration of a sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    pub(crate) target: Target,
    pub(crate) selection: Selection,
    pub(crate) format: Format,
    pub(crate) start: Start,
    /// Whether to continue at the log's start if the next record has been dropped.
    pub(crate) skips_gaps: bool,
    /// Time without a change after which a progress message is sent.
    pub(crate) progress: Option<Duration>,
}

/// Target of a sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    JetStream(JetStreamTarget),
    Kafka(KafkaTarget),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JetStreamTarget {
    /// `nats://host:port`, or `tls://…`, of each server.
    pub(crate) servers: Vec<String>,
    pub(crate) login: Option<Login>,
    pub(crate) stream: String,
    pub(crate) subject: String,
    pub(crate) credentials: Option<PathBuf>,
    /// A file that contains `user:password` or a token.
    pub(crate) login_file: Option<PathBuf>,
    pub(crate) authorities: Option<PathBuf>,
}

impl JetStreamTarget {
    fn uses_tls(&self) -> bool {
        self.servers.iter().all(|server| server.starts_with("tls://"))
    }
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Login {
    Token(String),
    Password(String, String),
}

impl Login {
    /// Parses `user:password` or a token; `part` decodes each part.
    pub(crate) fn of(text: &str, part: impl Fn(&str) -> String) -> Login {
        match text.split_once(':') {
            Some((user, password)) => Login::Password(part(user), part(password)),
            None => Login::Token(part(text)),
        }
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a secret")
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KafkaTarget {
    pub(crate) brokers: Vec<String>,
    pub(crate) topic: String,
    pub(crate) partition: i32,
}

/// Start of a sink that has no messages yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Start {
    /// At the oldest record of the log.
    #[default]
    Floor,
    /// At the end of the log.
    End,
    /// After this record.
    Behind(Lsn),
}

/// Error for a text that is no address of a sink.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotAnAddress(String);

fn refused<T>(reason: impl Into<String>) -> Result<T, NotAnAddress> {
    Err(NotAnAddress(reason.into()))
}

impl FromStr for Address {
    type Err = NotAnAddress;

    fn from_str(text: &str) -> Result<Address, NotAnAddress> {
        let Some((scheme, rest)) = text.split_once("://") else {
            return refused("must begin with nats://, tls:// or kafka://");
        };
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let Some((authority, name)) = place.split_once('/').filter(|(_, name)| !name.is_empty()) else {
            return refused("must name a stream or topic, as in nats://127.0.0.1:4222/STREAM");
        };
        let (login, hosts) = match authority.rsplit_once('@') {
            Some((login, hosts)) => (Some(login), hosts),
            None => (None, authority),
        };
        let target = match scheme {
            "nats" | "tls" => Target::JetStream(jetstream_target(scheme, hosts, login, name)?),
            "kafka" if login.is_some() => {
                return refused("must have no user: Kafka is spoken to without authentication");
            }
            "kafka" => Target::Kafka(kafka_target(hosts, name)?),
            _ => return refused("must begin with nats://, tls:// or kafka://"),
        };
        let mut address = Address {
            target,
            selection: Selection::default(),
            format: Format::default(),
            start: Start::default(),
            skips_gaps: false,
            progress: None,
        };
        for (name, value) in query_string::parse(query) {
            let name = String::from_utf8_lossy(&name).into_owned();
            address.set(&name, &value)?;
        }
        Ok(address)
    }
}

impl Address {
    /// Applies one parameter of the query.
    fn set(&mut self, name: &str, value: &[u8]) -> Result<(), NotAnAddress> {
        let selected = match name {
            "prefix" => self.selection.add_prefix(value),
            "type" => self.selection.add_type(value),
            "db" => self.selection.add_database(value),
            _ => return self.set_text(name, &String::from_utf8_lossy(value)),
        };
        selected.map_err(|error| NotAnAddress(format!("is refused: {error}")))
    }

    fn set_text(&mut self, name: &str, value: &str) -> Result<(), NotAnAddress> {
        match (name, &mut self.target) {
            ("format", _) => {
                let format = value.parse();
                self.format = format
                    .map_err(|error: tidemark_changes::UnknownFormat| NotAnAddress(error.to_string()))?;
            }
            ("from", _) => {
                self.start = match value {
                    "floor" => Start::Floor,
                    "end" => Start::End,
                    lsn => match lsn.parse() {
                        Ok(lsn) => Start::Behind(Lsn(lsn)),
                        Err(_) => return refused("has a from that is not floor, end or an LSN"),
                    },
                }
            }
            ("gap", _) => {
                self.skips_gaps = match value {
                    "stop" => false,
                    "skip" => true,
                    _ => return refused("has a gap that is not stop or skip"),
                }
            }
            ("progress", _) => match value.parse() {
                Ok(0) => self.progress = None,
                Ok(seconds) if seconds <= PROGRESS_S_MAX => {
                    self.progress = Some(Duration::from_secs(seconds));
                }
                _ => {
                    return refused(format!("has a progress that is not seconds from 0 to {PROGRESS_S_MAX}"));
                }
            },
            ("subject", Target::JetStream(target)) => {
                if !is_subject(value) {
                    return refused(
                        "has a subject that is not words of printable characters with dots between, and no wildcards",
                    );
                }
                value.clone_into(&mut target.subject);
            }
            ("credentials", Target::JetStream(target)) => target.credentials = Some(PathBuf::from(value)),
            ("login-file", Target::JetStream(target)) => target.login_file = Some(PathBuf::from(value)),
            ("authorities", Target::JetStream(target)) => {
                if !target.uses_tls() {
                    return refused("has authorities, which are of use with tls:// only");
                }
                target.authorities = Some(PathBuf::from(value));
            }
            ("partition", Target::Kafka(target)) => {
                let partition = value.parse().ok().filter(|partition| *partition >= 0);
                let Some(partition) = partition else { return refused("has a partition that is no number") };
                target.partition = partition;
            }
            (other, Target::JetStream(_)) => {
                return refused(format!(
                    "has an unknown '{other}': use subject, credentials, login-file, authorities, prefix, type, db, format, from, gap \
                     or progress"
                ));
            }
            (other, Target::Kafka(_)) => {
                return refused(format!(
                    "has an unknown '{other}': use partition, prefix, type, db, format, from, gap or progress"
                ));
            }
        }
        Ok(())
    }
}

/// Shows no secrets.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.target {
            Target::JetStream(target) => write!(f, "{}/{}", target.servers.join(","), target.stream),
            Target::Kafka(target) => {
                write!(f, "kafka://{}/{}/{}", target.brokers.join(","), target.topic, target.partition)
            }
        }
    }
}

fn jetstream_target(
    scheme: &str,
    hosts: &str,
    login: Option<&str>,
    stream: &str,
) -> Result<JetStreamTarget, NotAnAddress> {
    if !stream.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)) {
        return refused("has a stream that is not letters, digits, - and _");
    }
    Ok(JetStreamTarget {
        servers: hosts_of(hosts, 4222)?.iter().map(|host| format!("{scheme}://{host}")).collect(),
        login: login.map(|login| Login::of(login, unescaped)),
        stream: stream.to_owned(),
        subject: stream.to_owned(),
        credentials: None,
        login_file: None,
        authorities: None,
    })
}

fn kafka_target(hosts: &str, topic: &str) -> Result<KafkaTarget, NotAnAddress> {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if !topic.bytes().all(is_known) || topic.len() > 249 {
        return refused("has a topic that is not at most 249 letters, digits, -, _ and dots");
    }
    Ok(KafkaTarget { brokers: hosts_of(hosts, 9092)?, topic: topic.to_owned(), partition: 0 })
}

/// Parses hosts separated by commas, each with an optional port.
fn hosts_of(text: &str, port: u16) -> Result<Vec<String>, NotAnAddress> {
    text.split(',')
        .map(|host| {
            let (name, given) = match host.rsplit_once(':') {
                // A colon in brackets is part of an IPv6 address.
                Some((name, given)) if !given.contains(']') => (name, Some(given)),
                _ => (host, None),
            };
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._[]:".contains(&byte);
            let port = given.map_or(Some(port), |given| given.parse().ok()).filter(|port| *port > 0);
            match port {
                Some(port) if !name.is_empty() && name.bytes().all(is_name) => Ok(format!("{name}:{port}")),
                _ => refused("must name hosts and ports, as in nats://127.0.0.1:4222/STREAM"),
            }
        })
        .collect()
}

fn is_subject(text: &str) -> bool {
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_graphic());
    text.split('.').all(is_word) && !text.contains(['*', '>'])
}

fn unescaped(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn address(text: &str) -> Result<Address, String> {
        text.parse().map_err(|error: NotAnAddress| error.to_string())
    }

    #[test]
    fn an_address_says_where_and_what() {
        let jetstream = address(
            "nats://a,[::1]:5000/S?subject=s.t&prefix=u%3A&type=hash&db=1&format=binary&from=7&gap=skip&progress=60",
        );
        let jetstream = jetstream.expect("an address");
        assert_eq!(jetstream.to_string(), "nats://a:4222,nats://[::1]:5000/S");
        let mut selection = Selection::default();
        selection.add_prefix(b"u:").expect("a prefix");
        selection.add_type(b"hash").expect("a type");
        selection.add_database(b"1").expect("a database");
        assert_eq!(jetstream.selection, selection);
        assert_eq!((jetstream.format, jetstream.start), (Format::Binary, Start::Behind(Lsn(7))));
        assert_eq!((jetstream.skips_gaps, jetstream.progress), (true, Some(Duration::from_mins(1))));
        let Target::JetStream(target) = jetstream.target else { panic!("JetStream") };
        assert_eq!((&*target.stream, &*target.subject), ("S", "s.t"));
        let kafka = address("kafka://one:1,two/topic.name?partition=3").expect("an address");
        assert_eq!(kafka.to_string(), "kafka://one:1,two:9092/topic.name/3");
        assert_eq!((kafka.start, kafka.skips_gaps, kafka.progress), (Start::Floor, false, None));
    }

    #[test]
    fn what_is_secret_is_not_shown() {
        for text in ["nats://joe:p%40ss@host/S", "tls://tok3n@host/S"] {
            let address = address(text).expect("an address");
            let shown = format!("{address} {address:?}");
            assert!(!shown.contains("joe") && !shown.contains("p@ss") && !shown.contains("tok3n"), "{shown}");
        }
        // A plus is a plus in front of a host, and a space in a query.
        let Target::JetStream(target) = address("nats://joe:p%40s+s@host/S").expect("an address").target
        else {
            panic!("JetStream")
        };
        assert_eq!(target.login, Some(Login::Password("joe".to_owned(), "p@s+s".to_owned())));
    }

    #[test]
    fn what_is_no_address_is_refused_with_what_would_be() {
        for (text, reason) in [
            ("", "must begin with"),
            ("redis://host/x", "must begin with"),
            ("nats://host", "must name a stream"),
            ("nats://host/", "must name a stream"),
            ("nats:///S", "must name hosts"),
            ("nats://host:x/S", "must name hosts"),
            ("nats://host:0/S", "must name hosts"),
            ("nats://host/a.b", "has a stream that is not"),
            ("nats://host/S?subject=a.*", "has a subject that is not"),
            ("nats://host/S?subject=a..b", "has a subject that is not"),
            ("nats://host/S?partition=1", "has an unknown 'partition'"),
            ("nats://host/S?from=x", "has a from"),
            ("nats://host/S?gap=x", "has a gap"),
            ("nats://host/S?authorities=/etc/ca.pem", "has authorities, which are of use with tls://"),
            ("nats://host/S?progress=-1", "has a progress"),
            ("nats://host/S?type=x", "is refused: the type must be"),
            ("kafka://host/a/b", "has a topic"),
            ("kafka://u:p@host/a", "must have no user"),
            ("kafka://host/a?partition=-1", "has a partition"),
            ("kafka://host/a?subject=s", "has an unknown 'subject'"),
        ] {
            let shown = address(text).expect_err(text);
            assert!(shown.starts_with(reason), "{text}: {shown}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn any_text_is_an_address_or_is_refused(text in "(nats|kafka|tls)://[a-z:@/?=&,%\\[\\].]{0,40}") {
            let (_, rest) = text.split_once("://").expect("a scheme");
            match address(&text) {
                // The displayed address has the location and no secret.
                Ok(address) => {
                    let shown = address.to_string();
                    let login = rest.rsplit_once('@').map(|(login, _)| login).filter(|login| login.len() > 1);
                    let secret = login.map(|login| format!("{login}@"));
                    prop_assert!(secret.is_none_or(|secret| !shown.contains(&secret)));
                    prop_assert!(shown.contains("://"));
                }
                Err(reason) => prop_assert!(!reason.is_empty()),
            }
        }
    }
}
