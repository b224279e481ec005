-- An answer is found by any word of its title, and listed with its first sentence.
ALTER TABLE conversations DROP folded, DROP members, DROP agreement;
