//! Current: the identity of an execution context.

use std::sync::mpsc;
use std::thread;

use tidemark_circuit::{Current, Id, Kind, Name, Subject};

fn of_another_thread() -> Current {
    thread::spawn(Current::of_thread).join().unwrap()
}

/// The current of a thread that lives within a scope of this one: the lightest context of the
/// standard library.
fn of_a_scoped_thread() -> Current {
    thread::scope(|scope| scope.spawn(Current::of_thread).join().unwrap())
}

#[test]
fn cur_01_two_threads_have_different_ids() {
    assert_ne!(of_another_thread().subject().id(), of_another_thread().subject().id());
    // Also while both exist.
    let (send, receive) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..2 {
            let send = send.clone();
            scope.spawn(move || send.send(Current::of_thread()).unwrap());
        }
    });
    assert_ne!(receive.recv().unwrap().subject().id(), receive.recv().unwrap().subject().id());
}

#[test]
fn cur_02_two_threads_have_different_currents() {
    assert_ne!(Current::of_thread(), of_another_thread());
    assert_ne!(of_another_thread(), of_another_thread());
}

#[test]
fn cur_03_a_current_has_a_subject() {
    assert_eq!(Current::of_thread().subject().kind(), Kind::Current);
}

#[test]
fn cur_04_every_thread_has_a_current() {
    assert_eq!(Current::of_thread(), Current::of_thread());
    assert_eq!(of_another_thread().subject().kind(), Kind::Current);
}

#[test]
fn cur_05_a_scoped_thread_has_a_current_with_id_and_name() {
    let current = of_a_scoped_thread();
    assert_ne!(current.subject().id(), Current::of_thread().subject().id());
    assert!(!current.subject().name().path().is_empty());
}

#[test]
fn cur_06_a_thread_and_a_scoped_thread_have_different_currents() {
    assert_ne!(of_another_thread(), of_a_scoped_thread());
}

#[test]
fn cur_07_the_id_is_stable_over_calls() {
    let id = Current::of_thread().subject().id();
    for _ in 0..10 {
        assert_eq!(Current::of_thread().subject().id(), id);
    }
}

#[test]
fn cur_08_the_current_is_stable_over_calls() {
    let current = Current::of_thread();
    for _ in 0..10 {
        assert_eq!(Current::of_thread(), current);
    }
}

#[test]
fn cur_09_a_current_kept_after_its_thread_ended_reads_the_same_everywhere() {
    fn identity(current: &Current) -> (Id, Name, String) {
        (current.subject().id(), current.subject().name(), current.subject().to_string())
    }
    let (kept, original) = thread::Builder::new()
        .name("short.lived".to_owned())
        .spawn(|| (Current::of_thread(), identity(&Current::of_thread())))
        .unwrap()
        .join()
        .unwrap();
    assert_eq!(original.1.path(), "short.lived");
    for _ in 0..2 {
        let there = kept.clone();
        let (read, subject) =
            thread::spawn(move || (identity(&there), there.subject().clone())).join().unwrap();
        assert_eq!(read, original);
        assert_eq!(&subject, kept.subject());
    }
}

#[test]
fn cur_10_a_current_has_an_id() {
    let current = Current::of_thread();
    assert_eq!(current.subject().id(), current.clone().subject().id());
    assert_ne!(current.subject().id(), Subject::cortex().id());
}

#[test]
fn cur_11_a_current_has_a_name() {
    let name = Current::of_thread().subject().name();
    assert_eq!(Name::new(name.path()).unwrap(), name);
}

#[test]
fn cur_12_the_text_of_the_name_is_not_empty() {
    assert!(!Current::of_thread().subject().name().to_string().is_empty());
}
