"""The places of a durable task with a backup on another host (runtime/durability.md, `host`).

place       which process is the primary: the roles, the commands, and the connections to the other places
address_book  where the places are, as far as this one has learned
link        the primary's end of the connection to its backup
standby     the backup's end
frames      the layout of what goes over it
lines       questions and answers in one line of JSON each; `python -m dtf.places` asks them
"""
