//! A problem in words: what was found, what that does, and what to do.

use std::fmt;

use super::Problem;
use crate::table::Value;
use crate::text::ShortString;
use crate::topology::{QueueType, Role};

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported { argument, value, queue_type } => write!(
                f,
                "{argument} is {value:?}, which a {} queue does not have (the broker answers 406): leave it out, or \
                 make it a {} queue",
                queue_type.as_str(),
                other(*queue_type).as_str()
            ),
            Self::BadValue { argument, value, allowed } => {
                write!(f, "{argument} is {}: set it to {allowed}, or leave it out", Wrong(value))
            }
            Self::SettingsContradict { argument, setting, value, other_setting, other_value } => write!(
                f,
                "{argument} is {value:?} by its {setting} and {other_value:?} by its {other_setting}: leave one out"
            ),
            Self::RoutingKeyWithoutExchange { routing_key } => write!(
                f,
                "x-dead-letter-routing-key is {routing_key:?} and x-dead-letter-exchange is missing (406): add the \
                 exchange, \"\" for a target that is a queue"
            ),
            Self::AtLeastOnceWithoutRejectPublish { overflow } => write!(
                f,
                "x-dead-letter-strategy is \"at-least-once\" and x-overflow is {}: the broker dead-letters at most \
                 once then, without a word; set x-overflow to \"reject-publish\"",
                Shown(overflow.as_ref())
            ),
            Self::AtLeastOnceWithoutTarget => f.write_str(
                "x-dead-letter-strategy is \"at-least-once\" and x-dead-letter-exchange is missing: add the exchange, \
                 or leave the strategy out",
            ),
            Self::LeaseOfQuorumQueue { expires } => write!(
                f,
                "x-expires is {expires:?} on a quorum queue, whose lease a declare does not renew: what is in it when \
                 it ends is dropped; leave x-expires out, or make it a classic queue"
            ),
            Self::QuorumFlag { flag } => write!(
                f,
                "{flag}, and a quorum queue is durable and shared (406): change that, or make it a classic queue"
            ),
            Self::ExclusiveDurable => f.write_str(
                "it is exclusive and durable, but an exclusive queue ends with its connection: make it transient, or \
                 share it",
            ),
            Self::TransientShared => f.write_str(
                "it is transient and not exclusive, which RabbitMQ 4.3 refuses by closing the connection (541): make it \
                 durable or exclusive",
            ),
            Self::ReservedName => f.write_str(
                "it is declared, but the broker keeps that name for itself (403): bind to it without declaring it, or \
                 choose another name",
            ),
            Self::BindsDefaultExchange => f.write_str(
                "nothing can be bound to the default exchange (403), which routes to every queue by its name: leave the \
                 binding out, or choose another exchange",
            ),
            Self::NotAWeight { routing_key } => write!(
                f,
                "its routing key is {routing_key:?}, and a consistent-hash exchange takes the weight of what is bound \
                 (406): set it to 1 or more in decimal digits"
            ),
            Self::MaxAttemptsWithoutDeadLetter { max_attempts } => write!(
                f,
                "max_attempts is {max_attempts} and dead_letter is missing: a quorum queue would drop what is past it; \
                 say where that goes"
            ),
            Self::DeadLetterWithoutMaxAttempts { target } => write!(
                f,
                "dead_letter is {target} and max_attempts is missing: on a quorum queue the broker counts the attempts; \
                 say how many"
            ),
            Self::AttemptsOfUndeclaredQuorumQueue => f.write_str(
                "max_attempts and dead_letter are arguments of a quorum queue, and this client does not declare it: let \
                 it declare the queue, or leave both out and set them where the queue is declared",
            ),
            Self::DelayOnShortLived { because } => write!(
                f,
                "it has a delay, but it is {because}: what waits may find no queue to come back to; leave the delay out, \
                 or use a named queue that lasts"
            ),
            Self::DelayIntoItself => f.write_str(
                "its delayed messages are to wait in the queue itself, from which they would be delivered at once: name \
                 another queue",
            ),
            Self::DeadLetterIntoItself { target } => write!(
                f,
                "its dead_letter is {target}, from which what is given up comes back at once, to be given up again without \
                 an end: choose a target that leads elsewhere"
            ),
            Self::RetryCountHeaderTaken { header } => write!(
                f,
                "its retry_count_header is {:?}, which the broker or leveret writes or acts on: the count would be lost, \
                 or take the place of something else; choose another name",
                header.as_str()
            ),
            Self::HoldsWithoutDeclaring => f.write_str(
                "its delay is in hold queues, which are declared on demand, and this client declares nothing: let it \
                 declare them, or name a waiting queue that exists"
            ),
            Self::DelaysBesideLengthLimit { argument, value } => write!(
                f,
                "{argument} is {value:?} on a queue with delays: what is released into a full queue is lost without a \
                 word; leave the limit or the delay out"
            ),
            Self::DelaysBesideTtl { ttl } => write!(
                f,
                "x-message-ttl is {ttl:?} on a queue with delays: a message that comes back and is not consumed within \
                 {ttl:?} ms dies; leave it out if none may"
            ),
            Self::NotTheHoldOfItsName { owner, property, value, wanted } => write!(
                f,
                "it has the name of a hold queue of {:?} and not what its name says: {property} is {}, and must be {}; \
                 choose another name, or leave the declaration to leveret",
                owner.as_str(),
                Shown(value.as_ref()),
                Shown(wanted.as_ref())
            ),
            Self::BelongsToAnother { owner, role } => write!(
                f,
                "it is described for itself, and is {} of {:?} by its name: choose another name",
                part(*role),
                owner.as_str()
            ),
            Self::DescriptionsDiffer { property, first, second } => write!(
                f,
                "two descriptions differ: {property} is {} in the first and {} in the other; describe it once, or twice \
                 alike",
                Shown(first.as_ref()),
                Shown(second.as_ref())
            ),
            Self::JobQueuesDiffer { setting } => {
                write!(f, "two descriptions differ in {setting}: describe it once, or twice alike")
            }
            Self::DeadLetterCycle { queues, certain } => {
                let way = if *certain { "come around" } else { "can come around, depending on their keys" };
                write!(f, "messages that die by themselves {way}: ")?;
                for queue in queues {
                    write!(f, "{} -> ", Named(Some(queue)))?;
                }
                write!(
                    f,
                    "{}; the broker drops such a message where nothing on the way rejected it: end the way in a queue \
                     without dead-lettering, or let a consumer reject",
                    Named(queues.first())
                )
            }
            Self::DeadLetterTargetUnknown { exchange, routing_key } => {
                match (exchange.as_str(), routing_key) {
                    ("", Some(queue)) => write!(f, "it dead-letters to queue {:?}", queue.as_str())?,
                    (_, Some(key)) => write!(
                        f,
                        "it dead-letters to exchange {:?} with routing key {:?}",
                        exchange.as_str(),
                        key.as_str()
                    )?,
                    (_, None) => write!(f, "it dead-letters to exchange {:?}", exchange.as_str())?,
                }
                f.write_str(
                    ", where nothing is declared here that would take it: the broker discards dead letters without a \
                     target silently; declare it, or make sure that it exists",
                )
            }
            Self::AlternateUnknown { exchange } => write!(
                f,
                "its alternate exchange {:?} is not declared here: what it cannot route is discarded where that is \
                 missing; declare it, or make sure that it exists",
                exchange.as_str()
            ),
            Self::SourceUnknown => f.write_str(
                "the exchange is not declared here, and the broker answers 404 where it is missing: declare it, or make \
                 sure that it exists",
            ),
            Self::DestinationUnknown => f.write_str(
                "what is bound is not declared here, and the broker answers 404 where it is missing: declare it, or make \
                 sure that it exists",
            ),
        }
    }
}

const fn other(queue_type: QueueType) -> QueueType {
    match queue_type {
        QueueType::Classic => QueueType::Quorum,
        QueueType::Quorum => QueueType::Classic,
    }
}

const fn part(role: Role) -> &'static str {
    match role {
        Role::Work => "the work queue",
        Role::Dead => "the dead-letter queue",
        Role::Hold { .. } => "a hold queue",
        Role::Waiting => "the waiting queue",
        Role::DelayedExchange => "the delayed exchange",
    }
}

/// A queue on a way.
struct Named<'a>(Option<&'a ShortString>);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.map_or("", ShortString::as_str) {
            "" => f.write_str("a queue that the server names"),
            name => write!(f, "{name:?}"),
        }
    }
}

/// A value, or that there is none.
struct Shown<'a>(Option<&'a Value>);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(value) => write!(f, "{value:?}"),
            None => f.write_str("missing"),
        }
    }
}

/// A value that an argument cannot have.
struct Wrong<'a>(&'a Value);

impl fmt::Display for Wrong<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_i64() {
            // What a longer duration than the wire has numbers for comes to.
            Some(i64::MAX) => write!(f, "{} or more, the most that can be sent", i64::MAX),
            _ if self.0.as_str().is_some() => write!(f, "the text {:?}", self.0),
            _ => write!(f, "{:?}", self.0),
        }
    }
}
