//! Serves metrics, health, watched reads, changes and limits over HTTP on a thread of its own, so
//! that no request delays a worker's clients.

use crate::durability::loading::LOADING;
use crate::group::Refusal;
use crate::http::listener::{FewListener, Patience, Visit};
use crate::http::refusal::Refusal as HttpRefusal;
use crate::http::{access, api_key, changes, limiting, stream, watching};
use crate::observe::metrics;
use crate::shared::Shared;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::MethodRouter;
use axum::routing::{any, get, post};
use axum::{Router, serve};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tidemark_log::{Clock, Health};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// Time limits of connections.
const PATIENCE: Patience = Patience { request: Duration::from_secs(10), reader: Duration::from_mins(1) };

/// The running HTTP server.
pub(crate) struct Http {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Http {
    /// Listens on `address` and starts to serve.
    pub(crate) fn start(address: SocketAddr, shared: Arc<Shared>) -> io::Result<Http> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let listener = runtime.block_on(TcpListener::bind(address))?;
        let address = listener.local_addr()?;
        let connections = shared.settings.current().http_connections;
        let (stop, stopped) = oneshot::channel::<()>();
        let run = move || {
            runtime.block_on(async {
                let registry = wake_watchers(&shared);
                let router = router(Arc::clone(&shared)).into_make_service_with_connect_info::<Visit>();
                let server = async { serve(FewListener::new(listener, connections, PATIENCE), router).await };
                // Cut-off requests lose nothing; watching clients reconnect.
                tokio::select! {
                    ended = server => unreachable!("HTTP is served until the server stops, and it ended with {ended:?}"),
                    () = registry => unreachable!("subscribers are woken until the server stops"),
                    _ = stopped => {}
                }
            });
        };
        let thread = std::thread::Builder::new().name("tidemark-http".to_owned()).spawn(run)?;
        Ok(Http { address, stop, thread })
    }

    /// Returns the address that it listens on.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops the server. Returns an error if its thread has panicked.
    pub(crate) fn stop(self) -> std::thread::Result<()> {
        // A thread that has panicked has dropped the receiver.
        let _ = self.stop.send(());
        self.thread.join()
    }
}

/// Wakes subscribers and forgets abandoned watched reads while the thread runs. A worker without
/// clients may sleep and not do it.
async fn wake_watchers(shared: &Shared) {
    loop {
        tokio::select! {
            () = shared.http_registry.pass_on() => {}
            () = until(shared.next_forgetting(), &shared.clock) => shared.forget_watched(shared.clock.now_us()),
        }
    }
}

/// Waits until a time in milliseconds since 1970; `None` waits for ever.
async fn until(at_ms: Option<u64>, clock: &Clock) {
    match at_ms {
        None => std::future::pending().await,
        Some(at_ms) => tokio::time::sleep(clock.timeout_us(at_ms.saturating_mul(1000))).await,
    }
}

fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/v1/watch", get(watching::watch).options(stream::options))
        .route("/v1/changes", get(changes::changes).options(stream::options))
        .route("/check", any(api_key::check).options(api_key::options))
        .route("/release", any(api_key::release).options(api_key::options))
        .layer(from_fn(note_request))
        // These note the request themselves, once its body has arrived.
        .route("/v1/check", limited(post(limiting::check)))
        .route("/v1/release", limited(post(limiting::release)))
        .layer(from_fn_with_state(Arc::clone(&shared), admit))
        // Served in any place: they must answer when all places are taken.
        .merge(about_server())
        .with_state(shared)
}

/// Routes for supervisors and monitoring.
fn about_server() -> Router<Arc<Shared>> {
    Router::new()
        .route("/metrics", get(metrics))
        .route("/health/live", get(live))
        .route("/health/ready", get(ready))
        .route("/health/leader", get(leader))
        .layer(from_fn(note_request))
}

/// Adds `OPTIONS` and the refusal of other methods.
fn limited(post: MethodRouter<Arc<Shared>>) -> MethodRouter<Arc<Shared>> {
    post.options(limiting::options).fallback(limiting::other_method)
}

/// Notes a request, which ends the connection's silence until it is answered.
async fn note_request(ConnectInfo(visit): ConnectInfo<Visit>, request: Request, next: Next) -> Response {
    visit.note_request();
    next.run(request).await
}

/// Refuses requests in a spare place while no ordinary one is free, and requests during loading.
async fn admit(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(visit): ConnectInfo<Visit>,
    request: Request,
    next: Next,
) -> Response {
    if !shared.engine.is_loaded() {
        return HttpRefusal::unavailable(LOADING).into_response();
    }
    if !visit.find_ordinary_place() {
        let reason = "all of http-connections are being served; ask again later";
        return HttpRefusal::unavailable(reason).into_response();
    }
    next.run(request).await
}

async fn metrics(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(visit): ConnectInfo<Visit>,
    headers: HeaderMap,
) -> Response {
    const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    if let Err(denied) = access::check_visitor(&shared.settings.current(), visit.address, &headers) {
        return HttpRefusal::from(denied).into_response();
    }
    match metrics::encode(&shared) {
        Ok(text) => ([(header::CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

async fn live() -> &'static str {
    "live\n"
}

/// Whether the server is fully operational: not while it loads or stops, nor if it cannot write.
async fn ready(State(shared): State<Arc<Shared>>) -> (StatusCode, String) {
    if shared.is_stopping() {
        return (StatusCode::SERVICE_UNAVAILABLE, "the server is stopping\n".to_owned());
    }
    shared.engine.log().look_for_stall();
    if !shared.engine.is_loaded() {
        let figures = shared.loading.figures();
        let (done, total, units) = (figures.done, figures.total, figures.source.units());
        return (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("the data is being loaded: {done} of {total} {units}\n"),
        );
    }
    match shared.engine.log().health() {
        Health::Ok => match shared.engine.check_writable() {
            Ok(()) => (StatusCode::OK, "ready\n".to_owned()),
            Err(error) => (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")),
        },
        Health::Full(reason) => {
            let text = format!("the log cannot grow, changes are refused: {reason}; {}\n", reason.remedy());
            (StatusCode::SERVICE_UNAVAILABLE, text)
        }
        Health::Stalled(stall) => {
            let text = format!("the log waits, changes are refused: {stall}\n");
            (StatusCode::SERVICE_UNAVAILABLE, text)
        }
        Health::Failed(reason) => {
            let text = format!("the log has failed, changes are refused until a restart: {reason}\n");
            (StatusCode::SERVICE_UNAVAILABLE, text)
        }
    }
}

/// Whether commands that change data run here now: for load balancers. Otherwise the answer names the
/// leader, if one is known.
async fn leader(State(shared): State<Arc<Shared>>) -> (StatusCode, String) {
    let unavailable = |text: String| (StatusCode::SERVICE_UNAVAILABLE, text);
    if shared.is_stopping() {
        return unavailable("the server is stopping\n".to_owned());
    }
    if !shared.engine.is_loaded() {
        return unavailable("the data is being loaded\n".to_owned());
    }
    let Some(group) = &shared.group else {
        return (StatusCode::OK, "this server is alone\n".to_owned());
    };
    match group.consensus().admit() {
        Ok(term) => (StatusCode::OK, format!("member {} leads in term {term}\n", group.me())),
        Err(Refusal::Moved(leader)) => {
            let address = group.address_of(leader).unwrap_or_default();
            unavailable(format!("member {leader} leads, at {address}\n"))
        }
        Err(Refusal::NoLeader) => unavailable("no leader that most members answer is known\n".to_owned()),
        Err(Refusal::Changing) => unavailable("the lead or the members are being changed\n".to_owned()),
    }
}
