//! The members that found a cluster, as a setting names them.

use std::collections::BTreeSet;

use tidemark_cluster::{ADDRESS_BYTES_MAX, Member, Members, NodeId};

/// Parses members separated by commas or spaces, each as `NUMBER=PEERS/CLIENTS`.
pub(super) fn members(text: &str) -> Result<Vec<Member>, String> {
    let words = text.split([' ', ',']).filter(|word| !word.is_empty());
    let members: Vec<Member> = words.map(member).collect::<Result<_, _>>()?;
    if members.is_empty() {
        return Ok(members);
    }
    if !matches!(members.len(), 1 | 3 | 5) {
        return Err(format!(
            "names {} members; a cluster begins with 3 or 5, or with 1 that others join",
            members.len()
        ));
    }
    let addresses = members.iter().flat_map(|member| [&member.peer_address, &member.client_address]);
    let mut met = BTreeSet::new();
    if let Some(address) = addresses.into_iter().find(|address| !met.insert(address.as_str())) {
        return Err(format!("has the address {address} twice"));
    }
    match Members::new(members.clone()) {
        Ok(_) => Ok(members),
        Err(error) => Err(format!("is refused: {error}")),
    }
}

/// Parses the addresses of a member that joins: `PEERS/CLIENTS`, or nothing.
pub(super) fn addresses(text: &str) -> Result<Option<(String, String)>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    match text.split_once('/') {
        Some((peers, clients)) if is_address(peers) && is_address(clients) && peers != clients => {
            Ok(Some((peers.to_owned(), clients.to_owned())))
        }
        _ => Err(format!("'{text}' is not PEERS/CLIENTS such as 10.0.0.4:8379/10.0.0.4:7379")),
    }
}

/// Parses servers separated by commas or spaces, each as `HOST:PORT`.
pub(super) fn servers(text: &str) -> Result<Vec<String>, String> {
    let words = text.split([' ', ',']).filter(|word| !word.is_empty());
    let server = |word: &str| {
        if is_address(word) { Ok(word.to_owned()) } else { Err(format!("'{word}' is not HOST:PORT")) }
    };
    words.map(server).collect()
}

/// Returns whether a text is an address as `HOST:PORT`, of at most [`ADDRESS_BYTES_MAX`] bytes.
pub(crate) fn is_address(text: &str) -> bool {
    let port = text.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port);
    let is_plain = text.len() <= ADDRESS_BYTES_MAX
        && text.bytes().all(|byte| byte.is_ascii_graphic() && !b"/,=".contains(&byte));
    is_plain && port.is_some_and(|port| port.parse::<u16>().is_ok_and(|port| port > 0))
}

fn member(word: &str) -> Result<Member, String> {
    let wrong = || format!("'{word}' is not a member such as 1=10.0.0.1:8379/10.0.0.1:7379");
    let (number, addresses) = word.split_once('=').ok_or_else(wrong)?;
    let (peers, clients) = addresses.split_once('/').ok_or_else(wrong)?;
    if !is_address(peers) || !is_address(clients) {
        return Err(wrong());
    }
    Ok(Member {
        id: NodeId(number.parse().map_err(|_| wrong())?),
        peer_address: peers.to_owned(),
        client_address: clients.to_owned(),
        directory: None,
        is_voter: true,
    })
}

/// Longest name of a cluster, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// Parses the name of a cluster. It is a word of a message whose words are separated by spaces.
pub(super) fn cluster_name(text: &str) -> Result<String, String> {
    if text.is_empty() || text.len() > NAME_BYTES_MAX {
        return Err(format!("has {} bytes; a name has 1 to {NAME_BYTES_MAX}", text.len()));
    }
    match text.chars().find(|character| character.is_whitespace() || character.is_control()) {
        Some(character) => Err(format!("has the character {character:?}; a name has no spaces")),
        None => Ok(text.to_owned()),
    }
}

/// Writes members as the setting has them.
pub(super) fn show_members(members: &[Member]) -> String {
    let shown = members.iter().map(|member| {
        let Member { id, peer_address, client_address, .. } = member;
        format!("{id}={peer_address}/{client_address}")
    });
    shown.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREE: &str = "1=10.0.0.1:8379/10.0.0.1:7379,2=b:8379/b:7379,3=[::1]:8379/[::1]:7379";

    #[test]
    fn members_are_shown_as_they_are_given() {
        let three = members(THREE).expect("valid");
        assert_eq!(three.iter().map(|member| member.id.0).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(show_members(&three), THREE);
        assert_eq!(members(&THREE.replace(',', " ")), Ok(three));
        assert_eq!(members(""), Ok(vec![]));
        assert_eq!(members("4=a:1/a:2").expect("valid").len(), 1, "others join it");
    }

    #[test]
    fn a_new_member_says_where_it_is_and_whom_it_asks() {
        let both = ("a:1".to_owned(), "[::1]:2".to_owned());
        assert_eq!((addresses("a:1/[::1]:2"), addresses("")), (Ok(Some(both)), Ok(None)));
        for text in ["a:1", "a:1/a:1", "a/b", "a:1/b:0", "/", "a:1/b:2/c:3"] {
            let refusal = addresses(text).expect_err(text);
            assert!(refusal.contains("is not PEERS/CLIENTS"), "{refusal}");
        }
        assert_eq!(servers("a:1, b:2"), Ok(vec!["a:1".to_owned(), "b:2".to_owned()]));
        assert_eq!(servers(""), Ok(vec![]));
        assert!(servers("a:1,b").expect_err("no port").contains("'b' is not HOST:PORT"));
    }

    #[test]
    fn what_is_no_list_of_members_is_refused_in_words() {
        let refusals = [
            ("1=a:1/a:2,2=b:1/b:2", "3 or 5, or with 1"),
            ("1=a:1/a:2,2=b:1", "'2=b:1' is not a member"),
            ("x=a:1/a:2", "'x=a:1/a:2' is not a member"),
            ("1=a:1/a:2,2=b:1/b:2,3=c:1/:2", "'3=c:1/:2' is not a member"),
            ("1=a:1/a:2,2=b:1/b:2,3=a:1/c:2", "address a:1 twice"),
            ("1=a:1/a:2,1=b:1/b:2,3=c:1/c:2", "name 1"),
            ("0=a:1/a:2,1=b:1/b:2,3=c:1/c:2", "names begin at 1"),
            ("1=a:0/a:2,2=b:1/b:2,3=c:1/c:2", "is not a member"),
        ];
        for (text, words) in refusals {
            let refusal = members(text).expect_err(text);
            assert!(refusal.contains(words), "{text}: {refusal}");
        }
    }
}
