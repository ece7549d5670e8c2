//! The rows of the command table for geographic commands.

use super::{geoadd, geodist, geohash, geopos, search};
use crate::command::{Answer, Command, Group, Handler, KeySpec, Run, flags::*};
use crate::persist::level;
use crate::value::Type;
use crate::watch::part::Part;

const fn row(id: u16, name: &'static str, arity: i16, flags: u32, keys: KeySpec, run: Handler) -> Command {
    Command::new(Group::Geo, id, name, arity, flags, keys, Run::Keys(run))
}

const GROWS: u32 = WRITE | DENYOOM;

const SEARCH_COST: &str = "O(N+log(M)) with N the members around the area and M all of the set";

pub(in crate::command) const COMMANDS: &[Command] = &[
    row(390, "geoadd", -5, GROWS, KeySpec::ONE, geoadd).using(&["RW update"]).doc(
        "3.2.0",
        "O(log(N)) for each member with N the number of members",
        "key [NX | XX] [CH] longitude latitude member [longitude latitude member ...]",
        "Adds members at points on the earth to a sorted set, or moves them.",
    ),
    row(391, "geopos", -2, READONLY, KeySpec::ONE, geopos)
        .answering(Answer::Ordered)
        .at_level(level::VALUES)
        .using(&["RO access"])
        .doc(
            "3.2.0",
            "O(N) with N the number of members asked for",
            "key [member [member ...]]",
            "Returns the longitudes and latitudes of members.",
        )
        .looking_at(|_| Part::elements(Type::SortedSet)),
    row(392, "geohash", -2, READONLY, KeySpec::ONE, geohash)
        .answering(Answer::Ordered)
        .at_level(level::VALUES)
        .using(&["RO access"])
        .doc(
            "3.2.0",
            "O(N) with N the number of members asked for",
            "key [member [member ...]]",
            "Returns the standard geohashes of members.",
        )
        .looking_at(|_| Part::elements(Type::SortedSet)),
    row(393, "geodist", -4, READONLY, KeySpec::ONE, geodist)
        .answering(Answer::Ordered)
        .at_level(level::VALUES)
        .using(&["RO access"])
        .doc(
            "3.2.0",
            "O(1)",
            "key member1 member2 [M | KM | FT | MI]",
            "Returns the distance between two members.",
        )
        .looking_at(|_| Part::elements(Type::SortedSet)),
    row(394, "georadius", -6, GROWS | MOVABLE_KEYS, KeySpec::OneAndStored { from: 6 }, search::georadius)
        .using(&["RO access", "OW update", "OW update"])
        .visiting(search::effort_of_radius)
        .doc(
            "3.2.0",
            SEARCH_COST,
            "key longitude latitude radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] \
             [COUNT count [ANY]] [ASC | DESC] [STORE destination | STOREDIST destination]",
            "Returns or stores the members in a circle around a point: the older form of GEOSEARCH.",
        ),
    row(395, "georadius_ro", -6, READONLY, KeySpec::ONE, search::georadius_ro)
        .answering(Answer::Ordered)
        .at_level(level::VALUES)
        .using(&["RO access"])
        .visiting(search::effort_of_radius)
        .doc(
            "3.2.10",
            SEARCH_COST,
            "key longitude latitude radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] \
             [COUNT count [ANY]] [ASC | DESC]",
            "Returns the members in a circle around a point: the older form of GEOSEARCH.",
        ),
    row(
        396,
        "georadiusbymember",
        -5,
        GROWS | MOVABLE_KEYS,
        KeySpec::OneAndStored { from: 5 },
        search::georadiusbymember,
    )
    .using(&["RO access", "OW update", "OW update"])
    .visiting(search::effort_of_radius_by_member)
    .doc(
        "3.2.0",
        SEARCH_COST,
        "key member radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] \
         [COUNT count [ANY]] [ASC | DESC] [STORE destination | STOREDIST destination]",
        "Returns or stores the members in a circle around a member: the older form of GEOSEARCH.",
    ),
    row(397, "georadiusbymember_ro", -5, READONLY, KeySpec::ONE, search::georadiusbymember_ro)
        .answering(Answer::Ordered)
        .at_level(level::VALUES)
        .using(&["RO access"])
        .visiting(search::effort_of_radius_by_member)
        .doc(
            "3.2.10",
            SEARCH_COST,
            "key member radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] \
             [COUNT count [ANY]] [ASC | DESC]",
            "Returns the members in a circle around a member: the older form of GEOSEARCH.",
        ),
    row(398, "geosearch", -7, READONLY, KeySpec::ONE, search::geosearch)
        .answering(Answer::Ordered)
        .at_level(level::VALUES)
        .using(&["RO access"])
        .visiting(search::effort_of_search)
        .doc(
            "6.2.0",
            SEARCH_COST,
            "key <FROMMEMBER member | FROMLONLAT longitude latitude> \
             <BYRADIUS radius <M | KM | FT | MI> | BYBOX width height <M | KM | FT | MI>> \
             [ASC | DESC] [COUNT count [ANY]] [WITHCOORD] [WITHDIST] [WITHHASH]",
            "Returns the members in a circle or a box around a point or a member.",
        ),
    row(399, "geosearchstore", -8, GROWS, KeySpec::TWO, search::geosearchstore)
        .using(&["OW update", "RO access"])
        .visiting(search::effort_of_search_store)
        .doc(
            "6.2.0",
            SEARCH_COST,
            "destination source <FROMMEMBER member | FROMLONLAT longitude latitude> \
             <BYRADIUS radius <M | KM | FT | MI> | BYBOX width height <M | KM | FT | MI>> \
             [ASC | DESC] [COUNT count [ANY]] [STOREDIST]",
            "Stores the members in a circle or a box around a point or a member.",
        ),
];
