-- What servers take is learned again by each process: no refusal costs anything.
DROP TABLE server_traits;
