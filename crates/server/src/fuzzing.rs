//! Interface of the fuzz targets to the server's internals. Behind the feature `fuzzing`; not part
//! of the public interface.

use crate::config::Config;
use crate::context::Context;
use crate::durability::snapshots::Snapshots;
#[cfg(feature = "grpc")]
use crate::grpc::fuzzing as grpc;
use crate::http::fuzzing as http;
use crate::net::client::Origin;
use crate::net::connection::Connection;
use crate::net::event_loop::WAKER;
use crate::net::inbox::Inbox;
use crate::net::outbox::Reached;
use crate::observe::counters::Counters;
use crate::shared::Shared;
use crate::subscription::registry::SubscriptionRegistry;
use mio::{Poll, Waker};
use std::sync::Arc;
use std::time::Duration;
use tidemark_engine::Engine;
use tidemark_log::{Log, Lsn, MemoryStorage, Options};
use tokio::runtime::Runtime;

/// Longest argument of a command. No single command can make a longer string.
const BULK_BYTES_MAX: usize = 64 * 1024;
/// A request that takes longer is considered stuck.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(5);

/// A server without sockets, workers and disk.
pub struct Bench {
    shared: Arc<Shared>,
    config: Config,
    counters: Counters,
    registry: SubscriptionRegistry,
    shows_lead: std::cell::Cell<bool>,
    runtime: Runtime,
    _poll: Poll,
}

impl Bench {
    /// Creates a server with an empty keyspace.
    pub fn new() -> Bench {
        let config = Config {
            max_bulk_bytes: BULK_BYTES_MAX,
            // No replay threads.
            watch_backlogs: 0,
            grpc_pool: "pool".to_owned(),
            ..Config::default()
        };
        let options = Options { segment_bytes: 64 * 1024, ..Options::default() };
        let (log, _) = Log::open(Arc::new(MemoryStorage::new()), options).expect("an empty log opens");
        let poll = Poll::new().expect("the system has room for an event loop");
        let waker = Waker::new(poll.registry(), WAKER).expect("the system has room for a waker");
        // Fixed secrets make random choices reproducible.
        let secrets = |bytes: &mut [u8]| {
            bytes.fill(7);
            Ok(())
        };
        let engine = Engine::new(Arc::new(log), 4, 1).with_secrets(Box::new(secrets));
        let snapshots = Snapshots::new(Lsn::ZERO, engine.log().clock()).0;
        let inboxes = vec![Arc::new(Inbox::new(waker))];
        let shared = Arc::new(Shared::new(engine, snapshots, config.clone(), inboxes));
        let weak = Arc::downgrade(&shared);
        let moved = move |_| weak.upgrade().into_iter().for_each(|shared| shared.http_registry.log_moved());
        shared.engine.log().set_listener(Box::new(moved));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        Bench {
            shared,
            config,
            counters: Counters::default(),
            registry: SubscriptionRegistry::default(),
            shows_lead: std::cell::Cell::new(false),
            runtime: runtime.expect("the system has room for a runtime"),
            _poll: poll,
        }
    }

    /// Sends `input` on a new connection in pieces of `step` bytes. Returns what the server sends.
    ///
    /// # Panics
    /// If the server has no place for the connection.
    pub fn talk(&self, input: &[u8], step: usize) -> Vec<u8> {
        let origin = Origin {
            address: "127.0.0.1:1".to_owned(),
            local_address: "127.0.0.1:2".to_owned(),
            descriptor: 0,
            is_local: true,
            is_unix: false,
        };
        let client = self.shared.clients.admit(10, 0, 0, 0, origin).expect("a place for one connection");
        let budget = &self.shared.client_memory.budget;
        let (mut connection, mut sent) = (Connection::new(client, &self.config, budget), Vec::new());
        for piece in input.chunks(step.max(1)) {
            if !connection.wants_input() {
                break;
            }
            connection.receive(piece, &self.context());
            self.settle(&mut connection, &mut sent);
        }
        connection.end_input(&self.context());
        self.settle(&mut connection, &mut sent);
        connection.close(&self.context());
        sent
    }

    /// Makes everything durable and takes all sendable output, until the connection has no more
    /// work.
    fn settle(&self, connection: &mut Connection, sent: &mut Vec<u8>) {
        let log = self.shared.engine.log();
        loop {
            if connection.waits_for_log() {
                log.wait_durable(log.appended()).expect("memory takes every record");
                connection.log_moved(Reached::by(log), &self.context());
            }
            let sendable = connection.session.outbox.sendable();
            let count = sendable.len();
            sent.extend_from_slice(sendable);
            connection.sent(count);
            if !connection.can_resume() {
                return;
            }
            connection.resume(&self.context());
            assert!(
                count > 0 || connection.session.outbox.pending() > 0 || !connection.can_resume(),
                "a connection that can go on gets no further"
            );
        }
    }

    /// Runs an HTTP or gRPC request without a connection. Returns the response's status, or `None`
    /// if the path does not exist. A gRPC body is the message alone.
    ///
    /// # Panics
    /// If the request is not answered in time.
    pub fn request(&self, target: &str, body: &[u8]) -> Option<u16> {
        let answer = async {
            #[cfg(feature = "grpc")]
            if let Some(method) = target.strip_prefix("/grpc/") {
                return grpc::request(&self.shared, method, body).await;
            }
            http::request(&self.shared, target, body).await
        };
        let answer = async { tokio::time::timeout(REQUEST_TIME_MAX, answer).await };
        self.runtime.block_on(answer).expect("a request is answered in time")
    }

    fn context(&self) -> Context<'_> {
        Context {
            shared: &self.shared,
            config: &self.config,
            counters: &self.counters,
            registry: &self.registry,
            turn: std::time::Duration::from_hours(1),
            now_us: 1_000_000,
            shows_lead: &self.shows_lead,
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // The log's threads hold the server while they notify it, and must not be the last to drop
        // the log.
        self.shared.engine.log().close().expect("memory takes every record");
    }
}

impl Default for Bench {
    fn default() -> Bench {
        Bench::new()
    }
}
