//! The server's side for the tests and fuzz targets of `connection`: frames as amq-protocol writes them, and what
//! the client sent, as text.

use amq_protocol::frame::{AMQPContentHeader, AMQPFrame, WriteContext, gen_frame, parse_frame};
use amq_protocol::protocol::basic::AMQPProperties;
use amq_protocol::protocol::{AMQPClass, basic, channel, confirm, connection, exchange, queue, tx};
use amq_protocol::types::{AMQPValue, FieldTable};

use super::properties::MARK_HEADER;

fn encode(frame: &AMQPFrame) -> Vec<u8> {
    gen_frame(frame)(WriteContext::from(Vec::new())).expect("a Vec takes every write").into_inner().0
}

fn method(channel: u16, class: AMQPClass) -> Vec<u8> {
    encode(&AMQPFrame::Method(channel, class))
}

fn on_connection(method: connection::AMQPMethod) -> Vec<u8> {
    self::method(0, AMQPClass::Connection(method))
}

fn on_basic(channel: u16, method: basic::AMQPMethod) -> Vec<u8> {
    self::method(channel, AMQPClass::Basic(method))
}

pub(crate) fn start(mechanisms: &str) -> Vec<u8> {
    let mut server_properties = FieldTable::default();
    server_properties.insert("product".into(), AMQPValue::LongString("RabbitMQ".into()));
    server_properties.insert("version".into(), AMQPValue::LongString("4.0.5".into()));
    on_connection(connection::AMQPMethod::Start(connection::Start {
        version_major: 0,
        version_minor: 9,
        server_properties,
        mechanisms: mechanisms.into(),
        locales: "en_US".into(),
    }))
}

pub(crate) fn start_of_version(version_major: u8, version_minor: u8) -> Vec<u8> {
    on_connection(connection::AMQPMethod::Start(connection::Start {
        version_major,
        version_minor,
        server_properties: FieldTable::default(),
        mechanisms: "PLAIN".into(),
        locales: "en_US".into(),
    }))
}

pub(crate) fn secure(challenge: &str) -> Vec<u8> {
    on_connection(connection::AMQPMethod::Secure(connection::Secure { challenge: challenge.into() }))
}

pub(crate) fn tune(channel_max: u16, frame_max: u32, heartbeat: u16) -> Vec<u8> {
    on_connection(connection::AMQPMethod::Tune(connection::Tune { channel_max, frame_max, heartbeat }))
}

pub(crate) fn open_ok() -> Vec<u8> {
    on_connection(connection::AMQPMethod::OpenOk(connection::OpenOk {}))
}

pub(crate) fn connection_close(code: u16, text: &str) -> Vec<u8> {
    on_connection(connection::AMQPMethod::Close(connection::Close {
        reply_code: code,
        reply_text: text.into(),
        class_id: 0,
        method_id: 0,
    }))
}

pub(crate) fn connection_close_ok() -> Vec<u8> {
    on_connection(connection::AMQPMethod::CloseOk(connection::CloseOk {}))
}

pub(crate) fn blocked(reason: &str) -> Vec<u8> {
    on_connection(connection::AMQPMethod::Blocked(connection::Blocked { reason: reason.into() }))
}

pub(crate) fn unblocked() -> Vec<u8> {
    on_connection(connection::AMQPMethod::Unblocked(connection::Unblocked {}))
}

pub(crate) fn update_secret_ok() -> Vec<u8> {
    on_connection(connection::AMQPMethod::UpdateSecretOk(connection::UpdateSecretOk {}))
}

pub(crate) fn heartbeat() -> Vec<u8> {
    encode(&AMQPFrame::Heartbeat)
}

pub(crate) fn channel_open_ok(number: u16) -> Vec<u8> {
    method(number, AMQPClass::Channel(channel::AMQPMethod::OpenOk(channel::OpenOk {})))
}

pub(crate) fn channel_flow(number: u16, active: bool) -> Vec<u8> {
    method(number, AMQPClass::Channel(channel::AMQPMethod::Flow(channel::Flow { active })))
}

pub(crate) fn channel_close(number: u16, code: u16, text: &str) -> Vec<u8> {
    let close = channel::Close { reply_code: code, reply_text: text.into(), class_id: 50, method_id: 10 };
    method(number, AMQPClass::Channel(channel::AMQPMethod::Close(close)))
}

pub(crate) fn channel_close_ok(number: u16) -> Vec<u8> {
    method(number, AMQPClass::Channel(channel::AMQPMethod::CloseOk(channel::CloseOk {})))
}

pub(crate) fn select_ok(number: u16) -> Vec<u8> {
    method(number, AMQPClass::Confirm(confirm::AMQPMethod::SelectOk(confirm::SelectOk {})))
}

pub(crate) fn declare_ok(number: u16, name: &str) -> Vec<u8> {
    let declare_ok = queue::DeclareOk { queue: name.into(), message_count: 2, consumer_count: 1 };
    method(number, AMQPClass::Queue(queue::AMQPMethod::DeclareOk(declare_ok)))
}

pub(crate) fn delete_ok(number: u16) -> Vec<u8> {
    let delete_ok = queue::DeleteOk { message_count: 2 };
    method(number, AMQPClass::Queue(queue::AMQPMethod::DeleteOk(delete_ok)))
}

/// The answers that say nothing but that it was done.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Done {
    ExchangeDeclare,
    ExchangeDelete,
    ExchangeBind,
    ExchangeUnbind,
    QueueBind,
    QueueUnbind,
    Recover,
    TxSelect,
    TxCommit,
    TxRollback,
}

pub(crate) fn done(number: u16, what: Done) -> Vec<u8> {
    use basic::AMQPMethod as Basic;
    use exchange::AMQPMethod as Exchange;
    use queue::AMQPMethod as Queue;
    use tx::AMQPMethod as Tx;
    method(
        number,
        match what {
            Done::ExchangeDeclare => AMQPClass::Exchange(Exchange::DeclareOk(exchange::DeclareOk {})),
            Done::ExchangeDelete => AMQPClass::Exchange(Exchange::DeleteOk(exchange::DeleteOk {})),
            Done::ExchangeBind => AMQPClass::Exchange(Exchange::BindOk(exchange::BindOk {})),
            Done::ExchangeUnbind => AMQPClass::Exchange(Exchange::UnbindOk(exchange::UnbindOk {})),
            Done::QueueBind => AMQPClass::Queue(Queue::BindOk(queue::BindOk {})),
            Done::QueueUnbind => AMQPClass::Queue(Queue::UnbindOk(queue::UnbindOk {})),
            Done::Recover => AMQPClass::Basic(Basic::RecoverOk(basic::RecoverOk {})),
            Done::TxSelect => AMQPClass::Tx(Tx::SelectOk(tx::SelectOk {})),
            Done::TxCommit => AMQPClass::Tx(Tx::CommitOk(tx::CommitOk {})),
            Done::TxRollback => AMQPClass::Tx(Tx::RollbackOk(tx::RollbackOk {})),
        },
    )
}

pub(crate) fn purge_ok(number: u16) -> Vec<u8> {
    let purge_ok = queue::PurgeOk { message_count: 2 };
    method(number, AMQPClass::Queue(queue::AMQPMethod::PurgeOk(purge_ok)))
}

pub(crate) fn channel_flow_ok(number: u16, active: bool) -> Vec<u8> {
    method(number, AMQPClass::Channel(channel::AMQPMethod::FlowOk(channel::FlowOk { active })))
}

pub(crate) fn get_ok(number: u16, delivery_tag: u64) -> Vec<u8> {
    on_basic(
        number,
        basic::AMQPMethod::GetOk(basic::GetOk {
            delivery_tag,
            redelivered: false,
            exchange: "".into(),
            routing_key: "q".into(),
            message_count: 7,
        }),
    )
}

pub(crate) fn get_empty(number: u16) -> Vec<u8> {
    on_basic(number, basic::AMQPMethod::GetEmpty(basic::GetEmpty {}))
}

pub(crate) fn qos_ok(number: u16) -> Vec<u8> {
    on_basic(number, basic::AMQPMethod::QosOk(basic::QosOk {}))
}

pub(crate) fn consume_ok(number: u16, tag: &str) -> Vec<u8> {
    on_basic(number, basic::AMQPMethod::ConsumeOk(basic::ConsumeOk { consumer_tag: tag.into() }))
}

pub(crate) fn cancel(number: u16, tag: &str, nowait: bool) -> Vec<u8> {
    on_basic(number, basic::AMQPMethod::Cancel(basic::Cancel { consumer_tag: tag.into(), nowait }))
}

pub(crate) fn cancel_ok(number: u16, tag: &str) -> Vec<u8> {
    on_basic(number, basic::AMQPMethod::CancelOk(basic::CancelOk { consumer_tag: tag.into() }))
}

pub(crate) fn ack(number: u16, delivery_tag: u64, multiple: bool) -> Vec<u8> {
    on_basic(number, basic::AMQPMethod::Ack(basic::Ack { delivery_tag, multiple }))
}

pub(crate) fn nack(number: u16, delivery_tag: u64, multiple: bool) -> Vec<u8> {
    on_basic(number, basic::AMQPMethod::Nack(basic::Nack { delivery_tag, multiple, requeue: false }))
}

pub(crate) fn deliver(number: u16, consumer_tag: &str, delivery_tag: u64) -> Vec<u8> {
    on_basic(
        number,
        basic::AMQPMethod::Deliver(basic::Deliver {
            consumer_tag: consumer_tag.into(),
            delivery_tag,
            redelivered: true,
            exchange: "".into(),
            routing_key: "q".into(),
        }),
    )
}

/// A content header; `mark` becomes a header table.
pub(crate) fn header(number: u16, body_size: u64, mark: Option<i64>) -> Vec<u8> {
    let mut properties = AMQPProperties::default().with_content_type("text/plain".into());
    if let Some(mark) = mark {
        let mut headers = FieldTable::default();
        headers.insert(MARK_HEADER.into(), AMQPValue::LongLongInt(mark));
        properties = properties.with_headers(headers);
    }
    encode(&AMQPFrame::Header(number, AMQPContentHeader { class_id: 60, body_size, properties }))
}

pub(crate) fn body(number: u16, payload: &[u8]) -> Vec<u8> {
    encode(&AMQPFrame::Body(number, payload.to_vec()))
}

/// A frame of any kind, with any payload.
pub(crate) fn raw(kind: u8, number: u16, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a payload of a test").to_be_bytes();
    let mut frame = vec![kind];
    frame.extend_from_slice(&number.to_be_bytes());
    frame.extend_from_slice(&length);
    frame.extend_from_slice(payload);
    frame.push(0xCE);
    frame
}

/// The return of a message with an empty body.
pub(crate) fn returned(number: u16, mark: Option<i64>) -> Vec<u8> {
    let returned = on_basic(
        number,
        basic::AMQPMethod::Return(basic::Return {
            reply_code: 312,
            reply_text: "NO_ROUTE".into(),
            exchange: "".into(),
            routing_key: "nowhere".into(),
        }),
    );
    [returned, header(number, 0, mark)].concat()
}

/// What the client sent, one line for each frame: the channel, and what it is.
pub(crate) fn describe(mut bytes: &[u8]) -> Vec<String> {
    let mut lines = Vec::new();
    while !bytes.is_empty() {
        let (rest, frame) = parse_frame(bytes).expect("the client sends whole, valid frames");
        bytes = rest;
        let channel = frame.channel_id();
        lines.push(match frame {
            AMQPFrame::ProtocolHeader(version) => format!("header {version}"),
            AMQPFrame::Heartbeat | AMQPFrame::InvalidHeartbeat(_) => format!("{channel} heartbeat"),
            AMQPFrame::Header(_, header) => format!("{channel} header of {}", header.body_size),
            AMQPFrame::Body(_, body) => format!("{channel} body of {}", body.len()),
            AMQPFrame::Method(_, class) => format!("{channel} {}", describe_method(&class)),
        });
    }
    lines
}

fn describe_method(class: &AMQPClass) -> String {
    use basic::AMQPMethod as Basic;
    use channel::AMQPMethod as Channel;
    use connection::AMQPMethod as Connection;
    use exchange::AMQPMethod as Exchange;
    use queue::AMQPMethod as Queue;
    use tx::AMQPMethod as Tx;
    let multiple = |multiple: bool| if multiple { " multiple" } else { "" };
    match class {
        AMQPClass::Connection(Connection::StartOk(m)) => format!("start-ok {}", m.mechanism),
        AMQPClass::Connection(Connection::UpdateSecret(m)) => {
            format!("update-secret {} {}", m.new_secret, m.reason)
        }
        AMQPClass::Connection(Connection::TuneOk(m)) => {
            format!("tune-ok {} {} {}", m.channel_max, m.frame_max, m.heartbeat)
        }
        AMQPClass::Connection(Connection::Open(m)) => format!("open {}", m.virtual_host),
        AMQPClass::Connection(Connection::Close(m)) => format!("close {}", m.reply_code),
        AMQPClass::Connection(Connection::CloseOk(_)) | AMQPClass::Channel(Channel::CloseOk(_)) => {
            "close-ok".to_owned()
        }
        AMQPClass::Channel(Channel::Open(_)) => "open".to_owned(),
        AMQPClass::Channel(Channel::Close(m)) => format!("close {}", m.reply_code),
        AMQPClass::Channel(Channel::FlowOk(m)) => format!("flow-ok {}", m.active),
        AMQPClass::Confirm(_) => "confirm.select".to_owned(),
        AMQPClass::Queue(Queue::Declare(m)) => format!("declare {}", m.queue),
        AMQPClass::Channel(Channel::Flow(m)) => format!("flow {}", m.active),
        AMQPClass::Tx(Tx::Select(_)) => "tx.select".to_owned(),
        AMQPClass::Tx(Tx::Commit(_)) => "tx.commit".to_owned(),
        AMQPClass::Tx(Tx::Rollback(_)) => "tx.rollback".to_owned(),
        AMQPClass::Exchange(Exchange::Declare(m)) => format!("declare exchange {} {}", m.exchange, m.kind),
        AMQPClass::Exchange(Exchange::Delete(m)) => format!("delete exchange {}", m.exchange),
        AMQPClass::Exchange(Exchange::Bind(m)) => format!("bind exchange {} to {}", m.destination, m.source),
        AMQPClass::Exchange(Exchange::Unbind(m)) => {
            format!("unbind exchange {} from {}", m.destination, m.source)
        }
        AMQPClass::Queue(Queue::Bind(m)) => format!("bind {} to {}", m.queue, m.exchange),
        AMQPClass::Queue(Queue::Unbind(m)) => format!("unbind {} from {}", m.queue, m.exchange),
        AMQPClass::Queue(Queue::Purge(m)) => format!("purge {}", m.queue),
        AMQPClass::Queue(Queue::Delete(m)) => format!("delete {}", m.queue),
        AMQPClass::Basic(Basic::Get(m)) => format!("get {}", m.queue),
        AMQPClass::Basic(Basic::Recover(m)) => format!("recover {}", m.requeue),
        AMQPClass::Basic(Basic::Qos(m)) => format!("qos {}", m.prefetch_count),
        AMQPClass::Basic(Basic::Consume(m)) => format!("consume {} as {}", m.queue, m.consumer_tag),
        AMQPClass::Basic(Basic::Cancel(m)) => format!("cancel {}", m.consumer_tag),
        AMQPClass::Basic(Basic::CancelOk(m)) => format!("cancel-ok {}", m.consumer_tag),
        AMQPClass::Basic(Basic::Publish(m)) => format!("publish {}", m.routing_key),
        AMQPClass::Basic(Basic::Ack(m)) => {
            format!("ack {}{}", m.delivery_tag, multiple(m.multiple))
        }
        AMQPClass::Basic(Basic::Nack(m)) => format!("nack {}{}", m.delivery_tag, multiple(m.multiple)),
        AMQPClass::Basic(Basic::Reject(m)) => format!("reject {}", m.delivery_tag),
        other => unreachable!("the client never sends {other:?}"),
    }
}

/// What a start-ok says of the client.
pub(crate) struct StartOk {
    pub(crate) mechanism: String,
    pub(crate) response: Vec<u8>,
    /// The texts among the client properties, as `name=value`.
    pub(crate) properties: Vec<String>,
    /// The capabilities that are set.
    pub(crate) capabilities: Vec<String>,
}

pub(crate) fn start_ok_of(bytes: &[u8]) -> StartOk {
    let (_, frame) = parse_frame(bytes).expect("a whole frame");
    let AMQPFrame::Method(0, AMQPClass::Connection(connection::AMQPMethod::StartOk(start_ok))) = frame else {
        unreachable!("not a start-ok");
    };
    let properties = start_ok.client_properties.inner();
    let capabilities = properties["capabilities"].as_field_table().expect("a table");
    let set = capabilities.into_iter().filter(|(_, value)| value.as_bool() == Some(true));
    let texts =
        properties.iter().filter_map(|(name, value)| Some(format!("{name}={}", value.as_long_string()?)));
    StartOk {
        mechanism: start_ok.mechanism.to_string(),
        response: start_ok.response.as_bytes().to_vec(),
        properties: texts.collect(),
        capabilities: set.map(|(name, _)| name.to_string()).collect(),
    }
}
