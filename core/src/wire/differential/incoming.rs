//! The methods that a server sends.

use amq_protocol::protocol::{
    AMQPClass, basic, channel, confirm, connection, exchange, parse_class, queue, tx,
};

use crate::text::ShortString;
use crate::wire::depth;
use crate::wire::method::{self, Incoming, MethodError};

/// Bytes as the payload of a method: what is read here is what the oracle reads, and what is not read here is of a
/// client, or cannot be read by it either. Only texts that are not UTF-8 are read here and not there.
pub(crate) fn check_incoming(payload: &[u8]) {
    let ours = method::decode(payload);
    // The oracle recurses, so a start is shown to it only after the walk.
    const START: &[u8] = &[0, 10, 0, 10];
    if payload.starts_with(START) && payload.get(6..).is_none_or(|rest| depth::check_table(rest).is_err()) {
        assert!(ours.is_err(), "a table that is not walked is not read");
        return;
    }
    if is_of_client(payload) {
        assert!(matches!(ours, Err(MethodError::Unexpected { .. } | MethodError::Malformed { .. })));
        return;
    }
    let oracle = parse_class(payload).ok().filter(|(rest, _)| rest.is_empty()).map(|(_, read)| read);
    match (ours, oracle) {
        (Ok(ours), Some(oracle)) => assert!(is_same(&ours, &oracle), "{ours:?} and {oracle:?}"),
        (Ok(ours), None) => assert!(String::from_utf8(payload.to_vec()).is_err(), "{ours:?} and nothing"),
        (Err(MethodError::Malformed { .. }), Some(oracle)) => unreachable!("nothing and {oracle:?}"),
        (Err(_), _) => {}
    }
}

/// Methods that have tables, or that only a client sends: the oracle would read them.
fn is_of_client(payload: &[u8]) -> bool {
    let (class, method) = method::ids(payload);
    matches!(
        (class, method),
        (10, 11 | 21 | 31 | 40 | 70)
            | (20, 10)
            | (40, 10 | 20 | 30 | 40)
            | (50, 10 | 20 | 30 | 40 | 50)
            | (60, 10 | 20 | 40 | 70 | 90 | 100 | 110)
            | (85, 10)
            | (90, 10 | 20 | 30)
    )
}

fn is_same(ours: &Incoming<'_>, oracle: &AMQPClass) -> bool {
    use AMQPClass::{Basic, Channel, Confirm, Connection, Exchange, Queue, Tx};
    use basic::AMQPMethod as B;
    use channel::AMQPMethod as Ch;
    use connection::AMQPMethod as Co;
    use exchange::AMQPMethod as E;
    use queue::AMQPMethod as Q;
    use tx::AMQPMethod as T;
    let same =
        |ours: &ShortString, oracle: &amq_protocol::types::ShortString| ours.as_str() == oracle.as_str();
    let bytes = |ours: &[u8], oracle: &amq_protocol::types::ShortString| ours == oracle.as_str().as_bytes();
    match (ours, oracle) {
        (Incoming::ConnectionStart(a), Connection(Co::Start(b))) => {
            (a.version_major, a.version_minor) == (b.version_major, b.version_minor)
                && a.mechanisms == b.mechanisms.to_string()
                && a.server_properties.len() == b.server_properties.inner().len()
        }
        (Incoming::ConnectionTune(a), Connection(Co::Tune(b))) => {
            (a.channel_max, a.frame_max, a.heartbeat) == (b.channel_max, b.frame_max, b.heartbeat)
        }
        (Incoming::ConnectionClose(a), Connection(Co::Close(b))) => {
            (a.code, a.class_id, a.method_id) == (b.reply_code, b.class_id, b.method_id)
                && same(&a.text, &b.reply_text)
        }
        (Incoming::ConnectionBlocked { reason }, Connection(Co::Blocked(b))) => same(reason, &b.reason),
        (Incoming::ChannelFlow { active }, Channel(Ch::Flow(b))) => *active == b.active,
        (Incoming::ChannelFlowOk { active }, Channel(Ch::FlowOk(b))) => *active == b.active,
        (Incoming::ChannelClose(a), Channel(Ch::Close(b))) => {
            (a.code, a.class_id, a.method_id) == (b.reply_code, b.class_id, b.method_id)
                && same(&a.text, &b.reply_text)
        }
        (Incoming::QueueDeclareOk { queue, messages, consumers }, Queue(Q::DeclareOk(b))) => {
            same(queue, &b.queue) && (*messages, *consumers) == (b.message_count, b.consumer_count)
        }
        (Incoming::QueuePurgeOk { messages }, Queue(Q::PurgeOk(b))) => *messages == b.message_count,
        (Incoming::QueueDeleteOk { messages }, Queue(Q::DeleteOk(b))) => *messages == b.message_count,
        (Incoming::BasicConsumeOk { consumer_tag }, Basic(B::ConsumeOk(b))) => {
            same(consumer_tag, &b.consumer_tag)
        }
        (Incoming::BasicCancel { consumer_tag, no_wait }, Basic(B::Cancel(b))) => {
            same(consumer_tag, &b.consumer_tag) && *no_wait == b.nowait
        }
        (Incoming::BasicCancelOk { consumer_tag }, Basic(B::CancelOk(b))) => {
            same(consumer_tag, &b.consumer_tag)
        }
        (Incoming::BasicReturn(a), Basic(B::Return(b))) => {
            a.code == b.reply_code
                && same(&a.text, &b.reply_text)
                && bytes(a.exchange, &b.exchange)
                && bytes(a.routing_key, &b.routing_key)
        }
        (Incoming::BasicDeliver(a), Basic(B::Deliver(b))) => {
            (a.delivery_tag, a.redelivered) == (b.delivery_tag, b.redelivered)
                && bytes(a.consumer_tag, &b.consumer_tag)
                && bytes(a.exchange, &b.exchange)
                && bytes(a.routing_key, &b.routing_key)
        }
        (Incoming::BasicGetOk(a), Basic(B::GetOk(b))) => {
            (a.delivery_tag, a.redelivered, a.messages) == (b.delivery_tag, b.redelivered, b.message_count)
                && bytes(a.exchange, &b.exchange)
                && bytes(a.routing_key, &b.routing_key)
        }
        (Incoming::BasicAck { delivery_tag, multiple }, Basic(B::Ack(b))) => {
            (*delivery_tag, *multiple) == (b.delivery_tag, b.multiple)
        }
        (Incoming::BasicNack { delivery_tag, multiple }, Basic(B::Nack(b))) => {
            (*delivery_tag, *multiple) == (b.delivery_tag, b.multiple)
        }
        (Incoming::ConnectionSecure, Connection(Co::Secure(_)))
        | (Incoming::ConnectionOpenOk, Connection(Co::OpenOk(_)))
        | (Incoming::ConnectionCloseOk, Connection(Co::CloseOk(_)))
        | (Incoming::ConnectionUnblocked, Connection(Co::Unblocked(_)))
        | (Incoming::ConnectionUpdateSecretOk, Connection(Co::UpdateSecretOk(_)))
        | (Incoming::ChannelOpenOk, Channel(Ch::OpenOk(_)))
        | (Incoming::ChannelCloseOk, Channel(Ch::CloseOk(_)))
        | (Incoming::ExchangeDeclareOk, Exchange(E::DeclareOk(_)))
        | (Incoming::ExchangeDeleteOk, Exchange(E::DeleteOk(_)))
        | (Incoming::ExchangeBindOk, Exchange(E::BindOk(_)))
        | (Incoming::ExchangeUnbindOk, Exchange(E::UnbindOk(_)))
        | (Incoming::QueueBindOk, Queue(Q::BindOk(_)))
        | (Incoming::QueueUnbindOk, Queue(Q::UnbindOk(_)))
        | (Incoming::BasicQosOk, Basic(B::QosOk(_)))
        | (Incoming::BasicGetEmpty, Basic(B::GetEmpty(_)))
        | (Incoming::BasicRecoverOk, Basic(B::RecoverOk(_)))
        | (Incoming::ConfirmSelectOk, Confirm(confirm::AMQPMethod::SelectOk(_)))
        | (Incoming::TxSelectOk, Tx(T::SelectOk(_)))
        | (Incoming::TxCommitOk, Tx(T::CommitOk(_)))
        | (Incoming::TxRollbackOk, Tx(T::RollbackOk(_))) => true,
        _ => false,
    }
}
