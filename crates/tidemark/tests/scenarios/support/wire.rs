//! Answers with all their protocol types, read without the code under test.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Longest time for an answer.
const PATIENCE: Duration = Duration::from_mins(1);

/// One answer of RESP2 or RESP3.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Status(String),
    Error(String),
    Integer(i64),
    Double(f64),
    Boolean(bool),
    Bulk(Vec<u8>),
    Null,
    NullBulk,
    NullArray,
    Array(Vec<Value>),
    Set(Vec<Value>),
    Map(Vec<Value>),
}

impl Value {
    /// Returns the elements of an aggregate; of a map, keys and values in turn.
    pub(crate) fn elements(&self) -> &[Value] {
        match self {
            Self::Array(elements) | Self::Set(elements) | Self::Map(elements) => elements,
            _ => &[],
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Bulk(bytes) => bytes,
            Self::Status(text) | Self::Error(text) => text.as_bytes(),
            _ => &[],
        }
    }
}

/// A connection that sends many commands and then reads their answers.
pub(crate) struct Pipeline {
    reader: BufReader<TcpStream>,
}

impl Pipeline {
    pub(crate) fn connect(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { reader: BufReader::with_capacity(1 << 16, stream) })
    }

    pub(crate) fn call(&mut self, words: &[&[u8]]) -> io::Result<Value> {
        self.send(&[words.iter().map(|word| word.to_vec()).collect()])?;
        self.read()
    }

    pub(crate) fn send(&mut self, lines: &[Vec<Vec<u8>>]) -> io::Result<()> {
        let mut request = Vec::new();
        for line in lines {
            write!(request, "*{}\r\n", line.len())?;
            for word in line {
                write!(request, "${}\r\n", word.len())?;
                request.extend_from_slice(word);
                request.extend_from_slice(b"\r\n");
            }
        }
        self.send_bytes(&request)
    }

    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.reader.get_mut().write_all(bytes)
    }

    pub(crate) fn read(&mut self) -> io::Result<Value> {
        let mut line = Vec::new();
        if self.reader.read_until(b'\n', &mut line)? == 0 || !line.ends_with(b"\r\n") {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let text = String::from_utf8_lossy(&line[1..line.len() - 2]).into_owned();
        let number = || text.parse::<i64>().map_err(io::Error::other);
        Ok(match line[0] {
            b'+' => Value::Status(text),
            b'-' => Value::Error(text),
            b':' => Value::Integer(number()?),
            b',' => Value::Double(text.parse().map_err(io::Error::other)?),
            b'#' => Value::Boolean(text == "t"),
            b'_' => Value::Null,
            b'$' if number()? < 0 => Value::NullBulk,
            b'$' => Value::Bulk(self.bulk(number()?)?),
            b'*' if number()? < 0 => Value::NullArray,
            b'*' => Value::Array(self.several(number()?)?),
            b'~' => Value::Set(self.several(number()?)?),
            b'%' => Value::Map(self.several(number()? * 2)?),
            other => return Err(io::Error::other(format!("an answer that begins with {other:#x}"))),
        })
    }

    fn bulk(&mut self, length: i64) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length as usize + 2];
        self.reader.read_exact(&mut bytes)?;
        bytes.truncate(length as usize);
        Ok(bytes)
    }

    fn several(&mut self, count: i64) -> io::Result<Vec<Value>> {
        (0..count).map(|_| self.read()).collect()
    }
}
