"""What the platforms may do to a message, and what becomes of the answer then.

slack.json, discord.json  every method and endpoint that the program uses, with the errors it documents
documented                these two, read
"""
