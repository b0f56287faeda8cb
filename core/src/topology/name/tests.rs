use proptest::prelude::*;

use super::*;
use crate::delay::HoldTtl;

const QUEUE: NameKind = NameKind::Queue;

#[test]
fn a_name_that_leaves_room_for_its_longest_hold_is_the_longest_one() {
    let longest = QueueName::new("q".repeat(235)).unwrap();
    assert_eq!(longest.hold(HoldTtl::MAX).len(), 255);
    assert_eq!(QueueName::new("q".repeat(236)), Err(NameError::TooLong { of: QUEUE, bytes: 236 }));
    assert_eq!(QueueName::new("é".repeat(118)), Err(NameError::TooLong { of: QUEUE, bytes: 236 }));
}

#[test]
fn a_name_that_belongs_to_the_broker_or_to_another_queue_is_refused() {
    assert_eq!(QueueName::new(""), Err(NameError::Empty { of: QUEUE }));
    assert!(matches!(QueueName::new("amq.gen-1"), Err(NameError::ReservedPrefix { .. })));
    assert!(matches!(QueueName::new("mail.deferred.1000"), Err(NameError::HoldName { .. })));
    assert!(matches!(QueueName::new("mail.held.1"), Err(NameError::HoldName { .. })));
    let control = NameError::ControlCharacter { of: QUEUE, character: '\n', at: 4 };
    assert_eq!(QueueName::new("mail\n1"), Err(control));
}

#[test]
fn a_name_that_only_resembles_a_hold_is_allowed() {
    for name in ["mail.deferred.", "mail.deferred", "mail.deferred.soon", "mail.deferred.1.x", "amqp.mail"] {
        assert!(QueueName::new(name).is_ok(), "{name}");
    }
}

#[test]
fn what_belongs_to_a_queue_is_named_after_it() {
    let name = QueueName::new("q").unwrap();
    let ttl = HoldTtl::from_millis(30_000).unwrap();
    let names = [name.dead(), name.hold(ttl), name.held(ttl), name.waiting(), name.delayed_exchange()];
    assert_eq!(names, ["q.dead", "q.deferred.30000", "q.held.30000", "q.retry", "q.delay"]);
}

#[test]
fn exchanges_and_routing_keys_may_be_empty_and_the_brokers_own_can_be_named() {
    assert_eq!(ExchangeName::new("").unwrap(), ExchangeName::DEFAULT);
    assert!(ExchangeName::DEFAULT.is_default() && ExchangeName::DEFAULT.is_predeclared());
    assert!(ExchangeName::new("amq.topic").unwrap().is_predeclared());
    assert!(!ExchangeName::new("shop.events").unwrap().is_predeclared());
    assert_eq!(RoutingKey::new("").unwrap(), RoutingKey::EMPTY);
    assert!(RoutingKey::new("mail.deferred.1000").is_ok());
}

#[test]
fn headers_and_consumer_tags_have_a_name_of_their_own() {
    assert_eq!(HeaderKey::new(""), Err(NameError::Empty { of: NameKind::HeaderKey }));
    assert_eq!(ConsumerTag::new(""), Err(NameError::Empty { of: NameKind::ConsumerTag }));
    assert!(matches!(ConsumerTag::new("amq.ctag-1"), Err(NameError::ReservedPrefix { .. })));
    assert!(HeaderKey::new("amq.x").is_ok());
}

#[test]
fn names_are_counted_in_bytes_and_hold_no_control_characters_whatever_they_name() {
    let too_long = "é".repeat(128);
    let kinds = [
        (NameKind::Exchange, ExchangeName::new(&too_long).err(), ExchangeName::new("a\0").err()),
        (NameKind::RoutingKey, RoutingKey::new(&too_long).err(), RoutingKey::new("a\0").err()),
        (NameKind::HeaderKey, HeaderKey::new(&too_long).err(), HeaderKey::new("a\0").err()),
        (NameKind::ConsumerTag, ConsumerTag::new(&too_long).err(), ConsumerTag::new("a\0").err()),
    ];
    for (of, long, control) in kinds {
        assert_eq!(long, Some(NameError::TooLong { of, bytes: 256 }));
        assert_eq!(control, Some(NameError::ControlCharacter { of, character: '\0', at: 1 }));
    }
    let longest = "é".repeat(127) + "a";
    assert!(ExchangeName::new(&longest).is_ok() && RoutingKey::new(&longest).is_ok());
    assert!(HeaderKey::new(&longest).is_ok() && ConsumerTag::new(&longest).is_ok());
}

#[test]
fn a_configuration_file_cannot_smuggle_in_a_bad_name() {
    let name = QueueName::new("shop.emails").unwrap();
    assert_eq!(serde_json::from_str::<QueueName>("\"shop.emails\"").unwrap(), name);
    assert_eq!(serde_json::to_string(&name).unwrap(), "\"shop.emails\"");
    let error = serde_json::from_str::<QueueName>("\"amq.x\"").unwrap_err();
    assert!(error.to_string().contains("`amq.`"), "{error}");
    assert!(serde_json::from_str::<ConsumerTag>("\"\"").is_err());
}

proptest! {
    #[test]
    fn every_accepted_name_derives_names_that_fit_and_are_not_job_queues(
        name in "\\PC{0,250}", ttl in 1..=HoldTtl::MAX.as_millis()
    ) {
        let Ok(name) = QueueName::new(&name) else { return Ok(()) };
        let ttl = HoldTtl::from_millis(ttl).unwrap();
        let hold = name.hold(ttl);
        let expected = format!("{name}.deferred.{}", ttl.as_millis());
        prop_assert_eq!(hold.as_str(), expected.as_str());
        prop_assert!(QueueName::new(hold.as_str()).is_err());
        let dead = name.dead();
        prop_assert!(dead.ends_with(".dead"));
    }

    #[test]
    fn no_text_makes_a_name_panic_and_what_is_accepted_is_kept_as_it_is(text in ".{0,300}") {
        for accepted in [
            QueueName::new(&text).map(ShortString::from),
            ExchangeName::new(&text).map(ShortString::from),
            RoutingKey::new(&text).map(ShortString::from),
            HeaderKey::new(&text).map(ShortString::from),
            ConsumerTag::new(&text).map(ShortString::from),
        ] {
            match accepted {
                Ok(name) => prop_assert_eq!(name.as_str(), text.as_str()),
                Err(error) => prop_assert!(!error.to_string().is_empty()),
            }
        }
    }
}
