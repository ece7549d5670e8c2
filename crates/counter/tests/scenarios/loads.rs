//! Names that are not in memory, and how often the store is asked for them, through the public
//! interface of named counters.

use proptest::prelude::*;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Barrier, Condvar, Mutex, mpsc};
use std::thread;
use std::time::Duration;
use tidemark_counter::counters::{BatchError, Counters, Error, MAX_TOGETHER, Options, Settings, SettingsOf};
use tidemark_counter::store::{self, Batch, Claim, Memory, Receipt, Store};
use tidemark_counter::{Kind, Move, Promise};

/// Nothing is committed before a caller asks for it.
const QUOTA: Settings = Settings {
    kind: Kind::Quota { limit: 1_000 },
    promise: Promise::Relaxed { cap: 100_000 },
    high: u64::MAX,
    low: u64::MAX,
    max_age: Duration::from_hours(1),
};

/// A store that notes the number of names of each load, and answers as the test directs.
#[derive(Clone, Default)]
struct Asked {
    memory: Memory,
    calls: Arc<Mutex<Vec<usize>>>,
    mood: Arc<(Mutex<Mood>, Condvar)>,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Mood {
    #[default]
    Answers,
    /// The caller waits until the store answers again.
    Thinks,
    IsAway,
    Refuses,
}

impl Asked {
    fn set(&self, mood: Mood) {
        *self.mood.0.lock().unwrap() = mood;
        self.mood.1.notify_all();
    }

    /// The number of names of each load since the last call of this function.
    fn calls(&self) -> Vec<usize> {
        std::mem::take(&mut *self.calls.lock().unwrap())
    }

    fn wait_for_a_call(&self) {
        while self.calls.lock().unwrap().is_empty() {
            thread::yield_now();
        }
    }

    fn position(&self, name: &[u8]) -> i64 {
        self.memory.clone().load(&[name]).unwrap()[0].unwrap_or(0)
    }
}

impl Store for Asked {
    fn claim(&mut self, writer: &str) -> Result<Claim, store::Error> {
        self.memory.claim(writer)
    }

    fn commit(&mut self, batch: &Batch) -> Result<Receipt, store::Error> {
        self.memory.commit(batch)
    }

    fn load(&mut self, keys: &[&[u8]]) -> Result<Vec<Option<i64>>, store::Error> {
        self.calls.lock().unwrap().push(keys.len());
        let (mood, has_changed) = &*self.mood;
        let mood = has_changed.wait_while(mood.lock().unwrap(), |mood| *mood == Mood::Thinks).unwrap();
        match *mood {
            Mood::Answers | Mood::Thinks => self.memory.load(keys),
            Mood::IsAway => Err(store::Error::Unavailable("it is away".into())),
            Mood::Refuses => Err(store::Error::Refused("it does not want to".into())),
        }
    }
}

fn options() -> Options {
    Options { settings: Arc::new(|_| QUOTA), patience: Duration::from_mins(1), ..Options::default() }
}

fn open(store: &Asked, options: Options) -> Counters {
    Counters::open(store.clone(), options).unwrap()
}

fn names(range: std::ops::Range<usize>) -> Vec<Vec<u8>> {
    range.map(|number| format!("name {number}").into_bytes()).collect()
}

fn all(names: &[Vec<u8>], how: Move) -> Vec<(&[u8], Move)> {
    names.iter().map(|name| (&name[..], how)).collect()
}

fn is_unavailable<T>(result: &Result<T, Error>) -> bool {
    matches!(result, Err(Error::Unavailable { .. }))
}

#[test]
fn many_absent_names_are_as_many_loads_as_the_store_takes_at_a_time() {
    let store = Asked::default();
    let counters = open(&store, options());
    let names = names(0..2_500);
    assert!(counters.batch_each(&all(&names, Move::Take(3))).iter().all(|result| *result == Ok(3)));
    assert_eq!(store.calls(), [1_000, 1_000, 500]);
    assert!(counters.batch_each(&all(&names, Move::Take(997))).iter().all(|result| *result == Ok(997)));
    assert_eq!((store.calls(), counters.metrics().loads), (vec![], 2_500));
    counters.close().unwrap();
    assert!(names.iter().all(|name| store.position(name) == 1_000));

    let few = Options { max_batch: 700, ..options() };
    let counters = open(&store, few);
    let handles: Vec<_> =
        counters.get_all(&names.iter().map(|name| &name[..]).collect::<Vec<_>>()).into_iter().collect();
    assert_eq!(store.calls(), [700, 700, 700, 400]);
    for (handle, name) in handles.into_iter().map(Result::unwrap).zip(&names) {
        assert_eq!((handle.name(), handle.position()), (&name[..], 1_000));
    }
    assert_eq!(counters.get_all(&[]).len(), 0);
}

#[test]
fn moves_together_ask_once_for_all_their_counters() {
    let store = Asked::default();
    let counters = open(&store, options());
    let names = names(0..MAX_TOGETHER);
    assert_eq!(counters.batch_all(&all(&names, Move::Take(1))), Ok(vec![1; MAX_TOGETHER]));
    assert_eq!(store.calls(), [MAX_TOGETHER]);
}

#[test]
fn names_that_are_there_several_times_are_asked_for_once_and_moved_in_their_order() {
    let store = Asked::default();
    let counters = open(&store, options());
    counters.take(b"known", 1).unwrap();
    store.calls();
    let results = counters.batch_each(&[
        (b"new", Move::Take(1_000)),
        (b"known", Move::Take(1_000)),
        (b"new", Move::Take(1)),
        (b"new", Move::Refund(2)),
        (b"other", Move::Take(5)),
        (b"known", Move::Take(999)),
        (b"new", Move::Take(2)),
    ]);
    let no = || Err(Error::Exhausted);
    assert_eq!(results, [Ok(1_000), no(), no(), Ok(2), Ok(5), Ok(999), Ok(2)]);
    assert_eq!(store.calls(), [2]);

    let handles = counters.get_all(&[b"third", b"new", b"third"]);
    assert_eq!(store.calls(), [1]);
    let positions = handles.into_iter().map(|handle| handle.unwrap().position());
    assert_eq!(positions.collect::<Vec<_>>(), [0, 1_000, 0]);
}

#[test]
fn a_store_that_refuses_is_asked_once_for_each_name_and_all_callers_get_the_error() {
    let store = Asked::default();
    let counters = open(&store, options());
    counters.take(b"known", 1).unwrap();
    store.calls();
    store.set(Mood::Refuses);
    let moves: [(&[u8], Move); 4] =
        [(b"a", Move::Take(1)), (b"a", Move::Take(1)), (b"known", Move::Take(1)), (b"b", Move::Take(1))];
    let results = counters.batch_each(&moves);
    assert_eq!(results[2], Ok(1));
    assert!(
        [0, 1, 3].iter().all(|index| matches!(results[*index], Err(Error::Broken { .. }))),
        "{results:?}"
    );
    assert_eq!(store.calls(), [2]);
    assert!(matches!(
        counters.batch_all(&moves),
        Err(BatchError { index: 0, error: Error::Broken { .. }, .. })
    ));
    assert_eq!(counters.metrics().keys, 1);
    store.set(Mood::Answers);
    assert_eq!(counters.batch_all(&moves), Ok(vec![1; 4]));
}

#[test]
fn while_the_store_is_away_all_names_of_a_batch_wait_together_and_leave_nothing_behind() {
    let store = Asked::default();
    let patience = Duration::from_millis(300);
    let counters = open(&store, Options { patience, ..options() });
    // On a busy machine the commit thread may take longer than this short patience.
    while counters.take(b"known", 1).is_err() {}
    store.calls();
    store.set(Mood::IsAway);
    let names = names(0..500);
    let mut moves = all(&names, Move::Take(1));
    moves.push((b"known", Move::Take(1)));
    let results = counters.batch_each(&moves);
    assert!(results[..500].iter().all(is_unavailable));
    assert_eq!(results[500], Ok(1));
    // No caller waited for one name alone: then the store would have been asked at least once for
    // each.
    let calls = store.calls();
    assert!(calls.len() < 100 && calls[0] == 500, "{calls:?}");
    assert!(is_unavailable(&counters.get_all(&[b"a", b"b"])[1]));
    let error = counters.batch_all(&moves[498..]).unwrap_err();
    assert!(matches!(error, BatchError { index: 0, error: Error::Unavailable { .. }, .. }), "{error}");
    assert_eq!(counters.metrics().keys, 1);

    store.set(Mood::Answers);
    // The store's next try may come later than a caller's patience allows.
    while counters.batch_each(&moves).iter().any(is_unavailable) {}
    assert_eq!(counters.metrics().keys, 501);
}

#[test]
fn positions_loaded_after_all_callers_gave_up_are_discarded() {
    let store = Asked::default();
    let names = names(0..100);
    {
        let counters = open(&store, options());
        counters.batch_each(&all(&names, Move::Take(7)));
    }
    // Long enough for the commit thread to ask the store on a busy machine.
    let counters = open(&store, Options { patience: Duration::from_secs(1), ..options() });
    store.calls();
    store.set(Mood::Thinks);
    assert!(counters.batch_each(&all(&names, Move::Take(1))).iter().all(is_unavailable));
    assert_eq!((store.calls(), counters.metrics().keys), (vec![100], 0));
    store.set(Mood::Answers);
    while counters.get_all(&names.iter().map(|name| &name[..]).collect::<Vec<_>>()).iter().any(is_unavailable)
    {
    }
    assert_eq!(counters.metrics().keys, 100);
    assert!(names.iter().all(|name| counters.state(name).unwrap().position() == 7));
}

#[test]
fn a_name_that_is_too_long_keeps_no_other_from_being_loaded() {
    let store = Asked::default();
    let counters = open(&store, Options { max_name: 3, ..options() });
    let moves: [(&[u8], Move); 3] =
        [(b"abc", Move::Take(1)), (b"abcd", Move::Take(1)), (b"b", Move::Take(1))];
    let too_long = Error::NameTooLong { length: 4, max_name: 3 };
    assert_eq!(counters.batch_each(&moves), [Ok(1), Err(too_long.clone()), Ok(1)]);
    assert_eq!(counters.batch_all(&moves), Err(BatchError { index: 1, moves: 3, error: too_long.clone() }));
    assert_eq!(counters.get_all(&[b"abcd", b"b"])[0].as_ref().unwrap_err(), &too_long);
    assert_eq!((store.calls(), counters.metrics().keys), (vec![2], 2));
}

#[test]
fn a_batch_of_more_names_than_there_are_places_goes_through_them() {
    for max_keys in [1, 10, 64, 100] {
        let store = Asked::default();
        let counters = open(&store, Options { max_keys, ..options() });
        let names = names(0..300);
        for _ in 0..2 {
            let results = counters.batch_each(&all(&names, Move::Take(2)));
            assert!(results.iter().all(|result| *result == Ok(2)), "{results:?}");
            assert!(counters.metrics().keys <= max_keys);
        }
        counters.close().unwrap();
        assert!(names.iter().all(|name| store.position(name) == 4));
    }
}

#[test]
fn of_more_handles_than_there_are_places_some_are_refused_and_give_none_away() {
    let store = Asked::default();
    let counters = open(&store, Options { max_keys: 50, ..options() });
    let names = names(0..60);
    let asked: Vec<_> = names.iter().map(|name| &name[..]).collect();
    let full = Error::Full { max_keys: 50 };
    let handles = counters.get_all(&asked);
    let refused = handles.iter().filter_map(|handle| handle.as_ref().err());
    assert_eq!(refused.collect::<Vec<_>>(), [&full; 10]);
    // Counters with a handle can be moved, also together with others that cannot be loaded.
    let moves = all(&names[..51], Move::Take(1));
    let results = counters.batch_each(&moves);
    assert_eq!(results.iter().filter(|result| **result == Ok(1)).count(), 50);
    assert_eq!(results[50], Err(full.clone()));
    assert_eq!(counters.batch_all(&moves[40..]), Err(BatchError { index: 10, moves: 11, error: full }));
    drop(handles);
    assert!(counters.batch_each(&all(&names, Move::Take(1))).iter().all(|result| *result == Ok(1)));
}

#[test]
fn places_for_many_names_are_made_together() {
    let store = Asked::default();
    let counters = open(&store, Options { max_keys: 1_600, ..options() });
    let names = names(0..2_000);
    let (old, new) = names.split_at(1_600);
    assert!(
        counters.get_all(&old.iter().map(|name| &name[..]).collect::<Vec<_>>()).iter().all(Result::is_ok)
    );
    store.calls();
    assert!(counters.batch_each(&all(new, Move::Take(1))).iter().all(|result| *result == Ok(1)));
    // The commit thread evicts up to a hundred keys at a time, if that many were not used lately;
    // the keys that were are swept for the first caller that needs a place.
    let calls = store.calls();
    assert!(calls.len() < 40, "{calls:?}");
    assert_eq!(calls.iter().sum::<usize>(), 400);
}

/// Each thread names the counters in its own order, and so finds names that another thread has
/// requested.
#[test]
fn threads_that_want_the_same_names_load_each_once() {
    let store = Asked::default();
    let counters = open(&store, options());
    let (rounds, at_once) = (100, 120);
    let begin = Barrier::new(3);
    thread::scope(|threads| {
        for thread in 0..3 {
            let (counters, begin) = (&counters, &begin);
            threads.spawn(move || {
                for round in 0..rounds {
                    let mut names = names(round * at_once..(round + 1) * at_once);
                    names.rotate_left(thread * at_once / 3);
                    if thread == 2 {
                        names.reverse();
                    }
                    begin.wait();
                    let results = counters.batch_each(&all(&names, Move::Take(1)));
                    assert!(results.iter().all(|result| *result == Ok(1)), "{results:?}");
                    counters.batch_all(&all(&names[..MAX_TOGETHER], Move::Take(1))).unwrap();
                }
            });
        }
    });
    assert_eq!(store.calls().iter().sum::<usize>(), rounds * at_once);
    assert_eq!((counters.metrics().loads, counters.metrics().keys), (12_000, 12_000));
    let sum: i64 =
        names(0..rounds * at_once).iter().map(|name| counters.state(name).unwrap().position()).sum();
    assert_eq!(sum, (3 * rounds * (at_once + MAX_TOGETHER)) as i64);
}

#[test]
fn a_caller_loading_at_the_close_gets_an_error_and_earlier_moves_are_stored() {
    for _ in 0..20 {
        let store = Asked::default();
        let counters = open(&store, options());
        store.set(Mood::Thinks);
        let names = names(0..50);
        thread::scope(|threads| {
            let results = threads.spawn(|| counters.batch_each(&all(&names, Move::Take(1))));
            store.wait_for_a_call();
            let closed = threads.spawn(|| counters.close());
            store.set(Mood::Answers);
            for (result, name) in results.join().unwrap().into_iter().zip(&names) {
                assert!(matches!(result, Ok(1) | Err(Error::Closed)), "{result:?}");
                // Closed counters are committed before their close is reported.
                while result.is_ok() && store.position(name) != 1 {
                    thread::yield_now();
                }
                assert_eq!(store.position(name), i64::from(result.is_ok()));
            }
            closed.join().unwrap().unwrap();
        });
        assert!(matches!(counters.get_all(&[b"another"])[0], Err(Error::Closed)));
    }
}

/// The caller's code determines the settings, and may take its time.
#[test]
fn a_slow_settings_callback_delays_no_other_name() {
    let (proceed, wait) = mpsc::channel();
    let wait = Mutex::new(wait);
    let settings: SettingsOf = Arc::new(move |name| {
        if name == b"slow" {
            wait.lock().unwrap().recv().unwrap();
        }
        QUOTA
    });
    let counters = open(&Asked::default(), Options { settings, ..options() });
    let names = names(0..200);
    thread::scope(|threads| {
        let mut moves = all(&names, Move::Take(1));
        moves.push((b"slow", Move::Take(1)));
        let batch = threads.spawn({
            let counters = &counters;
            move || counters.batch_each(&moves)
        });
        let others: Vec<_> = names.iter().map(|name| counters.take(name, 1)).collect();
        proceed.send(()).unwrap();
        assert!(others.iter().all(Result::is_ok), "{others:?}");
        assert!(batch.join().unwrap().iter().all(|result| *result == Ok(1)));
    });
}

#[test]
fn settings_that_panic_leave_no_name_that_is_loaded_for_good() {
    let settings: SettingsOf =
        Arc::new(|name| if name == b"bad" { panic!("as the test wants") } else { QUOTA });
    let store = Asked::default();
    let counters = open(&store, Options { settings, max_keys: 64, ..options() });
    let moves: [(&[u8], Move); 3] = [(b"a", Move::Take(1)), (b"b", Move::Take(1)), (b"bad", Move::Take(1))];
    for _ in 0..100 {
        assert!(panic::catch_unwind(AssertUnwindSafe(|| counters.batch_each(&moves))).is_err());
    }
    assert_eq!((store.calls(), counters.metrics().keys), (vec![], 0));
    assert_eq!(counters.batch_each(&moves[..2]), [Ok(1), Ok(1)]);
}

fn any_move() -> impl Strategy<Value = Move> {
    prop_oneof![
        (0..400_u64).prop_map(Move::Take),
        (0..400_u64).prop_map(Move::Refund),
        (-300..300_i64).prop_map(Move::Add),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// However few counters fit into memory, a batch answers as its moves would one by one.
    #[test]
    fn a_batch_is_its_moves_one_after_the_other(
        moves in proptest::collection::vec((0..90_usize, any_move()), 0..250),
        max_keys in 1..80_usize,
        max_batch in 1..8_usize,
    ) {
        let names = names(0..90);
        let moves: Vec<_> = moves.iter().map(|(name, how)| (&names[*name][..], *how)).collect();
        let single = open(&Asked::default(), options());
        let one_by_one = moves.iter().map(|(name, how)| match *how {
            Move::Take(amount) => single.take(name, amount).map(|()| amount),
            Move::Refund(amount) => single.refund(name, amount),
            Move::Add(delta) => single.add(name, delta).map(|()| delta.unsigned_abs()),
        });
        let one_by_one: Vec<_> = one_by_one.collect();
        let store = Asked::default();
        let together = open(&store, Options { max_keys, max_batch, ..options() });
        prop_assert_eq!(together.batch_each(&moves), one_by_one);
        prop_assert!(together.metrics().keys <= max_keys);
        prop_assert!(store.calls().iter().all(|names| *names <= max_batch));
        together.close().unwrap();
        for name in &names {
            prop_assert_eq!(store.position(name), single.state(name).unwrap().position());
        }
    }
}
