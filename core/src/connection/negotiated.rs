//! What both peers agree on (AMQP 0-9-1, 1.4.2.5: `tune`).
//!
//! Of two limits the lower one, where zero is none. RabbitMQ closes the connection with 530 over an answer above its own
//! limit, and zero is above every limit. The heartbeat is agreed on in the same way, so it is off only if both sides
//! say zero. A `frame_max` below 4,096 is against the protocol (1.4.2.5.2); we ask for at least 8,192 and take less only
//! from a server that proposes it.

use std::time::Duration;

use super::config::ConnectionConfig;
use crate::wire::frame;
use crate::wire::method::Tune;

/// The limits of an open connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Negotiated {
    /// The highest channel number, so also the number of channels.
    pub channel_max: u16,
    /// The largest frame, in bytes, its eight bytes of head and end included.
    pub frame_max: u32,
    /// The heartbeat. Zero is off.
    ///
    /// We send when nothing was written for half of it, and give up when nothing was read for twice as long.
    pub heartbeat: Duration,
}

/// The server wants frames smaller than the protocol allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameMaxTooSmall {
    pub(super) offered: u32,
}

impl Negotiated {
    /// What follows from the configuration and the server's proposal, and what to answer.
    pub(super) fn new(config: &ConnectionConfig, offer: Tune) -> Result<(Self, Tune), FrameMaxTooSmall> {
        if offer.frame_max != 0 && offer.frame_max < frame::MIN_FRAME_MAX {
            return Err(FrameMaxTooSmall { offered: offer.frame_max });
        }
        let answer = Tune {
            channel_max: lower_limit(config.channel_max, offer.channel_max),
            frame_max: lower_limit(config.frame_limit(), offer.frame_max),
            heartbeat: lower_limit(whole_seconds(config.heartbeat), offer.heartbeat),
        };
        let negotiated = Self {
            channel_max: if answer.channel_max == 0 { u16::MAX } else { answer.channel_max },
            frame_max: answer.frame_max,
            heartbeat: Duration::from_secs(answer.heartbeat.into()),
        };
        Ok((negotiated, answer))
    }
}

/// The lower of two limits, where zero is none.
fn lower_limit<N: Ord + Default>(ours: N, theirs: N) -> N {
    let none = N::default();
    if ours == none || theirs == none { ours.max(theirs) } else { ours.min(theirs) }
}

fn whole_seconds(duration: Duration) -> u16 {
    let seconds = duration.as_secs().saturating_add(u64::from(duration.subsec_nanos() > 0));
    u16::try_from(seconds).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::connection::Credentials;

    fn negotiate(ours: (u16, u32, u64), theirs: (u16, u32, u16)) -> (u16, u32, u64) {
        let mut config = ConnectionConfig::new(Credentials::default());
        (config.channel_max, config.frame_max, config.heartbeat) =
            (ours.0, ours.1, Duration::from_secs(ours.2));
        let offer = Tune { channel_max: theirs.0, frame_max: theirs.1, heartbeat: theirs.2 };
        let (got, _) = Negotiated::new(&config, offer).unwrap();
        (got.channel_max, got.frame_max, got.heartbeat.as_secs())
    }

    #[test]
    fn the_lower_limit_wins_and_zero_is_no_limit() {
        assert_eq!(negotiate((2047, 131_072, 30), (100, 8_192, 60)), (100, 8_192, 30));
        assert_eq!(negotiate((2047, 131_072, 60), (0, 0, 0)), (2047, 131_072, 60));
        assert_eq!(negotiate((0, 131_072, 0), (100, 131_072, 5)), (100, 131_072, 5));
        assert_eq!(negotiate((0, 131_072, 0), (0, 0, 0)), (u16::MAX, 131_072, 0));
        assert_eq!(negotiate((2047, 0, 30), (2047, 131_072, 30)), (2047, 8_192, 30));
    }

    #[test]
    fn part_of_a_second_of_heartbeat_is_rounded_up() {
        assert_eq!(whole_seconds(Duration::from_millis(1)), 1);
        assert_eq!(whole_seconds(Duration::from_secs(30)), 30);
        assert_eq!(whole_seconds(Duration::MAX), u16::MAX);
    }

    #[test]
    fn frames_below_the_minimum_of_the_protocol_are_refused() {
        let offer = Tune { channel_max: 0, frame_max: 4_095, heartbeat: 0 };
        let config = ConnectionConfig::new(Credentials::default());
        assert_eq!(Negotiated::new(&config, offer), Err(FrameMaxTooSmall { offered: 4_095 }));
    }

    proptest! {
        #[test]
        fn an_answer_is_above_nobodys_limit(
            ours: (u16, u32, u16),
            channel_max: u16,
            frame_max in prop_oneof![Just(0), 4_096_u32..],
            heartbeat: u16,
        ) {
            let mut config = ConnectionConfig::new(Credentials::default());
            (config.channel_max, config.frame_max) = (ours.0, ours.1);
            config.heartbeat = Duration::from_secs(ours.2.into());
            let offer = Tune { channel_max, frame_max, heartbeat };
            let (negotiated, answer) = Negotiated::new(&config, offer).unwrap();

            let fits = |answer: u64, limit: u64| limit == 0 || (answer != 0 && answer <= limit);
            prop_assert!(fits(answer.channel_max.into(), channel_max.into()));
            prop_assert!(fits(answer.frame_max.into(), frame_max.into()));
            prop_assert!(fits(answer.heartbeat.into(), heartbeat.into()));
            prop_assert!(fits(answer.channel_max.into(), ours.0.into()));
            prop_assert!(answer.frame_max >= 4_096 && answer.frame_max <= config.frame_limit());
            prop_assert!(fits(answer.heartbeat.into(), ours.2.into()));
            prop_assert_eq!(negotiated.frame_max, answer.frame_max);
            prop_assert!(negotiated.channel_max > 0);
        }
    }
}
