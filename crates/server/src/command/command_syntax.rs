//! Arguments of a command in the form of `COMMAND DOCS`.

use tidemark_engine::Reply;
use tidemark_engine::command::syntax::{Argument, Kind};

/// Writes the arguments in the form of `COMMAND DOCS`.
pub(crate) fn write(reply: &mut Reply, arguments: &[Argument]) {
    reply.array(arguments.len());
    for argument in arguments {
        write_one(reply, argument);
    }
}

fn write_one(reply: &mut Reply, argument: &Argument) {
    let (kind, children) = match &argument.kind {
        Kind::Value(kind) => (*kind, None),
        Kind::Word => ("pure-token", None),
        Kind::Block(children) => ("block", Some(children)),
        Kind::OneOf(children) => ("oneof", Some(children)),
    };
    let flags = usize::from(argument.optional) + usize::from(argument.multiple);
    reply.map(
        2 + usize::from(argument.token.is_some()) + usize::from(flags > 0) + usize::from(children.is_some()),
    );
    reply.bulk(b"name");
    reply.bulk(argument.name.as_bytes());
    reply.bulk(b"type");
    reply.bulk(kind.as_bytes());
    if let Some(token) = &argument.token {
        reply.bulk(b"token");
        reply.bulk(token.as_bytes());
    }
    if flags > 0 {
        reply.bulk(b"flags");
        reply.set(flags);
        if argument.optional {
            reply.simple("optional");
        }
        if argument.multiple {
            reply.simple("multiple");
        }
    }
    if let Some(children) = children {
        reply.bulk(b"arguments");
        write(reply, children);
    }
}
