//! What a draw costs through a service: `cargo bench -p tidemark-pool --bench service`.
//!
//! Nanoseconds a draw, the best of some rounds and in brackets their median; stock never runs out. First a draw with its frame in the owner's
//! hands, by how many draws a frame has; then through the queue. Before that, nanoseconds an item of a snapshot.

mod measure;

use measure::Times;
use std::hint::black_box;
use std::sync::mpsc::sync_channel;
use std::time::Instant;
use tidemark_pool::journal::{Journal, MemoryJournal, NoJournal};
use tidemark_pool::selector::WideTree;
use tidemark_pool::service::{Answer, Request, Service, Settings};
use tidemark_pool::{AMOUNT_MAX, Capture, Catalogue, ChainedPool, Item, Pool, Repeats, Secret};

const ITEMS: usize = 1_000;
const ROUNDS: usize = 12;
const DRAWS: usize = 100_000;

fn main() {
    image(1_000_000);
    for draws in [1, 64, 1_000, 10_000] {
        framed(draws);
    }
    for (name, way) in [
        ("callback", by_callback as fn(&Service, usize)),
        ("future, waited for", waited),
        ("blocking", blocking),
        ("64 at once", many),
    ] {
        through(&format!("{name}, no journal"), NoJournal::default, way);
        through(&format!("{name}, in memory"), MemoryJournal::default, way);
    }
    through("blocking, 16 threads, in memory", MemoryJournal::default, |service, draws| {
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| blocking(service, draws / 16));
            }
        });
    });
}

/// What a snapshot costs the owner: all blocks of a large pool, as they are handed over.
fn image(items: usize) {
    let (chained, mut times, mut bytes) = (pool_of(items), Vec::new(), 0);
    for _ in 0..ROUNDS {
        let (mut capture, began) = (Capture::new(items), Instant::now());
        bytes = 0;
        while capture.step(&chained.pool, |_, block| bytes += black_box(block.to_vec()).len()) {}
        times.push(began.elapsed().as_nanos() as f64 / items as f64);
    }
    let per_item = bytes as f64 / items as f64;
    println!(
        "{:<40} {:>16} {per_item:>6.2} bytes an item",
        format!("image of {items} items"),
        Times::of(times).figures()
    );
}

fn pool() -> ChainedPool<WideTree> {
    pool_of(ITEMS)
}

fn pool_of(count: usize) -> ChainedPool<WideTree> {
    let quantity = AMOUNT_MAX / 64 / count as u64;
    let items = (0..count).map(|item| Item::limited(item.to_string(), 1 + item as u64 % 31, quantity));
    let catalogue = Catalogue::new(items.collect()).expect("a catalogue");
    ChainedPool::new(Pool::new(&catalogue, Secret::new([1; 32]), Secret::new([2; 32])))
}

/// Draws that are staged, put into a frame with its hash, and kept.
fn framed(draws: usize) {
    let (mut chained, mut frame, mut times) = (pool(), Vec::new(), Times::default());
    times.rounds(ROUNDS, || {
        chained.pool.stage();
        for _ in 0..draws {
            let _ = chained.pool.draw();
        }
        frame.clear();
        chained.write_staged(1_767_225_600_000_000, &mut frame);
        chained.pool.commit();
        frame.len()
    });
    times.divide(draws);
    let bytes = frame.len() as f64 / draws as f64;
    println!("{:<40} {:>16} {bytes:>6.2} bytes a draw", format!("{draws} to a frame"), times.figures());
}

fn through<J: Journal + 'static>(name: &str, journal: impl Fn() -> J, way: impl Fn(&Service, usize)) {
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let service = Service::start(pool(), journal(), || 0, Settings::default()).expect("a thread");
        way(&service, DRAWS / 10);
        let began = Instant::now();
        way(&service, DRAWS);
        times.push(began.elapsed().as_nanos() as f64 / DRAWS as f64);
        service.stop().expect("a journal that is well");
    }
    println!("{name:<40} {:>16}", Times::of(times).figures());
}

fn by_callback(service: &Service, draws: usize) {
    for _ in 1..draws {
        service.draw_with(|outcome| assert!(outcome.is_ok()));
    }
    let (sender, receiver) = sync_channel(1);
    service.draw_with(move |outcome| sender.send(outcome).expect("somebody waits"));
    receiver.recv().expect("it is called").expect("a draw");
}

fn waited(service: &Service, draws: usize) {
    let mut under_way = Vec::with_capacity(1_000);
    for _ in 0..draws / 1_000 {
        under_way.extend((0..1_000).map(|_| service.draw_async()));
        under_way.drain(..).for_each(|drawing| assert!(drawing.wait().is_ok()));
    }
}

fn blocking(service: &Service, draws: usize) {
    for _ in 0..draws {
        service.draw().expect("a draw");
    }
}

fn many(service: &Service, draws: usize) {
    for _ in 0..draws / 64 {
        let answer = service.call(Request::DrawMany { count: 64, repeats: Repeats::Allowed });
        assert!(matches!(answer, Ok(Answer::Draws(draws)) if draws.len() == 64));
    }
}
