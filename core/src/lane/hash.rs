//! From a key to the number that chooses its lane.

/// The hash of a partition key. It never changes: another process, another version and another language come to the
/// same lane.
///
/// It is FNV-1a with 64 bits, followed by the finaliser of SplitMix64. FNV-1a alone leaves its low bits, which the
/// remainder looks at, too regular for short keys. In full, with every operation modulo 2^64:
///
/// ```text
/// x = 0xcbf29ce484222325
/// for each byte b of the key:   x = (x xor b) * 0x100000001b3
/// x = (x xor (x >> 30)) * 0xbf58476d1ce4e5b9
/// x = (x xor (x >> 27)) * 0x94d049bb133111eb
/// x =  x xor (x >> 31)
/// lane = x mod n
/// ```
///
/// | key | bytes | hash | of 4 lanes | of 10 | of 64 |
/// |---|---|---|---|---|---|
/// | empty | | `0xf52a15e9a9b5e89b` | 3 | 3 | 27 |
/// | `a` | `61` | `0x02c0bdbf481420f8` | 0 | 6 | 56 |
/// | `-1` | `2d 31` | `0xff45af1acc00771f` | 3 | 9 | 31 |
/// | `42` | `34 32` | `0xa428ce5471163b02` | 2 | 0 | 2 |
/// | `customer-1` | | `0x2cb00644b7ae349b` | 3 | 3 | 27 |
/// | `customer-2` | | `0xff5f031331ea7506` | 2 | 8 | 6 |
/// | `Zoë` | `5a 6f c3 ab` | `0xfb901a3b67663e5e` | 2 | 6 | 30 |
/// | `6f1c1b9e-7a44-4c2f-9b0c-0f3c7e2b8d11` | | `0xa33789040db6b615` | 1 | 7 | 21 |
/// | one zero byte | `00` | `0x25fc6dd36ce04b20` | 0 | 8 | 32 |
///
/// It takes time in proportion to the key and keeps nothing. It is no secret: see [the module](super) on keys that
/// are chosen for one lane.
#[must_use]
pub const fn lane_hash(key: &[u8]) -> u64 {
    let mut x: u64 = 0xcbf2_9ce4_8422_2325;
    let mut rest = key;
    while let Some((&byte, after)) = rest.split_first() {
        x = (x ^ byte as u64).wrapping_mul(0x0100_0000_01b3);
        rest = after;
    }
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::lane_hash;
    use crate::rng::Rng;

    #[test]
    fn the_hash_of_a_key_is_the_published_one() {
        // From an implementation in another language; the first nine are the table above.
        let vectors: [(&[u8], u64); 12] = [
            (b"", 0xf52a_15e9_a9b5_e89b),
            (b"a", 0x02c0_bdbf_4814_20f8),
            (b"-1", 0xff45_af1a_cc00_771f),
            (b"42", 0xa428_ce54_7116_3b02),
            (b"customer-1", 0x2cb0_0644_b7ae_349b),
            (b"customer-2", 0xff5f_0313_31ea_7506),
            ("Zoë".as_bytes(), 0xfb90_1a3b_6766_3e5e),
            (b"6f1c1b9e-7a44-4c2f-9b0c-0f3c7e2b8d11", 0xa337_8904_0db6_b615),
            (&[0], 0x25fc_6dd3_6ce0_4b20),
            (&[0, 0], 0x7bc2_1004_6bd6_16cc),
            (&[0xff; 16], 0xbe9b_b220_6637_5ef1),
            (&[b'k'; 65_536], 0x7397_8dc3_3383_c01a),
        ];
        for (key, hash) in vectors {
            assert_eq!(lane_hash(key), hash, "{:?}", String::from_utf8_lossy(&key[..key.len().min(40)]));
        }
        let lanes = |key| [4, 10, 64].map(|n| lane_hash(key) % n);
        assert_eq!(lanes(b""), [3, 3, 27]);
        assert_eq!(lanes(b"a"), [0, 6, 56]);
        assert_eq!(lanes(b"customer-2"), [2, 8, 6]);
    }

    /// How much more uneven `hashes` fill `lanes` lanes than chance would, in standard deviations of the chi-squared
    /// statistic.
    fn unevenness(hashes: &[u64], lanes: u32) -> f64 {
        let mut filled = vec![0_u32; usize::try_from(lanes).unwrap()];
        for hash in hashes {
            filled[usize::try_from(hash % u64::from(lanes)).unwrap()] += 1;
        }
        let even = f64::from(u32::try_from(hashes.len()).unwrap()) / f64::from(lanes);
        let squares: f64 = filled.iter().map(|count| (f64::from(*count) - even).powi(2) / even).sum();
        let freedom = f64::from(lanes - 1);
        (squares - freedom) / (2.0 * freedom).sqrt()
    }

    #[test]
    fn keys_as_people_choose_them_fill_the_lanes_evenly() {
        let mut rng = Rng::new(1);
        let letters = || b'a'..=b'z';
        let kinds: [(&str, Vec<Vec<u8>>); 5] = [
            ("sequential numbers", (1..=10_000).map(|n| n.to_string().into_bytes()).collect()),
            ("numbers behind a name", (1..=10_000).map(|n| format!("customer-{n}").into_bytes()).collect()),
            ("numbers in four bytes", (0..10_000_u32).map(|n| n.to_be_bytes().into()).collect()),
            (
                "UUIDs",
                (0..10_000)
                    .map(|_| uuid::Uuid::from_u128(rng.next_u128()).to_string().into_bytes())
                    .collect(),
            ),
            (
                "three letters",
                letters()
                    .flat_map(|a| letters().flat_map(move |b| letters().map(move |c| vec![a, b, c])))
                    .collect(),
            ),
        ];
        for (kind, keys) in kinds {
            let hashes: Vec<u64> = keys.iter().map(|key| lane_hash(key)).collect();
            for lanes in 2..=64 {
                // FNV-1a alone is 15 to 27 deviations off with these keys.
                let found = unevenness(&hashes, lanes);
                assert!(found < 4.0, "{kind}: {lanes} lanes are {found:.1} deviations from even");
            }
        }
    }
}
