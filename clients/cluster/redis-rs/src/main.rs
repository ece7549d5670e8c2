//! redis-rs follows the leader of a cluster: see test.py. Arguments: cluster|sentinel PORT,PORT,PORT.

use redis::cluster::{ClusterClient, ClusterConnection};
use redis::sentinel::{SentinelClient, SentinelNodeConnectionInfo, SentinelServerType};
use redis::{Cmd, Connection, FromRedisValue, RedisConnectionInfo, RedisResult, cmd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A mode of the client, which finds the leader in its way.
enum Mode {
    Cluster(ClusterClient),
    Sentinel(Box<SentinelClient>),
}

enum Connected {
    Cluster(Box<ClusterConnection>),
    Sentinel(Box<Connection>),
}

/// Connects, and connects again after an error.
struct Follower {
    mode: Mode,
    connection: Option<Connected>,
}

impl Follower {
    fn try_once<T: FromRedisValue>(&mut self, command: &Cmd) -> RedisResult<T> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            empty => empty.insert(match &mut self.mode {
                Mode::Cluster(client) => Connected::Cluster(Box::new(client.get_connection()?)),
                Mode::Sentinel(client) => Connected::Sentinel(Box::new(client.get_connection()?)),
            }),
        };
        match connection {
            Connected::Cluster(connection) => command.query(connection),
            Connected::Sentinel(connection) => command.query(connection),
        }
    }

    /// Repeats a command until it succeeds.
    fn persist<T: FromRedisValue>(&mut self, command: &Cmd) -> T {
        let began = Instant::now();
        loop {
            match self.try_once(command) {
                Ok(answer) => return answer,
                Err(error) if began.elapsed() > Duration::from_secs(30) => panic!("{error}"),
                Err(error) => eprintln!("redis-rs: {error}"),
            }
            self.connection = None;
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn main() {
    static KILLED: AtomicBool = AtomicBool::new(false);
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_line(&mut String::new());
        KILLED.store(true, Ordering::SeqCst);
    });
    let args: Vec<String> = std::env::args().collect();
    let nodes: Vec<String> = args[2].split(',').map(|port| format!("redis://127.0.0.1:{port}")).collect();
    let mode = if args[1] == "sentinel" {
        let in_database = RedisConnectionInfo::default().set_db(5);
        let node = SentinelNodeConnectionInfo::default().set_redis_connection_info(in_database);
        let (name, kind) = ("tidemark".to_owned(), SentinelServerType::Master);
        Mode::Sentinel(Box::new(SentinelClient::build(nodes, name, Some(node), kind).expect("the addresses are valid")))
    } else {
        Mode::Cluster(ClusterClient::new(nodes).expect("the addresses are valid"))
    };
    let mut client = Follower { mode, connection: None };
    let key = |number: u32| format!("redis-rs:{}:{number}", args[1]);
    let (mut written, mut left) = (0, 100);
    while left > 0 {
        let was_killed = KILLED.load(Ordering::SeqCst);
        client.persist::<()>(cmd("SET").arg(key(written)).arg(written));
        written += 1;
        left -= u32::from(was_killed);
        if written == 100 {
            println!("ready");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    for number in 0..written {
        assert_eq!(client.persist::<u32>(cmd("GET").arg(key(number))), number);
    }
    println!("done");
}
