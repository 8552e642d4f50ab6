//! Logs on their way: nothing panics, what leaves is JSON, and no cut or number of threads changes
//! what comes out.

#![no_main]

use libfuzzer_sys::fuzz_target;
use zveil_core::text::{Beside, LogFormat, Output, Plan, TextFormat, Way};

const LOGS: [(&str, [&str; 3]); 6] = [
    ("zeek", ["ts", "id.orig_h", "query"]),
    ("tstat-tcp", ["first", "c_ip", "fqdn"]),
    ("tstat-http", ["time", "c_ip", "hostname"]),
    ("combined", ["time_local", "remote_addr", "path"]),
    ("dnsmasq", ["time", "client", "name"]),
    ("unbound", ["time", "client", "name"]),
];

fn run(plan: &Plan, text: &[u8], piece: usize, threads: usize) -> Result<(Vec<u8>, String), String> {
    let mut way = Way::new(plan.clone(), threads);
    let mut out = Vec::new();
    let pieces = text.chunks(piece.max(1)).map(|piece| (piece, false)).chain([(&[][..], true)]);
    for (piece, last) in pieces {
        let written = way.feed(&mut [], Beside::default(), piece, last).map_err(|error| error.to_string())?;
        written.iter().for_each(|part| out.extend_from_slice(&part.text));
    }
    Ok((out, format!("{:?}", way.tally)))
}

fuzz_target!(|data: (u8, u8, &[u8])| {
    let (log, piece, text) = data;
    let (name, fields) = LOGS[usize::from(log) % LOGS.len()];
    let Some(format) = LogFormat::from_name(name) else { panic!("{name} is no log") };
    let plan = Plan {
        max_line: 200,
        year: Some(2024),
        ..Plan::new(
            TextFormat::Log(format),
            Output::Text(TextFormat::Ndjson),
            fields.map(str::to_owned).into(),
            1,
        )
    };
    let whole = run(&plan, text, text.len(), 1);
    if let Ok((out, _)) = &whole {
        for line in out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let record: serde_json::Value = serde_json::from_slice(line).unwrap();
            assert_eq!(record.as_object().map(serde_json::Map::len), Some(fields.len()));
        }
    }
    assert_eq!(whole, run(&plan, text, usize::from(piece), 2));
});
