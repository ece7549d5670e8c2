//! One connection: commands with their replies, and the server's pushes.

use redis::aio::{MultiplexedConnection, SendError};
use redis::{AsyncConnectionConfig, Cmd, PushInfo, PushKind, RedisResult, Value};
use std::sync::Mutex;
use std::time::Duration;
use tokio::sync::mpsc;

/// Most pushes that wait to be processed. When the queue is full, the connection is given up: the
/// queued pushes are processed, and the next connection asks for the rest. Until then it waits in
/// the server.
const PUSHES_MAX: usize = 1024;
const CONNECT_SECONDS_MAX: u64 = 10;
const ANSWER_SECONDS_MAX: u64 = 20;
/// Time without pushes after which the connection is tested, because a network failure gives no
/// signal.
const SILENCE_SECONDS_MAX: u64 = 10;

pub(crate) struct Link {
    connection: MultiplexedConnection,
    pushes: mpsc::Receiver<PushInfo>,
}

impl Link {
    pub(crate) async fn open(server: &redis::Client) -> RedisResult<Link> {
        let (sender, pushes) = mpsc::channel(PUSHES_MAX);
        // A push that does not fit closes the channel, so no later push is taken for the next one.
        let sender = Mutex::new(Some(sender));
        let push = move |push: PushInfo| {
            let mut sender = sender.lock().map_err(|_| SendError)?;
            let sent = sender.as_ref().is_some_and(|sender| sender.try_send(push).is_ok());
            if sent {
                return Ok(());
            }
            *sender = None;
            Err(SendError)
        };
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(Duration::from_secs(CONNECT_SECONDS_MAX)))
            .set_response_timeout(Some(Duration::from_secs(ANSWER_SECONDS_MAX)))
            .set_push_sender(push);
        let connection = server.get_multiplexed_async_connection_with_config(&config).await?;
        Ok(Link { connection, pushes })
    }

    /// Sends a command and returns the reply.
    pub(crate) async fn ask<'a>(&mut self, words: impl IntoIterator<Item = &'a [u8]>) -> RedisResult<Value> {
        command(words).query_async(&mut self.connection).await
    }

    /// Sends two commands in one write and returns the replies.
    pub(crate) async fn ask_both(&mut self, first: &[&[u8]], second: &[&[u8]]) -> RedisResult<[Value; 2]> {
        let mut both = redis::pipe();
        for words in [first, second] {
            both.add_command(command(words.iter().copied()));
        }
        both.query_async(&mut self.connection).await
    }

    /// Returns the next push; `None` if the connection brings no more.
    pub(crate) async fn next_push(&mut self) -> Option<PushInfo> {
        let silence = Duration::from_secs(SILENCE_SECONDS_MAX);
        loop {
            match tokio::time::timeout(silence, self.pushes.recv()).await {
                Ok(push) => return push.filter(|push| push.kind != PushKind::Disconnection),
                Err(_) => self.ask([b"PING".as_slice()]).await.ok().map(drop)?,
            }
        }
    }
}

fn command<'a>(words: impl IntoIterator<Item = &'a [u8]>) -> Cmd {
    let mut command = Cmd::new();
    for word in words {
        command.arg(word);
    }
    command
}
