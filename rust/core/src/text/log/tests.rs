//! Logs on their whole way: lines in, records out, nothing decided.

use super::*;
use crate::names::{NameFilter, NameList};
use crate::text::{Beside, Output, Plan, Tally, TextFormat, Way, WayError};
use proptest::prelude::*;
use std::sync::Arc;

fn plan(format: LogFormat, fields: &[&str]) -> Plan {
    let fields = fields.iter().map(|name| (*name).to_owned()).collect();
    Plan {
        max_line: 4096,
        year: Some(2024),
        ..Plan::new(TextFormat::Log(format), Output::Text(TextFormat::Ndjson), fields, 1)
    }
}

fn run(
    plan: Plan,
    text: &[u8],
    pieces: usize,
    threads: usize,
) -> Result<(String, Tally), WayError> {
    let mut way = Way::new(plan, threads);
    let mut out = Vec::new();
    for piece in text.chunks(text.len().div_ceil(pieces.max(1)).max(1)) {
        way.feed(&mut [], Beside::default(), piece, false)?
            .iter()
            .for_each(|part| out.extend_from_slice(&part.text));
    }
    way.feed(&mut [], Beside::default(), &[], true)?
        .iter()
        .for_each(|part| out.extend_from_slice(&part.text));
    Ok((String::from_utf8(out).unwrap(), way.tally.clone()))
}

fn read(format: LogFormat, fields: &[&str], text: &str) -> (Vec<String>, Tally) {
    let (out, tally) = run(plan(format, fields), text.as_bytes(), 1, 1).unwrap();
    (out.lines().map(str::to_owned).collect(), tally)
}

fn bad(tally: &Tally) -> Vec<(&'static str, u64)> {
    let kinds = Problem::ALL.iter().map(|problem| (problem.name(), tally.bad[*problem as usize]));
    kinds.filter(|(_, count)| *count > 0).collect()
}

const ZEEK: &str = "#separator \\x09\n#set_separator\t,\n#empty_field\t(empty)\n#unset_field\t-\n\
    #path\tdns\n#open\t2024-01-01-00-00-00\n#fields\tts\tid.orig_h\tquery\n#types\ttime\taddr\tstring\n";

#[test]
fn zeek_values_are_unescaped_and_may_be_unset() {
    let text = format!(
        "{ZEEK}1.5\t192.0.2.1\texample.org\n2.0\t192.0.2.1\t-\n3.0\t192.0.2.1\t(empty)\n\
         4.0\t192.0.2.1\t\\x2d\n5.0\t192.0.2.1\ta\\x09b\\\\x\n6.0\t2001:db8::1\t\\xe2\\x82\n\
         7.0\tshort\n#close\t2024-01-01-01-00-00\n"
    );
    let (lines, tally) = read(LogFormat::Zeek, &["ts", "id.orig_h", "query"], &text);
    let wanted = [
        r#"{"ts":1.5,"id.orig_h":"192.0.2.1","query":"example.org"}"#,
        r#"{"ts":2.0,"id.orig_h":"192.0.2.1","query":null}"#,
        r#"{"ts":3.0,"id.orig_h":"192.0.2.1","query":null}"#,
        r#"{"ts":4.0,"id.orig_h":"192.0.2.1","query":"-"}"#,
        r#"{"ts":5.0,"id.orig_h":"192.0.2.1","query":"a\tb\\x"}"#,
        r#"{"ts":6.0,"id.orig_h":"2001:db8::1","query":"\\xe2\\x82"}"#,
    ];
    assert_eq!(lines, wanted);
    assert_eq!(bad(&tally), [("wrong-columns", 1)]);
    assert_eq!((tally.lines, tally.records), (16, 6));
}

#[test]
fn each_header_holds_for_what_follows_it() {
    let other =
        "#separator |\n#unset_field|none\n#fields|query|x|ts|id.orig_h\na|-|2|u\nnone||3|u\n";
    let text = format!("{ZEEK}1\tu\ta\n#close\tnow\n{other}{ZEEK}4\tu\tnone\n");
    for pieces in [1, 3, 50, text.len()] {
        let fields = ["ts", "id.orig_h", "query"];
        let (out, tally) = run(plan(LogFormat::Zeek, &fields), text.as_bytes(), pieces, 2).unwrap();
        let wanted = "{\"ts\":1,\"id.orig_h\":\"u\",\"query\":\"a\"}\n\
            {\"ts\":2,\"id.orig_h\":\"u\",\"query\":\"a\"}\n\
            {\"ts\":3,\"id.orig_h\":\"u\",\"query\":null}\n\
            {\"ts\":4,\"id.orig_h\":\"u\",\"query\":\"none\"}\n";
        assert_eq!(out, wanted);
        assert_eq!((tally.lines, tally.records), (24, 4));
    }
}

#[test]
fn a_log_whose_columns_are_not_known_is_refused() {
    let fields = ["ts", "id.orig_h", "query"];
    let refused = |text: &str| {
        let outcome = run(plan(LogFormat::Zeek, &fields), text.as_bytes(), 1, 1);
        outcome.err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert!(refused("1\tu\ta\n").contains("before the lines with #"));
    assert!(refused("#separator \\x09\n1\tu\ta\n").contains("before the lines with #"));
    assert!(refused("#separator ab\n").contains("not a single character"));
    assert!(refused("#fields\tts\tid.orig_h\n1\tu\n").contains("query"));
    let wrong = run(plan(LogFormat::Combined, &["time_local", "ip", "path"]), b"x\n", 1, 1);
    assert!(matches!(wrong, Err(WayError::Column { wanted, .. }) if wanted == "ip"));
}

#[test]
fn tstat_names_columns_with_their_place() {
    let text = "#15#c_ip:1 c_port:2 first:29 fqdn:127\n\
        192.0.2.1 443 1700000000123.456 www.example.org\n192.0.2.2 443 1700000000200.000 -\n\
        192.0.2.2 443 1700000000200.000\n192.0.2.2 443 x a\n";
    let (lines, tally) = read(LogFormat::TstatTcp, &["first", "c_ip", "fqdn"], text);
    let wanted = [
        r#"{"first":1700000000123.456,"c_ip":"192.0.2.1","fqdn":"www.example.org"}"#,
        r#"{"first":1700000000200.000,"c_ip":"192.0.2.2","fqdn":null}"#,
    ];
    assert_eq!(lines, wanted);
    assert_eq!(bad(&tally), [("wrong-columns", 1), ("time", 1)]);
}

#[test]
fn of_tstats_http_log_only_requests_are_records() {
    let text = "#c_ip\tc_port\n\
        192.0.2.1\t1\t198.51.100.1\t80\t1700000000.5\tGET\texample.org\twww.example.org\t/\t-\tA b\t-\t1\n\
        192.0.2.1\t1\t198.51.100.1\t80\t1700000000.6\tHTTP\t200\t17\ttext/html\tx\t-\t-\t-\n\
        192.0.2.1\t1\t198.51.100.1\t80\t1700000000.7\tREQ2\t-\t-\t-\t-\t-\t-\t-\n\
        192.0.2.1\t1\t198.51.100.1\t80\t1700000000.8\tPOST\texample.com\t/\t-\tA b\n\
        192.0.2.1\t1\t198.51.100.1\t80\n";
    let fields = ["time", "c_ip", "hostname", "fqdn", "user_agent", "dnt"];
    let (lines, tally) = read(LogFormat::TstatHttp, &fields, text);
    let wanted = [
        r#"{"time":1700000000.5,"c_ip":"192.0.2.1","hostname":"example.org","fqdn":"www.example.org","user_agent":"A b","dnt":"1"}"#,
        r#"{"time":1700000000.8,"c_ip":"192.0.2.1","hostname":"example.com","fqdn":null,"user_agent":"A b","dnt":null}"#,
    ];
    assert_eq!(lines, wanted);
    assert_eq!((tally.passed, bad(&tally)), (3, vec![("wrong-columns", 1)]));
}

#[test]
fn web_servers_quote_what_clients_sent() {
    let fields = ["time_local", "remote_addr", "path", "request_uri", "request", "http_user_agent"];
    let at = "[10/Oct/2000:13:55:36 -0700]";
    let text = format!(
        "192.0.2.1 - - {at} \"GET /a?b=1 HTTP/1.1\" 200 2326 \"-\" \"a \\\"b\\\" \\xd0\\x9f\"\n\
         2001:db8::1 - joe doe {at} \"GET / HTTP/1.0\" 200 - \"http://example.org/\" \"x\" \"extra\" 0.1\n\
         192.0.2.1 - - {at} \"-\" 408 0 \"-\" \"-\"\n\
         192.0.2.1 - - {at} \"\\x16\\x03\\x01\" 400 150 \"-\" \"-\"\n\
         192.0.2.1 - - {at} \"GET /c HTTP/1.0\" 200 5\n\
         192.0.2.1 - - {at} \"GET /cut\n\
         192.0.2.1 - - [10/Okt/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 200 5\n\
         192.0.2.1 - - {at} \"GET /d HTTP/1.0\" two 5\n\
         nothing of the kind\n\n"
    );
    let (lines, tally) = read(LogFormat::Combined, &fields, &text);
    let time = r#"{"time_local":"2000-10-10T20:55:36Z","remote_addr":"#;
    let values = |line: &String| line.strip_prefix(time).unwrap().to_owned();
    let wanted = [
        r#""192.0.2.1","path":"/a","request_uri":"/a?b=1","request":"GET /a?b=1 HTTP/1.1","http_user_agent":"a \"b\" П"}"#,
        r#""2001:db8::1","path":"/","request_uri":"/","request":"GET / HTTP/1.0","http_user_agent":"x"}"#,
        r#""192.0.2.1","path":null,"request_uri":null,"request":null,"http_user_agent":null}"#,
        r#""192.0.2.1","path":null,"request_uri":null,"request":"\u0016\u0003\u0001","http_user_agent":null}"#,
        r#""192.0.2.1","path":"/c","request_uri":"/c","request":"GET /c HTTP/1.0","http_user_agent":null}"#,
    ];
    assert_eq!(lines.iter().map(values).collect::<Vec<_>>(), wanted);
    assert_eq!(bad(&tally), [("cut-off", 1), ("syntax", 2), ("time", 1)]);
}

#[test]
fn only_queries_of_dnsmasq_are_records() {
    let text = "Oct  9 13:55:36 dnsmasq[12]: query[A] example.org from 192.0.2.1\n\
        Oct  9 13:55:36 dnsmasq[12]: forwarded example.org to 198.51.100.1\n\
        Oct  9 13:55:36 router dnsmasq[12]: query[AAAA] WWW.example.org from 2001:db8::1\n\
        Oct  9 13:55:36 dnsmasq[12]: 7 192.0.2.1/5353 query[PTR] 1.2.0.192.in-addr.arpa from 192.0.2.1\n\
        Oct  9 13:55:36 dnsmasq-dhcp[12]: DHCPACK(eth0) 192.0.2.1\n\
        2024-10-09T13:55:36+02:00 router dnsmasq[12]: query[A] <name unprintable> from 192.0.2.1\n\
        Oct  9 13:55:36 router cron[1]: query[A] example.org from 192.0.2.1\n\
        Oct  9 13:55:36 dnsmasq[12]: query[A] example.org from\n\
        Oct  9 13:55:36 dnsmasq[12]: query[A] example.org from nobody\n\
        Oct 39 13:55:36 dnsmasq[12]: query[A] example.org from 192.0.2.1\n\
        query[A] example.org from 192.0.2.1\n";
    let (lines, tally) = read(LogFormat::Dnsmasq, &["time", "client", "name", "type"], text);
    let values = |line: &String| line.split_once(r#""client":"#).unwrap().1.to_owned();
    let wanted = [
        r#""192.0.2.1","name":"example.org","type":"A"}"#,
        r#""2001:db8::1","name":"WWW.example.org","type":"AAAA"}"#,
        r#""192.0.2.1","name":"1.2.0.192.in-addr.arpa","type":"PTR"}"#,
        r#""192.0.2.1","name":null,"type":"A"}"#,
    ];
    assert_eq!(lines.iter().map(values).collect::<Vec<_>>(), wanted);
    assert_eq!(tally.passed, 3);
    assert_eq!(bad(&tally), [("cut-off", 1), ("syntax", 2), ("time", 1)]);
}

#[test]
fn only_queries_of_unbound_are_records() {
    let text = "[1600000000] unbound[123:0] info: 192.0.2.1 example.org. A IN\n\
        [1600000000] unbound[123:0] info: 192.0.2.1 example.org. A IN NOERROR 0.1 0 45\n\
        [1600000000] unbound[123:0] info: query: 2001:db8::1 . NS IN\n\
        [1600000000] unbound[123:0] info: reply: 192.0.2.1 example.org. A IN\n\
        [1600000000] unbound[123:0] info: resolving example.org. A IN\n\
        [1600000000] unbound[123:0] notice: init module 0: iterator\n\
        Oct 10 13:55:36 router unbound: [123:0] info: 192.0.2.1 example.com. A IN\n\
        Oct 10 13:55:36 unbound[123:0] info: 192.0.2.1 example.net. A IN\n\
        [16x] unbound[123:0] info: 192.0.2.1 example.org. A IN\n\
        [1600000000\n";
    let (lines, tally) = read(LogFormat::Unbound, &["time", "client", "name", "type"], text);
    let values = |line: &String| line.split_once(r#""client":"#).unwrap().1.to_owned();
    let wanted = [
        r#""192.0.2.1","name":"example.org","type":"A"}"#,
        r#""2001:db8::1","name":".","type":"NS"}"#,
        r#""192.0.2.1","name":"example.com","type":"A"}"#,
        r#""192.0.2.1","name":"example.net","type":"A"}"#,
    ];
    assert_eq!(lines.iter().map(values).collect::<Vec<_>>(), wanted);
    assert_eq!(tally.passed, 4);
    assert_eq!(bad(&tally), [("cut-off", 1), ("time", 1)]);
}

#[test]
fn a_filtered_value_is_none_for_the_gate() {
    let list = NameList::read(b"example.org\n").unwrap();
    let mut plan = plan(LogFormat::Unbound, &["time", "client", "name"]);
    plan.filters = vec![Arc::new(NameFilter { only: Some(Arc::new(list)), except: None })];
    let line = |name: &str| format!("[1600000000] unbound[1:0] info: 192.0.2.1 {name} A IN\n");
    let text = line("example.com.") + &line("www.example.org.") + &line("-");
    let (_, tally) = run(plan, text.as_bytes(), 1, 1).unwrap();
    assert_eq!((tally.records, tally.filtered), (3, vec![1]));
}

fn fields(format: LogFormat) -> [&'static str; 3] {
    match format {
        LogFormat::Zeek => ["ts", "id.orig_h", "query"],
        LogFormat::TstatTcp => ["first", "c_ip", "fqdn"],
        LogFormat::TstatHttp => ["time", "c_ip", "hostname"],
        LogFormat::Combined => ["time_local", "remote_addr", "path"],
        LogFormat::Dnsmasq | LogFormat::Unbound => ["time", "client", "name"],
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Pieces of lines in any order: nothing panics, and no cut or number of threads changes what
    /// comes out.
    #[test]
    fn any_cut_gives_the_same(
        format in prop::sample::select(LogFormat::ALL.to_vec()),
        parts in prop::collection::vec(prop::sample::select(vec![
            "#separator \\x09\n", "#fields\tts\tid.orig_h\tquery\n", "#15#c_ip:1 first:2 fqdn:3\n",
            "#close\t1\n", "1.5\tu\ta\\x41\n", "192.0.2.1 1700000000123.4 example.org\n", "-", " ",
            "\n", "\t", "\"", "\\", "\\x", "[", "]", "#", "\r\n", "é", "\0", "info: ", " from ",
            "192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] \"GET /a?b HTTP/1.1\" 200 1 \"-\" \"x\"\n",
            "Oct 10 13:55:36 dnsmasq[1]: query[A] example.org from 192.0.2.1\n",
            "Dec 31 23:59:59 dnsmasq[1]: ", "query[A] ", "Jan  1 00:00:00 h unbound: [1:0] info: ",
            "[1600000000] unbound[1:0] info: ", "192.0.2.1 example.org. A IN\n", "GET",
            "192.0.2.1\t1\t198.51.100.1\t80\t1700000000.5\tGET\ta\tb\t/\t-\tA\t-\t1\n",
        ]), 0..30),
        pieces in 1..40_usize,
    ) {
        let text = parts.concat();
        let tell = |outcome: Result<(String, Tally), WayError>| match outcome {
            Ok((out, tally)) => format!("{out}{tally:?}"),
            Err(error) => error.to_string(),
        };
        let plan = plan(format, &fields(format));
        let whole = tell(run(plan.clone(), text.as_bytes(), 1, 1));
        prop_assert_eq!(whole, tell(run(plan, text.as_bytes(), pieces, 2)));
    }
}
