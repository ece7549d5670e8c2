//! Sink to a NATS `JetStream` stream.
//!
//! Each message is published with the expected last sequence number of the stream, so the server
//! accepts it only after its predecessor. Many messages can be in flight, and none is reordered,
//! duplicated or lost when the connection fails. That requires a stream without other writers.

use crate::address::{JetStreamTarget, Login};
use crate::outlet::{LSN_HEADER, Message, Outlet, PATIENCE, PROGRESS_HEADER, Trouble};
use async_nats::jetstream::context::ContextBuilder;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{Config, LastRawMessageErrorKind, Stream};
use async_nats::jetstream::{Context, ErrorCode};
use async_nats::{ConnectOptions, Event};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tidemark_log::Lsn;
use tokio::sync::Notify;

/// Duplicate window of a stream that is created here: how long it remembers message IDs.
const DUPLICATE_WINDOW: Duration = Duration::from_mins(2);
/// Allowance for the headers of a message. Bytes.
const HEADER_BYTES: usize = 512;

/// Connection to a `JetStream` stream.
pub(crate) struct JetStream {
    context: Context,
    stream: String,
    subject: String,
    /// Sequence number of the last message in the stream.
    sequence: u64,
    last: Option<Lsn>,
    disconnected: Arc<Notify>,
}

impl Outlet for JetStream {
    type Target = JetStreamTarget;

    async fn open(target: &JetStreamTarget) -> Result<JetStream, Trouble> {
        let disconnected = Arc::new(Notify::new());
        let client = options(target, &disconnected).await?.connect(&target.servers).await;
        let client = client.map_err(|error| Trouble::while_("connecting", error))?;
        let context = ContextBuilder::new().timeout(PATIENCE).ack_timeout(PATIENCE).build(client);
        let stream = context
            .get_or_create_stream(Config {
                name: target.stream.clone(),
                subjects: vec![target.subject.clone()],
                duplicate_window: DUPLICATE_WINDOW,
                ..Config::default()
            })
            .await
            .map_err(|error| Trouble::while_(&format!("looking for the stream {}", target.stream), error))?;
        let info =
            stream.get_info().await.map_err(|error| Trouble::while_("asking for the stream", error))?;
        let last = last_record(&stream, target).await?;
        Ok(JetStream {
            context,
            stream: target.stream.clone(),
            subject: target.subject.clone(),
            sequence: info.state.last_sequence,
            last,
            disconnected,
        })
    }

    fn last(&self) -> Option<Lsn> {
        self.last
    }

    async fn append(&mut self, messages: Vec<Message>) -> Result<(), Trouble> {
        let limit = self.context.client().server_info().max_payload;
        let mut answers = Vec::with_capacity(messages.len());
        for (message, sequence) in messages.into_iter().zip(self.sequence..) {
            if message.payload.len() + HEADER_BYTES > limit {
                return Err(Trouble(format!(
                    "record {} takes {} bytes, and the server's max_payload is {limit}: raise it, or select less",
                    message.lsn,
                    message.payload.len() + HEADER_BYTES
                )));
            }
            let lsn = message.lsn;
            let published = self.context.send_publish(self.subject.clone(), self.framed(message, sequence));
            let answer = published.await.map_err(|error| Trouble::while_("publishing", error))?;
            answers.push((lsn, sequence + 1, answer));
        }
        for (lsn, sequence, answer) in answers {
            let answer = answer.await;
            let taken =
                answer.map_err(|error| Trouble::while_(&format!("publishing record {lsn}"), error))?;
            if taken.duplicate || taken.sequence != sequence {
                return Err(Trouble(format!("record {lsn} was there already")));
            }
            self.sequence = sequence;
        }
        Ok(())
    }

    async fn lost(&self) -> Trouble {
        self.disconnected.notified().await;
        Trouble("the connection was lost".to_owned())
    }
}

impl JetStream {
    /// Builds a message that the stream accepts only directly after message `sequence`.
    fn framed(&self, message: Message, sequence: u64) -> PublishMessage {
        let lsn = message.lsn.to_string();
        let framed = PublishMessage::build()
            // The ID includes the sequence number: an emptied stream remembers message IDs for a
            // while.
            .message_id(format!("{}-{lsn}", sequence + 1))
            .expected_stream(&self.stream)
            .expected_last_sequence(sequence)
            .header(LSN_HEADER, &*lsn)
            .payload(message.payload.into());
        if message.is_progress { framed.header(PROGRESS_HEADER, "1") } else { framed }
    }
}

async fn options(target: &JetStreamTarget, disconnected: &Arc<Notify>) -> Result<ConnectOptions, Trouble> {
    let disconnected = Arc::clone(disconnected);
    let options = ConnectOptions::new()
        .name("tidemark")
        .connection_timeout(PATIENCE)
        // After a lost connection the relay reconnects and determines what has arrived.
        .max_reconnects(1)
        .event_callback(move |event| {
            if matches!(event, Event::Disconnected | Event::Closed) {
                disconnected.notify_one();
            }
            std::future::ready(())
        });
    let login = match &target.login_file {
        None => target.login.clone(),
        Some(path) => Some(login_of_file(path)?),
    };
    let options = match &login {
        None => options,
        Some(Login::Token(token)) => options.token(token.clone()),
        Some(Login::Password(user, password)) => options.user_and_password(user.clone(), password.clone()),
    };
    let options = match &target.authorities {
        None => options,
        Some(path) => options.add_root_certificates(path.clone()),
    };
    match &target.credentials {
        None => Ok(options),
        Some(path) => {
            let read = options.credentials_file(path).await;
            read.map_err(|error| Trouble::while_(&format!("reading {}", path.display()), error))
        }
    }
}

/// Reads a login from a file, which only its owner may access.
fn login_of_file(path: &Path) -> Result<Login, Trouble> {
    let failed = |error| Trouble::while_(&format!("reading {}", path.display()), error);
    let mode = std::fs::metadata(path).map_err(failed)?.permissions().mode();
    if mode & 0o077 != 0 {
        return Err(Trouble(format!(
            "other users of this machine can read {} (mode {:03o}), which holds a login: run `chmod 600` on it",
            path.display(),
            mode & 0o777
        )));
    }
    let text = std::fs::read_to_string(path).map_err(failed)?;
    Ok(Login::of(text.trim_end_matches(['\r', '\n']), str::to_owned))
}

/// Returns the record of the last message; `None` if there is no message.
async fn last_record(stream: &Stream, target: &JetStreamTarget) -> Result<Option<Lsn>, Trouble> {
    let message = match stream.get_last_raw_message_by_subject(&target.subject).await {
        Ok(message) => message,
        Err(error) => {
            return match error.kind() {
                LastRawMessageErrorKind::NoMessageFound => Ok(None),
                LastRawMessageErrorKind::JetStream(refused)
                    if refused.error_code() == ErrorCode::NO_MESSAGE_FOUND =>
                {
                    Ok(None)
                }
                _ => Err(Trouble::while_("asking for the last message", error)),
            };
        }
    };
    let lsn = message.headers.get(LSN_HEADER).and_then(|value| value.as_str().parse().ok());
    lsn.map(|lsn| Some(Lsn(lsn))).ok_or_else(|| {
        Trouble(format!(
            "the last message on {} has no {LSN_HEADER}, so another writer is active there: choose another stream",
            target.subject
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_read_from_a_file_that_only_its_owner_can_read() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("login");
        let write = |text: &str, mode: u32| {
            std::fs::write(&path, text).expect("a file");
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(&path, permissions).expect("permissions");
        };
        write("joe:p@ss:word\n", 0o600);
        let login = login_of_file(&path).expect("a login");
        assert_eq!(login, Login::Password("joe".to_owned(), "p@ss:word".to_owned()));
        write("tok%6en", 0o400);
        assert_eq!(login_of_file(&path).expect("a login"), Login::Token("tok%6en".to_owned()));
        write("joe:secret", 0o640);
        let refused = login_of_file(&path).expect_err("it is refused").to_string();
        assert!(refused.contains("mode 640") && !refused.contains("secret"), "{refused}");
        assert!(login_of_file(&directory.path().join("missing")).is_err());
    }
}
