//! `UserOps`: cost of draws by identified users.

use super::stock::with_secrets;
use crate::micro::benchmark::{Benchmark, Found, Work, on};
use crate::micro::kept::kept_bytes;
use std::time::Instant;
use tidemark_pool::selector::WideTree;
use tidemark_pool::{By, Catalogue, Draw, Guarantee, Item, Limit, Pool, PoolImage, Repeats, Rules, Scope};

/// Number of users that draw in turns.
const IN_TURNS: u64 = 1_000;
const ITEMS: u64 = 6;
/// Time of all draws here. Milliseconds since 1970.
const NOW_MS: u64 = 1;

pub(super) fn suite() -> Vec<Benchmark> {
    let draws: [(&str, &str, DrawingUser, Ruled); 4] = [
        ("nobody", "without a user and without rules", DrawingUser::Anonymous, Ruled::Nothing),
        ("request", "of ever new requests, without rules", DrawingUser::Requests, Ruled::Nothing),
        ("limit", "of a thousand users in turns, with a limit a day", DrawingUser::Users, Ruled::Limit),
        (
            "guarantee",
            "of a thousand users in turns, with a limit a day and a guarantee",
            DrawingUser::Users,
            Ruled::Guarantee,
        ),
    ];
    let draws = draws.map(|(name, of, user, ruled)| {
        let measures = format!("a draw among {ITEMS} items {of}");
        Benchmark::new(format!("UserOps.by_{name}"), measures, move |_| drawing(pool(ruled)?, user))
            .in_group("draws of whom one knows")
            .of("draw")
    });
    let kept = [("limit", Ruled::Limit), ("guarantee", Ruled::Guarantee)];
    let kept = kept.into_iter().flat_map(|(name, ruled)| rows_of_many(name, ruled));
    draws.into_iter().chain(kept).collect()
}

/// The user of a draw.
#[derive(Clone, Copy)]
enum DrawingUser {
    Anonymous,
    Requests,
    Users,
}

/// The rules for users.
#[derive(Clone, Copy)]
enum Ruled {
    Nothing,
    Limit,
    /// A guarantee and a limit.
    Guarantee,
}

fn pool(ruled: Ruled) -> anyhow::Result<Pool<WideTree>> {
    let daily = Limit { max: u64::from(u32::MAX), per_ms: Some(86_400_000), wins_of: None };
    let guarantee = Guarantee { after: 90, of: vec!["0".into()], scope: Scope::User, soft: None };
    let (limits, guarantees) = match ruled {
        Ruled::Nothing => (Vec::new(), Vec::new()),
        Ruled::Limit => (vec![daily], Vec::new()),
        Ruled::Guarantee => (vec![daily], vec![guarantee]),
    };
    let items = (0..ITEMS).map(|item| Item::unlimited(item.to_string(), 1 + item)).collect();
    Ok(with_secrets(&Catalogue::new(items)?.ruled(Rules::new(limits, guarantees)?)?))
}

fn drawing(pool: Pool<WideTree>, drawing_user: DrawingUser) -> anyhow::Result<Work> {
    let state = (pool, Vec::new(), 0_u64);
    let (work, done) = on(1, state, move |(pool, drawn, turn), _| {
        *turn += 1;
        let (request, user) = (turn.to_le_bytes(), (*turn % IN_TURNS).to_le_bytes());
        let by = match drawing_user {
            DrawingUser::Anonymous => By::default(),
            DrawingUser::Requests => By::request(&request),
            DrawingUser::Users => by_user(&user),
        };
        draw(pool, &by, drawn)
    })?;
    Ok(work.checked(move || {
        let ((pool, ..), calls) = done.finish()?;
        expect_draws(&pool, calls)
    }))
}

fn by_user(name: &[u8]) -> By<'_> {
    By { user: Some(name), request: None, now_ms: NOW_MS }
}

fn draw(pool: &mut Pool<WideTree>, by: &By<'_>, drawn: &mut Vec<Draw>) -> bool {
    drawn.clear();
    pool.draw_by(by, 1, Repeats::Allowed, drawn).is_ok()
}

/// Fails unless all draws were made, each of which took one unit.
fn expect_draws(pool: &Pool<WideTree>, draws: u64) -> anyhow::Result<Vec<Found>> {
    let (made, drawn) = (pool.next_draw(), pool.urn().entries().map(|entry| entry.drawn).sum::<u64>());
    anyhow::ensure!(made == draws, "{made} draws were made where {draws} should have been");
    anyhow::ensure!(drawn == draws, "{drawn} units are drawn where {draws} should be");
    Ok(Vec::new())
}

/// Rows for the memory of many users, and the time to write and read them.
fn rows_of_many(name: &str, ruled: Ruled) -> [Benchmark; 3] {
    let row = |what: &str, measures: &str, start: fn(Ruled, u64) -> anyhow::Result<Work>| {
        let measures = format!("{measures} 1,000,000 users with names of 8 bytes that have drawn once each");
        Benchmark::new(format!("UserOps.{what}_{name}_1m"), measures, move |sizes| start(ruled, sizes.items))
    };
    [
        row("memory", "what a pool keeps for each of", |ruled, users| {
            Work::amounts(users, move || {
                let pool = pool(ruled)?;
                kept_bytes(std::time::Duration::ZERO, move || drawn_by(pool, users))
            })
        })
        .in_unit("B/user"),
        row("write", "writing a pool of", |ruled, users| {
            let state = (drawn_by(pool(ruled)?, users)?, Vec::new());
            let (work, _) = on(1, state, |(pool, head), _| {
                head.clear();
                pool.write_head(head);
            })?;
            Ok(work)
        }),
        row("read", "reading a pool of", |ruled, users| {
            let mut head = Vec::new();
            drawn_by(pool(ruled)?, users)?.write_head(&mut head);
            Work::calls(1, move || {
                let clock = Instant::now();
                let image = PoolImage::read(&head)?;
                let took = clock.elapsed();
                drop(image);
                Ok(took)
            })
        }),
    ]
}

/// Returns the pool after one draw by each of `users` users.
fn drawn_by(mut pool: Pool<WideTree>, users: u64) -> anyhow::Result<Pool<WideTree>> {
    let mut drawn = Vec::new();
    for user in 0..users {
        draw(&mut pool, &by_user(&user.to_le_bytes()), &mut drawn);
    }
    expect_draws(&pool, users)?;
    Ok(pool)
}
