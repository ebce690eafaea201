# Print a table from gcovr's summary: for each folder, how many of its lines and branches the tests have executed.
def share($part; $whole): if $whole == 0 then "-" else "\(1000 * $part / $whole | floor / 10) %" end;
def row($name):
    "| `\($name)` | \(share(map(.line_covered) | add; map(.line_total) | add))"
    + " | \(share(map(.branch_covered) | add; map(.branch_total) | add)) |";

"| folder | lines | branches |", "|---|---|---|",
(.files | map(.folder = (.filename | split("/")[:-1] | join("/"))) | group_by(.folder)[] | row(.[0].folder)),
(.files | row("src"))
