"""Tables, journal, staging, commit, head: where evidence is kept. Fulfils ``schemas.sink.Sink``."""
