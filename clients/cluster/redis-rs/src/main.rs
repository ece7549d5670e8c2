//! redis-rs follows the leader of a cluster: see test.py. Arguments: cluster PORT,PORT,PORT.

use redis::cluster::{ClusterClient, ClusterConnection};
use redis::{Cmd, FromRedisValue, RedisResult, cmd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Connects, and connects again after an error.
struct Follower {
    client: ClusterClient,
    connection: Option<ClusterConnection>,
}

impl Follower {
    fn try_once<T: FromRedisValue>(&mut self, command: &Cmd) -> RedisResult<T> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            empty => empty.insert(self.client.get_connection()?),
        };
        command.query(connection)
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
    let client = ClusterClient::new(nodes).expect("the addresses are valid");
    let mut client = Follower { client, connection: None };
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
