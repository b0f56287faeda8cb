//! amq-protocol is the oracle of what is encoded and decoded by hand.

use amq_protocol::frame::{AMQPFrame, WriteContext, gen_frame};
use amq_protocol::protocol::{AMQPClass, basic, channel, confirm, connection, exchange, queue, tx};
use amq_protocol::types::FieldTable;
use bytes::BytesMut;
use proptest::prelude::*;

use super::*;
use crate::message::Message;
use crate::table::{Table, Value};
use crate::text::ShortString;
use crate::topology::QueueDeclaration;
use crate::wire::differential::{amq_properties, frames as oracle};
use crate::wire::frame;
use crate::wire::properties;
use crate::wire::table::short_to_amq;
use crate::wire::testing::{any_properties, any_short, any_table};

/// The payload of a method as the oracle writes it.
fn payload(class: AMQPClass) -> Vec<u8> {
    let frame = AMQPFrame::Method(1, class);
    let bytes = gen_frame(&frame)(WriteContext::from(Vec::new())).unwrap().into_inner().0;
    let found = frame::peek(&bytes, u32::MAX).unwrap().unwrap();
    bytes[found.payload()].to_vec()
}

fn assert_decodes(class: AMQPClass, expected: &Incoming<'_>) {
    let bytes = payload(class);
    assert_eq!(decode(&bytes).as_ref(), Ok(expected));
    for cut in 0..bytes.len() {
        assert!(decode(&bytes[..cut]).is_err(), "{expected:?} cut at {cut}");
    }
    let longer = [&bytes[..], &[0]].concat();
    assert!(decode(&longer).is_err(), "{expected:?} with a byte too many");
}

#[test]
fn every_method_that_a_server_may_send_us_is_read_as_the_oracle_writes_it() {
    use AMQPClass::{Basic, Channel, Confirm, Connection, Exchange, Queue, Tx};
    let tag = ShortString::from_static("tag");
    let reason = CloseReason { code: 404, text: "no queue".try_short(), class_id: 50, method_id: 10 };
    let cases = [
        (
            Connection(connection::AMQPMethod::Tune(connection::Tune {
                channel_max: 2047,
                frame_max: 131_072,
                heartbeat: 60,
            })),
            Incoming::ConnectionTune(Tune { channel_max: 2047, frame_max: 131_072, heartbeat: 60 }),
        ),
        (
            Connection(connection::AMQPMethod::Secure(connection::Secure { challenge: "tag".into() })),
            Incoming::ConnectionSecure,
        ),
        (Connection(connection::AMQPMethod::OpenOk(connection::OpenOk {})), Incoming::ConnectionOpenOk),
        (
            Connection(connection::AMQPMethod::Close(connection::Close {
                reply_code: 404,
                reply_text: "no queue".into(),
                class_id: 50,
                method_id: 10,
            })),
            Incoming::ConnectionClose(reason.clone()),
        ),
        (Connection(connection::AMQPMethod::CloseOk(connection::CloseOk {})), Incoming::ConnectionCloseOk),
        (
            Connection(connection::AMQPMethod::Blocked(connection::Blocked { reason: "tag".into() })),
            Incoming::ConnectionBlocked { reason: tag.clone() },
        ),
        (
            Connection(connection::AMQPMethod::Unblocked(connection::Unblocked {})),
            Incoming::ConnectionUnblocked,
        ),
        (
            Connection(connection::AMQPMethod::UpdateSecretOk(connection::UpdateSecretOk {})),
            Incoming::ConnectionUpdateSecretOk,
        ),
        (Channel(channel::AMQPMethod::OpenOk(channel::OpenOk {})), Incoming::ChannelOpenOk),
        (
            Channel(channel::AMQPMethod::Flow(channel::Flow { active: true })),
            Incoming::ChannelFlow { active: true },
        ),
        (
            Channel(channel::AMQPMethod::Close(channel::Close {
                reply_code: 404,
                reply_text: "no queue".into(),
                class_id: 50,
                method_id: 10,
            })),
            Incoming::ChannelClose(reason),
        ),
        (Channel(channel::AMQPMethod::CloseOk(channel::CloseOk {})), Incoming::ChannelCloseOk),
        (
            Queue(queue::AMQPMethod::DeclareOk(queue::DeclareOk {
                queue: "tag".into(),
                message_count: 3,
                consumer_count: 4,
            })),
            Incoming::QueueDeclareOk { queue: tag.clone(), messages: 3, consumers: 4 },
        ),
        (
            Queue(queue::AMQPMethod::DeleteOk(queue::DeleteOk { message_count: 3 })),
            Incoming::QueueDeleteOk { messages: 3 },
        ),
        (Basic(basic::AMQPMethod::QosOk(basic::QosOk {})), Incoming::BasicQosOk),
        (
            Basic(basic::AMQPMethod::ConsumeOk(basic::ConsumeOk { consumer_tag: "tag".into() })),
            Incoming::BasicConsumeOk { consumer_tag: tag.clone() },
        ),
        (
            Basic(basic::AMQPMethod::Cancel(basic::Cancel { consumer_tag: "tag".into(), nowait: true })),
            Incoming::BasicCancel { consumer_tag: tag.clone(), no_wait: true },
        ),
        (
            Basic(basic::AMQPMethod::CancelOk(basic::CancelOk { consumer_tag: "tag".into() })),
            Incoming::BasicCancelOk { consumer_tag: tag.clone() },
        ),
        (
            Basic(basic::AMQPMethod::Return(basic::Return {
                reply_code: 312,
                reply_text: "tag".into(),
                exchange: "e".into(),
                routing_key: "k".into(),
            })),
            Incoming::BasicReturn(Return { code: 312, text: tag, exchange: b"e", routing_key: b"k" }),
        ),
        (Confirm(confirm::AMQPMethod::SelectOk(confirm::SelectOk {})), Incoming::ConfirmSelectOk),
        (
            Channel(channel::AMQPMethod::FlowOk(channel::FlowOk { active: false })),
            Incoming::ChannelFlowOk { active: false },
        ),
        (Exchange(exchange::AMQPMethod::DeclareOk(exchange::DeclareOk {})), Incoming::ExchangeDeclareOk),
        (Exchange(exchange::AMQPMethod::DeleteOk(exchange::DeleteOk {})), Incoming::ExchangeDeleteOk),
        (Exchange(exchange::AMQPMethod::BindOk(exchange::BindOk {})), Incoming::ExchangeBindOk),
        (Exchange(exchange::AMQPMethod::UnbindOk(exchange::UnbindOk {})), Incoming::ExchangeUnbindOk),
        (Queue(queue::AMQPMethod::BindOk(queue::BindOk {})), Incoming::QueueBindOk),
        (Queue(queue::AMQPMethod::UnbindOk(queue::UnbindOk {})), Incoming::QueueUnbindOk),
        (
            Queue(queue::AMQPMethod::PurgeOk(queue::PurgeOk { message_count: 3 })),
            Incoming::QueuePurgeOk { messages: 3 },
        ),
        (Basic(basic::AMQPMethod::GetEmpty(basic::GetEmpty {})), Incoming::BasicGetEmpty),
        (Basic(basic::AMQPMethod::RecoverOk(basic::RecoverOk {})), Incoming::BasicRecoverOk),
        (Tx(tx::AMQPMethod::SelectOk(tx::SelectOk {})), Incoming::TxSelectOk),
        (Tx(tx::AMQPMethod::CommitOk(tx::CommitOk {})), Incoming::TxCommitOk),
        (Tx(tx::AMQPMethod::RollbackOk(tx::RollbackOk {})), Incoming::TxRollbackOk),
    ];
    for (class, expected) in cases {
        assert_decodes(class, &expected);
    }
}

trait TryShort {
    fn try_short(self) -> ShortString;
}

impl TryShort for &'static str {
    fn try_short(self) -> ShortString {
        ShortString::from_static(self)
    }
}

#[test]
fn the_start_of_a_server_is_read() {
    let mut server_properties = FieldTable::default();
    server_properties.insert("product".into(), amq_protocol::types::AMQPValue::LongString("x".into()));
    let start = connection::Start {
        version_major: 0,
        version_minor: 9,
        server_properties,
        mechanisms: "PLAIN AMQPLAIN".into(),
        locales: "en_US".into(),
    };
    let expected = Start {
        version_major: 0,
        version_minor: 9,
        server_properties: Table::new().with(ShortString::from_static("product"), "x"),
        mechanisms: "PLAIN AMQPLAIN".into(),
    };
    let class = AMQPClass::Connection(connection::AMQPMethod::Start(start));
    assert_decodes(class, &Incoming::ConnectionStart(expected));
}

#[test]
fn methods_of_a_client_or_of_nobody_are_unexpected() {
    for (class, method) in [(10, 40), (20, 10), (50, 10), (60, 40), (60, 70), (90, 10), (0, 0), (85, 10)] {
        let [a, b] = u16::to_be_bytes(class);
        let [c, d] = u16::to_be_bytes(method);
        assert_eq!(decode(&[a, b, c, d, 0]), Err(MethodError::Unexpected { class, method }));
    }
    assert_eq!(decode(&[0, 60, 0]), Err(MethodError::Malformed { class: 0, method: 0 }));
}

#[test]
fn a_text_that_is_not_utf8_does_not_make_a_method_unreadable() {
    let mut close = vec![0, 20, 0, 40, 1, 148, 3];
    close.extend_from_slice(b"q\xC3\xFF");
    close.extend_from_slice(&[0, 50, 0, 10]);
    let Ok(Incoming::ChannelClose(reason)) = decode(&close) else { panic!("unreadable") };
    assert_eq!((reason.code, reason.text.as_str()), (404, "q\u{FFFD}\u{FFFD}"));

    let mut longest = vec![0, 20, 0, 40, 1, 148, 255];
    longest.extend_from_slice(&[0xFF; 255]);
    longest.extend_from_slice(&[0, 50, 0, 10]);
    let Ok(Incoming::ChannelClose(reason)) = decode(&longest) else { panic!("unreadable") };
    assert_eq!(reason.text.as_str(), "\u{FFFD}".repeat(85));
}

#[test]
fn the_flags_of_a_declaration_are_where_they_belong() {
    for bits in 0..16_u8 {
        let flag = |bit: u8| bits & 1 << bit != 0;
        let declaration = QueueDeclaration {
            name: "q".try_short(),
            passive: flag(0),
            durable: flag(1),
            exclusive: flag(2),
            auto_delete: flag(3),
            arguments: Table::new(),
        };
        let frame = queue_declare(7, &declaration).unwrap();
        // Head, class and method, ticket, name, flags, table, end.
        assert_eq!(frame[7 + 4 + 2 + 2], bits);
        assert_eq!(frame.len(), 7 + 4 + 2 + 2 + 1 + 4 + 1);
    }
}

#[test]
fn integers_of_arguments_are_sent_as_64_bits() {
    for number in [127, 128, 255, 256, 32_767, 32_768, 2_147_483_647, 2_147_483_648, 4_294_967_296_i64] {
        let arguments = Table::new().with(ShortString::from_static("x-message-ttl"), number);
        let declaration = QueueDeclaration {
            name: "q".try_short(),
            passive: false,
            durable: true,
            exclusive: false,
            auto_delete: false,
            arguments,
        };
        let frame = queue_declare(1, &declaration).unwrap();
        let value = &frame[frame.len() - 10..frame.len() - 1];
        assert_eq!(value[0], b'l');
        assert_eq!(value[1..], number.to_be_bytes());
    }
}

#[test]
fn a_declaration_that_is_nested_too_deep_is_refused() {
    let arguments =
        (0..40).fold(Table::new(), |inner, _| Table::new().with(ShortString::from_static("t"), inner));
    let declaration = QueueDeclaration {
        name: "q".try_short(),
        passive: false,
        durable: true,
        exclusive: false,
        auto_delete: false,
        arguments,
    };
    assert!(queue_declare(1, &declaration).is_err());
}

#[test]
fn the_other_methods_are_what_the_oracle_reads() {
    use basic::AMQPMethod as Basic;
    let count = std::num::NonZeroU16::new(300).unwrap();
    let (queue, tag) = ("q".try_short(), "t".try_short());
    assert_eq!(
        oracle(&basic_qos(3, count)),
        [AMQPFrame::Method(
            3,
            AMQPClass::Basic(Basic::Qos(basic::Qos { prefetch_count: 300, global: false }))
        )]
    );
    let consume = oracle(&basic_consume(3, &queue, &tag, &ConsumeOptions::default()).unwrap()).remove(0);
    let AMQPFrame::Method(3, AMQPClass::Basic(Basic::Consume(consume))) = consume else { panic!() };
    assert!(!consume.no_ack && !consume.nowait && !consume.exclusive);
    assert_eq!(channel_flow_ok(3, true).len(), FLOW_OK_FRAME);
}

#[test]
fn the_methods_of_exchanges_bindings_and_gets_are_what_the_oracle_reads() {
    use crate::topology::{
        Binding, BindingDestination, ExchangeDeclaration, ExchangeKind, ExchangeName, RoutingKey,
    };
    let method = |frame: &[u8]| match oracle(frame).remove(0) {
        AMQPFrame::Method(3, class) => class,
        other => panic!("{other:?}"),
    };
    let name = |name: &str| ExchangeName::new(name).unwrap();
    let declaration = ExchangeDeclaration {
        internal: true,
        ..ExchangeDeclaration::durable(name("e"), ExchangeKind::Headers)
    };
    let declare = exchange::Declare {
        exchange: "e".into(),
        kind: "headers".into(),
        passive: false,
        durable: true,
        auto_delete: false,
        internal: true,
        nowait: false,
        arguments: FieldTable::default(),
    };
    let binding = |destination| Binding {
        source: name("s"),
        destination,
        routing_key: RoutingKey::new("k").unwrap(),
        arguments: Table::new(),
    };
    let to_queue = binding(BindingDestination::Queue("q".try_short()));
    let to_exchange = binding(BindingDestination::Exchange(name("d")));
    let arguments = FieldTable::default;
    let cases = [
        (
            exchange_declare(3, &declaration).unwrap(),
            AMQPClass::Exchange(exchange::AMQPMethod::Declare(declare)),
        ),
        (
            exchange_delete(3, &name("e"), true),
            AMQPClass::Exchange(exchange::AMQPMethod::Delete(exchange::Delete {
                exchange: "e".into(),
                if_unused: true,
                nowait: false,
            })),
        ),
        (
            bind(3, &to_exchange).unwrap(),
            AMQPClass::Exchange(exchange::AMQPMethod::Bind(exchange::Bind {
                destination: "d".into(),
                source: "s".into(),
                routing_key: "k".into(),
                nowait: false,
                arguments: arguments(),
            })),
        ),
        (
            unbind(3, &to_exchange).unwrap(),
            AMQPClass::Exchange(exchange::AMQPMethod::Unbind(exchange::Unbind {
                destination: "d".into(),
                source: "s".into(),
                routing_key: "k".into(),
                nowait: false,
                arguments: arguments(),
            })),
        ),
        (
            bind(3, &to_queue).unwrap(),
            AMQPClass::Queue(queue::AMQPMethod::Bind(queue::Bind {
                queue: "q".into(),
                exchange: "s".into(),
                routing_key: "k".into(),
                nowait: false,
                arguments: arguments(),
            })),
        ),
        (
            unbind(3, &to_queue).unwrap(),
            AMQPClass::Queue(queue::AMQPMethod::Unbind(queue::Unbind {
                queue: "q".into(),
                exchange: "s".into(),
                routing_key: "k".into(),
                arguments: arguments(),
            })),
        ),
        (
            queue_purge(3, &"q".try_short()),
            AMQPClass::Queue(queue::AMQPMethod::Purge(queue::Purge { queue: "q".into(), nowait: false })),
        ),
        (
            queue_delete(3, &"q".try_short(), DeleteIf::EMPTY),
            AMQPClass::Queue(queue::AMQPMethod::Delete(queue::Delete {
                queue: "q".into(),
                if_unused: false,
                if_empty: true,
                nowait: false,
            })),
        ),
        (
            basic_get(3, &"q".try_short(), true),
            AMQPClass::Basic(basic::AMQPMethod::Get(basic::Get { queue: "q".into(), no_ack: true })),
        ),
        (basic_recover(3), AMQPClass::Basic(basic::AMQPMethod::Recover(basic::Recover { requeue: true }))),
        (tx_commit(3), AMQPClass::Tx(tx::AMQPMethod::Commit(tx::Commit {}))),
    ];
    for (frame, expected) in cases {
        assert_eq!(method(&frame), expected);
    }
    let options = ConsumeOptions { exclusive: true, ..ConsumeOptions::without_acknowledgement() }
        .with_argument("x-priority".try_short(), 5_i64);
    let consume = method(&basic_consume(3, &"q".try_short(), &"t".try_short(), &options).unwrap());
    let AMQPClass::Basic(basic::AMQPMethod::Consume(consume)) = consume else { panic!() };
    assert!(consume.no_ack && consume.exclusive && !consume.no_local);
    assert_eq!(
        consume.arguments.inner().get("x-priority"),
        Some(&amq_protocol::types::AMQPValue::LongLongInt(5))
    );
}

prop_compose! {
    fn any_settlement()(kind in 0..3_u8, multiple: bool, requeue: bool) -> Settlement {
        match kind {
            0 => Settlement::Ack { multiple },
            1 => Settlement::Nack { multiple, requeue },
            _ => Settlement::Reject { requeue },
        }
    }
}

proptest! {
    #[test]
    fn settlements_are_what_the_oracle_reads(channel: u16, tag: u64, settlement in any_settlement()) {
        use basic::AMQPMethod as Basic;
        let mut out = BytesMut::new();
        put_settlement(&mut out, channel, tag, settlement);
        prop_assert_eq!(out.len(), SETTLEMENT_FRAME);
        let delivery_tag = tag;
        let expected = match settlement {
            Settlement::Ack { multiple } => Basic::Ack(basic::Ack { delivery_tag, multiple }),
            Settlement::Nack { multiple, requeue } => {
                Basic::Nack(basic::Nack { delivery_tag, multiple, requeue })
            }
            Settlement::Reject { requeue } => Basic::Reject(basic::Reject { delivery_tag, requeue }),
        };
        prop_assert_eq!(oracle(&out), [AMQPFrame::Method(channel, AMQPClass::Basic(expected))]);
    }

    #[test]
    fn confirms_and_deliveries_are_read_as_the_oracle_writes_them(
        delivery_tag: u64,
        multiple: bool,
        redelivered: bool,
        texts in prop::array::uniform3(any_short()),
    ) {
        use basic::AMQPMethod as Basic;
        assert_decodes(
            AMQPClass::Basic(Basic::Ack(basic::Ack { delivery_tag, multiple })),
            &Incoming::BasicAck { delivery_tag, multiple },
        );
        assert_decodes(
            AMQPClass::Basic(Basic::Nack(basic::Nack { delivery_tag, multiple, requeue: redelivered })),
            &Incoming::BasicNack { delivery_tag, multiple },
        );
        let [consumer_tag, exchange, routing_key] = &texts;
        assert_decodes(
            AMQPClass::Basic(Basic::Deliver(basic::Deliver {
                consumer_tag: short_to_amq(consumer_tag),
                delivery_tag,
                redelivered,
                exchange: short_to_amq(exchange),
                routing_key: short_to_amq(routing_key),
            })),
            &Incoming::BasicDeliver(Deliver {
                consumer_tag: consumer_tag.as_bytes(),
                delivery_tag,
                redelivered,
                exchange: exchange.as_bytes(),
                routing_key: routing_key.as_bytes(),
            }),
        );
        assert_decodes(
            AMQPClass::Basic(Basic::GetOk(basic::GetOk {
                delivery_tag,
                redelivered,
                exchange: short_to_amq(exchange),
                routing_key: short_to_amq(routing_key),
                message_count: 7,
            })),
            &Incoming::BasicGetOk(GetOk {
                delivery_tag,
                redelivered,
                exchange: exchange.as_bytes(),
                routing_key: routing_key.as_bytes(),
                messages: 7,
            }),
        );
    }

    #[test]
    fn the_head_of_a_publish_is_what_the_oracle_reads(
        channel: u16,
        exchange in any_short(),
        routing_key in any_short(),
        mandatory: bool,
        properties in any_properties(),
        mark in prop::option::of(1..i64::MAX),
        body_size in 0..10_000_usize,
    ) {
        let message = Message {
            exchange, routing_key, mandatory, properties, body: vec![0; body_size].into(),
        };
        let mark_value = mark.map(Value::I64);
        let head = PublishHead::new(channel, &message, mark_value.as_ref()).unwrap();
        let mut out = BytesMut::new();
        head.put(&mut out);
        prop_assert_eq!(out.len(), head.len());

        let mut marked = message.properties.clone();
        if let Some(mark) = mark {
            marked.headers.remove(properties::MARK_HEADER);
            marked.headers.insert(ShortString::from_static(properties::MARK_HEADER), mark);
        }
        let publish = basic::Publish {
            exchange: short_to_amq(&message.exchange),
            routing_key: short_to_amq(&message.routing_key),
            mandatory,
            immediate: false,
        };
        let header = amq_protocol::frame::AMQPContentHeader {
            class_id: BASIC,
            body_size: body_size as u64,
            properties: amq_properties(&marked),
        };
        prop_assert_eq!(oracle(&out), [
            AMQPFrame::Method(channel, AMQPClass::Basic(basic::AMQPMethod::Publish(publish))),
            AMQPFrame::Header(channel, header),
        ]);
    }

    #[test]
    fn declarations_are_what_the_oracle_reads(name in any_short(), arguments in any_table()) {
        let declaration = QueueDeclaration {
            name, passive: false, durable: true, exclusive: false, auto_delete: false, arguments,
        };
        let frames = oracle(&queue_declare(1, &declaration).unwrap());
        let [AMQPFrame::Method(1, AMQPClass::Queue(queue::AMQPMethod::Declare(declare)))] = &frames[..] else {
            panic!("{frames:?}");
        };
        prop_assert!(declare.durable && !declare.nowait);
        prop_assert_eq!(
            crate::wire::table::from_amq(&declare.arguments).len(),
            declaration.arguments.len()
        );
    }

    #[test]
    fn no_bytes_make_decoding_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), class in 0..100_u8) {
        let _ = decode(&bytes);
        let known = [&[0, class][..], &bytes].concat();
        let _ = decode(&known);
        let start = [&[0, 10, 0, 10][..], &bytes].concat();
        let _ = decode(&start);
    }
}
