//! `/check?api_key=KEY` and `/release?api_key=KEY`, as in VSA's rate limiter: one unit of a quota.
//!
//! The first check of an unknown key creates its quota: exactly `http-check-limit` units until some
//! are released. A quota is deleted when it was neither checked nor released for `http-check-idle`.
//! There are at most `http-check-max-keys` quotas.

use crate::http::access;
use crate::http::limiting::{finish, token};
use crate::http::listener::Visit;
use crate::http::refusal::Refusal;
use crate::http::running::run;
use crate::http::stream::preflight;
use crate::http::verdict::Verdict;
use crate::resp::Value;
use crate::shared::Shared;
use axum::extract::{ConnectInfo, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use tidemark_changes::query_string;

/// Longest API key, in bytes.
const KEY_BYTES: usize = 1024;

/// Any method, `/check?api_key=KEY`: takes one unit.
pub(crate) async fn check(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(visit): ConnectInfo<Visit>,
    parts: Parts,
) -> Response {
    let checked = async {
        let key = key(&shared, &visit, &parts)?;
        let answer = match take(&shared, &key).await {
            Err(refusal) if refusal.status == StatusCode::NOT_FOUND => {
                create(&shared, &key).await?;
                take(&shared, &key).await?
            }
            answer => answer?,
        };
        Ok(Verdict::read(answer)?.into_plain_response())
    };
    finish(checked.await, &shared, &parts.headers)
}

/// `OPTIONS` of both; changes nothing.
pub(crate) async fn options(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    preflight(&shared, &headers, "GET, POST", "authorization")
}

/// Any method, `/release?api_key=KEY`: refunds one unit, if one was taken.
pub(crate) async fn release(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(visit): ConnectInfo<Visit>,
    parts: Parts,
) -> Response {
    let released = async {
        let key = key(&shared, &visit, &parts)?;
        run(&shared, 0, &[vec![b"limit.refund", &key]]).await?;
        Ok((StatusCode::NO_CONTENT, [(header::CACHE_CONTROL, "no-store")]).into_response())
    };
    finish(released.await, &shared, &parts.headers)
}

/// Takes one unit. Refuses limiters with leases, because this interface cannot return a lease.
async fn take(shared: &Shared, key: &[u8]) -> Result<Value, Refusal> {
    let mut answer = run(shared, 0, &[vec![b"limit.check", key]]).await?;
    if let Value::Array(fields) = &mut answer {
        fields.push(Value::Bulk(key.to_vec()));
    }
    Ok(answer)
}

/// Creates the quota of a key, unless it has been created in the meantime.
async fn create(shared: &Shared, key: &[u8]) -> Result<(), Refusal> {
    let config = shared.settings.current();
    let limit = config.http_check_limit;
    if limit == 0 {
        let reason = "ERR the key does not exist, and http-check-limit 0 creates none".to_owned();
        return Err(Refusal { status: StatusCode::NOT_FOUND, reason });
    }
    // Concurrent requests may exceed the limit, by at most the number of connections.
    if shared.engine.idle_counters(0) >= config.http_check_max_keys {
        return Err(Refusal::unavailable(&format!(
            "ERR the key does not exist, and checks have created {} quotas, the limit http-check-max-keys: create its quota \
             with COUNTER.CREATE, or raise the setting",
            config.http_check_max_keys
        )));
    }
    // At most a tenth of the quota: few records, and few units in doubt after a crash.
    let block = (limit / 10).clamp(1, 1000).to_string();
    let (limit, idle) = (limit.to_string(), config.http_check_idle.as_millis().to_string());
    let mut words: Vec<&[u8]> = vec![b"counter.create", key, b"LIMIT", limit.as_bytes()];
    // A holder releases or rechecks within the idle time. Once it has passed after a crash, no
    // client holds a unit in doubt.
    words.extend([
        &b"EXACT"[..],
        block.as_bytes(),
        b"IDLE",
        idle.as_bytes(),
        b"SETTLE",
        idle.as_bytes(),
        b"NX",
    ]);
    run(shared, 0, &[words]).await.map(drop)
}

/// Returns the key of the quota, if the request may access it.
fn key(shared: &Shared, visit: &Visit, parts: &Parts) -> Result<Vec<u8>, Refusal> {
    let (config, query) = (shared.settings.current(), parts.uri.query().unwrap_or_default());
    access::check(&config, &shared.logins, visit.address, &parts.headers, token(query).as_deref())?;
    let given = query_string::parse(query).into_iter().find(|(name, _)| name == b"api_key");
    let given = given.map(|(_, value)| value).filter(|value| !value.is_empty());
    let given = given.ok_or_else(|| Refusal::wrong("ERR api_key is missing".to_owned()))?;
    if given.len() > KEY_BYTES {
        return Err(Refusal::wrong(format!("ERR api_key is longer than {KEY_BYTES} bytes")));
    }
    Ok([config.http_check_prefix.as_bytes(), &given].concat())
}
