//! Members are restarted and upgraded one by one, while clients write.

use crate::support::cluster::Cluster;
use crate::support::{Answer, Client, wait_until};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tidemark_engine::record::level::NEWEST;

/// The build before this one, which a binary with the feature `tidemark-server/fuzzing` poses as.
const OLDER: (&str, &str) = ("OLDER_BUILD_FOR_TESTS", "0.0.9 1");

fn older() -> [(&'static str, String); 1] {
    [(OLDER.0, OLDER.1.to_owned())]
}

/// Runs `tidemark cluster status`. Returns whether all is well, and what it has printed.
fn status(cluster: &Cluster, member: usize) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tidemark"))
        .args(["cluster", "status", "-p", &cluster.clients[member].to_string()])
        .output()
        .expect("the binary starts");
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

/// Stops a member as an operator does, starts it again, and waits until all is well.
fn restart(cluster: &mut Cluster, member: usize) {
    let stopped = cluster.servers[member].take().expect("it runs").terminate();
    assert!(stopped.success(), "{stopped}");
    cluster.run(member);
    wait_until("the cluster is well", || status(cluster, member).0);
}

/// Clients that write, each its own keys, and repeat what was not acknowledged.
struct Writers {
    is_over: Arc<AtomicBool>,
    threads: Vec<std::thread::JoinHandle<u64>>,
    written: Arc<AtomicU64>,
}

impl Writers {
    fn begin(cluster: &Cluster) -> Self {
        let (is_over, written) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let threads = (0..3).map(|writer| {
            let (is_over, written, ports) = (Arc::clone(&is_over), Arc::clone(&written), cluster.clients);
            std::thread::spawn(move || {
                let mut number = 0;
                while !is_over.load(Ordering::Acquire) {
                    number += 1;
                    write(ports, &format!("writer:{writer}"), number);
                    written.fetch_add(1, Ordering::AcqRel);
                }
                number
            })
        });
        let threads = threads.collect();
        Self { is_over, threads, written }
    }

    /// Waits until more is written.
    fn go_on(&self) {
        let before = self.written.load(Ordering::Acquire);
        wait_until("clients write", || self.written.load(Ordering::Acquire) > before + 20);
    }

    /// Ends the writers, and returns the last number that each has written.
    fn end(self) -> Vec<u64> {
        self.is_over.store(true, Ordering::Release);
        self.threads.into_iter().map(|thread| thread.join().expect("no writer fails")).collect()
    }
}

/// Sets a key until a member acknowledges it. Only answers that a client of a cluster repeats are errors.
fn write(ports: [u16; 3], key: &str, number: u64) {
    wait_until("a change is acknowledged", || {
        let answer = ports.iter().find_map(|port| {
            let answer =
                Client::connect(*port).and_then(|mut client| client.call(&["SET", key, &number.to_string()]));
            match answer {
                Ok(Answer::Error(error)) => {
                    let is_passing = ["MOVED ", "TRYAGAIN ", "CLUSTERDOWN ", "LOADING "];
                    assert!(is_passing.iter().any(|code| error.starts_with(code)), "{key}: {error}");
                    None
                }
                // A connection ends with its member.
                Err(_) => None,
                Ok(answer) => Some(answer),
            }
        });
        answer.is_some_and(|answer| {
            assert_eq!(answer, Answer::Status("OK".into()));
            true
        })
    });
}

fn once(cluster: &Cluster) -> Option<Answer> {
    let mut client = Client::connect(cluster.clients[cluster.leader()]).ok()?;
    let answer = client.call(&["ONCE", "session", "1", "INCR", "counted"]).ok()?;
    let has_moved =
        |error: &str| ["MOVED ", "TRYAGAIN ", "CLUSTERDOWN "].iter().any(|code| error.starts_with(code));
    Some(answer).filter(|answer| !matches!(answer, Answer::Error(error) if has_moved(error)))
}

#[test]
fn clients_that_repeat_see_no_error_while_members_are_restarted_one_by_one() {
    let mut cluster = Cluster::found();
    let writers = Writers::begin(&cluster);
    for member in 0..3 {
        restart(&mut cluster, member);
        writers.go_on();
    }
    let last = writers.end();
    for mut client in cluster.settled() {
        let _ = client.call(&["READONLY"]);
        for (writer, number) in last.iter().enumerate() {
            let value = client.call(&["GET", &format!("writer:{writer}")]).expect("an answer");
            assert_eq!(value, Answer::Bulk(number.to_string()));
        }
    }
}

#[test]
fn newer_records_are_written_once_all_members_are_upgraded() {
    let mut cluster = Cluster::found_in(&older(), &[]);
    let leader = cluster.leader();
    wait_until("the cluster is well", || status(&cluster, leader).0);
    let (_, said) = status(&cluster, leader);
    assert!(said.contains("0.0.9, level 1"), "build with --features tidemark-server/fuzzing: {said}");
    assert!(said.contains(", level 1\n") || said.contains(", level 1;"), "{said}");
    let refused = |cluster: &Cluster| {
        let mut answer = None;
        wait_until("the leader answers", || {
            answer = once(cluster);
            answer.is_some()
        });
        let Some(Answer::Error(error)) = answer else { panic!("{answer:?}") };
        assert!(
            error.contains("'once' needs records of level 2") && error.contains("upgrade all members"),
            "{error}"
        );
    };
    refused(&cluster);
    let writers = Writers::begin(&cluster);
    cluster.environment.clear();
    for member in 0..2 {
        restart(&mut cluster, member);
        writers.go_on();
        refused(&cluster);
    }
    // An upgrade under way is no fault.
    wait_until("the cluster is well", || status(&cluster, 0).0);
    let (_, said) = status(&cluster, 0);
    assert!(said.contains("member 3 runs 0.0.9; members 1 and 2 run 0.1.0"), "{said}");
    assert!(said.contains("upgrade member 3"), "{said}");
    restart(&mut cluster, 2);
    wait_until("the level is raised", || once(&cluster) == Some(Answer::Integer(1)));
    wait_until("nothing is said of builds", || {
        let (is_well, said) = status(&cluster, 1);
        is_well && said.contains(&format!(", level {NEWEST}")) && !said.contains("upgrade")
    });
    assert_eq!(once(&cluster), Some(Answer::Integer(1)), "it is repeated, not executed");
    writers.end();
    drop(cluster.settled());

    // There is no way back: the older build does not know what the log has.
    let victim = (cluster.leader() + 1) % 3;
    cluster.kill(victim);
    cluster.environment = older().to_vec();
    let mut command = cluster.start_command(victim, &[]);
    let output = command.output().expect("the binary starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    let refusal =
        format!("the cluster writes records of level {NEWEST}, and this build knows them up to level 1");
    assert!(said.contains(&refusal), "{said}");
    cluster.environment.clear();
    cluster.run(victim);
    drop(cluster.settled());
}

#[test]
fn an_older_build_cannot_join_a_cluster_that_writes_newer_records() {
    let cluster = Cluster::found();
    wait_until("numbered commands are executed", || once(&cluster) == Some(Answer::Integer(1)));
    let directory = cluster.directory.path().join("member4");
    let asked = format!("127.0.0.1:{}", cluster.clients[0]);
    let output = Command::new(env!("CARGO_BIN_EXE_tidemark"))
        .env(OLDER.0, OLDER.1)
        .arg("serve")
        .arg("--dir")
        .arg(directory)
        .args(["--port", "0", "--cluster-node", "4", "--cluster-address", "127.0.0.1:1/127.0.0.1:2"])
        .args(["--cluster-join", &asked])
        .output()
        .expect("the binary starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    assert!(
        said.contains("this build knows them up to level 1: start it with the build that the members run"),
        "{said}"
    );
}
