//! Everything that is encoded or decoded by hand, against amq-protocol.

use super::input::Lines;
use crate::text::ShortString;
use crate::wire::differential;

/// The first byte says what the rest is:
///
/// | byte | |
/// |---|---|
/// | `i` | the payload of a method from the server |
/// | `f` | a frame |
/// | `s` | a line each: the channel, the delivery tag, the kind of settlement (`a`, `b`, ...) |
/// | `o` | a line each: the channel, a text, flags (a character); then a table, for every method that we send |
/// | `p` | a line each: the channel, an exchange, a routing key, flags (a character), a mark; then a property list |
///
/// # Panics
///
/// Where the two differ.
pub fn body(bytes: &[u8]) {
    let Some((kind, rest)) = bytes.split_first() else { return };
    let mut lines = Lines::new(rest);
    match kind {
        b'i' => differential::check_incoming(rest),
        b'f' => differential::check_frame(rest),
        b's' => {
            let (channel, tag) = (channel(&mut lines), lines.number());
            differential::check_settlement(channel, tag, flags(&mut lines));
        }
        b'o' => {
            let (channel, text) = (channel(&mut lines), short(&mut lines));
            let flags = flags(&mut lines);
            differential::check_outgoing(channel, &text, flags, lines.rest());
        }
        b'p' => {
            let channel = channel(&mut lines);
            let (exchange, routing_key) = (short(&mut lines), short(&mut lines));
            let (flags, mark) = (flags(&mut lines), lines.number().cast_signed());
            differential::check_publish(channel, [&exchange, &routing_key], flags, mark, lines.rest());
        }
        _ => {}
    }
}

fn channel(lines: &mut Lines<'_>) -> u16 {
    u16::try_from(lines.number()).unwrap_or(u16::MAX)
}

fn short(lines: &mut Lines<'_>) -> ShortString {
    ShortString::truncated(&lines.text())
}

fn flags(lines: &mut Lines<'_>) -> u8 {
    lines.next().first().copied().unwrap_or(b'a').wrapping_sub(b'a')
}
