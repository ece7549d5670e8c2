//! Behaviour that every store has.

use super::support::{TestStore, batch, positions};
use std::collections::HashSet;
use std::sync::Barrier;
use tidemark_counter::store::{Batch, Claim, Delta, Error, Receipt, Rejected, Store, WRITER_BYTES_MAX};

fn indexes(rejected: &[Rejected]) -> Vec<usize> {
    rejected.iter().map(|rejected| rejected.index).collect()
}

pub(crate) fn a_first_claim_begins_at_nothing(place: &TestStore) {
    let mut store = place.store();
    assert_eq!(store.claim("a").expect("a claim"), Claim { epoch: 1, last_sequence: 0 });
    assert_eq!(store.claim("a").expect("a claim"), Claim { epoch: 2, last_sequence: 0 });
    assert_eq!(store.claim("b").expect("a claim"), Claim { epoch: 1, last_sequence: 0 });
}

pub(crate) fn batches_add_up_in_their_order(place: &TestStore) {
    let mut store = place.store();
    let claim = store.claim("a").expect("a claim");
    for (sequence, deltas) in [(1, [("x", 5), ("y", -2)]), (2, [("x", -8), ("z", 1)])] {
        let receipt = store.commit(&batch("a", claim, sequence, &deltas)).expect("a receipt");
        assert_eq!(receipt, Receipt::Applied);
    }
    // Another store of the place finds them: they are stored, not only acknowledged.
    let mut other = place.store();
    assert_eq!(positions(&mut *other, &["y", "none", "x", "z"]), [Some(-2), None, Some(-3), Some(1)]);
    assert_eq!(other.claim("a").expect("a claim"), Claim { epoch: claim.epoch + 1, last_sequence: 2 });
}

pub(crate) fn a_batch_that_is_sent_again_is_a_duplicate(place: &TestStore) {
    let mut store = place.store();
    let claim = store.claim("a").expect("a claim");
    let first = batch("a", claim, 1, &[("x", 5)]);
    assert_eq!(store.commit(&first).expect("a receipt"), Receipt::Applied);
    for _ in 0..3 {
        assert_eq!(store.commit(&first).expect("a receipt"), Receipt::Duplicate);
        assert_eq!(place.store().commit(&first).expect("a receipt"), Receipt::Duplicate);
    }
    assert_eq!(positions(&mut *store, &["x"]), [Some(5)]);
    assert_eq!(store.commit(&batch("a", claim, 2, &[("x", 1)])).expect("a receipt"), Receipt::Applied);
    assert_eq!(positions(&mut *store, &["x"]), [Some(6)]);
}

pub(crate) fn a_batch_out_of_order_is_a_gap(place: &TestStore) {
    let mut store = place.store();
    let claim = store.claim("a").expect("a claim");
    for sequence in 1..=3 {
        store.commit(&batch("a", claim, sequence, &[("x", 1)])).expect("a receipt");
    }
    for sent in [0, 1, 2, 5, i64::MAX as u64, u64::MAX] {
        let error = store.commit(&batch("a", claim, sent, &[("x", 100)])).expect_err("a gap");
        assert!(matches!(error, Error::Gap { sent: is, expected: 4 } if is == sent), "{sent}: {error}");
    }
    assert_eq!(positions(&mut *store, &["x"]), [Some(3)]);
    assert_eq!(store.commit(&batch("a", claim, 4, &[("x", 1)])).expect("a receipt"), Receipt::Applied);
}

pub(crate) fn a_batch_with_an_overflow_changes_nothing(place: &TestStore) {
    let mut store = place.store();
    let claim = store.claim("a").expect("a claim");
    let first = [("high", i64::MAX), ("low", i64::MIN), ("x", 1)];
    store.commit(&batch("a", claim, 1, &first)).expect("a receipt");
    let too_much = [("new", 7), ("high", 1), ("x", 10), ("low", -1), ("newer", -7)];
    for _ in 0..2 {
        let error = store.commit(&batch("a", claim, 2, &too_much)).expect_err("an overflow");
        let Error::Rejected(rejected) = error else { panic!("{error}") };
        assert_eq!(indexes(&rejected), [1, 3]);
        let found = positions(&mut *place.store(), &["high", "low", "x", "new", "newer"]);
        assert_eq!(found, [Some(i64::MAX), Some(i64::MIN), Some(1), None, None]);
    }
    // The same number, without the deltas that cannot be stored.
    let rest = [("new", 7), ("x", 10), ("newer", -7), ("high", -1), ("low", 1)];
    assert_eq!(store.commit(&batch("a", claim, 2, &rest)).expect("a receipt"), Receipt::Applied);
    let found = positions(&mut *store, &["high", "low", "x", "new", "newer"]);
    assert_eq!(found, [Some(i64::MAX - 1), Some(i64::MIN + 1), Some(11), Some(7), Some(-7)]);
}

pub(crate) fn a_fenced_writer_writes_no_more(place: &TestStore) {
    let (mut old, mut new) = (place.store(), place.store());
    let before = old.claim("a").expect("a claim");
    old.commit(&batch("a", before, 1, &[("x", 1)])).expect("a receipt");
    let now = new.claim("a").expect("a claim");
    assert_eq!(now, Claim { epoch: before.epoch + 1, last_sequence: 1 });
    // The next, the last and any other batch of the old claim are all fenced.
    for sequence in [2, 1, 7] {
        let error = old.commit(&batch("a", before, sequence, &[("x", 100)])).expect_err("fenced out");
        assert!(
            matches!(error, Error::Fenced { epoch, ref writer } if epoch == now.epoch && writer == "a"),
            "{error}"
        );
    }
    assert_eq!(new.commit(&batch("a", now, 2, &[("x", 10)])).expect("a receipt"), Receipt::Applied);
    assert!(matches!(old.commit(&batch("a", before, 3, &[("x", 100)])), Err(Error::Fenced { .. })));
    assert_eq!(positions(&mut *new, &["x"]), [Some(11)]);
    // A claim that the store does not know: the store has lost it.
    let later = Claim { epoch: now.epoch + 5, last_sequence: 2 };
    let error =
        new.commit(&batch("a", later, 3, &[("x", 100)])).expect_err("an epoch that was never claimed");
    assert!(
        matches!(error, Error::Forgotten { claimed, known, .. } if (claimed, known) == (later.epoch, now.epoch)),
        "{error}"
    );
    assert_eq!(positions(&mut *old, &["x"]), [Some(11)]);
}

pub(crate) fn an_unclaimed_name_has_no_batches(place: &TestStore) {
    let mut store = place.store();
    for epoch in [0, 1, u64::MAX] {
        for sequence in [0, 1] {
            let claim = Claim { epoch, last_sequence: 0 };
            let error = store.commit(&batch("nobody", claim, sequence, &[("x", 1)])).expect_err("no claim");
            assert!(matches!(error, Error::Forgotten { known: 0, .. }), "{epoch} {sequence}: {error}");
        }
    }
    assert_eq!(positions(&mut *store, &["x"]), [None]);
}

pub(crate) fn numbers_of_64_bits_are_kept_as_they_are(place: &TestStore) {
    let mut store = place.store();
    let claim = store.claim("a").expect("a claim");
    // Some of these numbers have no exact representation as a double.
    let amounts =
        [i64::MAX, i64::MIN, (1 << 53) + 1, -(1 << 53) - 1, i64::MAX - 1, 1, -1, 1_000_000_000_000_000_003];
    let keys: Vec<_> = (0..amounts.len()).map(|index| format!("key {index}")).collect();
    let deltas: Vec<_> = keys.iter().map(String::as_str).zip(amounts).collect();
    store.commit(&batch("a", claim, 1, &deltas)).expect("a receipt");
    let keys: Vec<_> = keys.iter().map(String::as_str).collect();
    assert_eq!(positions(&mut *store, &keys), amounts.map(Some));
    store.commit(&batch("a", claim, 2, &[("key 0", i64::MIN), ("key 2", 1)])).expect("a receipt");
    assert_eq!(positions(&mut *store, &["key 0", "key 2"]), [Some(-1), Some((1 << 53) + 2)]);
    store.commit(&batch("a", claim, 3, &[("key 0", 1)])).expect("a receipt");
    assert_eq!(positions(&mut *store, &["key 0"]), [Some(0)], "a position of nothing is one");
}

pub(crate) fn any_bytes_are_a_key(place: &TestStore) {
    let mut store = place.store();
    let claim = store.claim("a").expect("a claim");
    let long = vec![b'k'; 1_000];
    let keys: [&[u8]; 8] =
        [b"", b"\0", b"\xff\xfe", b"a b'\"\\;--", b"{tag}", b"*>.", "\u{1f980}".as_bytes(), &long];
    let amounts = 1..;
    let deltas: Vec<_> =
        keys.iter().zip(amounts).map(|(key, amount)| Delta { key: (*key).into(), amount }).collect();
    let sent = Batch { writer: "a".into(), epoch: claim.epoch, sequence: 1, deltas };
    assert_eq!(store.commit(&sent).expect("a receipt"), Receipt::Applied);
    let found = place.store().load(&keys).expect("positions");
    assert_eq!(found, (1..=keys.len() as i64).map(Some).collect::<Vec<_>>());
}

pub(crate) fn any_text_is_a_name_or_is_refused(place: &TestStore) {
    let mut store = place.store();
    let longest = "n".repeat(WRITER_BYTES_MAX);
    for (number, name) in
        ["a.b", "a b", "*", ">", "{}", "'\"\\", "\u{1f980}", "=", "A", "\n", &longest].into_iter().enumerate()
    {
        let claim = store.claim(name).expect(name);
        assert_eq!(claim, Claim { epoch: 1, last_sequence: 0 }, "{name:?} is no other writer's name");
        let receipt = store.commit(&batch(name, claim, 1, &[("x", 1)])).expect(name);
        assert_eq!(receipt, Receipt::Applied);
        assert_eq!(positions(&mut *store, &["x"]), [Some(number as i64 + 1)]);
    }
    for name in ["", "a\0b", &"n".repeat(WRITER_BYTES_MAX + 1)] {
        assert!(matches!(store.claim(name), Err(Error::Refused(_))), "{name:?}");
    }
}

pub(crate) fn a_batch_without_changes_counts(place: &TestStore) {
    let mut store = place.store();
    let claim = store.claim("a").expect("a claim");
    assert_eq!(store.commit(&batch("a", claim, 1, &[])).expect("a receipt"), Receipt::Applied);
    assert_eq!(store.commit(&batch("a", claim, 1, &[])).expect("a receipt"), Receipt::Duplicate);
    assert!(matches!(store.commit(&batch("a", claim, 3, &[])), Err(Error::Gap { sent: 3, expected: 2 })));
    assert_eq!(store.claim("a").expect("a claim").last_sequence, 1);
}

pub(crate) fn the_largest_batch_is_taken_and_none_larger(place: &TestStore) {
    let mut store = place.store();
    let claim = store.claim("a").expect("a claim");
    let limit = store.max_deltas();
    let count = limit.min(10_000);
    let deltas = |count: usize| -> Vec<_> {
        (0..count)
            .map(|index| Delta {
                key: format!("tenant:{index}").into_bytes().into(),
                amount: index as i64 + 1,
            })
            .collect()
    };
    let sent = |sequence, deltas| Batch { writer: "a".into(), epoch: claim.epoch, sequence, deltas };
    assert_eq!(store.commit(&sent(1, deltas(count))).expect("a receipt"), Receipt::Applied);
    // With many deltas that cannot be stored: the store names each of them and restores all other
    // positions.
    let mut too_much = deltas(count);
    for delta in too_much.iter_mut().skip(1) {
        delta.amount = i64::MAX;
    }
    let Err(Error::Rejected(rejected)) = store.commit(&sent(2, too_much)) else { panic!("rejected") };
    assert_eq!(indexes(&rejected), (1..count).collect::<Vec<_>>());
    let keys: Vec<_> = deltas(count).into_iter().map(|delta| delta.key).collect();
    let keys: Vec<&[u8]> = keys.iter().map(|key| &**key).collect();
    let expected: Vec<_> = (1..=count as i64).map(Some).collect();
    assert_eq!(store.load(&keys).expect("positions"), expected);
    if let Some(more) = limit.checked_add(1).filter(|more| *more <= 20_000) {
        let error = store.commit(&sent(2, deltas(more))).expect_err("too many");
        assert!(
            matches!(error, Error::TooLarge { deltas, limit: is } if (deltas, is) == (more, limit)),
            "{error}"
        );
        assert_eq!(store.load(&keys).expect("positions"), expected);
    }
}

pub(crate) fn many_positions_are_loaded_in_the_order_asked_for(place: &TestStore) {
    let mut store = place.store();
    let claim = store.claim("a").expect("a claim");
    assert_eq!(store.load(&[]).expect("nothing"), []);
    store.commit(&batch("a", claim, 1, &[("1", 1), ("24999", 24_999), ("7", 7)])).expect("a receipt");
    let keys: Vec<_> = (0..25_000).map(|number: u32| number.to_string().into_bytes()).collect();
    // One key is there twice.
    let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).chain([&b"7"[..]]).collect();
    let found = store.load(&keys).expect("positions");
    assert_eq!(found.len(), keys.len());
    let there: Vec<_> =
        found.iter().enumerate().filter_map(|(index, found)| Some((index, (*found)?))).collect();
    assert_eq!(there, [(1, 1), (7, 7), (24_999, 24_999), (25_000, 7)]);
}

pub(crate) fn writers_of_different_names_add_up(place: &TestStore) {
    const WRITERS: usize = 4;
    const BATCHES: u64 = 40;
    let keys = ["a", "b", "c", "d", "e", "f"];
    let all_ready = Barrier::new(WRITERS);
    std::thread::scope(|scope| {
        for number in 0..WRITERS {
            let (all_ready, mut store) = (&all_ready, place.store());
            scope.spawn(move || {
                let writer = format!("writer {number}");
                let claim = store.claim(&writer).expect("a claim");
                all_ready.wait();
                for sequence in 1..=BATCHES {
                    // Each writer has its own key order, so writers that lock keys conflict.
                    let mut deltas = keys.map(|key| (key, 1 + number as i64));
                    deltas.rotate_left((number + sequence as usize) % keys.len());
                    if number % 2 == 1 {
                        deltas.reverse();
                    }
                    commit_until_answered(&mut *store, &batch(&writer, claim, sequence, &deltas));
                }
            });
        }
    });
    let sum = BATCHES as i64 * (1..=WRITERS as i64).sum::<i64>();
    assert_eq!(positions(&mut *place.store(), &keys), vec![Some(sum); keys.len()]);
}

/// Commits a batch, and sends it again while the store is unavailable, as every committer does.
fn commit_until_answered(store: &mut dyn Store, batch: &Batch) {
    loop {
        match store.commit(batch) {
            Ok(_) => return,
            Err(Error::Unavailable(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

pub(crate) fn one_of_many_concurrent_claims_wins_the_name(place: &TestStore) {
    const CLAIMS: usize = 6;
    let all_ready = Barrier::new(CLAIMS);
    let mut claims: Vec<_> = std::thread::scope(|scope| {
        let claiming: Vec<_> = (0..CLAIMS)
            .map(|_| {
                let (all_ready, mut store) = (&all_ready, place.store());
                scope.spawn(move || {
                    all_ready.wait();
                    let claim = store.claim("a").expect("a claim");
                    (claim, store)
                })
            })
            .collect();
        claiming.into_iter().map(|claiming| claiming.join().expect("a claim")).collect()
    });
    claims.sort_by_key(|(claim, _)| claim.epoch);
    let epochs: HashSet<_> = claims.iter().map(|(claim, _)| claim.epoch).collect();
    assert_eq!(epochs.len(), CLAIMS, "each has an epoch of its own");
    let (last, mut winner) = claims.pop().expect("claims");
    for (claim, mut store) in claims {
        assert!(matches!(store.commit(&batch("a", claim, 1, &[("x", 1)])), Err(Error::Fenced { .. })));
    }
    assert_eq!(winner.commit(&batch("a", last, 1, &[("x", 1)])).expect("a receipt"), Receipt::Applied);
    assert_eq!(positions(&mut *winner, &["x"]), [Some(1)]);
}
