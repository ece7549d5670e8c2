//! Description of the service for clients that use reflection. It must match
//! `proto/rewardpool.proto`; a client's test compares them.

use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet, MethodDescriptorProto,
    ServiceDescriptorProto,
};

/// Returns the service and its messages.
pub(super) fn file_descriptors() -> FileDescriptorSet {
    FileDescriptorSet {
        file: vec![FileDescriptorProto {
            name: Some("rewardpool.proto".to_owned()),
            package: Some("rewardpool".to_owned()),
            syntax: Some("proto3".to_owned()),
            message_type: messages(),
            service: vec![service()],
            ..FileDescriptorProto::default()
        }],
    }
}

fn service() -> ServiceDescriptorProto {
    let method = |name: &str, streams: bool| MethodDescriptorProto {
        name: Some(name.to_owned()),
        input_type: Some(format!(".rewardpool.{name}Request")),
        output_type: Some(format!(".rewardpool.{name}Response")),
        client_streaming: streams.then_some(true),
        server_streaming: streams.then_some(true),
        options: None,
    };
    ServiceDescriptorProto {
        name: Some("RewardPoolService".to_owned()),
        method: vec![method("GetState", false), method("Draw", true)],
        options: None,
    }
}

fn messages() -> Vec<DescriptorProto> {
    let items = FieldDescriptorProto {
        type_name: Some(".rewardpool.RewardItem".to_owned()),
        label: Some(Label::Repeated.into()),
        ..field("items", 1, Type::Message)
    };
    vec![
        message("GetStateRequest", vec![field("pool", 1, Type::String)]),
        message("GetStateResponse", vec![items]),
        message(
            "RewardItem",
            vec![
                field("item_id", 1, Type::String),
                field("quantity", 2, Type::Int64),
                field("probability", 3, Type::Int64),
            ],
        ),
        message(
            "DrawRequest",
            vec![
                field("count", 1, Type::Int32),
                field("pool", 2, Type::String),
                field("unique", 3, Type::Bool),
                field("user", 4, Type::String),
                field("request", 5, Type::String),
                field("together", 6, Type::Bool),
            ],
        ),
        message(
            "DrawResponse",
            vec![
                field("request_id", 1, Type::Uint64),
                field("item_id", 2, Type::String),
                field("error", 3, Type::String),
            ],
        ),
    ]
}

fn message(name: &str, fields: Vec<FieldDescriptorProto>) -> DescriptorProto {
    DescriptorProto { name: Some(name.to_owned()), field: fields, ..DescriptorProto::default() }
}

fn field(name: &str, number: i32, kind: Type) -> FieldDescriptorProto {
    FieldDescriptorProto {
        name: Some(name.to_owned()),
        number: Some(number),
        label: Some(Label::Optional.into()),
        r#type: Some(kind.into()),
        json_name: Some(json_name(name)),
        ..FieldDescriptorProto::default()
    }
}

/// Converts `item_id` to `itemId`.
fn json_name(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| {
        let (initial, rest) = word.split_at(1);
        name + &initial.to_uppercase() + rest
    })
}
