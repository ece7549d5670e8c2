//! Writers: random commands of every group, transactions, keys that expire, and writes whose
//! answers they note.

use super::judge::{Promise, TOKEN, TOKEN_END};
use super::world::World;
use crate::commands::{Generator, Line};
use crate::support::wire::{Pipeline, Value};
use std::io;
use std::time::Duration;

/// Number of large values that are written one after another.
const BULK_COUNT: usize = 16;

/// An acknowledged write, with the run of the server.
#[derive(Debug)]
pub(crate) struct Acknowledged {
    pub(crate) promise: Promise,
    /// The write may be lost if this run was killed; with `None` it must be there however the run
    /// ended.
    pub(crate) life: Option<usize>,
}

/// A client that changes keys.
pub(crate) struct Writer<'w> {
    pub(crate) world: &'w World,
    pub(crate) generator: Generator,
    pub(crate) number: usize,
    /// Bytes of the values that fill the retention; none are written if this is 0.
    pub(crate) bulk_bytes: usize,
    /// Number of the next token.
    next: u64,
    acknowledged: Vec<Acknowledged>,
}

impl<'w> Writer<'w> {
    pub(crate) fn new(world: &'w World, generator: Generator, number: usize, bulk_bytes: usize) -> Self {
        Self { world, generator, number, bulk_bytes, next: 0, acknowledged: Vec::new() }
    }

    /// Writes until writing is over; returns the acknowledged writes.
    pub(crate) fn run(mut self) -> Vec<Acknowledged> {
        while !self.world.writing_is_over() {
            let connected = Pipeline::connect(self.world.port());
            // Errors occur only because the server goes away, and all acknowledged writes have been
            // noted.
            let written = connected.and_then(|mut connection| self.write(&mut connection));
            if written.is_err() {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        self.acknowledged
    }

    fn write(&mut self, connection: &mut Pipeline) -> io::Result<()> {
        while !self.world.writing_is_over() {
            match self.generator.random.below(24) {
                0..8 => self.several(connection)?,
                8..11 => self.transaction(connection)?,
                11..16 => self.token(connection)?,
                16..18 => self.expiring(connection)?,
                18 => self.wait(connection)?,
                19 if self.bulk_bytes > 0 && self.generator.random.once_in(3) => self.bulk(connection)?,
                19..22 => self.count(connection)?,
                22 if self.generator.random.once_in(12) => {
                    let text = self.generator.random.pick(&["FLUSHDB", "FLUSHALL", "SWAPDB 0 1"]);
                    exchange(connection, &[line(text)])?;
                }
                22 => self.move_key(connection)?,
                _ => {
                    let pause = self.generator.random.below(4_000);
                    std::thread::sleep(Duration::from_micros(pause));
                }
            }
        }
        Ok(())
    }

    /// Sends several random commands together.
    fn several(&mut self, connection: &mut Pipeline) -> io::Result<()> {
        let count = 1 + self.generator.random.below(4);
        let lines: Vec<Line> = (0..count).map(|_| self.generator.line()).collect();
        exchange(connection, &lines)
    }

    fn transaction(&mut self, connection: &mut Pipeline) -> io::Result<()> {
        let count = 1 + self.generator.random.below(5);
        let mut lines = vec![line("MULTI")];
        lines.extend((0..count).map(|_| self.generator.line()));
        lines.push(line("EXEC"));
        exchange(connection, &lines)
    }

    /// Makes a write that can be found in the log, sometimes in a transaction or with `DURABLE`.
    fn token(&mut self, connection: &mut Pipeline) -> io::Result<()> {
        let token = [TOKEN, format!("{}-{}", self.number, self.next).as_bytes(), &[TOKEN_END]].concat();
        self.next += 1;
        let random = &mut self.generator.random;
        let text =
            random.pick(&["SET string:#", "RPUSH list:#", "SADD set:#", "HSET hash:# f", "SET token:#"]);
        let mut words = line(&text.replace('#', &random.below(5).to_string()));
        words.push(token.clone());
        let is_durable = random.once_in(6);
        if is_durable {
            words.insert(0, b"DURABLE".to_vec());
        }
        let before = (self.world.life(), self.world.promises_all());
        let answer = if !is_durable && random.once_in(3) {
            connection.send(&[line("MULTI"), words, self.generator.line(), line("EXEC")])?;
            (0..3).try_for_each(|_| connection.read().map(drop))?;
            connection.read()?.elements().first().cloned()
        } else {
            connection.send(&[words])?;
            Some(connection.read()?)
        };
        let is_written = matches!(answer, Some(Value::Status(_) | Value::Integer(_)));
        let after = (self.world.life(), self.world.promises_all());
        if is_written {
            let (reason, life) = match (is_durable, before == after, before.1) {
                (true, ..) => ("as durable", None),
                (false, true, Some(_)) => ("with durability always", None),
                (false, true, None) => ("before a clean end", Some(before.0)),
                // The durability was being changed, or the server replaced.
                (false, false, _) => return Ok(()),
            };
            self.acknowledged.push(Acknowledged { promise: Promise { token, reason }, life });
        }
        Ok(())
    }

    fn expiring(&mut self, connection: &mut Pipeline) -> io::Result<()> {
        let random = &mut self.generator.random;
        let text = random.pick(&[
            "PEXPIRE string:# @",
            "SET string:# t PX @",
            "PEXPIRE set:# @",
            "PEXPIRE zset:# @",
            "PEXPIRE list:# @",
        ]);
        let (key, time) = (random.below(5).to_string(), (1 + random.below(60)).to_string());
        exchange(connection, &[line(&text.replace('#', &key).replace('@', &time))])
    }

    /// Renames, copies or moves a key over another one of any type.
    fn move_key(&mut self, connection: &mut Pipeline) -> io::Result<()> {
        let random = &mut self.generator.random;
        let text = random.pick(&[
            "RENAME string:# string:@",
            "RENAME counter:# string:@",
            "RENAME list:# zset:@",
            "RENAMENX set:# set:@",
            "COPY hash:# hash:@ REPLACE",
            "COPY zset:# zset:@ DB 1",
            "MOVE counter:# 1",
            "RENAME string:@ bulky",
        ]);
        let (from, to) = (random.below(5).to_string(), random.below(5).to_string());
        exchange(connection, &[line(&text.replace('#', &from).replace('@', &to))])
    }

    /// Waits for writes of other clients.
    fn wait(&mut self, connection: &mut Pipeline) -> io::Result<()> {
        let random = &mut self.generator.random;
        let text = random.pick(&[
            "BLPOP list:# list:9 0.05",
            "BRPOP list:9 list:# 0.05",
            "BLMOVE list:9 list:# LEFT RIGHT 0.05",
            "BZPOPMIN zset:9 zset:# 0.05",
            "BLMPOP 0.05 2 list:9 list:# LEFT COUNT 2",
        ]);
        let text = text.replace('#', &random.below(5).to_string());
        exchange(connection, &[line(&text)])
    }

    /// Changes numbers, elements that other clients wait for, and names that are prefixes of each
    /// other.
    fn count(&mut self, connection: &mut Pipeline) -> io::Result<()> {
        let random = &mut self.generator.random;
        let text = random.pick(&[
            "INCR counter:#",
            "INCRBY counter:# 3",
            "DECRBY counter:# 2",
            "RPUSH list:9 1",
            "ZADD zset:9 1 a",
            "SADD set:# a a\u{0} a\u{e}",
            "HSET hash:# a 1 a\u{0} 2",
        ]);
        let text = text.replace('#', &random.below(5).to_string());
        exchange(connection, &[line(&text)])
    }

    /// Writes values that fill, one after another, the retention for a subscriber that does not
    /// read.
    fn bulk(&mut self, connection: &mut Pipeline) -> io::Result<()> {
        let lines: Vec<Line> = (0..BULK_COUNT)
            .map(|_| {
                let mut value = self.generator.random.next().to_string().into_bytes();
                value.resize(self.bulk_bytes, b'b');
                let mut words = line("SET bulky");
                words.push(value);
                words
            })
            .collect();
        exchange(connection, &lines)
    }
}

/// Sends commands and reads their answers, without checking them.
fn exchange(connection: &mut Pipeline, lines: &[Line]) -> io::Result<()> {
    connection.send(lines)?;
    lines.iter().try_for_each(|_| connection.read().map(drop))
}

/// Returns the words of a line.
pub(crate) fn line(text: &str) -> Line {
    text.split(' ').map(|word| word.as_bytes().to_vec()).collect()
}
