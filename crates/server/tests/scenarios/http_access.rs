//! HTTP access: the server answers no web page of another origin, at any target.

use crate::common::TestServer;

/// Every target that reveals or changes data.
const DOORS: [&str; 6] = [
    "/metrics",
    "/v1/watch?command=KEYS&arg=*i*",
    "/v1/changes?from=0",
    "/check?api_key=k",
    "/release?api_key=k",
    "/v1/watch?command=GET&arg=k",
];

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).expect("a status")
}

#[test]
fn a_page_of_others_gets_nothing_at_any_door() {
    let server = TestServer::with_http(|_| {});
    let mut client = server.client();
    client.ask("SET k v", "+OK\r\n");
    for target in DOORS {
        for headers in [
            // An image: the browser sends no `Origin`.
            "Host: localhost\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\nSec-Fetch-Dest: image\r\n",
            "Host: localhost\r\nSec-Fetch-Site: same-site\r\n",
            "Host: localhost\r\nOrigin: https://a.example\r\n",
            "Host: localhost\r\nOrigin: null\r\n",
            // DNS rebinding: an attacker's name that resolves to this machine.
            "Host: a.example\r\n",
            "Host: a.example\r\nOrigin: http://a.example\r\n",
        ] {
            let answer = server.http_with(target, headers);
            assert_eq!(status(&answer), "403", "{target} with {headers}");
        }
    }
    assert!(server.http("/metrics").contains("\ntidemark_watched_reads 0.0\n"), "nothing is watched");
    client.ask("DBSIZE", ":1\r\n");
    // Health reveals no data, and probes may ask for it under any host name.
    for target in ["/health/live", "/health/ready"] {
        assert_eq!(status(&server.http_with(target, "Host: a.example\r\n")), "200");
    }
    assert_eq!(status(&server.http("/metrics")), "200");
}
