use leveret_core::session::{LinkId, RequestError, SessionEvent};
use leveret_core::text::ShortString;
use leveret_testkit::broker::BrokerConfig;
use leveret_testkit::world::{ClientId, World};

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
