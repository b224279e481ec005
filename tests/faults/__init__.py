"""What platforms may do to a message, and what then happens to the answer.

slack.json, discord.json  every method and endpoint that the program uses, with the errors it documents
documented                these two, read
virtual_time              an event loop in which waiting takes no time
platforms                 both platforms with the real bot on them
cases, playing            the fault matrix, and how a case of it goes
stored                    its last result, and the tables of it in bench/faults.md
endurance                 thousands of runs in one process
"""
