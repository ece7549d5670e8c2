//! What it costs to know who draws: `cargo bench -p tidemark-pool --bench users`.
//!
//! A draw is of six items; a figure is nanoseconds, the best of many short rounds, and in brackets their median. Then a million users draw
//! once each, and it is said what memory each takes, by what the system says of the process, and how long it takes to write them to an
//! image and to read that.

mod measure;

use measure::Times;
use std::time::Instant;
use tidemark_pool::selector::WideTree;
use tidemark_pool::{
    By, Catalogue, Draw, Guarantee, Item, Limit, Pool, PoolImage, Repeats, Rules, Scope, Secret, USERS_MAX,
};

const ROUNDS: usize = 40;

fn main() {
    println!("{:<44} {:>14}", "a draw", "ns");
    let rules = |limits: &[Limit], guarantees: &[Guarantee]| {
        Rules::new(limits.to_vec(), guarantees.to_vec()).expect("they are sound")
    };
    let daily = Limit { max: u64::from(u32::MAX), per_ms: Some(86_400_000), wins_of: None };
    let guarantee = Guarantee { after: 90, of: vec!["0".into()], scope: Scope::User, soft: None };
    draws("of nobody, without rules", None, Rules::default());
    draws("of a request, without rules", Some(false), Rules::default());
    draws("of a user, a limit", Some(true), rules(std::slice::from_ref(&daily), &[]));
    draws(
        "of a user, a limit and a guarantee",
        Some(true),
        rules(std::slice::from_ref(&daily), std::slice::from_ref(&guarantee)),
    );
    users(rules(std::slice::from_ref(&daily), &[]), 1);
    users(rules(&[daily], &[guarantee]), 2);
}

fn pool(rules: Rules) -> Pool<WideTree> {
    let items = (0..6).map(|item| Item::unlimited(item.to_string(), 1 + item)).collect();
    let catalogue = Catalogue::new(items).and_then(|catalogue| catalogue.ruled(rules)).expect("a catalogue");
    Pool::new(&catalogue, Secret::new([1; 32]), Secret::new([2; 32]))
}

fn draw(pool: &mut Pool<WideTree>, by: &By<'_>, into: &mut Vec<Draw>) {
    into.clear();
    pool.draw_by(by, 1, Repeats::Allowed, into).expect("there is no end");
}

/// Draws of nobody, of ever new requests, or of a thousand users.
fn draws(name: &str, is_by_users: Option<bool>, rules: Rules) {
    let (mut pool, mut times, mut drawn) = (pool(rules), Times::default(), Vec::new());
    let mut turn = 0_u64;
    times.rounds(ROUNDS, || {
        turn += 1;
        let (request, user) = (turn.to_le_bytes(), (turn % 1000).to_le_bytes());
        let by = match is_by_users {
            None => By::default(),
            Some(false) => By::request(&request),
            Some(true) => By { user: Some(&user), request: None, now_ms: 1 },
        };
        draw(&mut pool, &by, &mut drawn);
    });
    println!("{name:<44} {:>14}", times.figures());
}

fn users(rules: Rules, count: usize) {
    let (mut pool, mut drawn) = (pool(rules), Vec::new());
    let before = resident_bytes();
    for user in 0..USERS_MAX as u64 {
        draw(&mut pool, &By { user: Some(&user.to_le_bytes()), request: None, now_ms: 1 }, &mut drawn);
    }
    let bytes = resident_bytes().saturating_sub(before) / USERS_MAX;
    let mut head = Vec::with_capacity(USERS_MAX * 64);
    let began = Instant::now();
    pool.write_head(&mut head);
    let written = began.elapsed();
    let began = Instant::now();
    PoolImage::read(&head).expect("it is what was written");
    let read = began.elapsed();
    println!(
        "\n{USERS_MAX} users, names of 8 bytes, {count} rule(s): {bytes} bytes each; written in {written:.0?}, {} bytes each, read in {read:.0?}",
        head.len() / USERS_MAX
    );
}

/// What the process holds of memory, by Linux; 0 elsewhere.
fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok());
    kib.unwrap_or(0) * 1024
}
