//! Counts the instructions of one command.
//!
//! Run it with `cargo bench -p tidemark-engine -- --instructions [COUNT]`.
//!
//! Valgrind counts the instructions of this program with a command run COUNT times and without it.
//! The difference divided by COUNT is the cost of one command. Only the thread that executes
//! commands counts, because the work of the log's threads depends on when they wake. Unlike times,
//! these figures do not depend on the load of the machine, so a change of one percent is visible.

use std::path::Path;
use std::process::{Command, Stdio};
use tidemark_engine::command::{Group, flags};
use tidemark_engine::{Call, Engine, Protocol, Reply, command};

/// The commands. A number N after a slash: the engine samples one of N moves of counters. `TS.ADD` and
/// `TS.MADD` are counted by points.
const COMMANDS: [&str; 9] = [
    "SET",
    "GET",
    "INCR",
    "COUNTER.ADD",
    "COUNTER.ADD/16",
    "COUNTER.ADD/1",
    "TS.ADD",
    "TS.MADD",
    "TS.MRANGE",
];

/// The default number of commands in a run.
const COUNT: usize = 200_000;

/// The number of keys that the commands use in turn. They exist before the first command.
const KEYS: usize = 1000;

/// Number of points that are added together: a pipeline of `TS.ADD`, and one `TS.MADD`.
const POINTS: [usize; 2] = [64, 1000];

/// Number of series among which a filter finds a tenth.
const SERIES: usize = 100;

/// Prints a row for each command.
pub(crate) fn print(count: Option<usize>) -> Result<(), String> {
    let count = count.filter(|&count| count > 0).unwrap_or(COUNT);
    let directory = std::env::temp_dir().join(format!("tidemark-instructions-{}", std::process::id()));
    let failed =
        |error| format!("{}: {error}; set TMPDIR to a directory for temporary files", directory.display());
    std::fs::create_dir_all(&directory).map_err(failed)?;
    let printed = COMMANDS.iter().try_for_each(|name| {
        let (with, without) = (counted(name, count, &directory)?, counted(name, 0, &directory)?);
        println!("{name:<24} {:>8.1} instructions", with.saturating_sub(without) as f64 / count as f64);
        Ok(())
    });
    std::fs::remove_dir_all(&directory).map_err(failed)?;
    printed
}

/// Executes a command `count` times.
pub(crate) fn repeat(engine: &Engine, name: &str, count: usize) -> Result<(), String> {
    let (name, sample) = name.split_once('/').unwrap_or((name, "0"));
    engine.set_churn_sample(sample.parse().map_err(|error| format!("{sample}: {error}"))?, 1);
    let row = command::find(name.as_bytes()).ok_or_else(|| format!("{name} is no command"))?;
    let keys: Vec<String> = (0..KEYS).map(|number| format!("key:{number}")).collect();
    let set = command::find(b"SET").ok_or("the table has no SET")?;
    let mut reply = Reply::new(Protocol::Resp3);
    let mut execute = |command, args: &[&[u8]]| {
        engine.execute(&Call { command, args, db: 0, now_us: 1 }, &mut reply);
        reply.truncate(0);
    };
    for key in &keys {
        execute(set, &[b"SET", key.as_bytes(), b"12"]);
    }
    if row.group == Group::Counter {
        let create = command::find(b"COUNTER.CREATE").ok_or("the table has no COUNTER.CREATE")?;
        let del = command::find(b"DEL").ok_or("the table has no DEL")?;
        for key in &keys {
            execute(del, &[b"DEL", key.as_bytes()]);
            execute(create, &[b"COUNTER.CREATE", key.as_bytes()]);
        }
    }
    if row.group == Group::Series {
        if row.is(flags::READONLY) {
            read_by_labels(engine, row, count);
        } else {
            add_points(engine, row, count);
        }
        return Ok(());
    }
    for (number, key) in keys.iter().cycle().take(count).enumerate() {
        // Alternates up and down: strings accept either, and counters need no commit.
        let amount: &[u8] = if (number / KEYS).is_multiple_of(2) { b"12" } else { b"-12" };
        let args: [&[u8]; 3] = [name.as_bytes(), key.as_bytes(), amount];
        // GET and INCR have no value.
        execute(row, &args[..if row.takes(3) { 3 } else { 2 }]);
    }
    Ok(())
}

/// Adds points to one series, as many together as a client would. Writing their times costs some 20
/// instructions each.
fn add_points(engine: &Engine, row: &'static command::Command, count: usize) {
    let mut reply = Reply::new(Protocol::Resp3);
    let create = command::find(b"TS.CREATE").expect("a command of the table");
    let call = Call { command: create, args: &[b"TS.CREATE", b"series"], db: 0, now_us: 1 };
    engine.execute(&call, &mut reply);
    let is_run = row.is(flags::RUNS);
    let together = POINTS[usize::from(!is_run)];
    let mut times: Vec<Vec<u8>> =
        (0..together).map(|at| (1_700_000_000_000 + at).to_string().into_bytes()).collect();
    for _ in 0..count / together {
        reply.truncate(0);
        if is_run {
            let args: Vec<[&[u8]; 4]> =
                times.iter().map(|time| [row.name.as_bytes(), b"series", time, b"21.5"]).collect();
            let call = |args| Call { command: row, args, db: 0, now_us: 1 };
            let calls: Vec<Call<'_>> = args.iter().map(|args| call(&args[..])).collect();
            assert!(engine.execute_run(&calls, &mut reply).is_some(), "the commands are admitted together");
        } else {
            let mut args: Vec<&[u8]> = vec![row.name.as_bytes()];
            args.extend(times.iter().flat_map(|time| [&b"series"[..], time, b"21.5"]));
            engine.execute(&Call { command: row, args: &args, db: 0, now_us: 1 }, &mut reply);
        }
        assert!(!reply.bytes().contains(&b'-'), "the points are added");
        times.iter_mut().for_each(|time| advance(time, together));
    }
}

/// Reads the only points of the series that a filter of two labels finds.
fn read_by_labels(engine: &Engine, row: &'static command::Command, count: usize) {
    let mut reply = Reply::new(Protocol::Resp3);
    let mut execute = |row, args: &[&[u8]]| {
        reply.truncate(0);
        engine.execute(&Call { command: row, args, db: 0, now_us: 1 }, &mut reply);
        assert_ne!(reply.bytes().first(), Some(&b'-'), "the command is executed");
    };
    let add = command::find(b"TS.ADD").expect("a command of the table");
    for number in 0..SERIES {
        let (key, room) = (format!("series:{number}"), format!("{}", number % 10));
        let labels: [&[u8]; 7] =
            [b"LABELS", b"room", room.as_bytes(), b"unit", b"c", b"host", key.as_bytes()];
        let args: Vec<&[u8]> = [&[b"TS.ADD", key.as_bytes(), b"1", b"21.5"], &labels[..]].concat();
        execute(add, &args);
    }
    let args: [&[u8]; 6] = [row.name.as_bytes(), b"-", b"+", b"FILTER", b"room=3", b"unit=c"];
    (0..count).for_each(|_| execute(row, &args));
}

/// Adds a number to a decimal text.
fn advance(text: &mut [u8], by: usize) {
    let mut carry = by;
    for digit in text.iter_mut().rev() {
        if carry == 0 {
            break;
        }
        let sum = usize::from(*digit - b'0') + carry;
        (*digit, carry) = (b'0' + (sum % 10) as u8, sum / 10);
    }
}

/// Counts the instructions of the first thread of this program, run with `--repeat`.
fn counted(name: &str, count: usize, directory: &Path) -> Result<u64, String> {
    let program = std::env::current_exe().map_err(|error| format!("finding this program: {error}"))?;
    let counts = directory.join("counts");
    let status = Command::new("valgrind")
        .args(["--tool=callgrind", "--separate-threads=yes"])
        .arg(format!("--callgrind-out-file={}", counts.display()))
        .arg(program)
        .args(["--repeat", name, &count.to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(|error| {
            format!("valgrind cannot be started: {error}; install it, it counts the instructions")
        })?;
    if !status.success() {
        return Err(format!("valgrind ended with {status}; run it by hand to see why"));
    }
    let text = std::fs::read_to_string(directory.join("counts-01"))
        .map_err(|error| format!("reading what valgrind has counted: {error}"))?;
    let total = text.lines().find_map(|line| line.strip_prefix("totals: ")?.trim().parse().ok());
    total.ok_or_else(|| "valgrind has counted nothing".to_owned())
}
