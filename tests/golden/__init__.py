"""Golden runs: what leaves the program while people use it, recorded by `make golden` and compared by the suite.

scenarios.txt  what people do, a row each       office    the program, its servers and its people
recorded/      what left the program then       edges     what left it, as text
kept/          a data folder of an earlier version
"""
