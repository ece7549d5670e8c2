//! A client of etcd's gRPC: put, get, and who leads. The messages are few, so they are written by hand.

use bytes::{BufMut, Bytes, BytesMut};
use h2::client::SendRequest;
use http::header::{CONTENT_TYPE, TE};
use http::{HeaderMap, Request, Uri};
use std::time::Duration;
use tokio::net::TcpStream;

/// A connection with an etcd server. Clones share it.
#[derive(Clone)]
pub(super) struct EtcdClient {
    sender: SendRequest<Bytes>,
    put: Uri,
    range: Uri,
    status: Uri,
    timeout: Duration,
}

/// A failed call, in words.
pub(super) type Failure = String;

/// What a server says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Status {
    pub(super) version: String,
    /// Whether it leads.
    pub(super) leads: bool,
}

/// Bytes before a message: whether it is compressed, and its length.
const PREFIX_BYTES: usize = 5;

impl EtcdClient {
    /// Connects; the connection runs as a task of the calling runtime.
    pub(super) async fn connect(host: &str, port: u16, timeout: Duration) -> Result<Self, Failure> {
        let text =
            |error: &dyn std::fmt::Display| format!("cannot connect to etcd at {host}:{port}: {error}");
        let connect = async {
            let stream = TcpStream::connect((host, port)).await.map_err(|error| text(&error))?;
            stream.set_nodelay(true).map_err(|error| text(&error))?;
            h2::client::handshake(stream).await.map_err(|error| text(&error))
        };
        let (sender, connection) =
            tokio::time::timeout(timeout, connect).await.map_err(|error| text(&error))??;
        tokio::spawn(async move {
            // A broken connection fails the calls on it.
            let _ = connection.await;
        });
        let uri = |path: &str| {
            let uri = format!("http://{host}:{port}/etcdserverpb.{path}");
            uri.parse::<Uri>().map_err(|error| text(&error))
        };
        let (put, range, status) = (uri("KV/Put")?, uri("KV/Range")?, uri("Maintenance/Status")?);
        Ok(EtcdClient { sender, put, range, status, timeout })
    }

    /// Writes a key.
    pub(super) async fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        let mut message = BytesMut::new();
        put_bytes(&mut message, 1, key);
        put_bytes(&mut message, 2, value);
        self.call(&self.put, message).await.map(|_| ())
    }

    /// Reads a key, linearizably. Returns whether it is there.
    pub(super) async fn get(&self, key: &[u8]) -> Result<bool, Failure> {
        let mut message = BytesMut::new();
        put_bytes(&mut message, 1, key);
        let answer = self.call(&self.range, message).await?;
        // Field 2 are the found keys.
        Ok(fields(&answer).ok_or("etcd's answer is cut off")?.iter().any(|field| field.number == 2))
    }

    /// Asks the server for its version and whether it leads.
    pub(super) async fn status(&self) -> Result<Status, Failure> {
        let answer = self.call(&self.status, BytesMut::new()).await?;
        status(&answer).ok_or_else(|| "etcd's answer is cut off".to_owned())
    }

    async fn call(&self, uri: &Uri, message: BytesMut) -> Result<Bytes, Failure> {
        let call = self.exchange(uri, message);
        let answer = tokio::time::timeout(self.timeout, call).await;
        answer.map_err(|_| format!("no answer from etcd within {:?}", self.timeout))?
    }

    async fn exchange(&self, uri: &Uri, message: BytesMut) -> Result<Bytes, Failure> {
        let text = |error: h2::Error| format!("etcd: {error}");
        let mut request = Request::post(uri.clone()).body(()).map_err(|error| error.to_string())?;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, "application/grpc".parse().expect("a valid value"));
        headers.insert(TE, "trailers".parse().expect("a valid value"));
        let mut framed = BytesMut::with_capacity(PREFIX_BYTES + message.len());
        framed.put_u8(0);
        framed.put_u32(message.len() as u32);
        framed.put(message);
        let mut sender = self.sender.clone().ready().await.map_err(text)?;
        let (answer, mut stream) = sender.send_request(request, false).map_err(text)?;
        stream.send_data(framed.freeze(), true).map_err(text)?;
        let answer = answer.await.map_err(text)?;
        check(answer.headers())?;
        let mut body = answer.into_body();
        let mut received = BytesMut::new();
        while let Some(data) = body.data().await {
            let data = data.map_err(text)?;
            body.flow_control().release_capacity(data.len()).map_err(text)?;
            received.put(data);
        }
        if let Some(trailers) = body.trailers().await.map_err(text)? {
            check(&trailers)?;
        }
        if received.len() < PREFIX_BYTES {
            return Err("etcd's answer is empty".to_owned());
        }
        Ok(received.freeze().slice(PREFIX_BYTES..))
    }
}

/// Fails if the headers or trailers of an answer name an error.
fn check(headers: &HeaderMap) -> Result<(), Failure> {
    match headers.get("grpc-status") {
        Some(status) if status.as_bytes() != b"0" => {
            let message = headers.get("grpc-message").map_or(&b""[..], |message| message.as_bytes());
            Err(format!("etcd: {}", String::from_utf8_lossy(message)))
        }
        _ => Ok(()),
    }
}

/// Appends a field of bytes to a message.
fn put_bytes(message: &mut BytesMut, number: u8, bytes: &[u8]) {
    /// Wire type of bytes, strings and messages.
    const LENGTH_DELIMITED: u8 = 2;
    message.put_u8(number << 3 | LENGTH_DELIMITED);
    let mut length = bytes.len() as u64;
    while length >= 0x80 {
        message.put_u8(length as u8 | 0x80);
        length >>= 7;
    }
    message.put_u8(length as u8);
    message.put(bytes);
}

/// A field of a message: a number, or bytes.
#[derive(Debug, PartialEq, Eq)]
struct Field<'a> {
    number: u64,
    value: u64,
    bytes: &'a [u8],
}

/// Reads the fields of a message. `None` if it is cut off.
fn fields(mut message: &[u8]) -> Option<Vec<Field<'_>>> {
    let mut fields = Vec::new();
    while !message.is_empty() {
        let tag = varint(&mut message)?;
        let mut field = Field { number: tag >> 3, value: 0, bytes: &[] };
        match tag & 7 {
            0 => field.value = varint(&mut message)?,
            1 => message = message.get(8..)?,
            2 => {
                let length = usize::try_from(varint(&mut message)?).ok()?;
                (field.bytes, message) = message.split_at_checked(length)?;
            }
            5 => message = message.get(4..)?,
            _ => return None,
        }
        fields.push(field);
    }
    Some(fields)
}

fn varint(message: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = message.split_first()?;
        *message = rest;
        value |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Reads `StatusResponse`: header 1 with the member's id 2, version 2, leader's id 4.
fn status(message: &[u8]) -> Option<Status> {
    let fields = fields(message)?;
    let field = |number: u64| fields.iter().find(|field| field.number == number);
    let header = self::fields(field(1)?.bytes)?;
    let member = header.iter().find(|field| field.number == 2)?.value;
    Some(Status {
        version: String::from_utf8_lossy(field(2)?.bytes).into_owned(),
        leads: field(4).is_some_and(|leader| leader.value == member),
    })
}

#[cfg(test)]
mod tests {
    use super::{Field, Status, fields, put_bytes, status};
    use bytes::BytesMut;
    use proptest::prelude::*;

    #[test]
    fn a_message_is_read_as_it_is_written() {
        let mut message = BytesMut::new();
        put_bytes(&mut message, 1, b"key");
        put_bytes(&mut message, 2, &[b'x'; 300]);
        let value = [b'x'; 300];
        let expected =
            vec![Field { number: 1, value: 0, bytes: b"key" }, Field { number: 2, value: 0, bytes: &value }];
        assert_eq!(fields(&message), Some(expected));
        assert_eq!(fields(&message[..message.len() - 1]), None);
    }

    #[test]
    fn the_status_says_whether_the_member_leads() {
        let mut header = vec![0x08, 0x01, 0x10];
        header.extend([0x96, 0x01]);
        let mut message = BytesMut::new();
        put_bytes(&mut message, 1, &header);
        put_bytes(&mut message, 2, b"3.4.23");
        message.extend([0x18, 0x05, 0x20]);
        let mut leader = message.clone();
        leader.extend([0x96, 0x01]);
        assert_eq!(status(&leader), Some(Status { version: "3.4.23".into(), leads: true }));
        message.extend([0x97, 0x01]);
        assert_eq!(status(&message), Some(Status { version: "3.4.23".into(), leads: false }));
    }

    proptest! {
        #[test]
        fn no_message_is_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = (fields(&bytes), status(&bytes));
        }
    }
}
