//! Start, run and stop of the whole server.

use crate::config::{ClusterReads, Config};
use crate::durability::recover_error::{RecoverError, damage_of};
use crate::durability::recovery::{self, OpenLog};
use crate::durability::scrub;
use crate::durability::snapshot_thread;
use crate::durability::snapshots::{Requests, Snapshots};
use crate::group::{
    Ended, Group, GroupNode, Leadership, Membership, Messages, NodeError, keep_with_log, meeting,
};
use crate::grpc::Grpc;
use crate::http::Http;
use crate::migrate;
use crate::net::event_loop::{EventLoop, WAKER};
use crate::net::event_loop_threads::EventLoopThreads;
use crate::net::file_descriptors;
use crate::net::inbox::Inbox;
use crate::net::listener::{self, ListenError};
use crate::net::offload;
use crate::observe::operator_line::say;
use crate::sealing_thread;
use crate::shared::Shared;
use crate::subscription::channel_publisher;
use crate::subscription::registry::Listeners;
use crate::subscription::replay;
use mio::{Poll, Waker};
use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use tidemark_engine::{FollowError, TakeError};
use tidemark_log::{Clock, Failure, Health, Lsn, Progress, ReplayError};

/// Why the server does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data cannot be read.
    #[error(transparent)]
    Recover(#[from] RecoverError),
    /// This server cannot be a member of its cluster.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// An address cannot be used.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The HTTP address cannot be used.
    #[error("cannot serve HTTP on {address}: {error}; choose another address with --http")]
    Http {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        error: io::Error,
    },
    /// The gRPC address cannot be used.
    #[error("cannot serve gRPC on {address}: {error}; choose another address with --grpc")]
    Grpc {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        error: io::Error,
    },
    /// The system refuses a resource.
    #[error("cannot {what}: {error}")]
    System {
        /// What was attempted.
        what: &'static str,
        /// The system's error.
        error: io::Error,
    },
}

impl StartError {
    /// Returns what the disk has damaged, in words; `None` if the error is another one.
    fn damage(&self) -> Option<String> {
        match self {
            StartError::Recover(error) => error.damage(),
            StartError::Node(NodeError::Damaged(error)) => Some(error.to_string()),
            _ => None,
        }
    }
}

/// Why the server did not stop cleanly.
#[derive(Debug, thiserror::Error)]
pub enum StopError {
    /// The log could not be completed. Changes that were acknowledged before they were durable may
    /// be lost.
    #[error("the log could not be completed: {0}; changes that were not yet on disk may be lost")]
    Log(Failure),
    /// The snapshot of `SHUTDOWN SAVE` failed.
    #[error(
        "the snapshot that SHUTDOWN SAVE asked for failed: {0}; nothing is lost, the log has every change"
    )]
    Snapshot(TakeError),
    /// A thread has panicked.
    #[error("thread {thread} has panicked: this is a defect of Tidemark, please report it")]
    Panicked {
        /// The thread's name.
        thread: String,
    },
    /// A worker's event loop has failed.
    #[error("the event loop of a worker has failed: {0}")]
    Poll(io::Error),
    /// This member cannot follow the log of its group.
    #[error("this member cannot follow the log of its group: {0}")]
    Follow(FollowError),
    /// The consensus has ended.
    #[error("this member takes no part in its group any more: {0}")]
    Consensus(String),
    /// This member's part in its group did not end as it should.
    #[error("the end of this member's part in its group could not be noted: {0}")]
    Node(io::Error),
    /// The server could not be started again over the same log.
    #[error("the server does not start again over its log: {0}")]
    Start(#[from] StartError),
}

/// A running server. Dropping it without [`Server::wait`] leaves its threads running.
///
/// A panic of a worker thread stops the server. A panic of another thread is reported when the
/// server stops. A program that runs nothing but the server calls [`crate::abort_on_panic`] first,
/// to end the process on the first panic.
pub struct Server {
    shared: Arc<Shared>,
    current: Arc<Current>,
    opened: OpenLog,
    /// Membership in a group.
    node: Option<Arc<GroupNode>>,
    /// The thread that keeps memory with the log of a group.
    memory: Option<JoinHandle<Result<Ended, FollowError>>>,
    /// `Some` until the snapshot thread starts.
    requests: Mutex<Option<Requests>>,
    workers: Vec<JoinHandle<io::Result<()>>>,
    snapshots: Option<JoinHandle<Result<(), TakeError>>>,
    /// Threads besides the workers and the snapshot thread.
    helpers: Vec<JoinHandle<()>>,
    http: Option<Http>,
    grpc: Option<Grpc>,
    addresses: Vec<SocketAddr>,
    report: String,
}

impl Server {
    /// Opens the log, listens and loads the data. Clients are served when this returns.
    pub fn start(config: Config) -> Result<Server, StartError> {
        let mut server = Self::open(config)?;
        server.load()?;
        Ok(server)
    }

    /// Opens the log and listens. Clients are answered `LOADING` until [`Server::load`] has loaded
    /// the data.
    pub fn open(config: Config) -> Result<Server, StartError> {
        Self::open_with(config, Clock::System)
    }

    /// Like [`Server::open`], with the clock that the server and its log read. Timeouts of HTTP and
    /// gRPC connections are tokio's, and real time with any clock.
    pub fn open_with(config: Config, clock: Clock) -> Result<Server, StartError> {
        listener::check_free(&config)?;
        if config.disable_thp {
            // Best effort: a failure costs speed at times, never correctness.
            let _ = rustix::thread::disable_transparent_huge_pages(true);
        }
        let (opened, node) = Self::open_log(&config, clock.clone()).or_else(|error| {
            let replace = |damage: String| Membership::request_replacement(&config, &damage);
            match error.damage().map(replace) {
                Some(Ok(true)) => Self::open_log(&config, clock),
                _ => Err(error),
            }
        })?;
        Self::over(opened, node, config)
    }

    /// Opens the log, and takes part in the group that the directory is a member of.
    fn open_log(config: &Config, clock: Clock) -> Result<(OpenLog, Option<Arc<GroupNode>>), StartError> {
        let mut opened = recovery::open(config, clock)?;
        let Some((membership, member)) = opened.membership.take() else { return Ok((opened, None)) };
        // It votes before its data is loaded.
        let node = Arc::new(GroupNode::start(config, membership, &opened.log, member)?);
        let begun = node.found().and_then(|()| meeting::start(&node, config, opened.log.clock()));
        begun.map_err(|error| StartError::System { what: "start a thread", error })?;
        Ok((opened, Some(node)))
    }

    /// Listens, over a log that is open. Nothing in memory is left of a server that had it before.
    fn over(opened: OpenLog, node: Option<Arc<GroupNode>>, mut config: Config) -> Result<Server, StartError> {
        let warning = raise_descriptor_limit(&mut config);
        let listening = listener::listen(&config, config.worker_count())?;
        let (polls, inboxes) = event_loops(config.worker_count())?;
        let (http_address, grpc_address) = (config.http, config.grpc);
        let (snapshots, requests) = Snapshots::new(Lsn::default(), opened.log.clock());
        let empty = recovery::empty_engine(&opened.log, &config);
        let confirms = config.cluster_reads == ClusterReads::Index;
        let group = node.clone().map(|node| Group::of(node).confirming_reads(confirms));
        let shared = Arc::new(Shared::loading(empty, snapshots, config, inboxes, group));
        let mut workers = Vec::new();
        let threads = EventLoopThreads::new(polls.len(), &shared.clock);
        for (index, (poll, listeners)) in polls.into_iter().zip(listening.by_worker).enumerate() {
            let failed = |error| StartError::System { what: "start an event loop", error };
            let worker = EventLoop::new(Arc::clone(&shared), index, poll, listeners).map_err(failed)?;
            let (threads, worker) = (Arc::clone(&threads), Box::new(worker));
            let thread = run_worker(index, Arc::clone(&shared), move || threads.run(Some(worker)));
            workers.push(thread.map_err(|error| StartError::System { what: "start a thread", error })?);
        }
        let stand_in = run_worker(workers.len(), Arc::clone(&shared), move || threads.run(None));
        workers.push(stand_in.map_err(|error| StartError::System { what: "start a thread", error })?);
        let http = match http_address {
            None => None,
            Some(address) => {
                let http = Http::start(address, Arc::clone(&shared));
                Some(http.map_err(|error| StartError::Http { address, error })?)
            }
        };
        let grpc = match grpc_address {
            None => None,
            Some(address) => {
                let grpc = Grpc::start(address, Arc::clone(&shared));
                Some(grpc.map_err(|error| StartError::Grpc { address, error })?)
            }
        };
        Ok(Server {
            current: Arc::new(Current { shared: Mutex::new(Arc::clone(&shared)), is_stopped: false.into() }),
            shared,
            opened,
            node,
            memory: None,
            requests: Mutex::new(Some(requests)),
            workers,
            snapshots: None,
            helpers: Vec::new(),
            http,
            grpc,
            addresses: listening.addresses,
            report: warning.unwrap_or_default(),
        })
    }

    /// Loads the data, then serves it. Returns `false` if the server was stopped before all data
    /// was loaded; the caller still has to [wait](Server::wait) for its end. An error ends the
    /// server.
    pub fn load(&mut self) -> Result<bool, StartError> {
        let loaded = self.load_data();
        if loaded.is_err() {
            self.shared.stop();
            // The load error is reported; it says more than a thread's error.
            let _ = self.stop_doors();
        }
        loaded
    }

    fn load_data(&mut self) -> Result<bool, StartError> {
        let requests = self.requests.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        let requests = requests.expect("the data is loaded once");
        let shared = &self.shared;
        let _loading = self.node.as_ref().map(|node| node.leadership().load());
        let recovered = match recovery::load(&self.opened, &shared.settings.current(), &shared.loading) {
            Ok(recovered) => recovered,
            Err(RecoverError::GivenUp) => return Ok(false),
            Err(error) => {
                if let (Some(node), Some(damage)) = (&self.node, error.damage()) {
                    node.request_replacement(&damage);
                }
                return Err(error.into());
            }
        };
        let inboxes = shared.inboxes.clone();
        let (http, channels) = (Arc::clone(&shared.http_registry), Arc::clone(&shared.channel_registry));
        recovered.engine.set_audience(Box::new(Listeners { workers: inboxes.clone(), http, channels }));
        shared.snapshots.note_loaded(recovered.snapshot);
        shared.snapshots.begin(recovered.snapshot_bytes, recovered.replayed_bytes);
        recovered.engine.log().note_snapshot(recovered.snapshot_bytes, 0);
        recovered.engine.log().offer_relief();
        let of_group =
            self.node.as_ref().map(|node| (Arc::clone(node.leadership()), Arc::clone(node.messages())));
        listen_to_log(shared, inboxes, of_group);
        let no_thread = |error| StartError::System { what: "start a thread", error };
        self.snapshots = Some(snapshot_thread::start(Arc::clone(shared), requests).map_err(no_thread)?);
        self.helpers = replay::start(shared).map_err(no_thread)?;
        self.helpers.extend(offload::start(shared).map_err(no_thread)?);
        self.helpers.push(migrate::start(shared).map_err(no_thread)?);
        self.helpers.push(channel_publisher::start(shared).map_err(no_thread)?);
        shared.feed.start().map_err(no_thread)?;
        let (addresses, log) = (&shared.settings.current().sinks, shared.engine.log());
        let sinks = shared.sinks.start(addresses, &shared.feed, log, || shared.leads());
        sinks.map_err(|error| StartError::System { what: "start the sinks", error })?;
        shared.install(recovered.engine);
        self.helpers.push(scrub::start(shared, self.node.as_ref()).map_err(no_thread)?);
        self.helpers.push(sealing_thread::start(shared).map_err(no_thread)?);
        if let Some(node) = &self.node {
            node.leadership().begin_with(Arc::downgrade(shared));
            self.memory = Some(keep_memory(shared, node).map_err(no_thread)?);
        }
        if shared.is_stopping() {
            // The stop may have reached only the engine before this one.
            shared.engine.stop_sealing();
        }
        self.report = [std::mem::take(&mut self.report), recovered.report]
            .into_iter()
            .filter(|lines| !lines.is_empty())
            .collect::<Vec<_>>()
            .join("\n");
        Ok(true)
    }

    /// TCP addresses that the server listens on.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Address that HTTP is served on.
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.http.as_ref().map(Http::address)
    }

    /// Address that gRPC is served on.
    pub fn grpc_address(&self) -> Option<SocketAddr> {
        self.grpc.as_ref().map(Grpc::address)
    }

    /// Human-readable findings of the start, one per line.
    pub fn report(&self) -> &str {
        &self.report
    }

    /// Returns a handle that stops the server from another thread.
    pub fn stopper(&self) -> Stopper {
        Stopper { current: Arc::clone(&self.current) }
    }

    /// Waits until a [`Stopper`] or `SHUTDOWN` has stopped the server and its data is on disk.
    ///
    /// In a group, memory with changes that the group has taken back is dropped and loaded again from
    /// the log meanwhile; clients are disconnected then.
    pub fn wait(self) -> Result<(), StopError> {
        let mut server = self;
        loop {
            let (mut left, result) = server.end();
            if left.is_outdated && result.is_ok() {
                // The memory of before goes first: there is room for it once.
                let config = left.config;
                server = Self::over(left.opened, left.node, config)?;
                server.current = left.current;
                server.current.replace(&server.shared);
                server.load()?;
                continue;
            }
            let node = left.node.take();
            let begins_again = node.as_ref().is_some_and(|node| node.begins_again());
            let stopped = node.map_or(Ok(()), |node| node.close());
            let clock = left.opened.log.clock().clone();
            left.opened.log.close().map_err(StopError::Log)?;
            if begins_again && result.is_ok() && stopped.is_ok() && !left.current.is_stopped() {
                server = Self::open_with(left.config, clock)?;
                server.current = left.current;
                server.current.replace(&server.shared);
                server.load()?;
                continue;
            }
            return result.and(stopped.map_err(StopError::Node));
        }
    }

    /// Waits until the server has stopped. Returns what is left, and whether all went well.
    fn end(mut self) -> (Left, Result<(), StopError>) {
        let mut result = self.stop_doors();
        for thread in self.helpers {
            result = result.and(joined(thread));
        }
        let mut is_outdated = false;
        if let (Some(node), Some(memory)) = (&self.node, self.memory) {
            node.leadership().stop();
            match joined(memory) {
                Ok(Ok(Ended::Failed(failure))) => result = result.and(Err(StopError::Consensus(failure))),
                Ok(Ok(ended)) => is_outdated = ended == Ended::Outdated,
                Ok(Err(error)) => result = result.and(Err(StopError::Follow(error))),
                Err(panicked) => result = result.and(Err(panicked)),
            }
        }
        let engine = &self.shared.engine;
        let refused = if engine.is_following() || is_outdated {
            0
        } else {
            engine.commit_all(self.shared.clock.now_us())
        };
        if refused > 0 {
            say(&format!(
                "error: the last changes of counters are lost, because they could not be committed; counters: {refused}"
            ));
        }
        self.shared.sinks.stop();
        self.shared.feed.stop();
        self.shared.snapshots.stop();
        match self.snapshots.map(joined) {
            None | Some(Ok(Ok(()))) => {}
            Some(Ok(Err(_))) if is_outdated => {}
            Some(Ok(Err(error))) => result = result.and(Err(StopError::Snapshot(error))),
            Some(Err(panicked)) => result = result.and(Err(panicked)),
        }
        let config = (*self.shared.settings.current()).clone();
        let Server { opened, node, current, .. } = self;
        (Left { opened, node, current, config, is_outdated }, result)
    }

    /// Waits until the workers and the HTTP and gRPC listeners have ended.
    fn stop_doors(&mut self) -> Result<(), StopError> {
        let mut result = Ok(());
        for worker in self.workers.drain(..) {
            match joined(worker) {
                Ok(Ok(())) => {}
                Ok(Err(error)) => result = result.and(Err(StopError::Poll(error))),
                Err(panicked) => result = result.and(Err(panicked)),
            }
        }
        if self.http.take().is_some_and(|http| http.stop().is_err()) {
            result = result.and(Err(StopError::Panicked { thread: "tidemark-http".to_owned() }));
        }
        if self.grpc.take().is_some_and(|grpc| grpc.stop().is_err()) {
            result = result.and(Err(StopError::Panicked { thread: "tidemark-grpc".to_owned() }));
        }
        if let Some(path) = &self.shared.settings.current().unixsocket {
            // Nothing listens on the socket any more.
            let _ = std::fs::remove_file(path);
        }
        result
    }
}

/// What is left when a server has ended.
struct Left {
    opened: OpenLog,
    node: Option<Arc<GroupNode>>,
    current: Arc<Current>,
    config: Config,
    /// Memory had changes that the group has taken back.
    is_outdated: bool,
}

/// The state that is served now: another one after memory was loaded again.
struct Current {
    shared: Mutex<Arc<Shared>>,
    is_stopped: AtomicBool,
}

impl Current {
    /// Whether the server was told to stop.
    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::SeqCst)
    }

    fn replace(&self, shared: &Arc<Shared>) {
        *self.shared.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(shared);
        if self.is_stopped() {
            shared.stop();
        }
    }
}

/// Stops a server from another thread.
#[derive(Clone)]
pub struct Stopper {
    current: Arc<Current>,
}

impl Stopper {
    /// Begins a graceful stop: refuses new connections, answers received requests and completes the
    /// log. The leader of a group hands the lead to another member first; a second call does not wait for
    /// that.
    pub fn stop(&self) {
        self.current.is_stopped.store(true, Ordering::SeqCst);
        self.current.shared.lock().unwrap_or_else(PoisonError::into_inner).stop_gracefully();
    }
}

/// Joins a thread and returns its result.
fn joined<T>(thread: JoinHandle<T>) -> Result<T, StopError> {
    let name = thread.thread().name().unwrap_or("without a name").to_owned();
    thread.join().map_err(|_| StopError::Panicked { thread: name })
}

/// Runs a worker on its own thread.
fn run_worker(
    index: usize,
    shared: Arc<Shared>,
    run: impl FnOnce() -> io::Result<()> + Send + 'static,
) -> io::Result<JoinHandle<io::Result<()>>> {
    std::thread::Builder::new().name(format!("tidemark-worker-{index}")).spawn(move || {
        let _guard = StopsWithWorker(shared);
        run()
    })
}

/// Stops the whole server when one worker ends early or panics. A server with a missing worker is
/// useless; a supervisor can restart the process.
struct StopsWithWorker(Arc<Shared>);

impl Drop for StopsWithWorker {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Keeps memory with the log of a group. When it has to be loaded again, or cannot be kept, the server
/// stops.
fn keep_memory(
    shared: &Arc<Shared>,
    node: &Arc<GroupNode>,
) -> io::Result<JoinHandle<Result<Ended, FollowError>>> {
    let (shared, node, leadership) = (Arc::clone(shared), Arc::clone(node), Arc::clone(node.leadership()));
    std::thread::Builder::new().name("tidemark-memory".to_owned()).spawn(move || {
        let ended = keep_with_log(&shared, &leadership, || node.staleness(), || node.failure());
        match &ended {
            Ok(Ended::Stopped) => {}
            Ok(Ended::Outdated) => {
                say("the log of this member has changed: it loads its data again");
            }
            Ok(Ended::Failed(failure)) => {
                say(&format!("error: this member takes no part any more: {failure}"));
            }
            Err(error) => {
                if let FollowError::Read(ReplayError::Damaged(damage)) = error {
                    node.request_replacement(&damage_of(damage));
                }
                say(&format!("error: this member cannot follow the log: {error}"));
            }
        }
        shared.stop();
        ended
    })
}

/// Registers the log listener. It wakes workers whose clients wait for the log, and requests a
/// snapshot when the log has grown enough. The log owns the listener and lives as long as the
/// shared state: hence the weak reference.
fn listen_to_log(
    shared: &Arc<Shared>,
    inboxes: Vec<Arc<Inbox>>,
    of_group: Option<(Arc<Leadership>, Arc<Messages>)>,
) {
    let weak = Arc::downgrade(shared);
    let (was_writable, was_retaining) = (AtomicBool::new(true), AtomicBool::new(false));
    let listener = move |progress: Progress| {
        inboxes.iter().for_each(|inbox| inbox.log_moved());
        if let Some((leadership, messages)) = &of_group {
            leadership.log_moved();
            messages.log_moved();
        }
        let Some(shared) = weak.upgrade() else { return };
        shared.http_registry.log_moved();
        shared.feed.log_moved();
        if was_writable.swap(progress.writable, Ordering::AcqRel) != progress.writable {
            let health = shared.engine.log().health();
            // In a group the log refuses records while another member leads.
            if of_group.is_none() || !matches!(health, Health::Ok) {
                report_to_operator(progress.writable, &health);
            }
        }
        if was_retaining.swap(progress.retaining, Ordering::AcqRel) != progress.retaining {
            report_old_segments(shared.engine.log().retention_failure());
        }
        if !shared.engine.is_loaded() {
            // A snapshot must not be taken before all data is loaded.
            return;
        }
        let config = shared.settings.current();
        let (after, after_bytes) = (config.snapshot_after, config.snapshot_after_bytes);
        shared.snapshots.request_if_due(shared.engine.log(), progress.wants_relief, after, after_bytes);
    };
    shared.engine.log().set_listener(Box::new(listener));
}

/// Writes to standard error that changes are refused, or accepted again.
fn report_to_operator(writable: bool, health: &Health) {
    let line = match health {
        // The log is being closed.
        Health::Ok if !writable => return,
        Health::Ok => "the log accepts changes again".to_owned(),
        Health::Full(failure) => {
            format!("warning: {failure}; changes are refused until there is space, reads continue")
        }
        Health::Stalled(stall) => {
            format!("warning: {stall}; changes are refused until it answers, reads continue")
        }
        Health::Failed(failure) => {
            format!(
                "error: {failure}; changes are refused until the disk is repaired and the server restarted, reads continue"
            )
        }
    };
    say(&line);
}

/// Writes to standard error that old segments cannot be removed, or are removed again.
fn report_old_segments(failure: Option<Failure>) {
    say(&match failure {
        Some(failure) => {
            format!(
                "warning: {failure}; the log keeps old segments until that succeeds, everything else works"
            )
        }
        None => "the log drops old segments again".to_owned(),
    });
}

/// Creates an event loop and an inbox for each worker.
fn event_loops(count: usize) -> Result<(Vec<Poll>, Vec<Arc<Inbox>>), StartError> {
    let failed = |error| StartError::System { what: "create an event loop", error };
    let (mut polls, mut inboxes) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let poll = Poll::new().map_err(failed)?;
        let waker = Waker::new(poll.registry(), WAKER).map_err(failed)?;
        polls.push(poll);
        inboxes.push(Arc::new(Inbox::new(waker)));
    }
    Ok((polls, inboxes))
}

/// Raises the descriptor limit to what `maxclients` and HTTP connections need. If the system grants
/// fewer, lowers the limits and returns a warning: a visible limit is better than failing
/// connections.
fn raise_descriptor_limit(config: &mut Config) -> Option<String> {
    let too_few = file_descriptors::provide_for(&config.connections()).err()?;
    config.maxclients = too_few.clients;
    let mut limits = format!("maxclients is {}", too_few.clients);
    if config.http.is_some() {
        config.fit_http(too_few.http);
        let _ = write!(
            limits,
            ", http-connections {} and http-watch-connections {}",
            config.http_connections, config.http_watch_connections
        );
    }
    Some(format!(
        "warning: the system allows {} open files, so {limits}; raise it with `ulimit -n`",
        too_few.files
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_engine::Engine;
    use tidemark_log::{Log, Lsn, MemoryStorage, Options};

    #[test]
    fn a_worker_that_panics_stops_the_server() {
        let (log, _) = Log::open(Arc::new(MemoryStorage::new()), Options::default()).expect("an empty log");
        let (_polls, inboxes) = event_loops(2).expect("event loops");
        let snapshots = Snapshots::new(Lsn::default(), log.clock()).0;
        let engine = Engine::new(Arc::new(log), 4, 1);
        let shared = Arc::new(Shared::new(engine, snapshots, Config::default(), inboxes));
        let broken = run_worker(1, Arc::clone(&shared), || -> io::Result<()> { panic!("a defect") });
        assert!(broken.expect("a thread").join().is_err());
        assert!(shared.is_stopping());
    }
}
