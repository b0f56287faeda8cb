use bytes::Bytes;
use leveret_core::connection::{ConnectionError, Credentials};
use leveret_core::message::{Message, Properties};
use leveret_core::session::{
    ConfigError, ConnectError, LinkError, Outcome, Session, SessionConfig, SessionEvent, Settlement,
    SubscribeError,
};
use leveret_core::table::{Table, Value};
use leveret_core::text::ShortString;
use leveret_core::topology::Queue;
use leveret_testkit::world::{World, raw_job};

use super::{emails, only_job, seconds, session, settlements};

/// The answer to `connect`, within a minute of virtual time.
fn connect_error(world: &mut World, config: SessionConfig) -> ConnectError {
    let others = world.broker().connections().len();
    let client = world.add(Session::new(config, 1).expect("a good configuration"));
    let now = world.now();
    world.session(client).connect(now);
    world.run_for(seconds(60));
    let mut failures = world.take_events(client).into_iter().filter_map(|event| match event {
        SessionEvent::ConnectFailed(error) => Some(error),
        _ => None,
    });
    let failure = failures.next().expect("the connect fails");
    assert!(failures.next().is_none(), "it is told once");
    assert_eq!(world.broker().connections().len(), others, "nothing is left open");
    failure
}

#[test]
fn an_unreachable_broker_is_told_after_every_endpoint_was_tried_once() {
    let mut world = World::new(1);
    world.set_reachable(false);
    let mut config = World::config([emails()]);
    config.endpoints.push(leveret_core::session::Endpoint::new("second", 5673));
    let error = connect_error(&mut world, config);
    assert!(
        matches!(&error, ConnectError::Link(LinkError::Unreachable { endpoint, .. }) if endpoint.host == "second")
    );
    assert!(error.to_string().contains("second:5673"), "{error}");
}

#[test]
fn a_wrong_password_is_one_clear_error() {
    let mut world = World::new(1);
    let mut config = World::config([emails()]);
    config.connection.credentials = Credentials::new("guest", "wrong");
    let error = connect_error(&mut world, config);
    assert!(
        matches!(
            &error,
            ConnectError::Link(LinkError::Connection {
                error: ConnectionError::AuthenticationRefused { .. },
                ..
            })
        ),
        "{error:?}"
    );
    assert!(!error.to_string().contains("wrong"), "the password is not shown: {error}");
}

#[test]
fn a_missing_virtual_host_is_one_clear_error() {
    let mut world = World::new(1);
    let mut config = World::config([emails()]);
    config.connection.virtual_host = ShortString::from_static("nowhere");
    let error = connect_error(&mut world, config);
    assert!(error.to_string().contains("nowhere"), "{error}");
}

#[test]
fn a_queue_that_exists_with_other_arguments_is_told_with_both_values() {
    let mut world = World::new(1);
    world.connect([emails().max_priority(5)]);
    let error = connect_error(&mut world, World::config([emails()]));
    let ConnectError::Refused(refusal) = &error else { panic!("it is refused: {error:?}") };
    let mismatch = refusal.mismatch().expect("the text is understood");
    assert_eq!(refusal.queue, "emails");
    assert_eq!(mismatch.argument, "x-max-priority");
    assert_eq!(mismatch.wanted.as_deref(), Some("10"));
    assert_eq!(mismatch.found.as_deref(), Some("5"));
}

#[test]
fn one_queue_described_twice_and_differently_is_found_before_any_io() {
    let queues = [emails(), emails().max_priority(5)];
    let refused = Session::new(World::config(queues), 1).expect_err("it is refused");
    assert!(matches!(refused, ConfigError::TwoDescriptions { .. }), "{refused}");
    let twice_the_same = [emails(), emails()];
    assert!(Session::new(World::config(twice_the_same), 1).is_ok());
}

#[test]
fn a_queue_that_is_the_dead_letter_queue_of_another_is_found_before_any_io() {
    let letters = Queue::new("emails.dead").expect("a good name");
    let refused = Session::new(World::config([emails(), letters.clone()]), 1).expect_err("it is refused");
    assert!(matches!(refused, ConfigError::Topology(_)), "{refused}");
    assert!(refused.to_string().contains("emails.dead"), "{refused}");
    let alone = emails().dead_letters(false);
    assert!(Session::new(World::config([alone, letters]), 1).is_ok());
}

#[test]
fn a_prefetch_of_zero_is_found_before_any_io() {
    let refused = Session::new(World::config([emails().prefetch(0)]), 1).expect_err("it is refused");
    assert!(matches!(refused, ConfigError::Queue(_)), "{refused}");
}

#[test]
fn a_server_with_fewer_channels_than_queues_is_told() {
    let mut world = World::with_broker(leveret_testkit::broker::BrokerConfig::default().channel_max(2), 1);
    let queues = (0..3).map(|n| Queue::new(format!("queue-{n}")).expect("a good name"));
    let error = connect_error(&mut world, World::config(queues));
    assert!(matches!(&error, ConnectError::Link(LinkError::Unusable { .. })), "{error:?}");
}

#[test]
fn a_second_subscription_to_one_queue_is_refused() {
    let mut world = World::new(1);
    let client = world.connect([emails()]);
    world.subscribe(client, &emails());
    let now = world.now();
    let refused = world.session(client).subscribe(now, emails().name());
    assert!(matches!(refused, Err(SubscribeError::AlreadySubscribed { .. })));
}

#[test]
fn nothing_is_accepted_before_the_session_is_connected() {
    let mut world = World::new(1);
    let client = world.add(session([emails()]));
    let refused = world.try_enqueue(client, &emails(), raw_job("send-email"));
    assert!(refused.is_err());
}

#[test]
fn a_body_that_is_no_job_is_moved_aside_byte_for_byte_and_the_next_job_runs() {
    let bodies: [&[u8]; 9] = [
        b"",
        b"{",
        b"null",
        b"[]",
        b"\xff\xfe",
        b"{\"job_type\":\"x\"}",
        br#"{"job_id":"00000000-0000-4000-8000-000000000000","job_type":"x","queue":"emails","attempt":-1,"enqueued_at_ms":0,"payload":{}}"#,
        br#"{"job_id":"00000000-0000-4000-8000-000000000000","job_type":"x","queue":"emails","attempt":"3","enqueued_at_ms":0,"payload":{}}"#,
        &[b'['; 100_000],
    ];
    let mut world = World::new(1);
    let client = world.connect([emails()]);
    world.subscribe(client, &emails());
    for body in bodies {
        world.publish_body("emails", Bytes::from_static(body));
    }
    world.enqueue(client, &emails(), raw_job("send-email"));
    let good = only_job(&mut world, client);
    world.settle(client, good.delivery, &Outcome::Done).expect("it is in hand");
    let settled = settlements(&mut world, client);
    let aside =
        settled.iter().filter(|settlement| matches!(settlement, Settlement::DeadLettered { .. })).count();
    assert_eq!(aside, bodies.len());
    let dead: Vec<Bytes> =
        world.broker().queue("emails.dead").expect("declared").messages.into_iter().map(|m| m.body).collect();
    assert_eq!(dead, bodies);
    assert_eq!((world.ready("emails"), world.unacked("emails")), (0, 0));
}

#[test]
fn a_job_whose_headers_grew_too_large_to_copy_is_buried_without_them() {
    let mut world = World::new(1);
    let client = world.connect([emails()]);
    world.subscribe(client, &emails());
    world.enqueue(client, &emails(), raw_job("send-email"));
    let job = only_job(&mut world, client);
    let body = job.envelope.encode();
    world.settle(client, job.delivery, &Outcome::Done).expect("it is in hand");
    settlements(&mut world, client);

    // As large as a frame allows, so that the headers which a dead letter adds do not fit.
    let headers =
        Table::new().with(ShortString::from_static("big"), Value::LongString(vec![b'x'; 130_900].into()));
    world.publish(&Message {
        exchange: ShortString::EMPTY,
        routing_key: ShortString::from_static("emails"),
        mandatory: false,
        properties: Properties { headers, ..Properties::default() },
        body,
    });
    let job = only_job(&mut world, client);
    let outcome = Outcome::DeadLetter { reason: "r".repeat(1_000) };
    world.settle(client, job.delivery, &outcome).expect("it is in hand");
    let settled = settlements(&mut world, client);
    let [Settlement::DeadLettered { reason, .. }] = &settled[..] else { panic!("it is buried: {settled:?}") };
    assert!(reason.starts_with("rrr") && reason.contains("headers"), "both reasons are kept");
    assert_eq!(world.ready("emails.dead"), 1);
}
