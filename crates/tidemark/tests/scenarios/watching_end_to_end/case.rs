//! One case, from its seed: a server that is killed, stopped and restarted under writers and
//! subscribers, and the judgement of all that they have noted.

use super::archive::{Archive, snapshots_in};
use super::browser::Browser;
use super::consumer::Consumer;
use super::dice::{Counted, Dice};
use super::errand::Errands;
use super::judge::{Allowance, Evidence, Promise};
use super::names::Held;
use super::page::Page;
use super::plan::{DURABILITIES, Plan};
use super::received::{End, Subscription};
use super::subscriber::Subscriber;
use super::world::World;
use super::writer::{Acknowledged, Writer};
use crate::commands::{Generator, Random, Times};
use crate::support::Server;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;
use tidemark_log::{FileStorage, Log, Lsn, Options};

const WRITERS: usize = 3;
const SUBSCRIBERS: usize = 5;
const BROWSERS: usize = 2;
const PAGES: usize = 2;
const DICE: usize = 2;
const CONSUMERS: usize = 3;

/// Counts over all cases.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) records: u64,
    pub(crate) kills: u64,
    pub(crate) subscriptions: usize,
    pub(crate) stretches: usize,
    pub(crate) received: usize,
    pub(crate) complete: usize,
    pub(crate) stale: usize,
    pub(crate) refused: usize,
    pub(crate) promises: usize,
    /// How often a consumer owned a name, what it received then, and how often it was refused.
    pub(crate) held: usize,
    pub(crate) received_by_name: usize,
    pub(crate) refused_by_name: usize,
    /// Ended names: of the consumer itself, of another consumer, and without an owner; and how
    /// often the owner was notified.
    pub(crate) names_ended: [usize; 3],
    pub(crate) notified_of_end: usize,
    /// The same for subscribers that count, over DiceDB's protocol.
    pub(crate) counted: usize,
    pub(crate) received_by_number: usize,
    pub(crate) refused_by_number: usize,
    pub(crate) stale_by_number: usize,
}

impl Tally {
    /// Returns the counts that may be zero in one case, but not over many cases.
    pub(crate) fn rare(&self) -> [(&'static str, usize); 9] {
        let [own, of_others, unclaimed] = self.names_ended;
        [
            ("a subscription becomes stale in the middle", self.stale),
            ("one cannot go on", self.refused),
            ("a named one cannot go on", self.refused_by_name),
            ("one cannot go on behind a number", self.refused_by_number),
            ("what comes behind a number is gone", self.stale_by_number),
            ("a consumer ends its own name", own),
            ("it ends that of another one", of_others),
            ("it ends a name without a client", unclaimed),
            ("the client of a name is notified that it has ended", self.notified_of_end),
        ]
    }
}

/// How a run of the server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    Killed,
    Stopped,
}

/// Prints how to repeat a failed case, and keeps its directory.
struct Repeatable {
    seed: u64,
    directory: Option<TempDir>,
}

impl Drop for Repeatable {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let kept = self.directory.take().map(TempDir::keep);
            eprintln!(
                "once more: TIDEMARK_WATCHING_SEED={} TIDEMARK_WATCHING_CASES=1 cargo test --profile test-fast -p tidemark \
                 --test scenarios watching_end_to_end::; the log is in {kept:?}",
                self.seed
            );
        }
    }
}

/// Runs the case of a seed, and adds its results to the tally.
pub(crate) fn run(seed: u64, tally: &mut Tally) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().to_owned();
    let _repeatable = Repeatable { seed, directory: Some(directory) };
    let mut random = Random::new(seed);
    let mut plan = Plan::of(&mut random);
    let world = World::default();
    let mut archive = plan.retires.then(|| Archive::new(&path));
    if archive.is_none() {
        // The server takes snapshots on its own.
        world.raise_floor(u64::MAX);
    }
    let mut lives = Vec::new();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    let mut generator = || Generator::new(random.next(), Times::Near, now.as_millis() as u64);
    let writers: Vec<_> =
        (0..WRITERS).map(|number| Writer::new(&world, generator(), number, plan.bulk_bytes)).collect();
    let subscribers: Vec<_> = (0..SUBSCRIBERS)
        .map(|number| Subscriber::new(&world, generator(), plan.bulk_bytes > 0 && number < 2))
        .collect();

    let browsers: Vec<_> = (0..BROWSERS).map(|_| Browser::new(&world, generator())).collect();

    let pages: Vec<_> = (0..PAGES).map(|_| Page::new(&world, generator())).collect();
    let dice: Vec<_> = (0..DICE).map(|_| Dice::new(&world, generator())).collect();
    let errands = Errands::new(&mut generator());
    let consumers: Vec<_> =
        (0..CONSUMERS).map(|number| Consumer::new(&world, &errands, generator(), number)).collect();

    if plan.durability == "always" {
        world.change_promise();
    }
    let mut server = plan.start(&path, &world);
    let (server, acknowledged, subscriptions, held, counted) = std::thread::scope(|scope| {
        let _over = Over(&world);
        let writers: Vec<_> = writers.into_iter().map(|writer| scope.spawn(|| writer.run())).collect();
        let subscribers: Vec<_> =
            subscribers.into_iter().map(|subscriber| scope.spawn(|| subscriber.run())).collect();
        let browsers = browsers.into_iter().map(|browser| scope.spawn(|| browser.run()));
        let pages = pages.into_iter().map(|page| scope.spawn(|| page.run()));
        let subscribers: Vec<_> = subscribers.into_iter().chain(browsers).chain(pages).collect();
        let dice: Vec<_> = dice.into_iter().map(|dice| scope.spawn(|| dice.run())).collect();
        let consumers: Vec<_> =
            consumers.into_iter().map(|consumer| scope.spawn(|| consumer.run())).collect();
        for _ in 0..plan.disturbances {
            std::thread::sleep(Duration::from_millis(40 + random.below(200)));
            server = disturb(server, &mut plan, &mut random, (&world, &path), (&mut archive, &mut lives));
        }
        world.end_writing();
        let acknowledged: Vec<Acknowledged> =
            writers.into_iter().flat_map(|writer| writer.join().expect("a writer ends")).collect();
        world.set_head(head(&server));
        let subscriptions: Vec<Subscription> = subscribers
            .into_iter()
            .flat_map(|subscriber| subscriber.join().expect("a subscriber ends"))
            .collect();
        let held: Vec<Held> =
            consumers.into_iter().flat_map(|consumer| consumer.join().expect("a consumer ends")).collect();
        let counted: Vec<Counted> =
            dice.into_iter().flat_map(|dice| dice.join().expect("a client of DiceDB's ends")).collect();
        (server, acknowledged, subscriptions, held, counted)
    });
    assert!(server.terminate().success(), "the server stops as it should");
    lives.push(Life::Stopped);

    tally.kills += lives.iter().filter(|end| **end == Life::Killed).count() as u64;
    let is_kept = |life: &Option<usize>| life.is_none_or(|life| lives[life] == Life::Stopped);
    let promises: Vec<Promise> =
        acknowledged.into_iter().filter(|write| is_kept(&write.life)).map(|write| write.promise).collect();
    let allowance = Allowance {
        floor: if plan.retires { oldest_kept(&path) } else { 0 },
        forgets: plan.forgets,
        abandons: plan.abandons,
    };
    let ends = errands.ends();
    for (sum, count) in tally.names_ended.iter_mut().zip([ends.own, ends.of_others, ends.unclaimed]) {
        *sum += count;
    }
    let log = archive.as_mut().map_or(path.as_path(), Archive::complete);
    judge(log, (&subscriptions, &held, &counted), &promises, &allowance, tally);
}

/// Ends all threads, also if the case fails.
struct Over<'w>(&'w World);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.give_up();
    }
}

/// Disturbs the server; returns the one that runs afterwards.
fn disturb(
    server: Server,
    plan: &mut Plan,
    random: &mut Random,
    (world, path): (&World, &Path),
    (archive, lives): (&mut Option<Archive>, &mut Vec<Life>),
) -> Server {
    match random.below(9) {
        0..3 => {
            server.kill();
            lives.push(Life::Killed);
        }
        3 => {
            assert!(server.terminate().success(), "the server stops as it should");
            lives.push(Life::Stopped);
        }
        4..6 => {
            if let Some(archive) = archive {
                save(&server, archive, world, path);
                if plan.outruns {
                    // Two snapshots are kept, so the log removes all records before the older one.
                    std::thread::sleep(Duration::from_millis(random.below(100)));
                    save(&server, archive, world, path);
                }
                return server;
            }
            let command = random.pick(&["SAVE", "BGSAVE", "BGSAVE"]);
            // A background snapshot may be running already.
            server.client().call(&[command]).expect("an answer");
            return server;
        }
        6..8 => {
            set_durability(&server, plan, random.pick(&DURABILITIES), world);
            return server;
        }
        _ => return server,
    }
    world.server_has_ended();
    plan.start(path, world)
}

/// Takes a snapshot, after which the log removes what the snapshot before covers.
fn save(server: &Server, archive: &mut Archive, world: &World, path: &Path) {
    archive.collect();
    if let Some(newest) = snapshots_in(path).last() {
        world.raise_floor(*newest);
    }
    let answer = server.client().call(&["SAVE"]).expect("an answer");
    assert!(!answer.is_error(), "{answer:?}");
}

/// Returns the LSN of the older of two snapshots: all later records can be replayed.
fn oldest_kept(directory: &Path) -> u64 {
    match snapshots_in(directory).as_slice() {
        [.., older, _] => *older,
        _ => 0,
    }
}

fn set_durability(server: &Server, plan: &mut Plan, durability: &'static str, world: &World) {
    if plan.durability == "always" {
        world.change_promise();
    }
    let answer = server.client().call(&["CONFIG", "SET", "durability", durability]).expect("an answer");
    assert!(!answer.is_error(), "{answer:?}");
    plan.durability = durability;
    if durability == "always" {
        world.change_promise();
    }
}

/// Returns the end of the log; every record before it has been emitted.
fn head(server: &Server) -> u64 {
    let answer = server.client().call(&["DBSIZE.WATCH"]).expect("an answer").array();
    answer[3].integer() as u64
}

fn judge(
    directory: &Path,
    (subscriptions, held, counted): (&[Subscription], &[Held], &[Counted]),
    promises: &[Promise],
    allowance: &Allowance,
    tally: &mut Tally,
) {
    let storage = FileStorage::new(directory).expect("the data directory");
    let (log, _) = Log::open(Arc::new(storage), Options::default()).expect("the log is sound");
    assert_eq!(log.floor(), Lsn(1), "the log is whole");
    let evidence = Evidence::of(subscriptions, (held, counted), |see| {
        let mut replay = log.replay(Lsn(1)).expect("the log can be read");
        while let Some(batch) = replay.next_batch().expect("the log is sound") {
            batch.iter().for_each(|record| see(&record));
        }
    });
    let evidence = evidence.unwrap_or_else(|fault| panic!("{fault}"));
    let faults: BTreeSet<String> = subscriptions
        .iter()
        .filter_map(|subscription| evidence.judge(subscription, allowance).err())
        .chain(evidence.judge_promises(promises).err())
        .chain(evidence.judge_names(held, allowance).err())
        .chain(counted.iter().filter_map(|counted| counted.judge(&evidence, allowance).err()))
        .collect();
    assert!(
        faults.is_empty(),
        "{} faults:\n{}",
        faults.len(),
        faults.into_iter().collect::<Vec<_>>().join("\n")
    );

    let ends =
        || subscriptions.iter().flat_map(|subscription| &subscription.stretches).map(|stretch| &stretch.end);
    let stretches = subscriptions.iter().flat_map(|subscription| &subscription.stretches);
    tally.records += evidence.records;
    tally.subscriptions += subscriptions.len();
    tally.stretches += ends().count();
    tally.received += stretches.map(|stretch| stretch.received.len()).sum::<usize>();
    tally.complete += ends().filter(|end| matches!(end, End::Complete { .. })).count();
    tally.stale += ends().filter(|end| matches!(end, End::Stale { .. })).count();
    tally.refused += subscriptions.iter().filter(|subscription| subscription.refusal.is_some()).count();
    tally.promises += promises.len();
    let runs = || counted.iter().flat_map(|counted| &counted.stretches);
    tally.counted += runs().count();
    tally.received_by_number += runs().map(|run| run.received.len()).sum::<usize>();
    tally.refused_by_number += counted.iter().filter(|counted| counted.refusal.is_some()).count();
    let is_stale =
        |counted: &&Counted| counted.refusal.as_ref().is_some_and(|refused| refused.word == "STALE_SEQUENCE");
    tally.stale_by_number += counted.iter().filter(is_stale).count();
    tally.held += held.len();
    tally.received_by_name += held.iter().map(|held| held.stretch.received.len()).sum::<usize>();
    tally.notified_of_end += held.iter().filter(|held| held.has_lost_name).count();
    tally.refused_by_name += held.iter().filter(|held| held.refusal.is_some()).count();
}
