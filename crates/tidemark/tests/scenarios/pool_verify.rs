//! `tidemark pool verify` and `tidemark pool audit` on the files of the real program: good files
//! are accepted, and later changes are found even if every checksum was made right again.

use crate::support::forgery::{forge, reframed};
use crate::support::{Answer, Client, Server, call, wait_until};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};
use tidemark_pool::{Chain, Event};

fn pool(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidemark"));
    command.arg("pool").arg("--dir").arg(directory).args(arguments).output().expect("runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

/// Returns the output of a successful check.
fn good(output: &Output) -> String {
    assert_eq!(
        (output.status.code(), text(&output.stderr)),
        (Some(0), String::new()),
        "{}",
        text(&output.stdout)
    );
    text(&output.stdout)
}

/// Returns why a check has failed.
fn not_good(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    text(&output.stderr)
}

/// Returns the value of a name in a flat map, as text.
fn field(answer: Answer, name: &str) -> String {
    let map = answer.array();
    let at = map.iter().position(|word| *word == Answer::Bulk(name.into())).expect(name);
    match &map[at + 1] {
        Answer::Bulk(text) => text.clone(),
        other => other.integer().to_string(),
    }
}

fn chain(client: &mut Client) -> String {
    field(call(client, &["POOL.STATE", "summer"]), "chain")
}

fn start(directory: &Path) -> Server {
    Server::start(directory, &["--durability", "always", "--threads", "2"])
}

fn now_ms() -> u128 {
    std::time::UNIX_EPOCH.elapsed().expect("it is later").as_millis()
}

/// What an outsider knows of a campaign.
struct Campaign {
    /// Chain in the middle of the campaign, and the secret of the epoch that had ended then.
    noted: String,
    secret: String,
    /// Published commitment of the first epoch.
    commitment: String,
}

/// Runs a campaign with epochs, reservations, changes and a kill; the pool is recreated once, under
/// another name.
fn campaign(directory: &Path) -> (Server, Campaign) {
    let server = start(directory);
    let mut client = server.client();
    call(&mut client, &["POOL.CREATE", "summer", "ITEMS", "old", "1", "5"]);
    call(&mut client, &["POOL.DRAW", "summer", "COUNT", "3"]);
    call(&mut client, &["POOL.DROP", "summer"]);
    call(&mut client, &["SET", "other", "value"]);
    let items = ["ITEMS", "car", "1", "3", "voucher", "99", "40", "mug", "400", "UNLIMITED"];
    // Ten units were released long ago; in each window of the next 20 ms one is released, and
    // lapses.
    let begin = now_ms();
    let from = begin.to_string();
    let schedule = ["SCHEDULE", "voucher", "10", "FROM", "1000", "SCHEDULE", "car", "10", "FROM", &from];
    let windows = ["EVERY", "2", "TIMES", "10", "LAPSES"];
    let create = ["POOL.CREATE", "draft", "SOLDOUT", "FALLBACK", "mug"];
    let made = call(&mut client, &[&create[..], &schedule, &windows, &items].concat());
    call(&mut client, &["POOL.DRAW", "draft", "COUNT", "5"]);
    call(&mut client, &["RENAME", "draft", "summer"]);
    call(&mut client, &["POOL.DRAW", "summer", "COUNT", "3", "UNIQUE"]);
    let kept = field(call(&mut client, &["POOL.RESERVE", "summer", "3600000", "COUNT", "2"]), "reservation");
    let lost = field(call(&mut client, &["POOL.RESERVE", "summer", "1"]), "reservation");
    assert_eq!(call(&mut client, &["POOL.CONFIRM", "summer", &kept]).integer(), 1);
    std::thread::sleep(std::time::Duration::from_millis(5));
    client.call(&["POOL.CANCEL", "summer", &lost]).expect("an answer");
    call(&mut client, &["POOL.UPDATE", "summer", "WEIGHT", "car", "100", "ADD", "-hat", "50", "2"]);
    let epoch = call(&mut client, &["POOL.EPOCH", "summer", "SEED", "luck"]).array();
    let secret = field(epoch[1].clone(), "secret");
    for _ in 0..20 {
        call(&mut client, &["POOL.DRAW", "summer"]);
    }
    for _ in 0..2 {
        call(&mut client, &["POOL.DRAW", "summer", "COUNT", "2", "USER", "mira", "REQUEST", "order 1"]);
    }
    let noted = chain(&mut client);
    server.kill();

    let server = start(directory);
    let mut client = server.client();
    // From now on no unit is released by the schedule.
    wait_until("the last window begins", || now_ms() > begin + 20);
    call(&mut client, &["MULTI"]);
    call(&mut client, &["POOL.DRAW", "summer", "COUNT", "10"]);
    call(&mut client, &["MOVE", "summer", "3"]);
    call(&mut client, &["EXEC"]);
    call(&mut client, &["SWAPDB", "0", "3"]);
    call(&mut client, &["SAVE"]);
    call(&mut client, &["POOL.EPOCH", "summer"]);
    call(&mut client, &["POOL.DRAW", "summer", "COUNT", "30"]);
    (server, Campaign { noted, secret, commitment: field(made, "commitment") })
}

#[test]
fn what_a_server_does_is_good_while_it_does_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let (server, campaign) = campaign(directory.path());
    let mut client = server.client();
    let end = chain(&mut client);
    let said = good(&pool(
        directory.path(),
        &[
            "verify",
            "summer",
            "--chain",
            &campaign.noted,
            "--chain",
            &end,
            "--commitment",
            &campaign.commitment,
        ],
    ));
    assert!(said.starts_with("pool summer: good\n"), "{said}");
    assert!(said.contains(&format!("\nchain {end}\n")), "{said}");
    assert!(said.contains("draws made again from the secrets of 3 epochs"), "{said}");
    assert!(said.contains(", each time when it was due"), "{said}");
    assert!(said.contains("1 snapshot agrees with the log\n"), "{said}");
    assert!(said.contains("frames of the log checked, made by record 5, up to record"), "{said}");
    assert!(said.contains("earlier pools at this key: 1, good as well\n"), "{said}");

    let wrong = "0".repeat(64);
    let refused = not_good(&pool(directory.path(), &["verify", "summer", "--chain", &wrong]));
    assert!(refused.contains("the chain never has the value 0000"), "{refused}");
    let refused = not_good(&pool(directory.path(), &["verify", "summer", "--commitment", &wrong]));
    assert!(refused.contains("no epoch has the commitment 0000"), "{refused}");
    let refused = not_good(&pool(directory.path(), &["verify", "winter"]));
    assert!(refused.contains("the log has no pool winter"), "{refused}");
    for wrong in [&["verify"][..], &["verify", "summer", "--chain", "12"], &["verify", "summer", "-n", "16"]]
    {
        assert_eq!(pool(directory.path(), wrong).status.code(), Some(2), "{wrong:?}");
    }
    let nowhere = not_good(&pool(&directory.path().join("nowhere"), &["verify", "summer"]));
    assert!(nowhere.contains("cannot read the directory"), "{nowhere}");

    // The check follows the pool to another key, and reports that the key is gone.
    call(&mut client, &["PEXPIRE", "summer", "1"]);
    wait_until("the key expires", || call(&mut client, &["EXISTS", "summer"]).integer() == 0);
    assert!(server.terminate().success());
    let said = good(&pool(directory.path(), &["verify", "summer"]));
    assert!(said.contains("the pool was removed at record "), "{said}");
}

/// Makes a log in which a forger changes the frames, and makes the chain right again or leaves it.
fn forged(
    directory: &Path,
    keeps_chain: bool,
    change: &mut dyn FnMut(u64, &mut Event<'_>),
) -> tempfile::TempDir {
    let into = tempfile::tempdir().expect("a directory");
    let mut chain = None::<Chain>;
    forge(directory, into.path(), &mut |name, mut args| {
        match name {
            "pool.load" => chain = None,
            "pool.step" => {
                let stated = Chain::from(<[u8; 32]>::try_from(&args[1][..32]).expect("a chain"));
                // The first frame stays: an auditor cannot check what comes before it.
                let Some(before) = chain.replace(stated) else { return Some(args) };
                let (mut frame, behind) = reframed(&args[1], before, change);
                if keeps_chain {
                    frame[..32].copy_from_slice(stated.bytes());
                } else {
                    chain = Some(behind);
                }
                args[1] = frame;
            }
            _ => {}
        }
        Some(args)
    });
    into
}

/// Runs a short campaign and stops the server: 40 draws, each in a frame of its own.
fn stopped(directory: &Path) -> String {
    let server = start(directory);
    let mut client = server.client();
    call(&mut client, &["POOL.CREATE", "summer", "ITEMS", "car", "1", "10", "mug", "1", "100"]);
    for _ in 0..40 {
        call(&mut client, &["POOL.DRAW", "summer"]);
    }
    let end = chain(&mut client);
    assert!(server.terminate().success());
    end
}

#[test]
fn what_was_changed_afterwards_is_found() {
    let directory = tempfile::tempdir().expect("a directory");
    let end = stopped(directory.path());
    let honest = forged(directory.path(), true, &mut |_, _| ());
    good(&pool(honest.path(), &["verify", "summer", "--chain", &end]));

    let mut swap = |number: u64, event: &mut Event<'_>| {
        if let (20, Event::Drew(Some(item))) = (number, event) {
            *item = 1 - *item;
        }
    };
    // The forger swaps the item of a draw and leaves the chain: both are inconsistent.
    let item = forged(directory.path(), true, &mut swap);
    let said = not_good(&pool(item.path(), &["verify", "summer"]));
    assert!(
        said.contains("record 22: the frame that begins with draw 20 does not continue the log before it"),
        "{said}"
    );
    assert!(said.contains("draw 20 is said to have given item ") && said.contains("is \"car\""), "{said}");
    // The forger also fixes the chain: the draw does not follow from the secret.
    let item = forged(directory.path(), false, &mut swap);
    let said = not_good(&pool(item.path(), &["verify", "summer"]));
    assert!(said.contains("record 22: draw 20 is said to have given item "), "{said}");

    // A frame is left out, or is there twice.
    for copies in [0, 2] {
        let into = tempfile::tempdir().expect("a directory");
        let mut frames = 0;
        let mut before = None;
        forge(directory.path(), into.path(), &mut |name, args| {
            frames += u64::from(name == "pool.step");
            if frames == 30 && name == "pool.step" {
                return (copies == 2).then(|| before.clone().expect("one before"));
            }
            before = Some(args.clone());
            Some(args)
        });
        let said = not_good(&pool(into.path(), &["verify", "summer"]));
        assert!(said.contains("does not continue the log before it"), "{said}");
    }

    // Everything after some frame is gone. Only an auditor with an earlier value of the chain can find that.
    let into = tempfile::tempdir().expect("a directory");
    let mut frames = 0;
    forge(directory.path(), into.path(), &mut |_, args| {
        frames += 1;
        (frames <= 30).then_some(args)
    });
    good(&pool(into.path(), &["verify", "summer"]));
    let said = not_good(&pool(into.path(), &["verify", "summer", "--chain", &end]));
    assert!(said.contains("the chain never has the value"), "{said}");

    // More initial units than there were.
    let into = tempfile::tempdir().expect("a directory");
    forge(directory.path(), into.path(), &mut |name, mut args| {
        if name == "pool.load" {
            let at = args[1].windows(3).position(|bytes| bytes == b"car").expect("the car");
            // The weight comes first, then the units left and the initial units.
            (args[1][at + 4], args[1][at + 5]) = (11, 11);
        }
        Some(args)
    });
    let said = not_good(&pool(into.path(), &["verify", "summer"]));
    assert!(said.contains("record 1: the chain of the pool that is made is "), "{said}");
}

/// The forger withholds a prize that was due, or releases it too early, and makes the chain right
/// again.
#[test]
fn a_schedule_that_was_not_kept_is_found() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = start(directory.path());
    let mut client = server.client();
    let soon_ms = now_ms() + 200;
    let schedule = ["SCHEDULE", "car", "1", "FROM", &soon_ms.to_string()];
    let items = ["ITEMS", "car", "1", "0", "mug", "1", "100"];
    call(&mut client, &[&["POOL.CREATE", "summer"][..], &schedule, &items].concat());
    call(&mut client, &["POOL.DRAW", "summer"]);
    wait_until("the car is released", || {
        field(call(&mut client, &["POOL.SCHEDULE", "summer"]), "released-until") != "0"
    });
    for _ in 0..5 {
        call(&mut client, &["POOL.DRAW", "summer"]);
    }
    assert!(server.terminate().success());
    assert!(good(&pool(directory.path(), &["verify", "summer"])).contains("the schedule went on 1 time,"));
    let audited = audit(directory.path(), &[]);
    let (schedules, releases) = (events(&audited, "schedule"), events(&audited, "release"));
    assert_eq!((schedules.len(), releases.len()), (1, 1));
    assert_eq!((&schedules[0]["id"], &schedules[0]["units"]), (&"car".into(), &1.into()));
    assert_eq!((&releases[0]["id"], &releases[0]["left"]), (&"car".into(), &1.into()));

    let early = forged(directory.path(), false, &mut |_, event| {
        if let Event::Advanced { now_ms } = event {
            *now_ms += 60_000;
        }
    });
    let said = not_good(&pool(early.path(), &["verify", "summer"]));
    assert!(said.contains("the schedule is said to have gone on to "), "{said}");
    // The step that releases the car is left out.
    let mut chain = None::<Chain>;
    let held_back = tempfile::tempdir().expect("a directory");
    forge(directory.path(), held_back.path(), &mut |name, mut args| {
        if name == "pool.step" {
            let stated = Chain::from(<[u8; 32]>::try_from(&args[1][..32]).expect("a chain"));
            let Some(before) = chain.replace(stated) else { return Some(args) };
            let mut advances = false;
            let see =
                &mut |_: u64, event: &mut Event<'_>| advances |= matches!(event, Event::Advanced { .. });
            let (frame, behind) = reframed(&args[1], before, see);
            if advances {
                chain = Some(before);
                return None;
            }
            (args[1], chain) = (frame, Some(behind));
        }
        Some(args)
    });
    let said = not_good(&pool(held_back.path(), &["verify", "summer"]));
    assert!(said.contains(&format!("without what was due at {soon_ms} milliseconds")), "{said}");
}

/// An audit has the odds of draws through tables, and an auditor without the server can compute
/// these draws again.
#[test]
fn draws_from_tables_inside_of_tables_are_made_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = start(directory.path());
    let mut client = server.client();
    let create = [
        "POOL.CREATE",
        "summer",
        "SOLDOUT",
        "NOPRIZE",
        "TABLE",
        "wheels",
        "2",
        "car",
        "1",
        "1",
        "bicycle",
        "9",
        "30",
    ];
    let items = ["ITEMS", "mug", "50", "UNLIMITED", "rare", "50", "TABLE:wheels"];
    call(&mut client, &[&create[..], &items].concat());
    for _ in 0..40 {
        call(&mut client, &["POOL.DRAW", "summer"]);
    }
    call(&mut client, &["POOL.DRAW", "summer", "COUNT", "3", "REQUEST", "order"]);
    call(&mut client, &["POOL.EPOCH", "summer"]);
    assert!(server.terminate().success());
    let said = good(&pool(directory.path(), &["verify", "summer"]));
    assert!(said.contains("43 draws made again from the secret of 1 epoch"), "{said}");

    let audited = audit(directory.path(), &[]);
    let items = events(&audited, "item");
    assert_eq!((&items[1]["leads_to"], &items[2]["table"]), (&"wheels".into(), &"wheels".into()));
    let draws = events(&audited, "draw");
    let first = draws[0]["odds"].as_f64().expect("odds");
    let expected = match draws[0]["id"].as_str() {
        Some("mug") => 0.5,
        Some("car") => 0.05,
        _ => 0.45,
    };
    assert!((first - expected).abs() < 1e-12 && draws[0]["weight"].is_null(), "{}", draws[0]);
    assert!(draws[42]["odds"].is_null(), "the odds after earlier draws of the same call are not reported");
    let file = directory.path().join("audit.jsonl");
    let lines: Vec<String> = audited.iter().map(Value::to_string).collect();
    std::fs::write(&file, lines.join("\n") + "\n").expect("a disk");
    good(&pool(directory.path(), &["verify", "--audit", file.to_str().expect("a name")]));
    let forged = lines.join("\n").replacen("\"id\":\"bicycle\"", "\"id\":\"car\"", 1);
    std::fs::write(&file, forged).expect("a disk");
    not_good(&pool(directory.path(), &["verify", "--audit", file.to_str().expect("a name")]));
}

/// An alias table gives other items for the same numbers, so an audit names the pool's selector.
#[test]
fn draws_from_every_selector_are_made_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = start(directory.path());
    let mut client = server.client();
    let selectors = ["TREE", "ALIAS", "FENWICK", "PREFIX-SUM"];
    let secrets = selectors.map(|selector| {
        let items = ["ITEMS", "car", "1", "10", "mug", "5", "100", "hat", "3", "UNLIMITED"];
        call(&mut client, &[&["POOL.CREATE", selector, "SELECTOR", selector][..], &items].concat());
        call(&mut client, &["POOL.DRAW", selector, "COUNT", "100"]);
        field(call(&mut client, &["POOL.EPOCH", selector]).array()[1].clone(), "secret")
    });
    assert!(server.terminate().success());
    for (selector, secret) in selectors.iter().zip(secrets) {
        good(&pool(directory.path(), &["verify", selector]));
        let file = directory.path().join(selector);
        let path = file.to_str().expect("text");
        assert!(pool(directory.path(), &["audit", selector, "--output", path]).status.success());
        let said = good(&pool(directory.path(), &["verify", "--audit", path, "--secret", &secret]));
        assert!(said.contains("100 draws made again from the secret of 1 epoch"), "{said}");
        let changed = std::fs::read_to_string(&file).expect("a file").replacen(
            &format!("\"selector\":\"{}\"", selector.to_lowercase()),
            "\"selector\":\"heap\"",
            1,
        );
        std::fs::write(&file, changed).expect("a disk");
        assert!(not_good(&pool(directory.path(), &["verify", "--audit", path])).contains("\"heap\""));
    }
}

/// A revealed secret says nothing about later draws, even after a crash and in every mode.
#[test]
fn a_secret_that_was_shown_draws_no_more_behind_a_kill() {
    let directory = tempfile::tempdir().expect("a directory");
    for round in 0..3 {
        let server = Server::start(directory.path(), &["--durability", "interval:5000ms"]);
        let mut client = server.client();
        if round == 0 {
            call(&mut client, &["POOL.CREATE", "summer", "ITEMS", "car", "1", "10", "mug", "9", "UNLIMITED"]);
        }
        assert_eq!(field(call(&mut client, &["POOL.STATE", "summer"]), "epoch"), round.to_string());
        call(&mut client, &["POOL.DRAW", "summer"]);
        call(&mut client, &["POOL.EPOCH", "summer"]);
        server.kill();
    }
    good(&pool(directory.path(), &["verify", "summer"]));
}

#[test]
fn damage_that_checksums_find_is_no_good_either() {
    let directory = tempfile::tempdir().expect("a directory");
    stopped(directory.path());
    let segment =
        std::fs::read_dir(directory.path()).expect("a directory").map(|file| file.expect("a file").path());
    let segment =
        segment.into_iter().find(|path| path.to_string_lossy().contains("segment-")).expect("a segment");
    let mut bytes = std::fs::read(&segment).expect("a file");
    bytes[4096 + 1200] ^= 4;
    std::fs::write(&segment, bytes).expect("a disk");
    let said = not_good(&pool(directory.path(), &["verify", "summer"]));
    assert!(said.contains("segment-"), "it says where: {said}");
}

#[test]
fn draws_that_a_clean_stop_had_and_that_are_gone_are_missed() {
    let directory = tempfile::tempdir().expect("a directory");
    stopped(directory.path());
    good(&pool(directory.path(), &["verify", "summer"]));
    let names =
        std::fs::read_dir(directory.path()).expect("a directory").map(|file| file.expect("a file").path());
    let segment =
        names.into_iter().find(|path| path.to_string_lossy().contains("segment-")).expect("a segment");
    let mut bytes = std::fs::read(&segment).expect("a file");
    let end = bytes.iter().rposition(|byte| *byte != 0).expect("it has records");
    bytes[end - 1000..].fill(0);
    std::fs::write(&segment, bytes).expect("a disk");
    let said = not_good(&pool(directory.path(), &["verify", "summer"]));
    assert!(said.contains("records are missing"), "{said}");
}

/// Returns the lines of an audit.
fn audit(directory: &Path, arguments: &[&str]) -> Vec<Value> {
    let output = pool(directory, &[&["audit", "summer"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    text(&output.stdout).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn events<'a>(lines: &'a [Value], name: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["event"] == name).collect()
}

#[test]
fn an_audit_has_every_draw_with_its_odds_and_no_secret_of_what_is_to_come() {
    let directory = tempfile::tempdir().expect("a directory");
    let (server, campaign) = campaign(directory.path());
    let mut client = server.client();
    let lines = audit(directory.path(), &[]);
    let pools = events(&lines, "pool");
    assert_eq!(
        pools.len(),
        3,
        "one that was dropped, one that came under this name, and came back from another database"
    );
    assert_eq!((&pools[0]["made"], &pools[1]["made"]), (&true.into(), &false.into()));
    let draws = events(&lines, "draw");
    let state = call(&mut client, &["POOL.STATE", "summer"]);
    assert!(draws.len() >= 50, "{}", draws.len());
    for draw in &draws {
        let (weight, total) =
            (draw["weight"].as_u64().expect("a weight"), draw["total_weight"].as_u64().expect("a sum"));
        assert!((1..=total).contains(&weight), "{draw}");
        let odds = draw["odds"].as_f64().expect("a share");
        assert!((odds - weight as f64 / total as f64).abs() < 1e-12, "{draw}");
    }
    // The server's history of the last draws equals the audit.
    let history = call(&mut client, &["POOL.HISTORY", "summer", "COUNT", "20"]).array();
    for (audited, written) in history.into_iter().zip(draws.iter().rev()) {
        let audited = audited.array();
        assert_eq!(audited[0].integer(), written["draw"].as_i64().expect("a number"));
        assert_eq!(audited[2], Answer::Bulk(written["id"].as_str().expect("an id").into()));
    }
    let hers = draws.iter().filter(|draw| draw["user"] == "mira" && draw["request"] == "order 1");
    assert_eq!(hers.count(), 2, "asked for twice, drawn once");
    for name in ["reserve", "confirm", "update", "add", "epoch", "gone"] {
        assert!(!events(&lines, name).is_empty(), "{name}");
    }
    let epochs = events(&lines, "epoch");
    assert_eq!(epochs[0]["secret"], campaign.secret, "of an epoch that is over");
    let audited: String = lines.iter().map(Value::to_string).collect();
    let commitment = field(state, "commitment");
    let secret = field(call(&mut client, &["POOL.EPOCH", "summer"]).array()[1].clone(), "secret");
    assert!(audited.contains(&commitment) && !audited.contains(&secret), "not of one that was not");

    // As a table, with an id that is kept from being a formula.
    let table = pool(directory.path(), &["audit", "summer", "--format", "csv"]);
    let table = text(&table.stdout);
    let mut rows = table.split_terminator("\r\n");
    assert!(rows.next().expect("titles").starts_with("event,lsn,time,draw,"), "{table}");
    assert_eq!(rows.filter(|row| row.starts_with("draw,")).count(), draws.len());
    assert!(table.contains(",'-hat,") && !table.contains(",-hat,"), "{table}");

    // A range of draws.
    let some = audit(directory.path(), &["--from", "20", "--to", "22"]);
    let numbers: Vec<u64> =
        events(&some, "draw").iter().map(|draw| draw["draw"].as_u64().expect("a number")).collect();
    assert!([20, 21, 22].iter().all(|number| numbers.contains(number)) && numbers.len() < 15, "{numbers:?}");
    assert_eq!(events(&some, "pool").len(), 1, "and what it builds on");
    assert!(events(&audit(directory.path(), &["--from", "2999-01-01"]), "draw").is_empty());
    assert_eq!(pool(directory.path(), &["audit", "summer", "--from", "soon"]).status.code(), Some(2));
}

#[test]
fn an_audit_can_be_checked_without_the_server() {
    let directory = tempfile::tempdir().expect("a directory");
    let (server, campaign) = campaign(directory.path());
    let mut client = server.client();
    let file = directory.path().join("audit.jsonl");
    let path = file.to_str().expect("text");
    assert!(pool(directory.path(), &["audit", "summer", "--output", path]).status.success());
    let again = not_good(&pool(directory.path(), &["audit", "summer", "--output", path]));
    assert!(again.contains("cannot make"), "nothing is written over: {again}");
    let end = chain(&mut client);
    let revealed = call(&mut client, &["POOL.EPOCH", "summer"]).array();
    let secret = field(revealed[1].clone(), "secret");
    assert!(server.terminate().success());

    let outside = tempfile::tempdir().expect("a directory");
    let check = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidemark"));
        command.current_dir(outside.path()).args(["pool", "verify", "--audit"]).args(arguments);
        command.output().expect("runs")
    };
    let said = good(&check(&[path, "--commitment", &campaign.commitment, "--chain", &end]));
    assert!(said.contains("30 draws of epochs whose secrets are not known"), "{said}");
    // After the last epoch all can be checked, except the link that contains the secret of the next
    // one.
    let said = good(&check(&[path, "--secret", &secret]));
    assert!(
        !said.contains("not known: stock") && said.contains("1 link of the chain taken as stated"),
        "{said}"
    );
    let secrets = directory.path().join("secrets");
    std::fs::write(&secrets, format!("{secret}\n")).expect("a disk");
    assert_eq!(good(&check(&[path, "--revealed", secrets.to_str().expect("text")])), said);
    assert_eq!(good(&check(&[path, "--revealed", &secret])), said);
    // In the form of a reply to `POOL.REVEAL`, and together with secrets of other epochs.
    std::fs::write(&secrets, format!("epoch 1\nsecret {}\nsecret {secret}\n", "1".repeat(64)))
        .expect("a disk");
    assert_eq!(good(&check(&[path, "--revealed", secrets.to_str().expect("text")])), said);
    // A secret of another pool proves nothing.
    let wrong = "a".repeat(64);
    for (name, refused) in [
        ("--secret", "is the secret of no epoch here: its commitment is "),
        ("--revealed", "is the secret of no epoch here: its commitment is "),
    ] {
        let found = not_good(&check(&[path, "--secret", &secret, name, &wrong]));
        assert!(found.contains(refused) && found.contains(&wrong), "{found}");
    }
    assert_eq!(pool(directory.path(), &["verify", "summer", "--secret", &secret]).status.code(), Some(2));

    // Any change is found, both in fields for people and in fields for programs.
    let text = std::fs::read_to_string(&file).expect("a file");
    let altered = directory.path().join("altered.jsonl");
    let altered_path = altered.to_str().expect("text");
    let lines: Vec<&str> = text.lines().collect();
    let draw = lines.iter().rposition(|line| line.contains(r#""event":"draw""#)).expect("a draw");
    for (at, line) in [
        (draw, lines[draw].replace(r#""weight":"#, r#""weight":1"#)),
        (draw, String::new()),
        (0, lines[0].replace(r#""made":true"#, r#""made":true,"more":1"#)),
        (0, lines[0].replace(r#""version":"#, r#""version":9,"version":"#)),
        (draw, lines[draw - 1].to_owned()),
    ] {
        let mut changed = lines.clone();
        changed[at] = &line;
        let changed: String =
            changed.iter().filter(|line| !line.is_empty()).flat_map(|line| [*line, "\n"]).collect();
        assert_ne!(changed, text);
        std::fs::write(&altered, changed).expect("a disk");
        let said = not_good(&check(&[altered_path, "--secret", &secret]));
        assert!(said.contains("not good") && said.contains(", line "), "{said}");
    }
    std::fs::write(&altered, "what is this\n").expect("a disk");
    assert!(not_good(&check(&[altered_path])).contains("not a line of an audit"));
    assert_eq!(check(&[path, "--secret", "12"]).status.code(), Some(2));
}

#[test]
fn where_the_log_no_longer_reaches_back_a_snapshot_is_the_beginning() {
    let directory = tempfile::tempdir().expect("a directory");
    let arguments = [
        "--log-segment-bytes",
        "65536",
        "--snapshot-after",
        "0",
        "--snapshot-keep",
        "1",
        "--durability",
        "always",
    ];
    let server = Server::start(directory.path(), &arguments);
    let mut client = server.client();
    call(
        &mut client,
        &["POOL.CREATE", "summer", "SOLDOUT", "NOPRIZE", "ITEMS", "car", "1", "3", "mug", "9", "1000000"],
    );
    call(&mut client, &["POOL.UPDATE", "summer", "ADD", "hat", "5", "50", "REMOVE", "car"]);
    call(&mut client, &["POOL.RESERVE", "summer", "3600000", "COUNT", "7"]);
    call(&mut client, &["POOL.EPOCH", "summer"]);
    let filler = "x".repeat(30_000);
    for round in 0..8 {
        for _ in 0..10 {
            call(&mut client, &["POOL.DRAW", "summer", "COUNT", "20"]);
        }
        call(&mut client, &["SET", "filler", &filler]);
        call(&mut client, &["SET", "filler", &filler]);
        if round < 7 {
            call(&mut client, &["SAVE"]);
        }
    }
    let end = chain(&mut client);
    let said = good(&pool(directory.path(), &["verify", "summer", "--chain", &end]));
    assert!(said.contains("as it stood at record "), "the log begins later: {said}");
    let file = directory.path().join("audit.jsonl");
    let path = file.to_str().expect("text");
    assert!(pool(directory.path(), &["audit", "summer", "--output", path]).status.success());
    let secret = field(call(&mut client, &["POOL.EPOCH", "summer"]).array()[1].clone(), "secret");
    let said =
        good(&pool(directory.path(), &["verify", "--audit", path, "--secret", &secret, "--chain", &end]));
    assert!(said.contains("draws made again from the secret of 1 epoch (numbers "), "{said}");
    assert!(!said.contains("not known: stock"), "{said}");
}

#[test]
fn draws_by_rules_about_users_are_checked_as_well() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = start(directory.path());
    let mut client = server.client();
    let rules = ["LIMIT", "WINS", "1", "OF", "1", "car", "GUARANTEE", "3", "OF", "1", "hat"];
    let items = ["ITEMS", "car", "1", "5", "hat", "1", "50", "mug", "20", "UNLIMITED"];
    call(&mut client, &[&["POOL.CREATE", "summer"][..], &rules, &items].concat());
    for turn in 0..30 {
        let user = ["mira", "noor"][turn % 2];
        call(&mut client, &["POOL.DRAW", "summer", "USER", user]);
    }
    let file = directory.path().join("audit.jsonl");
    let path = file.to_str().expect("text");
    assert!(pool(directory.path(), &["audit", "summer", "--output", path]).status.success());
    let secret = field(call(&mut client, &["POOL.EPOCH", "summer"]).array()[1].clone(), "secret");
    assert!(good(&pool(directory.path(), &["verify", "summer"])).contains("\n30 draws made again"));
    let said = good(&pool(directory.path(), &["verify", "--audit", path, "--secret", &secret]));
    assert!(said.contains("\n30 draws made again"), "{said}");
}

/// A check that covers less than the whole history reports that, and does not succeed.
#[test]
fn a_damaged_snapshot_at_the_beginning_is_reported() {
    let directory = tempfile::tempdir().expect("a directory");
    let arguments = ["--log-segment-bytes", "65536", "--snapshot-after", "0", "--snapshot-keep", "2"];
    let server = Server::start(directory.path(), &arguments);
    let mut client = server.client();
    call(&mut client, &["POOL.CREATE", "summer", "ITEMS", "mug", "1", "UNLIMITED"]);
    let filler = "x".repeat(30_000);
    for round in 0..4 {
        for part in 0..8 {
            call(&mut client, &["SET", &format!("filler {round} {part}"), &filler]);
            call(&mut client, &["POOL.DRAW", "summer"]);
        }
        call(&mut client, &["SAVE"]);
    }
    call(&mut client, &["POOL.DRAW", "summer"]);
    assert!(server.terminate().success());
    let names = std::fs::read_dir(directory.path()).expect("a directory");
    let mut snapshots: Vec<_> = names
        .map(|file| file.expect("a file").path())
        .filter(|path| path.to_string_lossy().contains("snapshot-"))
        .collect();
    snapshots.sort();
    assert_eq!(snapshots.len(), 2);
    good(&pool(directory.path(), &["verify", "summer"]));

    let mut bytes = std::fs::read(&snapshots[0]).expect("a file");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&snapshots[0], bytes).expect("a disk");
    let output = pool(directory.path(), &["verify", "summer"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = text(&output.stdout);
    assert!(
        said.starts_with("pool summer: good, as far as the log could be read\nthe snapshot at record "),
        "{said}"
    );
    assert!(said.contains(" is damaged, so records before "), "{said}");
}
