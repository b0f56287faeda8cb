//! Writing an envelope: once to measure it, once into a buffer of just that size.

use bytes::Bytes;

use super::Envelope;
use super::scan::plain_end;

pub(super) fn encode(envelope: &Envelope) -> Bytes {
    let mut length = Length(0);
    write(envelope, &mut length);
    let mut body = Vec::with_capacity(length.0);
    write(envelope, &mut body);
    debug_assert_eq!(body.len(), length.0, "a full vector becomes `Bytes` without another allocation");
    body.into()
}

trait Sink {
    fn put(&mut self, bytes: &[u8]);
}

struct Length(usize);

impl Sink for Length {
    fn put(&mut self, bytes: &[u8]) {
        self.0 += bytes.len();
    }
}

impl Sink for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

fn write(envelope: &Envelope, out: &mut impl Sink) {
    out.put(b"{\"job_id\":\"");
    out.put(envelope.job_id.encode(&mut [0; 36]).as_bytes());
    out.put(b"\",\"job_type\":");
    put_text(out, envelope.job_type.as_short().as_bytes());
    out.put(b",\"queue\":");
    put_text(out, envelope.queue.as_bytes());
    out.put(b",\"attempt\":");
    put_number(out, envelope.attempt.into());
    out.put(b",\"enqueued_at_ms\":");
    put_number(out, envelope.enqueued_at.0);
    out.put(b",\"deferrals\":");
    put_number(out, envelope.deferrals.into());
    out.put(b",\"priority\":");
    put_number(out, envelope.priority.into());
    if let Some(correlation_id) = &envelope.correlation_id {
        out.put(b",\"correlation_id\":");
        put_text(out, correlation_id.as_bytes());
    }
    out.put(b",\"payload\":");
    out.put(envelope.payload.as_bytes());
    for member in &envelope.unknown {
        out.put(b",");
        out.put(member);
    }
    out.put(b"}");
}

fn put_text(out: &mut impl Sink, text: &[u8]) {
    out.put(b"\"");
    let mut rest = text;
    loop {
        let (plain, special) = rest.split_at(plain_end(rest, 0));
        out.put(plain);
        let Some((byte, behind)) = special.split_first() else { break };
        put_escape(out, *byte);
        rest = behind;
    }
    out.put(b"\"");
}

fn put_escape(out: &mut impl Sink, byte: u8) {
    const HEX: [u8; 16] = *b"0123456789abcdef";
    match byte {
        b'"' | b'\\' => out.put(&[b'\\', byte]),
        _ => out.put(&[b'\\', b'u', b'0', b'0', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]),
    }
}

fn put_number(out: &mut impl Sink, mut number: u64) {
    // 20 digits hold every 64-bit number.
    let mut digits = [b'0'; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] += (number % 10).to_le_bytes()[0];
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.put(&digits[start..]);
}
