//! What all streams over HTTP have in common: how they are kept alive, and who may read them.

use crate::http::access;
use crate::http::refusal::Refusal;
use crate::shared::Shared;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::Stream;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

/// How often a silent connection is shown to be alive, to what stands between and to the system.
pub(crate) const ALIVE_PAUSE: Duration = Duration::from_secs(15);

/// `OPTIONS` of `/v1/watch` and `/v1/changes`.
pub(crate) async fn options(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    preflight(&shared, &headers, "GET", "authorization, last-event-id")
}

/// What a browser asks before a page of somebody else sends a password in a header, or JSON.
pub(crate) fn preflight(
    shared: &Shared,
    headers: &HeaderMap,
    methods: &'static str,
    allowed: &'static str,
) -> Response {
    if let Err(denied) = access::check_origin(&shared.settings.current(), headers) {
        return Refusal::from(denied).into_response();
    }
    let allowed =
        [(header::ACCESS_CONTROL_ALLOW_METHODS, methods), (header::ACCESS_CONTROL_ALLOW_HEADERS, allowed)];
    let mut response = (StatusCode::NO_CONTENT, allowed).into_response();
    share_with_origin(shared, headers, &mut response);
    response
}

/// Lets a page of an origin that `http-allow-origin` names read the response.
pub(crate) fn share_with_origin(shared: &Shared, headers: &HeaderMap, response: &mut Response) {
    if let Some(origin) = access::allowed_origin(&shared.settings.current(), headers) {
        response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    }
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("Origin"));
}

/// A response that is a stream of events.
pub(crate) fn as_events(events: impl Stream<Item = Result<Event, Infallible>> + Send + 'static) -> Response {
    let mut response = Sse::new(events).keep_alive(KeepAlive::new().interval(ALIVE_PAUSE)).into_response();
    let headers = response.headers_mut();
    // The connection's place is that of a subscription: no other requests follow.
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    // Proxies that gather what they pass on would keep events until there are many.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}
