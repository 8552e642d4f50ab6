//! Names in letters beyond ASCII, as the domain name system writes them (RFC 3492).

const BASE: u32 = 36;
const T_MIN: u32 = 1;
const T_MAX: u32 = 26;
const SKEW: u32 = 38;
const DAMP: u32 = 700;
const FIRST_BIAS: u32 = 72;
const FIRST_POINT: u32 = 128;

/// Appends one label of a name: as it is if it is ASCII, behind `xn--` if not. `None` if it is too long
/// for the arithmetic, and then for any name.
pub(super) fn encode(label: &str, out: &mut Vec<u8>) -> Option<()> {
    if label.is_ascii() {
        out.extend_from_slice(label.as_bytes());
        return Some(());
    }
    out.extend_from_slice(b"xn--");
    let start = out.len();
    out.extend(label.bytes().filter(u8::is_ascii));
    let plain = (out.len() - start) as u32;
    if plain > 0 {
        out.push(b'-');
    }
    let letters: Vec<u32> = label.chars().map(u32::from).collect();
    let (mut point, mut delta, mut bias, mut done) = (FIRST_POINT, 0_u32, FIRST_BIAS, plain);
    while (done as usize) < letters.len() {
        let next = letters.iter().copied().filter(|letter| *letter >= point).min()?;
        delta = delta.checked_add((next - point).checked_mul(done + 1)?)?;
        point = next;
        for letter in &letters {
            if *letter < point {
                delta = delta.checked_add(1)?;
            }
            if *letter == point {
                write_number(delta, bias, out);
                bias = adapt(delta, done + 1, done == plain);
                delta = 0;
                done += 1;
            }
        }
        delta = delta.checked_add(1)?;
        point += 1;
    }
    Some(())
}

/// Digits of a number whose every place has a base of its own, the lowest first.
fn write_number(number: u32, bias: u32, out: &mut Vec<u8>) {
    let digit =
        |value: u32| if value < 26 { b'a' + value as u8 } else { b'0' + (value - 26) as u8 };
    let mut rest = number;
    for place in 1.. {
        let least = (BASE * place).saturating_sub(bias).clamp(T_MIN, T_MAX);
        if rest < least {
            break;
        }
        out.push(digit(least + (rest - least) % (BASE - least)));
        rest = (rest - least) / (BASE - least);
    }
    out.push(digit(rest));
}

fn adapt(delta: u32, count: u32, is_first: bool) -> u32 {
    let mut delta = if is_first { delta / DAMP } else { delta / 2 };
    delta += delta / count;
    let mut places = 0;
    while delta > (BASE - T_MIN) * T_MAX / 2 {
        delta /= BASE - T_MIN;
        places += BASE;
    }
    places + (BASE - T_MIN + 1) * delta / (delta + SKEW)
}

#[cfg(test)]
mod tests {
    #[test]
    fn labels_are_those_of_the_name_system() {
        // As Python's codec and registries write them.
        for (label, wanted) in [
            ("plain", "plain"),
            ("m\u{fc}ller", "xn--mller-kva"),
            ("b\u{fc}cher", "xn--bcher-kva"),
            ("\u{4f8b}\u{3048}", "xn--r8jz45g"),
            ("\u{444}", "xn--t1a"),
            ("\u{516c}\u{53f8}", "xn--55qx5d"),
            ("\u{43f}\u{440}\u{438}\u{43c}\u{435}\u{440}", "xn--e1afmkfd"),
        ] {
            let mut out = Vec::new();
            assert_eq!(super::encode(label, &mut out), Some(()));
            assert_eq!(String::from_utf8(out).unwrap(), wanted);
        }
    }
}
