//! Serves gRPC on a thread of its own, so that draws delay neither workers nor HTTP.

use super::description::file_descriptors;
use super::listener::connections;
use super::pool::status;
use super::service::RewardPoolService;
use crate::durability::loading::LOADING;
use crate::http::access;
use crate::http::refusal::Refusal;
use crate::shared::Shared;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tonic::service::InterceptorLayer;
use tonic::transport::Server;
use tonic::{Request, Status};
use tonic_reflection::server::Builder;

/// Most concurrent calls on one connection.
const CALLS_MAX: u32 = 256;
/// Interval of keep-alive pings, and the time limit for their answer.
const KEEPALIVE: Duration = Duration::from_mins(1);
const KEEPALIVE_PATIENCE: Duration = Duration::from_secs(20);
/// Time that calls have to finish when the server stops.
const FAREWELL: Duration = Duration::from_secs(1);

/// The running gRPC server.
pub(crate) struct Grpc {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Grpc {
    /// Listens on `address` and starts to serve.
    pub(crate) fn start(address: SocketAddr, shared: Arc<Shared>) -> io::Result<Grpc> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let listener = runtime.block_on(TcpListener::bind(address))?;
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let run = move || runtime.block_on(serve(listener, shared, stopped));
        let thread = std::thread::Builder::new().name("tidemark-grpc".to_owned()).spawn(run)?;
        Ok(Grpc { address, stop, thread })
    }

    /// Returns the address that it listens on.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops the server; calls have a moment to finish. Fails if its thread has panicked.
    pub(crate) fn stop(self) -> std::thread::Result<()> {
        // A thread that has panicked has dropped the receiver.
        let _ = self.stop.send(());
        self.thread.join()
    }
}

async fn serve(listener: TcpListener, shared: Arc<Shared>, stopped: oneshot::Receiver<()>) {
    let (over, is_over) = oneshot::channel::<()>();
    // The description is constant, and a test requests it.
    let description = || Builder::configure().register_file_descriptor_set(file_descriptors());
    let reflection = description().build_v1().expect("the service is described well");
    let older_reflection = description().build_v1alpha().expect("the service is described well");
    let guard = {
        let shared = Arc::clone(&shared);
        InterceptorLayer::new(move |request| check(&shared, request))
    };
    let mut server = Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE_PATIENCE))
        .max_concurrent_streams(CALLS_MAX)
        .layer(guard);
    let services =
        server.add_service(RewardPoolService(shared)).add_service(reflection).add_service(older_reflection);
    let serving = services.serve_with_incoming_shutdown(connections(listener), async {
        let _ = is_over.await;
    });
    tokio::pin!(serving);
    tokio::select! {
        // Errors of sockets end only their connections.
        ended = &mut serving => unreachable!("gRPC is served until the server stops, and it ended with {ended:?}"),
        _ = stopped => {
            let _ = over.send(());
            let _ = tokio::time::timeout(FAREWELL, serving).await;
        }
    }
}

/// Checks access: as for sending commands.
fn check(shared: &Shared, request: Request<()>) -> Result<Request<()>, Status> {
    let Some(peer) = request.remote_addr() else {
        return Err(Status::permission_denied("the address of the client is unknown"));
    };
    if !shared.engine.is_loaded() {
        return Err(Status::unavailable(LOADING));
    }
    let headers = request.metadata().clone().into_headers();
    match access::check(&shared.settings.current(), &shared.logins, peer, &headers, None) {
        Ok(()) => Ok(request),
        Err(denied) => Err(status(&Refusal::from(denied))),
    }
}
