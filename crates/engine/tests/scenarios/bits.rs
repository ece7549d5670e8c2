//! Bits of strings, as Redis 7 answers.

use crate::support::{Client, engine, replayed};

const BAD_OFFSET: &str = "-ERR bit offset is not an integer or out of range";
const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";

#[test]
fn a_bit_is_set_read_and_cleared() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("SETBIT b 7 1", ":0"),
        ("SETBIT b 7 1", ":1"),
        ("SETBIT b 20 0", ":0"),
        ("STRLEN b", ":3"),
        ("GETBIT b 7", ":1"),
        ("GETBIT b 4294967295", ":0"),
        ("SETBIT b 7 0", ":1"),
        ("GETBIT none 0", ":0"),
        ("SET n 1", "+OK"),
        ("SETBIT n 6 1", ":0"),
        ("GET n", "$1 3"),
        ("SETBIT b 4294967296 1", BAD_OFFSET),
        ("SETBIT b -1 1", BAD_OFFSET),
        ("SETBIT b #1 1", BAD_OFFSET),
        ("SETBIT b 0 2", "-ERR bit is not an integer or out of range"),
        ("RPUSH l a", ":1"),
        ("SETBIT l 0 1", WRONG_TYPE),
        ("GETBIT l 0", WRONG_TYPE),
        ("BITCOUNT l", WRONG_TYPE),
        ("BITPOS l 1", WRONG_TYPE),
        ("BITOP AND d b l", WRONG_TYPE),
        ("BITFIELD l GET u8 0", WRONG_TYPE),
        ("BITFIELD l SET u8 0 1", WRONG_TYPE),
    ]);
    let before = engine.log().appended();
    client.expect(&[("SETBIT b 7 0", ":0")]);
    assert_eq!(engine.log().appended(), before, "what changes nothing is not logged");
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn bits_are_counted_by_byte_and_by_bit() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("SET k foobar", "+OK"),
        ("BITCOUNT k", ":26"),
        ("BITCOUNT k 0 0", ":4"),
        ("BITCOUNT k 1 1 BYTE", ":6"),
        ("BITCOUNT k 5 30 BIT", ":17"),
        ("BITCOUNT k -2 -1", ":7"),
        ("BITCOUNT k -1 -2", ":0"),
        ("BITCOUNT k -1 -2 WRONG", "-ERR syntax error"),
        ("BITCOUNT k 9223372036854775807 9223372036854775807 BIT", ":0"),
        ("BITCOUNT k -9223372036854775808 9223372036854775807 BIT", ":26"),
        ("BITCOUNT none", ":0"),
        ("BITCOUNT none 0 x", "-ERR value is not an integer or out of range"),
        ("BITCOUNT none 0", "-ERR syntax error"),
        ("BITCOUNT k 0", "-ERR syntax error"),
        ("BITCOUNT k 0 1 WRONG", "-ERR syntax error"),
        ("BITCOUNT k 0 x", "-ERR value is not an integer or out of range"),
    ]);
}

#[test]
fn the_first_bit_is_found_and_zeros_follow_a_string() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("BITFIELD ones SET u24 0 16777215", "*1 :0"),
        ("BITPOS ones 0", ":24"),
        ("BITPOS none 1", ":-1"),
        ("BITPOS none 0 0 x", "-ERR value is not an integer or out of range"),
        ("BITPOS ones 0 1", ":24"),
        ("BITPOS ones 0 0 -1", ":-1"),
        ("BITPOS ones 0 5", ":-1"),
        ("BITPOS ones 1 2", ":16"),
        ("BITPOS ones 1 7 15 BIT", ":7"),
        ("BITFIELD few SET u24 0 65520", "*1 :0"),
        ("BITPOS few 1", ":8"),
        ("BITPOS few 0", ":0"),
        ("BITPOS few 0 9 -1 BIT", ":20"),
        ("BITPOS few 1 21 -1 BIT", ":-1"),
        ("BITPOS none 1", ":-1"),
        ("BITPOS none 0 5", ":0"),
        ("BITPOS few 2", "-ERR The bit argument must be 1 or 0."),
        ("BITPOS few 1 0 1 WRONG", "-ERR syntax error"),
        ("SET empty \"\"", "+OK"),
        ("BITPOS empty 0", ":-1"),
    ]);
}

#[test]
fn strings_are_combined_bit_by_bit() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("MSET a foobar b abc", "+OK"),
        ("BITOP AND d a b", ":6"),
        ("BITFIELD d GET u24 0 GET u24 #1", "*2 :6316643 :0"),
        ("BITOP OR d a b", ":6"),
        ("GET d", "$6 goobar"),
        ("BITOP XOR d a a", ":6"),
        ("BITCOUNT d", ":0"),
        ("BITOP NOT d a", ":6"),
        ("BITOP NOT d d", ":6"),
        ("GET d", "$6 foobar"),
        ("BITOP OR d none b", ":3"),
        ("GET d", "$3 abc"),
        ("BITOP AND d none none", ":0"),
        ("EXISTS d", ":0"),
        ("BITOP NOT d a b", "-ERR BITOP NOT must be called with a single source key."),
        ("BITOP NAND d a b", "-ERR syntax error"),
    ]);
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn fields_wrap_saturate_or_fail() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("BITFIELD f INCRBY u2 100 1 OVERFLOW SAT INCRBY u2 102 1", "*2 :1 :1"),
        ("BITFIELD f INCRBY u2 100 1 OVERFLOW SAT INCRBY u2 102 1", "*2 :2 :2"),
        ("BITFIELD f INCRBY u2 100 1 OVERFLOW SAT INCRBY u2 102 1", "*2 :3 :3"),
        ("BITFIELD f INCRBY u2 100 1 OVERFLOW SAT INCRBY u2 102 1", "*2 :0 :3"),
        ("BITFIELD f OVERFLOW FAIL INCRBY u2 102 1", "*1 $-1"),
        ("BITFIELD f SET i8 #0 -1 GET u8 0 GET i4 4", "*3 :0 :255 :-1"),
        (
            "BITFIELD f SET i64 0 9223372036854775807 INCRBY i64 0 1",
            "*2 :-72057594037927936 :-9223372036854775808",
        ),
        ("BITFIELD f OVERFLOW SAT INCRBY i64 0 -1", "*1 :-9223372036854775808"),
        ("BITFIELD f OVERFLOW SAT SET u8 0 -1 GET u8 0", "*2 :128 :255"),
        ("BITFIELD f SET u8 0 257 GET u8 0", "*2 :255 :1"),
        ("BITFIELD none GET u8 0", "*1 :0"),
        ("EXISTS none", ":0"),
        ("BITFIELD f", "*0"),
        ("BITFIELD_RO f GET u8 0", "*1 :1"),
        ("BITFIELD_RO f SET u8 0 1", "-ERR BITFIELD_RO only supports the GET subcommand"),
        ("BITFIELD f GET u8 #9223372036854775807", BAD_OFFSET),
        ("BITFIELD f SET u8 4294967295 1", "-ERR string exceeds maximum allowed size (proto-max-bulk-len)"),
        ("BITFIELD f OVERFLOW NONE", "-ERR Invalid OVERFLOW type specified"),
        ("BITFIELD f GET u8", "-ERR syntax error"),
        ("BITFIELD f SET u8 0 x", "-ERR value is not an integer or out of range"),
    ]);
    for encoding in ["u64", "i65", "u0", "x8", "i", "i-1"] {
        let answer = client.run(&format!("BITFIELD f GET {encoding} 0"));
        assert!(answer.starts_with("-ERR Invalid bitfield type."), "{encoding}: {answer}");
    }
    assert_eq!(replayed(&engine).digest(), engine.digest());
}
