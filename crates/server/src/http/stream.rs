//! Common parts of all streams over HTTP: keep-alive and cross-origin access.

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

/// Interval of keep-alives on a silent connection, for proxies and the operating system.
pub(crate) const ALIVE_PAUSE: Duration = Duration::from_secs(15);

/// `OPTIONS` of `/v1/watch` and `/v1/changes`.
pub(crate) async fn options(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    preflight(&shared, &headers, "GET", "authorization, last-event-id")
}

/// Answers the preflight request of a browser for a page of another origin.
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

/// Allows a page to read the response if `http-allow-origin` names its origin.
pub(crate) fn share_with_origin(shared: &Shared, headers: &HeaderMap, response: &mut Response) {
    if let Some(origin) = access::allowed_origin(&shared.settings.current(), headers) {
        response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    }
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("Origin"));
}

/// Builds a response that is a stream of events.
pub(crate) fn as_events(events: impl Stream<Item = Result<Event, Infallible>> + Send + 'static) -> Response {
    let mut response = Sse::new(events).keep_alive(KeepAlive::new().interval(ALIVE_PAUSE)).into_response();
    let headers = response.headers_mut();
    // The connection holds the place of a subscription: no other requests may follow.
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    // A buffering proxy would delay events.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}
