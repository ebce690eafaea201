# Which lines and branches of each folder the tests went through, from gcovr's summary: a table, a folder a line.
def share($part; $whole): if $whole == 0 then "-" else "\(1000 * $part / $whole | floor / 10) %" end;
def row($name):
    "| `\($name)` | \(share(map(.line_covered) | add; map(.line_total) | add))"
    + " | \(share(map(.branch_covered) | add; map(.branch_total) | add)) |";

"| folder | lines | branches |", "|---|---|---|",
(.files | map(.folder = (.filename | split("/")[:-1] | join("/"))) | group_by(.folder)[] | row(.[0].folder)),
(.files | row("src"))
