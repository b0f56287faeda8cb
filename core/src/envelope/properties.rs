//! The message around an envelope.

use super::Envelope;
use super::text::Text;
use crate::message::{DeliveryMode, Message, Properties};
use crate::text::ShortString;

/// The header with the attempt, for people who look at a queue. The body is the truth.
pub const ATTEMPT_HEADER: ShortString = ShortString::from_static("x-attempt");
/// The header with the number of deferrals, for people who look at a queue. The body is the truth.
pub const DEFERRALS_HEADER: ShortString = ShortString::from_static("x-deferrals");

/// A mandatory, persistent message to the queue `routing_key` that carries the envelope.
///
/// `priority` is `Some` wherever the work queue has priorities, 0 included: without the property a quorum
/// queue would take 4.
#[must_use]
pub fn message(envelope: &Envelope, routing_key: ShortString, priority: Option<u8>) -> Message {
    let mut properties = Properties::default();
    write_properties(envelope, priority, &mut properties);
    Message {
        exchange: ShortString::EMPTY,
        routing_key,
        mandatory: true,
        properties,
        body: envelope.encode(),
    }
}

/// Sets what the envelope decides, and leaves every other property as it is.
pub(crate) fn write_properties(envelope: &Envelope, priority: Option<u8>, properties: &mut Properties) {
    properties.content_type = Some(ShortString::from_static("application/json"));
    properties.delivery_mode = Some(DeliveryMode::Persistent);
    properties.message_id = Some(ShortString::truncated(envelope.job_id().encode(&mut [0; 36])));
    properties.kind = Some(envelope.job_type().as_short().clone());
    properties.priority = priority;
    // One that is too long for the property is in the body alone.
    if let Some(correlation_id) = envelope.correlation_id.as_ref().and_then(Text::to_short) {
        properties.correlation_id = Some(correlation_id);
    }
    properties.headers.insert(ATTEMPT_HEADER, envelope.attempt());
    properties.headers.insert(DEFERRALS_HEADER, envelope.deferrals());
}
