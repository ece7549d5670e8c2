//! A connection to NATS, and its stream.

use crate::trouble::described;
use async_nats::jetstream::context::{ContextBuilder, CreateStreamErrorKind, PublishErrorKind};
use async_nats::jetstream::publish::PublishAck;
use async_nats::jetstream::stream::{Config, Info, RawMessageErrorKind, Stream};
use async_nats::jetstream::{Context, ErrorCode};
use async_nats::{ConnectErrorKind, ConnectOptions, Event, ServerAddr};
use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Attempts to send a message that no stream accepts, and the pause between them: a second in all.
const SENDINGS: u32 = 40;
const UNTIL_SENT_AGAIN: Duration = Duration::from_millis(25);

/// Location of the stream, and how to create it.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) servers: Vec<ServerAddr>,
    pub(crate) is_tls: bool,
    pub(crate) certificates: Option<PathBuf>,
    pub(crate) stream: String,
    pub(crate) replicas: usize,
    pub(crate) connect: Duration,
    pub(crate) request: Duration,
}

/// Why an operation failed.
pub(crate) enum Fault {
    /// It is not known whether it was carried out.
    Unavailable(String),
    /// It was refused.
    Refused(String),
}

/// Extent of the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Creation time, which distinguishes streams of the same name.
    pub(crate) created: String,
    pub(crate) first: u64,
    pub(crate) last: u64,
}

/// A connection with its stream.
pub(crate) struct Session {
    context: Context,
    stream: Stream,
    subject: String,
    is_cut: watch::Receiver<bool>,
}

impl Session {
    /// Connects, and creates the stream if it is missing.
    pub(crate) async fn open(target: Target) -> Result<Self, Fault> {
        let (cut, is_cut) = watch::channel(false);
        let mut options = ConnectOptions::new()
            .name("tidemark")
            .connection_timeout(target.connect)
            .require_tls(target.is_tls)
            // After a lost connection the store reconnects itself, and checks what has arrived.
            .max_reconnects(1)
            .event_callback(move |event| {
                if matches!(event, Event::Disconnected | Event::Closed) {
                    cut.send_replace(true);
                }
                std::future::ready(())
            });
        if let Some(certificates) = target.certificates {
            options = options.add_root_certificates(certificates);
        }
        if let Some(server) = target.servers.first()
            && let Some(user) = server.username()
        {
            options = match server.password() {
                Some(password) => options.user_and_password(user.to_owned(), password.to_owned()),
                None => options.token(user.to_owned()),
            };
        }
        let client = options.connect(target.servers).await.map_err(|error| {
            let is_final = matches!(
                error.kind(),
                ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation
            );
            if is_final { Fault::Refused(described(&error)) } else { Fault::Unavailable(described(&error)) }
        })?;
        let context = ContextBuilder::new().timeout(target.request).ack_timeout(target.request).build(client);
        let subject = format!("{}.commits", target.stream);
        let config = Config {
            name: target.stream,
            subjects: vec![subject.clone()],
            num_replicas: target.replicas,
            ..Config::default()
        };
        let stream = context.get_or_create_stream(config).await.map_err(|error| {
            let is_final =
                matches!(error.kind(), CreateStreamErrorKind::JetStream(error) if error.code() < 500);
            if is_final { Fault::Refused(described(&error)) } else { Fault::Unavailable(described(&error)) }
        })?;
        let has_limits = {
            let config = &stream.cached_info().config;
            config.max_messages > 0 || config.max_bytes > 0 || !config.max_age.is_zero()
        };
        if has_limits {
            let reason = "the stream forgets messages by a limit of its own: remove it, or choose another";
            return Err(Fault::Refused(reason.to_owned()));
        }
        Ok(Self { context, stream, subject, is_cut })
    }

    pub(crate) fn is_cut(&self) -> bool {
        *self.is_cut.borrow() || self.is_cut.has_changed().is_err()
    }

    /// Returns the longest payload that the server accepts. Bytes.
    pub(crate) fn max_payload(&self) -> usize {
        self.context.client().server_info().max_payload
    }

    /// Waits for `answer`; fails if the connection is lost before.
    async fn unless_cut<T>(&self, answer: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        let mut is_cut = self.is_cut.clone();
        tokio::select! {
            answer = answer => answer,
            _ = is_cut.wait_for(|is_cut| *is_cut) => Err(Fault::Unavailable("the connection was lost".to_owned())),
        }
    }

    /// Returns the present extent of the stream.
    pub(crate) async fn extent(&self) -> Result<Extent, Fault> {
        let info = self.stream.get_info();
        let Info { created, state, .. } = self
            .unless_cut(async { info.await.map_err(|error| Fault::Unavailable(described(&error))) })
            .await?;
        Ok(Extent { created: format!("{created:?}"), first: state.first_sequence, last: state.last_sequence })
    }

    /// Appends a message, and returns its sequence number.
    pub(crate) async fn publish(&self, payload: Vec<u8>) -> Result<u64, Fault> {
        let taken = self.unless_cut(self.send(payload)).await?;
        if taken.stream == self.stream.cached_info().config.name {
            return Ok(taken.sequence);
        }
        Err(Fault::Refused(format!("the stream {} takes its messages", taken.stream)))
    }

    /// Sends a message until a stream accepts it. A new stream exists a moment before it listens,
    /// and in a cluster no stream listens while a leader is elected. A message that no stream
    /// accepted is not stored, so resending it is safe.
    async fn send(&self, payload: Vec<u8>) -> Result<PublishAck, Fault> {
        let (payload, mut sendings) = (payload.into(), 1);
        loop {
            let sent = self.context.publish(self.subject.clone(), Clone::clone(&payload)).await;
            match sent.map_err(|error| Fault::Unavailable(described(&error)))?.await {
                Ok(taken) => return Ok(taken),
                Err(error) if error.kind() == PublishErrorKind::StreamNotFound && sendings < SENDINGS => {
                    sendings += 1;
                    tokio::time::sleep(UNTIL_SENT_AGAIN).await;
                }
                Err(error) => return Err(Fault::Unavailable(described(&error))),
            }
        }
    }

    /// Reads `count` messages from `first` on, concurrently; `None` if one is gone.
    pub(crate) async fn fetch(&self, first: u64, count: u64) -> Result<Option<Vec<Vec<u8>>>, Fault> {
        let mut asked = JoinSet::new();
        for number in first..first + count {
            let stream = self.stream.clone();
            asked.spawn(async move { (number, stream.get_raw_message(number).await) });
        }
        self.unless_cut(async {
            let mut messages = vec![Vec::new(); count as usize];
            while let Some(answer) = asked.join_next().await {
                let (number, answer) = answer.map_err(|error| Fault::Unavailable(described(&error)))?;
                match answer {
                    Ok(message) => {
                        messages[(number - first) as usize] = message.payload.to_vec();
                    }
                    Err(error) => match error.kind() {
                        RawMessageErrorKind::NoMessageFound => return Ok(None),
                        RawMessageErrorKind::JetStream(said)
                            if said.error_code() == ErrorCode::NO_MESSAGE_FOUND =>
                        {
                            return Ok(None);
                        }
                        _ => return Err(Fault::Unavailable(described(&error))),
                    },
                }
            }
            Ok(Some(messages))
        })
        .await
    }

    /// Appends the pieces of a copy, and then removes what they replace: everything up to message
    /// `up_to`.
    pub(crate) async fn replace(&self, up_to: u64, pieces: Vec<Vec<u8>>) -> Result<(), Fault> {
        for piece in pieces {
            if self.publish(piece).await? <= up_to {
                return Err(Fault::Unavailable("the stream has begun anew".to_owned()));
            }
        }
        let purge = self.stream.purge().sequence(up_to + 1);
        self.unless_cut(async { purge.await.map_err(|error| Fault::Unavailable(described(&error))) }).await?;
        Ok(())
    }
}
