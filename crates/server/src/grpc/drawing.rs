//! `Draw`: a stream of requests and their draws.

use super::messages::{DrawRequest, DrawResponse};
use super::pool::{ask, key, misread, status};
use crate::resp::Value;
use crate::shared::Shared;
use futures_util::stream::{self, Stream, StreamExt as _};
use std::sync::Arc;
use tonic::{Status, Streaming};

/// Most draws of one request, which are in memory together.
const COUNT_MAX: i32 = 65_536;

/// Errors of the pool itself, after which the stream continues.
const REFUSED_BY_POOL: [&str; 2] = ["EMPTY ", "LIMITED "];

/// Answers requests in order. Reads the next request once the previous answers have been sent.
pub(super) fn answers(
    shared: Arc<Shared>,
    requests: Streaming<DrawRequest>,
) -> impl Stream<Item = Result<DrawResponse, Status>> + Send {
    requests
        .then(move |request| {
            let shared = Arc::clone(&shared);
            async move { draw(&shared, &request?).await }
        })
        .flat_map(|drawn| match drawn {
            Ok(responses) => stream::iter(responses.into_iter().map(Ok)).left_stream(),
            Err(status) => stream::iter([Err(status)]).right_stream(),
        })
}

pub(super) async fn draw(shared: &Shared, request: &DrawRequest) -> Result<Vec<DrawResponse>, Status> {
    let count = request.count.max(1);
    if count > COUNT_MAX {
        return Err(Status::invalid_argument(format!(
            "{count} draws exceed the limit of {COUNT_MAX} per request; send several requests"
        )));
    }
    let settings = shared.settings.current();
    let key = key(&request.pool, &settings.grpc_pool)?;
    if request.together || request.unique || !request.request.is_empty() {
        return match draw_together(shared, request, key, count).await? {
            Outcome::Drawn(draws) => Ok(draws),
            Outcome::Refused(error) => Ok(vec![refusal(error)]),
        };
    }
    draw_each(shared, request, key, count).await
}

/// Makes `count` separate draws and returns that many answers, including refusals.
///
/// Draws are made in batches, halved when the pool refuses one: an exhausted pool costs
/// O(log count) commands.
async fn draw_each(
    shared: &Shared,
    request: &DrawRequest,
    key: &[u8],
    count: i32,
) -> Result<Vec<DrawResponse>, Status> {
    let wanted = count.unsigned_abs() as usize;
    let mut draws = Vec::with_capacity(wanted);
    let mut piece = count;
    while draws.len() < wanted {
        piece = piece.min((wanted - draws.len()) as i32);
        match draw_together(shared, request, key, piece).await? {
            Outcome::Drawn(drawn) => {
                assert_eq!(drawn.len(), piece as usize, "a pool answers each draw that it makes");
                draws.extend(drawn);
            }
            Outcome::Refused(_) if piece > 1 => piece /= 2,
            // A pool that refuses one draw refuses the later ones too.
            Outcome::Refused(error) => draws.resize(wanted, refusal(error)),
        }
    }
    Ok(draws)
}

/// Result of draws that are made together.
enum Outcome {
    Drawn(Vec<DrawResponse>),
    /// No draw was made; the pool's reason.
    Refused(String),
}

async fn draw_together(
    shared: &Shared,
    request: &DrawRequest,
    key: &[u8],
    count: i32,
) -> Result<Outcome, Status> {
    let count = count.to_string();
    let mut words = vec![&b"pool.draw"[..], key, b"count", count.as_bytes()];
    if request.unique {
        words.push(b"unique");
    }
    for (word, name) in [(&b"user"[..], &request.user), (b"request", &request.request)] {
        if !name.is_empty() {
            words.extend([word, name.as_bytes()]);
        }
    }
    match ask(shared, words).await {
        Ok(Value::Array(draws)) => draws.iter().map(response).collect::<Result<_, _>>().map(Outcome::Drawn),
        Ok(_) => Err(misread()),
        Err(refusal) if REFUSED_BY_POOL.iter().any(|word| refusal.reason.starts_with(word)) => {
            Ok(Outcome::Refused(refusal.reason))
        }
        Err(refusal) => Err(status(&refusal)),
    }
}

/// Returns the answer to a refused draw.
fn refusal(error: String) -> DrawResponse {
    DrawResponse { error, ..DrawResponse::default() }
}

/// Converts a draw from the form of `POOL.DRAW`.
fn response(draw: &Value) -> Result<DrawResponse, Status> {
    let Value::Array(draw) = draw else { return Err(misread()) };
    let (number, item_id) = match draw.as_slice() {
        [Value::Integer(number), Value::Bulk(id)] => (number, String::from_utf8_lossy(id).into_owned()),
        [Value::Integer(number), Value::Null] => (number, String::new()),
        _ => return Err(misread()),
    };
    Ok(DrawResponse { request_id: number.unsigned_abs(), item_id, error: String::new() })
}
