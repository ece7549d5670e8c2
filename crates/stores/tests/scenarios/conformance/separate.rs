//! Stores on separate servers, when connections and servers fail.

use super::proxy::{Fault, Proxy};
use super::running::free_port;
use super::support::{TestStore, batch, positions, store_at, store_with};
use super::{Kind, Running};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tidemark_counter::store::{Claim, Error, Receipt};

pub(crate) fn an_acknowledgement_that_was_lost_is_a_duplicate_later(place: &TestStore) {
    let proxy = Proxy::to(place.running().port);
    let mut store = place.store_through(proxy.port);
    let claim = store.claim("a").expect("a claim");
    store.commit(&batch("a", claim, 1, &[("x", 1)])).expect("a receipt");
    for sequence in [2, 3] {
        proxy.set(Fault::LoseAnswer);
        let sent = batch("a", claim, sequence, &[("x", 10), ("y", 1)]);
        let error = store.commit(&sent).expect_err("its answer is lost");
        assert!(matches!(error, Error::Unavailable(_)), "{error}");
        assert_eq!(proxy.answers_lost(), sequence - 1);
        // The batch arrived and was applied, but the sender cannot know that.
        assert_eq!(positions(&mut *place.store(), &["x"]), [Some(1 + 10 * (sequence as i64 - 1))]);
        assert_eq!(store.commit(&sent).expect("a receipt"), Receipt::Duplicate);
        assert_eq!(store.commit(&sent).expect("a receipt"), Receipt::Duplicate);
    }
    assert_eq!(positions(&mut *store, &["x", "y"]), [Some(21), Some(2)]);
    assert_eq!(store.commit(&batch("a", claim, 4, &[("x", 100)])).expect("a receipt"), Receipt::Applied);
    assert_eq!(positions(&mut *store, &["x"]), [Some(121)]);
}

pub(crate) fn a_claim_whose_answer_was_lost_is_made_again(place: &TestStore) {
    let proxy = Proxy::to(place.running().port);
    let mut store = place.store_through(proxy.port);
    // Opens the connection.
    assert_eq!(positions(&mut *store, &["x"]), [None]);
    proxy.set(Fault::LoseAnswer);
    assert!(matches!(store.claim("a"), Err(Error::Unavailable(_))));
    let claim = store.claim("a").expect("a claim");
    assert!(claim.epoch >= 1 && claim.last_sequence == 0, "{claim:?}");
    assert_eq!(store.commit(&batch("a", claim, 1, &[("x", 1)])).expect("a receipt"), Receipt::Applied);
    assert_eq!(positions(&mut *store, &["x"]), [Some(1)]);
}

pub(crate) fn a_server_that_does_not_answer_is_given_up(place: &TestStore) {
    let proxy = Proxy::to(place.running().port);
    let TestStore::Server { running, space } = place else { panic!("a server") };
    let mut patient = place.store();
    let mut store = store_with(running.kind, proxy.port, space, Duration::from_millis(500));
    // On a busy machine an answer may exceed this store's deadline: the test then asks again, as
    // every committer does.
    let claim = loop {
        match store.claim("a") {
            Ok(claim) => break claim,
            Err(Error::Unavailable(_)) => {}
            Err(error) => panic!("{error}"),
        }
    };
    proxy.set(Fault::Silence);
    let sent = batch("a", claim, 1, &[("x", 1)]);
    for _ in 0..2 {
        assert!(matches!(store.commit(&sent), Err(Error::Unavailable(_))));
    }
    assert_eq!(positions(&mut *patient, &["x"]), [None], "nothing has arrived");
    proxy.set(Fault::None);
    let receipt = loop {
        match store.commit(&sent) {
            Ok(receipt) => break receipt,
            Err(Error::Unavailable(_)) => {}
            Err(error) => panic!("{error}"),
        }
    };
    // A duplicate if one of the answers came after the deadline.
    assert!(matches!(receipt, Receipt::Applied | Receipt::Duplicate));
    assert_eq!(positions(&mut *patient, &["x"]), [Some(1)]);
}

pub(crate) fn a_connection_that_was_cut_is_made_again(place: &TestStore) {
    let proxy = Proxy::to(place.running().port);
    let mut store = place.store_through(proxy.port);
    let claim = store.claim("a").expect("a claim");
    for sequence in 1..=5 {
        proxy.cut();
        let sent = batch("a", claim, sequence, &[("x", 1)]);
        // At most one call finds the connection closed.
        let receipt = store.commit(&sent).or_else(|error| match error {
            Error::Unavailable(_) => store.commit(&sent),
            error => Err(error),
        });
        receipt.expect("a receipt");
        assert_eq!(positions(&mut *store, &["x"]), [Some(sequence as i64)]);
    }
}

pub(crate) fn an_absent_server_is_named_without_secrets(kind: Kind) {
    let port = free_port();
    let mut store = store_at(kind, port, "nowhere");
    for _ in 0..2 {
        let error = store.claim("a").expect_err("no server is there");
        assert!(matches!(error, Error::Unavailable(_)));
        let text = error.to_string();
        let says_where = text.contains(&format!("127.0.0.1:{port}"));
        assert!(says_where && text.contains("refused") && text.ends_with("is it running?"), "{text}");
    }
}

pub(crate) fn what_was_acknowledged_is_there_once_after_kills(kind: Kind) {
    const BATCHES: u64 = 120;
    let running = Running::start(kind);
    let place = TestStore::on(&running);
    let mut store = place.store();
    let claim = store.claim("a").expect("a claim");
    let acknowledged = AtomicU64::new(0);
    let failures = std::thread::scope(|scope| {
        let acknowledged = &acknowledged;
        let committing = scope.spawn(move || {
            let mut failures = 0;
            for sequence in 1..=BATCHES {
                let sent = batch("a", claim, sequence, &[("batches", 1), ("numbers", sequence as i64)]);
                loop {
                    match store.commit(&sent) {
                        Ok(_) => break,
                        Err(Error::Unavailable(_)) => failures += 1,
                        Err(error) => panic!("batch {sequence}: {error}"),
                    }
                    std::thread::sleep(Duration::from_millis(2));
                }
                acknowledged.store(sequence, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(1));
            }
            failures
        });
        for kill_at in [BATCHES / 4, BATCHES / 2, BATCHES * 3 / 4] {
            while acknowledged.load(Ordering::SeqCst) < kill_at && !committing.is_finished() {
                std::thread::sleep(Duration::from_millis(1));
            }
            running.kill();
            running.go_on();
        }
        committing.join().expect("all batches")
    });
    assert!(failures > 0, "the kills were noticed");
    let mut store = place.store();
    let numbers = (1..=BATCHES as i64).sum();
    assert_eq!(positions(&mut *store, &["batches", "numbers"]), [Some(BATCHES as i64), Some(numbers)]);
    let again = store.claim("a").expect("a claim");
    assert_eq!(again, Claim { epoch: claim.epoch + 1, last_sequence: BATCHES });
}

pub(crate) fn a_server_that_has_lost_everything_is_noticed(kind: Kind) {
    let running = Running::start(kind);
    let place = TestStore::on(&running);
    let mut store = place.store();
    let claim = store.claim("a").expect("a claim");
    for sequence in 1..=3 {
        store.commit(&batch("a", claim, sequence, &[("x", 1)])).expect("a receipt");
    }
    running.kill();
    running.forget_everything();
    running.go_on();
    let sent = batch("a", claim, 4, &[("x", 1)]);
    let error = loop {
        match store.commit(&sent) {
            Err(Error::Unavailable(_)) => std::thread::sleep(Duration::from_millis(2)),
            other => break other.expect_err("the claim is not known"),
        }
    };
    assert!(matches!(error, Error::Forgotten { known: 0, .. }), "{error}");
    assert_eq!(positions(&mut *store, &["x"]), [None]);
    let claim = store.claim("a").expect("a claim");
    assert_eq!(claim, Claim { epoch: 1, last_sequence: 0 });
    assert_eq!(store.commit(&batch("a", claim, 1, &[("x", 5)])).expect("a receipt"), Receipt::Applied);
    assert_eq!(positions(&mut *store, &["x"]), [Some(5)]);
}
