//! Requests without a connection, for fuzz targets.

use crate::http::listener::Visit;
use crate::http::{api_key, changes, limiting, socket, watching};
use crate::shared::Shared;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request, State};
use futures_util::{FutureExt as _, StreamExt as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// Most events that are read from a stream.
const EVENTS_MAX: usize = 4;

/// Runs one request and returns the status of the response, or `None` for an unknown path.
/// `/message` stands for a message on a WebSocket.
pub(crate) async fn request(shared: &Arc<Shared>, target: &str, body: &[u8]) -> Option<u16> {
    let place = shared.http_registry.place()?;
    let visit = ConnectInfo(Visit::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 1)), place));
    let state = State(Arc::clone(shared));
    let request = Request::builder().uri(target).body(Body::from(body.to_vec())).ok()?;
    let path = request.uri().path().to_owned();
    let response = match path.as_str() {
        "/v1/check" => limiting::check(state, visit, request).await,
        "/v1/release" => limiting::release(state, visit, request).await,
        "/check" => api_key::check(state, visit, request.into_parts().0).await,
        "/release" => api_key::release(state, visit, request.into_parts().0).await,
        "/v1/watch" => watching::watch(state, visit, request.into_parts().0).await,
        "/v1/changes" => changes::changes(state, visit, request.into_parts().0).await,
        "/message" => {
            let text = std::str::from_utf8(body).ok()?;
            return Some(if socket::watches(shared, text) { 200 } else { 400 });
        }
        _ => return None,
    };
    let status = response.status().as_u16();
    let mut parts = response.into_body().into_data_stream();
    for _ in 0..EVENTS_MAX {
        if !matches!(parts.next().now_or_never(), Some(Some(Ok(_)))) {
            break;
        }
    }
    Some(status)
}
