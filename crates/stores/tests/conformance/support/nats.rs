//! What only a stream of NATS does.

use super::{DEADLINE, batch, positions};
use crate::{Kind, Running};
use tidemark_counter::store::Store;
use tidemark_stores::{Deadlines, NatsOptions, NatsStore};

/// How many messages a stream has.
fn messages_of(stream: &str, port: u16) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let client = async_nats::connect(format!("127.0.0.1:{port}")).await.expect("a connection");
        let stream = async_nats::jetstream::new(client).get_stream(stream).await.expect("the stream");
        stream.cached_info().state.messages
    })
}

pub(crate) fn is_cut_by_copies() {
    const BATCHES: u64 = 400;
    let running = Running::shared(Kind::Nats);
    let options = NatsOptions {
        stream: "copies".into(),
        copy_after_bytes: 2_000,
        deadlines: Deadlines { connect: DEADLINE, request: DEADLINE },
        ..NatsOptions::new(format!("nats://127.0.0.1:{}", running.port))
    };
    let open = || NatsStore::new(options.clone()).expect("an address");
    let (mut one, mut other, mut seldom) = (open(), open(), open());
    let claims = [one.claim("one").expect("a claim"), other.claim("other").expect("a claim")];
    let third = seldom.claim("seldom").expect("a claim");
    let long = "key".repeat(100);
    let mut sequence = 0;
    // Both make copies, until what is there is much less than what was written.
    while sequence < BATCHES || messages_of("copies", running.port) > BATCHES / 2 {
        sequence += 1;
        one.commit(&batch("one", claims[0], sequence, &[(&long, 1), ("short", 2)])).expect("a receipt");
        other.commit(&batch("other", claims[1], sequence, &[("short", 1)])).expect("a receipt");
    }
    assert_eq!((one.copy_failure(), other.copy_failure()), (None, None));
    // For whoever begins now, and for whoever has not looked for long, it is the same.
    let sums = [Some(sequence as i64), Some(3 * sequence as i64), None];
    assert_eq!(positions(&mut open(), &[&long, "short", "none"]), sums);
    seldom.commit(&batch("seldom", third, 1, &[("none", 7)])).expect("a receipt");
    assert_eq!(positions(&mut seldom, &[&long, "short", "none"]), [sums[0], sums[1], Some(7)]);
    assert_eq!(open().claim("one").expect("a claim").last_sequence, sequence);
}
