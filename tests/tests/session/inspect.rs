use leveret_core::session::{LinkId, RequestError, SessionEvent};
use leveret_core::text::ShortString;
use leveret_testkit::broker::BrokerConfig;
use leveret_testkit::world::{ClientId, World, raw_job};

use super::{emails, seconds};

const EMAILS: ShortString = ShortString::from_static("emails");

/// The answers to `inspect` since this was last asked.
fn answers(world: &mut World, client: ClientId) -> Vec<Result<bool, RequestError>> {
    world.settle_down();
    let events = world.take_events(client);
    let answer = |event| match event {
        SessionEvent::Inspected { result, .. } => Some(result.map(|counts| counts.is_some())),
        _ => None,
    };
    events.into_iter().filter_map(answer).collect()
}

#[test]
fn many_questions_are_answered_one_after_another() {
    let mut world = World::new(1);
    let client = world.connect([emails()]);
    let now = world.now();
    for _ in 0..3 {
        for name in [EMAILS, ShortString::from_static("nowhere")] {
            world.session(client).inspect(now, &name).expect("there is room");
        }
    }
    let expected = [Ok(true), Ok(false), Ok(true), Ok(false), Ok(true), Ok(false)];
    assert_eq!(answers(&mut world, client), expected);
}

#[test]
fn without_a_channel_left_a_question_is_answered_with_an_error() {
    let mut world = World::with_broker(BrokerConfig::default().channel_max(2), 1);
    let client = world.connect([emails()]);
    let now = world.now();
    world.session(client).inspect(now, &EMAILS).expect("there is room");
    world.session(client).inspect(now, &EMAILS).expect("there is room");
    let answers = answers(&mut world, client);
    assert!(
        matches!(answers[..], [Err(RequestError::NoChannel(_)), Err(RequestError::NoChannel(_))]),
        "{answers:?}"
    );
}

#[test]
fn no_question_waits_for_a_link_that_is_down() {
    let mut world = World::new(1);
    let client = world.connect([emails()]);
    let now = world.now();
    world.session(client).inspect(now, &EMAILS).expect("there is room");
    world.session(client).inspect(now, &EMAILS).expect("there is room");
    world.set_reachable(false);
    world.cut(client, LinkId::Publish);
    assert_eq!(
        answers(&mut world, client),
        [Err(RequestError::Disconnected), Err(RequestError::Disconnected)]
    );
    let refused = world.session(client).inspect(now, &EMAILS);
    assert_eq!(refused, Err(RequestError::Disconnected));
    world.set_reachable(true);
    world.run_for(seconds(30));
    let now = world.now();
    world.session(client).inspect(now, &EMAILS).expect("it is back");
    assert_eq!(answers(&mut world, client), [Ok(true)]);
}

#[test]
fn a_question_that_the_broker_does_not_answer_ends_in_time_and_later_ones_are_answered() {
    let mut world = World::new(1);
    let client = world.connect([emails()]);
    let now = world.now();
    world.broker_mut().block(now);
    // RabbitMQ reads nothing more from a connection that publishes during an alarm.
    world.enqueue(client, &emails(), raw_job("send-email"));
    world.settle_down();
    for _ in 0..2 {
        world.session(client).inspect(now, &EMAILS).expect("there is room");
    }
    world.run_for(seconds(61));
    let late = answers(&mut world, client);
    assert!(
        matches!(late[..], [Err(RequestError::TimedOut { .. }), Err(RequestError::TimedOut { .. })]),
        "{late:?}"
    );
    let now = world.now();
    world.broker_mut().unblock(now);
    world.settle_down();
    world.session(client).inspect(now, &EMAILS).expect("there is room");
    assert_eq!(answers(&mut world, client), [Ok(true)]);
}
