//! The map from names: one value per name whichever thread asks first, and no thread sees a partial value.
#![allow(unsafe_code, reason = "cells that loom watches")]

use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

use super::explore;
use crate::Name;
use crate::Pool;
use crate::Subject;
use crate::error::Fault;
use crate::identity::name_map::NameMap;
use crate::name;
use crate::sync::{Arc, UnsafeCell};

/// A value whose unsynchronised reads loom reports.
struct Watched(UnsafeCell<u64>);

// SAFETY: that is what the models are to prove.
unsafe impl Send for Watched {}
// SAFETY: as above.
unsafe impl Sync for Watched {}

impl Watched {
    fn new(value: u64) -> Self {
        Self(UnsafeCell::new(value))
    }

    fn get(&self) -> u64 {
        // SAFETY: loom watches.
        self.0.with(|value| unsafe { *value })
    }
}

#[test]
fn loom_there_is_one_value_for_a_name_whichever_thread_asks_first() {
    let name = name!("models.names.first");
    explore(2, move || {
        let (map, made) = (Arc::new(NameMap::default()), Arc::new(AtomicUsize::new(0)));
        let ask = {
            let (map, made) = (Arc::clone(&map), Arc::clone(&made));
            move || {
                let make = || Watched::new(7 + made.fetch_add(1, Ordering::Relaxed) as u64);
                std::ptr::from_ref::<Watched>(map.get_or_make(name, make)).addr()
            }
        };
        let others = [(); 2].map(|()| thread::spawn(ask.clone()));
        let mine = ask();
        let theirs = others.map(|other| other.join().unwrap());
        assert_eq!(theirs, [mine; 2]);
        assert_eq!(map.get(name).map(Watched::get), Some(7));
        assert_eq!(made.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn loom_a_map_grows_while_others_look() {
    let names: [Name; 4] = ["a", "b", "c", "d"].map(|part| Name::new(part).expect("valid"));
    explore(2, move || {
        let map = Arc::new(NameMap::default());
        map.get_or_make(names[0], || Watched::new(0));
        let other = {
            let map = Arc::clone(&map);
            // The first table has room for one, the second for two.
            thread::spawn(move || {
                for (number, name) in (1..).zip(&names[1..3]) {
                    assert_eq!(map.get_or_make(*name, || Watched::new(number)).get(), number);
                }
            })
        };
        for (number, name) in (0..).zip(&names[..3]) {
            let seen = map.get(*name).map(Watched::get);
            assert!(seen.is_none_or(|seen| seen == number), "{seen:?}");
            assert!(number > 0 || seen.is_some(), "what was there stays there");
        }
        assert_eq!(map.get_or_make(names[2], || Watched::new(2)).get(), 2);
        other.join().unwrap();
        let mut all: Vec<u64> = map.values().into_iter().map(Watched::get).collect();
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2]);
    });
}

#[test]
fn loom_a_factory_that_refuses_is_asked_once() {
    let name = name!("models.names.refused");
    explore(2, move || {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let pool = Pool::<Watched>::new(Subject::cortex().clone(), move |_| {
            let before = count.fetch_add(1, Ordering::Relaxed);
            Err(Fault::new(Subject::cortex().clone(), "make", format!("refused {before}")))
        });
        let other = {
            let pool = pool.clone();
            thread::spawn(move || pool.get(name).map(Watched::get).unwrap_err().to_string())
        };
        let mine = pool.get(name).map(Watched::get).unwrap_err().to_string();
        assert_eq!(other.join().unwrap(), mine);
        assert!(mine.contains("refused 0"), "{mine}");
        assert_eq!(asked.load(Ordering::Relaxed), 1);
    });
}
